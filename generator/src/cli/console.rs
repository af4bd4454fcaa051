//! Prints diagnostics, messages and progress, mostly to standard error.

use std::collections::BTreeSet;
use std::io::{self, Write};

use super::exit_status::CommandStatus;
use super::output_args::{OutputFormat, OutputVerbosity};
use super::progress::ProgressLine;
use crate::diagnostic::{Diagnostic, Diagnostics, Severity, Sources, Style, human, json};

/// The output of a command.
#[derive(Debug)]
pub(super) struct Console {
    format: OutputFormat,
    style: Style,
    verbosity: OutputVerbosity,
    progress: ProgressLine,
}

/// The notes that earlier runs printed.
#[derive(Clone, Copy, Debug)]
pub(super) enum PrintedNotes<'a> {
    /// None, or this command prints them again.
    None,
    /// Notes with these titles.
    Titles(&'a BTreeSet<String>),
}

impl Console {
    /// Shows progress on a terminal, unless the output is for a program or must be quiet.
    #[must_use]
    pub(super) fn new(format: OutputFormat, style: Style, verbosity: OutputVerbosity) -> Self {
        let shows_progress = format == OutputFormat::Human && verbosity != OutputVerbosity::Quiet;
        Self {
            format,
            style,
            verbosity,
            progress: if shows_progress {
                ProgressLine::on_terminal()
            } else {
                ProgressLine::default()
            },
        }
    }

    /// The format of the output.
    pub(super) fn format(&self) -> OutputFormat {
        self.format
    }

    /// Starts a task; a terminal shows it if it takes long.
    pub(super) fn begin_task(&mut self, what: &'static str) {
        self.progress.begin(what);
    }

    /// Updates how many kinds of the current task are done.
    pub(super) fn advance(&mut self, done: usize, total: usize) {
        self.progress.advance(done, total);
    }

    /// Ends the current task and clears its line.
    pub(super) fn clear_progress(&mut self) {
        self.progress.clear();
    }

    /// Prints the diagnostics that the verbosity selects, without the notes in `earlier`.
    pub(super) fn print_diagnostics(
        &mut self,
        diagnostics: &Diagnostics,
        sources: &Sources,
        earlier: PrintedNotes<'_>,
    ) {
        self.progress.clear();
        // Notes about a manifest do not matter while it has errors.
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
            // A closed standard error leaves nowhere to report to.
            let _ = writeln!(out, "{text}");
        }
    }

    /// Prints a line that belongs to no diagnostic; not with `--quiet` and not as JSON.
    pub(super) fn print_line(&mut self, line: &str) {
        if self.verbosity != OutputVerbosity::Quiet && self.format == OutputFormat::Human {
            self.progress.clear();
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Prints what happened to a file: as a line, or as a JSON object on standard output.
    pub(super) fn print_file_action(&mut self, action: &str, path: &str) {
        match self.format {
            OutputFormat::Human => self.print_line(&format!("{action} {path}")),
            OutputFormat::Json => {
                let line = serde_json::json!({"action": action, "path": path}).to_string();
                let _ = writeln!(io::stdout().lock(), "{line}");
            }
        }
    }

    /// Prints an error that stops the command.
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

    /// Prints an error that stops the command, with its causes.
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
