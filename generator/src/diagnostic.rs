//! Problems in the user's input: what is wrong, where, and how to mend it.

mod code;
mod problem;
mod render;
mod source;

pub use code::Code;
pub use problem::{Diagnostic, Diagnostics, Severity, SourceLabel};
pub use render::{Style, human, json};
pub use source::{LineColumn, SourceId, Sources, Span};
