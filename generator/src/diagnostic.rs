//! Diagnostics: problems in the user's input, with their places and the way to correct them.

mod code;
mod harmless;
mod problem;
mod render;
mod source;

pub use code::Code;
pub use harmless::harmless;
pub use problem::{Diagnostic, Diagnostics, Severity, SourceLabel};
pub use render::{Style, human, json};
pub use source::{LineColumn, SourceId, Sources, Span};
