//! Indices: memory per entry, and CPU time of lookups and changes, compared with Kopf's.

use std::env;
use std::path::Path;
use std::process::Command;

use clap::Args;
use kopf_tests::{PythonKopf, TestFailure, TestResult};

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects have one entry each
    #[arg(long, default_value_t = 100_000)]
    objects: usize,
    /// How many lookups, and how many changes, are made
    #[arg(long, default_value_t = 1_000_000)]
    operations: usize,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    let Options {
        objects,
        operations,
    } = options;
    println!("{objects} objects with one entry each, {operations} lookups and changes, CPU time");
    println!(
        "{:<6} {:>8} {:>12} {:>10} {:>10}",
        "peer", "keys", "bytes/entry", "lookup ns", "change ns"
    );
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/index.py");
    let kopf = PythonKopf::obtain().await?;
    let ours = env::current_exe()?.with_file_name("bench-index");
    for keys in [*objects, (objects / 100).max(1), 1] {
        let numbers = [*objects, keys, *operations].map(|number| number.to_string());
        for (peer, mut program) in [
            ("kopf", kopf.script(&script)),
            ("ours", Command::new(&ours)),
        ] {
            let figures = figures(program.args(&numbers))?;
            println!(
                "{peer:<6} {keys:>8} {:>12.0} {:>10.0} {:>10.0}",
                figures[0], figures[1], figures[2]
            );
        }
    }
    Ok(())
}

fn figures(program: &mut Command) -> Result<[f64; 3], TestFailure> {
    let output = program.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let figures: Vec<f64> = text
        .split_whitespace()
        .filter_map(|figure| figure.parse().ok())
        .collect();
    figures.try_into().map_err(|_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        TestFailure::new(format!("no figures: {errors}"))
    })
}
