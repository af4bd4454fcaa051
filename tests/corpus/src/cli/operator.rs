//! The command `operator`: the cost of `kopf-gen new` for ten real definitions, and of `generate` after it.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;
use std::{fs, io};

use super::{CorpusArgs, Error, generator, print};
use crate::command_cost::{self, CommandCost};
use crate::corpus::Subset;
use crate::scratch_crate::scratch_root;

/// Ten widespread definitions: large, medium and small ones, with different kinds of schemas.
const TEN: [&str; 10] = [
    "argoproj+argo-cd__applications.argoproj.io",
    "argoproj+argo-workflows__workflowtaskresults.argoproj.io",
    "cert-manager+cert-manager__certificates.cert-manager.io",
    "crossplane+crossplane__compositions.apiextensions.crossplane.io",
    "fluxcd+helm-controller__helmreleases.helm.toolkit.fluxcd.io",
    "fluxcd+source-controller__gitrepositories.source.toolkit.fluxcd.io",
    "kedacore+keda__scaledjobs.keda.sh",
    "knative+serving__services.serving.knative.dev",
    "ray-project+kuberay__rayclusters.ray.io",
    "vmware-tanzu+velero__backups.velero.io",
];

pub(super) fn operator(arguments: &CorpusArgs) -> Result<(), Error> {
    let corpus = arguments.open()?;
    let files = corpus.files(Subset::All);
    let definitions = TEN
        .into_iter()
        .map(|stem| {
            let file = files.iter().find(|file| file.stem == stem);
            file.map(|file| file.path.as_path())
                .ok_or(Error::MissingDefinition(stem))
        })
        .collect::<Result<Vec<&Path>, Error>>()?;
    let scratch = scratch_root().join("operator");
    if scratch.exists() {
        fs::remove_dir_all(&scratch)?;
    }
    fs::create_dir_all(&scratch)?;
    let mut making: Vec<OsString> = ["-q", "new", "ten", "--runtime-version", "1.0.0"]
        .map(OsString::from)
        .to_vec();
    for definition in &definitions {
        making.extend([OsString::from("--crd"), definition.into()]);
    }
    let made = run(&making, &scratch)?;
    let folder = scratch.join("ten");
    let before = newest(&folder)?;
    let again = run(&["-q", "generate"].map(OsString::from), &folder)?;
    print(format_args!(
        "{} definitions: new {:.2} CPU s, {} MB; generate with nothing to do {:.2} CPU s, files {}",
        definitions.len(),
        made.cpu.as_secs_f64(),
        made.megabytes(),
        again.cpu.as_secs_f64(),
        if newest(&folder)? == before {
            "untouched"
        } else {
            "touched"
        },
    ))
}

fn run(arguments: &[OsString], folder: &Path) -> Result<CommandCost, Error> {
    let mut command = Command::new(generator()?);
    command.args(arguments).current_dir(folder);
    let (output, cost) = command_cost::run(&command, &scratch_root())?;
    if output.status.success() {
        Ok(cost)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into())
    }
}

/// The time of the last write to a file below a folder.
fn newest(folder: &Path) -> io::Result<SystemTime> {
    let mut newest = SystemTime::UNIX_EPOCH;
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let time = if path.is_dir() {
            self::newest(&path)?
        } else {
            fs::metadata(&path)?.modified()?
        };
        newest = newest.max(time);
    }
    Ok(newest)
}
