//! The `kopf-gen` command.

use std::panic::resume_unwind;
use std::process::ExitCode;
use std::thread;

/// Parsers and visitors of Rust text use stack for each level of an expression; see
/// `splice::too_deep` for the levels that they get. The system gives memory only for what is used.
const STACK_SIZE: usize = 256 << 20;

fn main() -> ExitCode {
    let command = thread::Builder::new()
        .name("main".to_owned())
        .stack_size(STACK_SIZE)
        .spawn(kopf_gen::cli::main);
    // Without such a thread, a usual stack does for usual files.
    let Ok(command) = command else {
        return kopf_gen::cli::main();
    };
    // The message of a panic is printed already.
    command.join().unwrap_or_else(|panic| resume_unwind(panic))
}
