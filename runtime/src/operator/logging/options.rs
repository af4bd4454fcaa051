//! The options of a log: how much, and in which format.

use clap::ValueEnum;

/// The format of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Time, level and message
    #[default]
    Full,
    /// The message only
    Plain,
    /// One JSON object a line
    Json,
}

/// The amount of log lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogVerbosity {
    /// Warnings and errors only.
    Quiet,
    /// What the operator does.
    #[default]
    Normal,
    /// What the operator does in detail, and why.
    Verbose,
    /// The same, and a line for each request to the API server.
    Debug,
}
