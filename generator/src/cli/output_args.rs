//! The options that all commands have: how and how much to print.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};

use crate::diagnostic::Style;

/// The heading of the options that all commands have.
const GLOBAL: &str = "For all commands";

/// Options for the output of every command.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// The format of diagnostics
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human", help_heading = GLOBAL)]
    pub(super) format: OutputFormat,
    /// When to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    color: Color,
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    quiet: bool,
    /// Print everything, also notes that an earlier run printed
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    verbose: bool,
}

/// The format of diagnostics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Text with snippets and carets
    Human,
    /// One JSON object per line
    Json,
}

/// When to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// Which diagnostics are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputVerbosity {
    /// Errors only.
    Quiet,
    /// Errors, warnings, and notes that no earlier run printed.
    Normal,
    /// Everything.
    Verbose,
}

// === impl OutputArgs ===

impl OutputArgs {
    pub(super) fn style(&self) -> Style {
        let colored = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stderr().is_terminal()
            }
        };
        if colored {
            Style::Colored
        } else {
            Style::Plain
        }
    }

    pub(super) fn verbosity(&self) -> OutputVerbosity {
        match (self.quiet, self.verbose) {
            (true, _) => OutputVerbosity::Quiet,
            (_, true) => OutputVerbosity::Verbose,
            _ => OutputVerbosity::Normal,
        }
    }
}
