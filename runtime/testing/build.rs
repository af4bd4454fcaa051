//! This program has two tasks. Cargo runs it as the build script: it then copies itself. Tests run the
//! copy, which keeps the control plane while test processes come and go: a library has no other way
//! to bring a program along.

use std::path::PathBuf;
use std::process::ExitCode;
use std::{env, fs, io};

fn main() -> ExitCode {
    let outcome = match kopf_cluster::subcommand::run(env::args_os().skip(1)) {
        Some(outcome) => outcome.map_err(|failure| failure.message().to_owned()),
        None => install().map_err(|error| error.to_string()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            use io::Write as _;
            // There is nowhere else to report to.
            let _ = writeln!(io::stderr(), "{message}");
            ExitCode::FAILURE
        }
    }
}

fn install() -> io::Result<()> {
    use io::Write as _;
    let folder = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let program = PathBuf::from(folder).join("control-plane");
    // A running copy cannot be overwritten, but it can be replaced.
    let copy = program.with_extension("new");
    fs::copy(env::current_exe()?, &copy)?;
    fs::rename(&copy, &program)?;
    let mut out = io::stdout();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(
        out,
        "cargo::rustc-env=KOPF_CONTROL_PLANE={}",
        program.display()
    )
}
