//! Prints diagnostics to standard error.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::output_args::{OutputFormat, OutputVerbosity};
use super::progress::ProgressLine;
use super::status::CommandStatus;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Sources, Style, human, json};

/// Where problems go.
#[derive(Debug)]
pub(super) struct Console {
    format: OutputFormat,
    style: Style,
    verbosity: OutputVerbosity,
    progress: ProgressLine,
}

/// Which notes the user has been told of.
#[derive(Clone, Copy, Debug)]
pub(super) enum PrintedNotes<'a> {
    /// None, or this command is there to tell them again.
    None,
    /// Those with these titles.
    Titles(&'a BTreeSet<String>),
}

impl Console {
    /// Prints as much as the user wants to be told.
    #[must_use]
    pub(super) fn new(format: OutputFormat, style: Style, verbosity: OutputVerbosity) -> Self {
        let is_chatty = format == OutputFormat::Human && verbosity != OutputVerbosity::Quiet;
        Self {
            format,
            style,
            verbosity,
            progress: if is_chatty {
                ProgressLine::on_terminal()
            } else {
                ProgressLine::default()
            },
        }
    }

    /// What is being done from now on; people at a terminal are told if it takes long.
    pub(super) fn begin_task(&mut self, what: &'static str) {
        self.progress.begin(what);
    }

    /// So many kinds are done of what is being done.
    pub(super) fn advance(&mut self, done: usize, total: usize) {
        self.progress.advance(done, total);
    }

    /// Nothing is being done any more, or something else is about to be printed.
    pub(super) fn clear_progress(&mut self) {
        self.progress.clear();
    }

    /// Prints all problems that the user wants to be told of, and has not been.
    pub(super) fn print_diagnostics(
        &mut self,
        diagnostics: &Diagnostics,
        sources: &Sources,
        earlier: PrintedNotes<'_>,
    ) {
        self.progress.clear();
        // What a manifest implies is of no interest while it has to be mended.
        let is_new_note = |note: &Diagnostic| !diagnostics.has_errors() && earlier.lacks(note);
        let is_wanted = |diagnostic: &&Diagnostic| match (diagnostic.severity, self.verbosity) {
            (Severity::Error, _) | (_, OutputVerbosity::Verbose) => true,
            (Severity::Warning, OutputVerbosity::Normal) => true,
            (Severity::Note, OutputVerbosity::Normal) => is_new_note(diagnostic),
            (Severity::Info, OutputVerbosity::Normal) | (_, OutputVerbosity::Quiet) => false,
        };
        let mut out = io::stderr().lock();
        for diagnostic in diagnostics.iter().filter(is_wanted) {
            let text = match self.format {
                OutputFormat::Human => human(diagnostic, sources, self.style) + "\n",
                OutputFormat::Json => json(diagnostic, sources).to_string(),
            };
            // Nobody is left to tell when standard error is closed.
            let _ = writeln!(out, "{text}");
        }
    }

    /// Prints a line that belongs to no diagnostic, unless only errors are wanted.
    pub(super) fn print_line(&mut self, line: &str) {
        if self.verbosity != OutputVerbosity::Quiet && self.format == OutputFormat::Human {
            self.progress.clear();
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Says what becomes of a file: a line for people, or an object on standard output for programs.
    pub(super) fn print_file_action(&mut self, action: &str, path: &str) {
        match self.format {
            OutputFormat::Human => self.print_line(&format!("{action} {path}")),
            OutputFormat::Json => {
                let line = serde_json::json!({"action": action, "path": path}).to_string();
                let _ = writeln!(io::stdout().lock(), "{line}");
            }
        }
    }

    /// Prints why a command cannot go on.
    pub(super) fn fail(&mut self, message: &str) -> CommandStatus {
        self.progress.clear();
        let line = match self.format {
            OutputFormat::Human => format!("error: {message}"),
            OutputFormat::Json => {
                serde_json::json!({"severity": "error", "message": message}).to_string()
            }
        };
        let _ = writeln!(io::stderr().lock(), "{line}");
        CommandStatus::Invalid
    }

    /// Prints an error with its causes.
    pub(super) fn fail_with(&mut self, error: &dyn std::error::Error) -> CommandStatus {
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

// === impl PrintedNotes ===

impl PrintedNotes<'_> {
    fn lacks(self, note: &Diagnostic) -> bool {
        match self {
            Self::None => true,
            Self::Titles(titles) => !titles.contains(&note.title()),
        }
    }
}
