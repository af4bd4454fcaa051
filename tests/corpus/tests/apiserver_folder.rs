//! Any folder of definitions and their objects on a real API server.
//!
//! `cargo test -p kopf-corpus --test apiserver_folder -- --corpus FOLDER`; the test command leaves
//! it out, for it needs the folder.

#[path = "apiserver/check.rs"]
mod check;
#[path = "apiserver/server.rs"]
mod server;
#[path = "apiserver/summary.rs"]
mod summary;

use std::io::{self, Write as _};
use std::path::PathBuf;

use clap::Parser;
use kopf_corpus::corpus::{Corpus, Subset};
use kopf_tests::{TestFailure, TestResult};

/// Sends the objects of definitions to a real API server, before and after the types.
#[derive(Debug, Parser)]
struct Cli {
    /// The folder of the definitions, `*.yaml`
    #[arg(long, value_name = "FOLDER", env = "KOPF_CORPUS")]
    corpus: PathBuf,
    /// Each N-th file
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
}

#[tokio::main]
async fn main() -> TestResult {
    let arguments = Cli::parse();
    let corpus = Corpus::open(&arguments.corpus)?;
    let summary = check::check(&corpus, Subset::Every(arguments.every)).await?;
    for problem in summary.problems() {
        writeln!(io::stdout(), "{problem}")?;
    }
    match summary.changed() {
        0 => Ok(()),
        count => Err(TestFailure::new(format!(
            "the types change {count} objects that the API server accepts"
        ))),
    }
}
