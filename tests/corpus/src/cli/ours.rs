//! The commands about our types.

use std::io::{self, Write as _};
use std::{env, fs, process};

use super::{CheckArgs, Error, Selection, WriteArgs, pronounce, say, travel};
use crate::corpus::{Corpus, DefinitionFile};
use crate::generated::{self, Generated, Which};
use crate::scratch::{self, Bond, Scratch, scratch_root};
use crate::synthesis::{self, Filling};
use crate::{definition, meter};

pub(super) fn synthesise(selection: Selection) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let (mut versions, mut objects, mut bytes, mut unsatisfied) = (0, 0, 0, 0);
    for file in corpus.files(selection.part()) {
        for version in definition::versions(&file.definition()?) {
            versions += 1;
            for synthetic in synthesis::objects(&version) {
                objects += 1;
                bytes += synthetic.object.to_string().len();
                if let Some(violation) = &synthetic.violation {
                    unsatisfied += 1;
                    if synthetic.turn == 0 || synthetic.filling != Filling::Maximal {
                        say(format_args!(
                            "{} {}: {} object violates {violation}",
                            file.stem, version.name, synthetic.filling
                        ))?;
                    }
                }
            }
        }
    }
    say(format_args!(
        "{versions} versions, {objects} objects, {bytes} bytes, {unsatisfied} objects against their schema"
    ))
}

pub(super) fn generate(selection: Selection) -> Result<(), Error> {
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
    let (output, cost) = meter::run(&writing, &scratch)?;
    io::stdout().write_all(&output.stdout)?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into());
    }
    say(format_args!(
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
    let corpus = Corpus::locate()?;
    let files = corpus.files(arguments.selection.part());
    let generated = harvest(&files, arguments.selection.which())?;
    generated::write(&generated.modules, &arguments.folder)?;
    say(format_args!(
        "{} of {} files, {} versions, {} lines",
        generated.modules.len(),
        files.len(),
        generated.roots.len(),
        scratch::lines(&generated.modules),
    ))?;
    match generated.failures.len() {
        0 => Ok(()),
        count => Err(Error::Failures(count)),
    }
}

pub(super) fn determinism(selection: Selection) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let mut files = corpus.files(selection.part());
    let forwards = harvest(&files, selection.which())?;
    files.reverse();
    let backwards = harvest(&files, selection.which())?;
    let different = forwards
        .modules
        .iter()
        .filter(|module| !backwards.modules.contains(module))
        .count();
    say(format_args!(
        "{} modules twice, {different} different",
        forwards.modules.len()
    ))?;
    match different + forwards.failures.len() {
        0 => Ok(()),
        count => Err(Error::Different(count)),
    }
}

pub(super) fn check(arguments: &CheckArgs) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let files = corpus.files(arguments.selection.part());
    let generated = harvest(&files, arguments.selection.which())?;
    let scratch = Scratch::create("check", &generated::SUPPLY)?;
    scratch.warm(arguments.judge)?;
    let verdict = scratch.judge(arguments.judge, &generated.modules, Bond::Entangled)?;
    pronounce(&verdict, generated.modules.len())?;
    match verdict.complaints.len() {
        0 => Ok(()),
        count => Err(Error::Complaints(count)),
    }
}

pub(super) fn roundtrip(selection: Selection) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let files = corpus.files(selection.part());
    let generated = harvest(&files, selection.which())?;
    let cases = generated::cases(&corpus, &files, &generated)?;
    travel(&generated::SUPPLY, &generated.modules, cases)
}

/// The types of the files; what the generator refuses is told.
fn harvest(files: &[&DefinitionFile], which: Which) -> Result<Generated, Error> {
    let generated = generated::generate(files, which)?;
    for failure in &generated.failures {
        say(format_args!("{failure}"))?;
    }
    Ok(generated)
}
