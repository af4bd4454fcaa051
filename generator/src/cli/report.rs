//! Prints diagnostics to standard error.

use std::io::{self, Write};

use super::progress::Progress;
use super::{Format, Status};
use crate::diagnostic::{Diagnostics, Severity, Sources, Style, human, json};

/// Where problems go.
#[derive(Debug)]
pub struct Report {
    format: Format,
    style: Style,
    level: Severity,
    progress: Progress,
}

impl Report {
    /// Prints what is at least as serious as `level`.
    #[must_use]
    pub fn new(format: Format, style: Style, level: Severity) -> Self {
        let is_chatty = format == Format::Human && level > Severity::Error;
        Self {
            format,
            style,
            level,
            progress: if is_chatty {
                Progress::on_terminal()
            } else {
                Progress::default()
            },
        }
    }

    /// What is being done from now on; people at a terminal are told if it takes long.
    pub(super) fn begin(&mut self, what: &'static str) {
        self.progress.begin(what);
    }

    /// Nothing is being done any more, or something else is about to be printed.
    pub(super) fn rest(&mut self) {
        self.progress.rest();
    }

    /// Prints all problems that are serious enough.
    pub fn print(&mut self, diagnostics: &Diagnostics, sources: &Sources) {
        self.progress.rest();
        let mut out = io::stderr().lock();
        for diagnostic in diagnostics.iter().filter(|d| d.severity <= self.level) {
            let text = match self.format {
                Format::Human => human(diagnostic, sources, self.style) + "\n",
                Format::Json => json(diagnostic, sources).to_string(),
            };
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(out, "{text}");
        }
    }

    /// Prints a line that belongs to no diagnostic, unless only errors are wanted.
    pub fn say(&mut self, line: &str) {
        if self.level > Severity::Error && self.format == Format::Human {
            self.progress.rest();
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Says what becomes of a file: a line for people, or an object on standard output for programs.
    pub fn file(&mut self, action: &str, path: &str) {
        match self.format {
            Format::Human => self.say(&format!("{action} {path}")),
            Format::Json => {
                let line = serde_json::json!({"action": action, "path": path}).to_string();
                let _ = writeln!(io::stdout().lock(), "{line}");
            }
        }
    }

    /// Prints why a command cannot go on.
    pub fn fail(&mut self, message: &str) -> Status {
        self.progress.rest();
        let line = match self.format {
            Format::Human => format!("error: {message}"),
            Format::Json => {
                serde_json::json!({"severity": "error", "message": message}).to_string()
            }
        };
        let _ = writeln!(io::stderr().lock(), "{line}");
        Status::Invalid
    }

    /// Prints an error with its causes.
    pub fn fail_with(&mut self, error: &dyn std::error::Error) -> Status {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        self.fail(&message)
    }
}
