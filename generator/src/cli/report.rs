//! Prints diagnostics to standard error.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::progress::Progress;
use super::{Format, Status};
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Sources, Style, human, json};

/// Where problems go.
#[derive(Debug)]
pub struct Report {
    format: Format,
    style: Style,
    verbosity: Verbosity,
    progress: Progress,
}

/// How much the user wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verbosity {
    /// Errors only.
    Quiet,
    /// Also warnings, and notes that are new.
    Normal,
    /// Everything.
    Verbose,
}

/// Which notes the user has been told of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Told<'a> {
    /// None, or this command is there to tell them again.
    Nothing,
    /// Those with these titles.
    Notes(&'a BTreeSet<String>),
}

impl Report {
    /// Prints as much as the user wants to be told.
    #[must_use]
    pub fn new(format: Format, style: Style, verbosity: Verbosity) -> Self {
        let is_chatty = format == Format::Human && verbosity != Verbosity::Quiet;
        Self {
            format,
            style,
            verbosity,
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

    /// So many kinds are done of what is being done.
    pub(super) fn advance(&mut self, done: usize, total: usize) {
        self.progress.advance(done, total);
    }

    /// Nothing is being done any more, or something else is about to be printed.
    pub(super) fn rest(&mut self) {
        self.progress.rest();
    }

    /// Prints all problems that the user wants to be told of, and has not been.
    pub(super) fn print(&mut self, diagnostics: &Diagnostics, sources: &Sources, told: Told<'_>) {
        self.progress.rest();
        // What a manifest implies is of no interest while it has to be mended.
        let is_news = |note: &Diagnostic| !diagnostics.has_errors() && told.lacks(note);
        let is_wanted = |diagnostic: &&Diagnostic| match (diagnostic.severity, self.verbosity) {
            (Severity::Error, _) | (_, Verbosity::Verbose) => true,
            (Severity::Warning, Verbosity::Normal) => true,
            (Severity::Note, Verbosity::Normal) => is_news(diagnostic),
            (Severity::Info, Verbosity::Normal) | (_, Verbosity::Quiet) => false,
        };
        let mut out = io::stderr().lock();
        for diagnostic in diagnostics.iter().filter(is_wanted) {
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
        if self.verbosity != Verbosity::Quiet && self.format == Format::Human {
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

// === impl Told ===

impl Told<'_> {
    fn lacks(self, note: &Diagnostic) -> bool {
        match self {
            Self::Nothing => true,
            Self::Notes(titles) => !titles.contains(&note.title()),
        }
    }
}
