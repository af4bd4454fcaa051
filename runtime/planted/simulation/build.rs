//! Switches the planted faults on, for this package only.

use std::io::{self, Write as _};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "cargo::rustc-cfg=kopf_planted_faults")
}
