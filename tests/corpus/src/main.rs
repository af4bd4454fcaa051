//! The command `kopf-corpus`.

use std::process::ExitCode;

fn main() -> ExitCode {
    kopf_corpus::cli::main()
}
