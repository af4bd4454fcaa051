//! The `kopf-gen` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    kopf_gen::cli::main()
}
