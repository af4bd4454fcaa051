//! The rules of the API server for definitions beyond names, as far as they do not run CEL.
//!
//! They follow the validation of `k8s.io/apiextensions-apiserver`, in its order and with its reasons.
//! A test sends definitions to a real API server and compares.

mod conversion;
mod definition;
mod keywords;
mod open_api;
mod selectable_fields;
mod structural;

use super::yaml::Node;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};

/// The most warnings for one definition.
const MOST_WARNINGS: usize = 20;

/// Warns about everything in a definition of `v1` for which the API server would reject it.
pub(super) fn check(document: &Node, source: SourceId, diagnostics: &mut Diagnostics) {
    let mut found = Rejections::default();
    definition::check(document, &mut found);
    let all = found.list.len();
    for (span, reason) in found.list.into_iter().take(MOST_WARNINGS) {
        diagnostics.push(rejected(&reason).at(source, span, ""));
    }
    if let Some(rest) = all.checked_sub(MOST_WARNINGS).filter(|rest| *rest > 0) {
        let message = format!("the API server rejects this definition for {rest} more reasons");
        let warning = Diagnostic::warning(Code::RejectedDefinition, message);
        diagnostics.push(warning.at(source, document.span, ""));
    }
}

/// A warning with a reason of the API server.
pub(crate) fn rejected(reason: &str) -> Diagnostic {
    let message = format!("the API server rejects this definition: {reason}");
    Diagnostic::warning(Code::RejectedDefinition, message)
}

/// The reasons for which the API server rejects a definition, each with its place.
#[derive(Debug, Default)]
struct Rejections {
    list: Vec<(Span, String)>,
}

// === impl Rejections ===

impl Rejections {
    fn add(&mut self, span: Span, reason: impl Into<String>) {
        self.list.push((span, reason.into()));
    }

    /// Adds a value that is none of those which the API server knows.
    fn unsupported(&mut self, span: Span, value: &str, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        let supported = supported.join(", ");
        let reason = format!("Unsupported value: {value:?}: supported values: {supported}");
        self.add(span, reason);
    }
}
