//! Both sides over the same files in one run, as a table.

use std::{env, fs, io, process};

use super::{Error, VersusArgs, say};
use crate::corpus::{Corpus, DefinitionFile, Part};
use crate::generated::{self, Which};
use crate::kopium;
use crate::meter::{self, Cost};
use crate::scratch::{self, Bond, Judge, Module, Scratch, Supply, scratch_root};

/// What one side made and what it cost.
struct Side {
    modules: usize,
    lines: usize,
    generation: Cost,
    compiling: usize,
    compilation: Cost,
}

pub(super) fn versus(arguments: &VersusArgs) -> Result<(), Error> {
    let corpus = Corpus::locate()?;
    let root = arguments
        .root
        .clone()
        .unwrap_or_else(|| scratch_root().join("kopium/install"));
    kopium::install(&root)?;
    let all = corpus.files(Part::All);
    let drawn = corpus.files(Part::Drawn(arguments.drawn));

    let our_cost = cost_of_ours()?;
    let our_lines = scratch::lines(&generated::generate(&all, Which::Preferred)?.modules);
    let theirs = kopium::harvest(&root, &all)?;
    let their_drawn = drawn_from(&theirs.modules, &drawn);
    let ours = generated::generate(&drawn, Which::Preferred)?.modules;
    let (our_compiling, our_compilation) = compile(&generated::SUPPLY, &ours, Bond::Entangled)?;
    let (compiling, compilation) = compile(&kopium::SUPPLY, &their_drawn, Bond::Independent)?;
    table(
        arguments.drawn,
        &Side {
            modules: ours.len(),
            lines: our_lines,
            generation: our_cost,
            compiling: our_compiling,
            compilation: our_compilation,
        },
        &Side {
            modules: their_drawn.len(),
            lines: scratch::lines(&theirs.modules),
            generation: theirs.cost,
            compiling,
            compilation,
        },
    )
}

/// All files and all served versions in a process of its own.
fn cost_of_ours() -> Result<Cost, Error> {
    let scratch = scratch_root();
    let folder = scratch.join("generated");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut writing = process::Command::new(env::current_exe()?);
    writing.arg("write").arg(&folder);
    let (output, cost) = meter::run(&writing, &scratch)?;
    if output.status.success() {
        Ok(cost)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into())
    }
}

fn drawn_from(modules: &[Module], drawn: &[&DefinitionFile]) -> Vec<Module> {
    let names: Vec<String> = drawn.iter().map(|file| kopium::module_name(file)).collect();
    let wanted = modules.iter().filter(|one| names.contains(&one.name));
    wanted.cloned().collect()
}

/// How many modules compile, and what that costs once those that do not are gone.
fn compile(supply: &Supply, modules: &[Module], bond: Bond) -> Result<(usize, Cost), Error> {
    let scratch = Scratch::create("check", supply)?;
    scratch.warm(Judge::Check)?;
    let verdict = scratch.judge(Judge::Check, modules, bond)?;
    Ok((
        modules.len().saturating_sub(verdict.complaints.len()),
        verdict.cost,
    ))
}

fn table(drawn: usize, ours: &Side, theirs: &Side) -> Result<(), Error> {
    let seconds = |cost: &Cost| cost.cpu.as_secs_f64();
    say(format_args!(
        "| | kopf-gen | kopium {} |\n| --- | ---: | ---: |",
        kopium::VERSION
    ))?;
    say(format_args!(
        "| lines of Rust, one version each | {} | {} |",
        ours.lines, theirs.lines
    ))?;
    say(format_args!(
        "| CPU seconds to generate, kopf-gen all served versions | {:.1} | {:.1} |",
        seconds(&ours.generation),
        seconds(&theirs.generation)
    ))?;
    say(format_args!(
        "| {drawn} drawn definitions: modules that compile | {} of {} | {} of {} |",
        ours.compiling, ours.modules, theirs.compiling, theirs.modules
    ))?;
    say(format_args!(
        "| … CPU seconds of `cargo check` | {:.0} | {:.0} |",
        seconds(&ours.compilation),
        seconds(&theirs.compilation)
    ))?;
    say(format_args!(
        "| … megabytes of `cargo check` | {} | {} |",
        ours.compilation.megabytes(),
        theirs.compilation.megabytes()
    ))
}
