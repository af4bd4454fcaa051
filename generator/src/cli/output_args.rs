//! The options that all commands have: how and how much to print.

use std::io::IsTerminal as _;

use clap::{Args, ValueEnum};

use crate::diagnostic::Style;

/// Above the options that all commands have, so that they are not among those of one.
const GLOBAL: &str = "For all commands";

/// How to talk to the user, for all commands.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// How to print problems
    #[arg(long, global = true, value_name = "FORMAT", default_value = "human", help_heading = GLOBAL)]
    pub(super) format: OutputFormat,
    /// Whether to colour the output
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = GLOBAL)]
    color: Color,
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = GLOBAL)]
    quiet: bool,
    /// Print all that there is to say, also what was told before
    #[arg(short, long, global = true, help_heading = GLOBAL)]
    verbose: bool,
}

/// How to print problems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    /// Text with snippets and carets
    Human,
    /// One JSON object per line
    Json,
}

/// Whether to colour the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How much the user wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputVerbosity {
    /// Errors only.
    Quiet,
    /// Also warnings, and notes that are new.
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
