//! `kopf-gen explain`: prints the explanation of a diagnostic code.

use std::io::{self, Write};

use clap::Args;

use super::exit_status::CommandStatus;
use crate::diagnostic::Code;

/// Explain a diagnostic code
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The code, such as KG0102; without it, the command lists all codes
    code: Option<Code>,
}

pub(super) fn run(args: &ExplainArgs) -> CommandStatus {
    let text = match args.code {
        Some(code) => {
            let lines = code
                .explanation()
                .lines()
                .map(|line| format!("{}\n", line.trim()));
            format!("{code}: {}", lines.collect::<String>())
        }
        None => Code::ALL
            .iter()
            .map(|code| {
                format!(
                    "{code}  {}\n",
                    code.explanation().lines().next().unwrap_or("").trim()
                )
            })
            .collect(),
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => CommandStatus::Ok,
        Err(_) => CommandStatus::Invalid,
    }
}
