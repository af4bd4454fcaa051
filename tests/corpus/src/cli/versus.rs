//! The command `versus`: kopf-gen and kopium over the same files in one run, as a table.

use std::{env, fs, io, process};

use super::{CorpusArgs, Error, VersusArgs, print};
use crate::command_cost::{self, CommandCost};
use crate::corpus::{DefinitionFile, Subset};
use crate::generated::{self, VersionSubset};
use crate::kopium;
use crate::scratch_crate::{
    self, CargoCommand, CrateDependencies, GeneratedModule, ModuleCoupling, ScratchCrate,
    scratch_root,
};

/// The output and the cost of one generator.
struct GeneratorFigures {
    modules: usize,
    lines: usize,
    generation: CommandCost,
    compiling: usize,
    compilation: CommandCost,
}

pub(super) fn versus(arguments: &VersusArgs) -> Result<(), Error> {
    let corpus = arguments.corpus.open()?;
    let root = arguments
        .root
        .clone()
        .unwrap_or_else(|| scratch_root().join("kopium/install"));
    kopium::install(&root)?;
    let all = corpus.files(Subset::All);
    let drawn = corpus.files(Subset::Drawn(arguments.drawn));

    let our_cost = cost_of_ours(&arguments.corpus)?;
    let our_lines =
        scratch_crate::lines(&generated::generate(&all, VersionSubset::Preferred)?.modules);
    let theirs = kopium::generate(&root, &all)?;
    let their_drawn = drawn_from(&theirs.modules, &drawn);
    let ours = generated::generate(&drawn, VersionSubset::Preferred)?.modules;
    let (our_compiling, our_compilation) =
        compile(&generated::DEPENDENCIES, &ours, ModuleCoupling::Coupled)?;
    let (compiling, compilation) = compile(
        &kopium::DEPENDENCIES,
        &their_drawn,
        ModuleCoupling::Independent,
    )?;
    table(
        arguments.drawn,
        &GeneratorFigures {
            modules: ours.len(),
            lines: our_lines,
            generation: our_cost,
            compiling: our_compiling,
            compilation: our_compilation,
        },
        &GeneratorFigures {
            modules: their_drawn.len(),
            lines: scratch_crate::lines(&theirs.modules),
            generation: theirs.cost,
            compiling,
            compilation,
        },
    )
}

/// The cost of generating all files and all served versions in a process of its own.
fn cost_of_ours(corpus: &CorpusArgs) -> Result<CommandCost, Error> {
    let scratch = scratch_root();
    let folder = scratch.join("generated");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut writing = process::Command::new(env::current_exe()?);
    writing.arg("write").args(corpus.arguments()).arg(&folder);
    let (output, cost) = command_cost::run(&writing, &scratch)?;
    if output.status.success() {
        Ok(cost)
    } else {
        Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()).into())
    }
}

fn drawn_from(modules: &[GeneratedModule], drawn: &[&DefinitionFile]) -> Vec<GeneratedModule> {
    let names: Vec<String> = drawn.iter().map(|file| kopium::module_name(file)).collect();
    let wanted = modules.iter().filter(|one| names.contains(&one.name));
    wanted.cloned().collect()
}

/// The number of modules that compile, and the cost of compiling those.
fn compile(
    dependencies: &CrateDependencies,
    modules: &[GeneratedModule],
    coupling: ModuleCoupling,
) -> Result<(usize, CommandCost), Error> {
    let scratch = ScratchCrate::create("check", dependencies)?;
    scratch.compile_dependencies(CargoCommand::Check)?;
    let report = scratch.check_modules(CargoCommand::Check, modules, coupling)?;
    Ok((
        modules.len().saturating_sub(report.errors.len()),
        report.cost,
    ))
}

fn table(drawn: usize, ours: &GeneratorFigures, theirs: &GeneratorFigures) -> Result<(), Error> {
    let seconds = |cost: &CommandCost| cost.cpu.as_secs_f64();
    print(format_args!(
        "| | kopf-gen | kopium {} |\n| --- | ---: | ---: |",
        kopium::VERSION
    ))?;
    print(format_args!(
        "| lines of Rust, one version each | {} | {} |",
        ours.lines, theirs.lines
    ))?;
    print(format_args!(
        "| CPU seconds to generate, kopf-gen all served versions | {:.1} | {:.1} |",
        seconds(&ours.generation),
        seconds(&theirs.generation)
    ))?;
    print(format_args!(
        "| {drawn} drawn definitions: modules that compile | {} of {} | {} of {} |",
        ours.compiling, ours.modules, theirs.compiling, theirs.modules
    ))?;
    print(format_args!(
        "| … CPU seconds of `cargo check` | {:.0} | {:.0} |",
        seconds(&ours.compilation),
        seconds(&theirs.compilation)
    ))?;
    print(format_args!(
        "| … megabytes of `cargo check` | {} | {} |",
        ours.compilation.megabytes(),
        theirs.compilation.megabytes()
    ))
}
