//! One problem with its places in the inputs, and the collection of all problems of a run.

use super::code::Code;
use super::source::{SourceId, Span};

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Nothing is written while there is an error.
    Error,
    /// The output is written, but is probably not what the user wants.
    Warning,
    /// A consequence of the input; printed once, when it is new.
    Note,
    /// A detail, printed with `--verbose`.
    Info,
}

/// A place in an input, with a few words about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLabel {
    /// The text that the span counts in.
    pub source: SourceId,
    /// The marked bytes.
    pub span: Span,
    /// The words at the mark; may be empty.
    pub text: String,
}

/// One problem, with its places; the first label is the primary one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code, which `kopf-gen explain` knows.
    pub code: Code,
    /// The severity.
    pub severity: Severity,
    /// The problem, in one sentence without a full stop.
    pub message: String,
    /// The places of the problem.
    pub labels: Vec<SourceLabel>,
    /// The way to correct it.
    pub help: Option<String>,
}

/// All problems of a run, so that the user sees them at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

// === impl Severity ===

impl Severity {
    /// The lower-case name, as it is printed.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Info => "info",
        }
    }
}

// === impl Diagnostic ===

impl Diagnostic {
    /// A problem that stops the run.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, message)
    }

    /// A problem that does not stop the run.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, message)
    }

    /// A consequence of the input.
    pub fn note(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, message)
    }

    /// A detail, printed with `--verbose`.
    pub fn info(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Info, message)
    }

    fn new(code: Code, severity: Severity, message: impl Into<String>) -> Self {
        Self {
            code,
            severity,
            message: message.into(),
            labels: Vec::new(),
            help: None,
        }
    }

    /// The code and the message, which stay the same when the place of a problem moves.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{}: {}", self.code, self.message)
    }

    /// Adds a place; the first one added is the primary one.
    #[must_use]
    pub fn at(mut self, source: SourceId, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(SourceLabel {
            source,
            span,
            text: text.into(),
        });
        self
    }

    /// Adds the way to correct it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the way to correct it, if there is one.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

// === impl Diagnostics ===

impl Diagnostics {
    /// An empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a problem; one that is already there is not repeated.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.list.contains(&diagnostic) {
            self.list.push(diagnostic);
        }
    }

    /// Whether a problem stops the run.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.count(Severity::Error) > 0
    }

    /// How many problems have this severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.iter().filter(|d| d.severity == severity).count()
    }

    /// Whether there is nothing to report.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The problems in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.list.iter()
    }

    /// Sorts by place, so that the order in which files are read does not show.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|d| {
            let place = d.labels.first().map(|l| (l.source, l.span.start));
            (place, d.code, d.message.clone())
        });
    }
}

impl Extend<Diagnostic> for Diagnostics {
    fn extend<T: IntoIterator<Item = Diagnostic>>(&mut self, iter: T) {
        for diagnostic in iter {
            self.push(diagnostic);
        }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
