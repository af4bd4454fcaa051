//! The commands for the types of kopf-gen: synthesise, generate, write, determinism, check, roundtrip.

use std::io::{self, Write as _};
use std::{env, fs, process};

use super::{CheckArgs, Error, Selection, WriteArgs, print, print_report, run_roundtrip};
use crate::corpus::DefinitionFile;
use crate::generated::{self, Generated, VersionSubset};
use crate::scratch_crate::{self, ModuleCoupling, ScratchCrate, scratch_root};
use crate::synthesis::{self, Filling};
use crate::{command_cost, definition};

pub(super) fn synthesise(selection: &Selection) -> Result<(), Error> {
    let corpus = selection.corpus.open()?;
    let (mut versions, mut objects, mut bytes, mut unsatisfied) = (0, 0, 0, 0);
    for file in corpus.files(selection.subset()) {
        for version in definition::versions(&file.definition()?) {
            versions += 1;
            for synthetic in synthesis::objects(&version) {
                objects += 1;
                bytes += synthetic.object.to_string().len();
                if let Some(violation) = &synthetic.violation {
                    unsatisfied += 1;
                    if synthetic.turn == 0 || synthetic.filling != Filling::Maximal {
                        print(format_args!(
                            "{} {}: {} object violates {violation}",
                            file.stem, version.name, synthetic.filling
                        ))?;
                    }
                }
            }
        }
    }
    print(format_args!(
        "{versions} versions, {objects} objects, {bytes} bytes, {unsatisfied} objects against their schema"
    ))
}

pub(super) fn generate(selection: &Selection) -> Result<(), Error> {
    // The copy of this program would report a missing folder only through its output.
    selection.corpus.open()?;
    let scratch = scratch_root();
    let folder = scratch.join("generated");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut writing = process::Command::new(env::current_exe()?);
    writing
        .arg("write")
        .args(selection.arguments())
        .arg(&folder);
    let (output, cost) = command_cost::run(&writing, &scratch)?;
    io::stdout().write_all(&output.stdout)?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into());
    }
    print(format_args!(
        "{:.2} CPU s, {} MB at the peak, with writing{}",
        cost.cpu.as_secs_f64(),
        cost.megabytes(),
        if cfg!(debug_assertions) {
            "; build with --release for the figures"
        } else {
            ""
        },
    ))
}

pub(super) fn write(arguments: &WriteArgs) -> Result<(), Error> {
    let corpus = arguments.selection.corpus.open()?;
    let files = corpus.files(arguments.selection.subset());
    let generated = generate_types(&files, arguments.selection.choice())?;
    generated::write(&generated.modules, &arguments.folder)?;
    print(format_args!(
        "{} of {} files, {} versions, {} lines",
        generated.modules.len(),
        files.len(),
        generated.roots.len(),
        scratch_crate::lines(&generated.modules),
    ))?;
    match generated.failures.len() {
        0 => Ok(()),
        count => Err(Error::Failures(count)),
    }
}

pub(super) fn determinism(selection: &Selection) -> Result<(), Error> {
    let corpus = selection.corpus.open()?;
    let mut files = corpus.files(selection.subset());
    let forwards = generate_types(&files, selection.choice())?;
    files.reverse();
    let backwards = generate_types(&files, selection.choice())?;
    let different = forwards
        .modules
        .iter()
        .filter(|module| !backwards.modules.contains(module))
        .count();
    print(format_args!(
        "{} modules twice, {different} different",
        forwards.modules.len()
    ))?;
    match different + forwards.failures.len() {
        0 => Ok(()),
        count => Err(Error::Different(count)),
    }
}

pub(super) fn check(arguments: &CheckArgs) -> Result<(), Error> {
    let corpus = arguments.selection.corpus.open()?;
    let files = corpus.files(arguments.selection.subset());
    let generated = generate_types(&files, arguments.selection.choice())?;
    let scratch = ScratchCrate::create("check", &generated::DEPENDENCIES)?;
    scratch.compile_dependencies(arguments.cargo)?;
    let report =
        scratch.check_modules(arguments.cargo, &generated.modules, ModuleCoupling::Coupled)?;
    print_report(&report, generated.modules.len())?;
    match report.errors.len() {
        0 => Ok(()),
        count => Err(Error::CompilerErrors(count)),
    }
}

pub(super) fn roundtrip(selection: &Selection) -> Result<(), Error> {
    let corpus = selection.corpus.open()?;
    let files = corpus.files(selection.subset());
    let generated = generate_types(&files, selection.choice())?;
    let cases = generated::cases(&corpus, &files, &generated)?;
    run_roundtrip(&generated::DEPENDENCIES, &generated.modules, cases)
}

/// Generates the types of the files, and prints the generator's errors.
fn generate_types(files: &[&DefinitionFile], choice: VersionSubset) -> Result<Generated, Error> {
    let generated = generated::generate(files, choice)?;
    for failure in &generated.failures {
        print(format_args!("{failure}"))?;
    }
    Ok(generated)
}
