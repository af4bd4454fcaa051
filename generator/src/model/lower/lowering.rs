//! The context in which one handler, index, webhook or hook of the manifest is lowered.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::load::manifest::{Spanned, Trigger};
use crate::load::names::QuotedName;
use crate::load::schema::Schema;
use crate::model::child::ChildDeclaration;
use crate::model::handler::{ChildCause, TimerSchedule};
use crate::rust::{RustPath, RustType};

/// Resolves a field of the kind to its type; reports a field that does not exist.
pub(super) type ResolveField<'a> =
    dyn Fn(&[String], Span, &mut Diagnostics) -> Option<RustType> + 'a;

/// Lowers one entry of the manifest.
pub(super) struct Lowering<'a> {
    pub(super) source: SourceId,
    /// The schema of the whole object, if the kind has one.
    pub(super) schema: Option<&'a Schema>,
    pub(super) limits: LimitsCheck,
    pub(super) resolve: &'a ResolveField<'a>,
    /// The type that the status has under the id of a handler.
    pub(super) in_status: &'a dyn Fn(&str) -> Option<RustType>,
    /// The types of all kinds of the operator, with their paths.
    pub(super) kind_types: &'a BTreeMap<String, RustPath>,
    /// The kinds that objects of the kind own.
    pub(super) children: &'a [ChildDeclaration],
    pub(super) diagnostics: &'a mut Diagnostics,
}

/// Whether the API server has checked the values that a handler receives against the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LimitsCheck {
    /// It has, because it stores only valid objects.
    Enforced,
    /// It has not: it validates an object after the mutating webhooks.
    Unchecked,
}

/// The family of handlers to which an entry belongs.
pub(super) enum HandlerFamily {
    Change(BTreeSet<Trigger>),
    Field,
    Event,
    Daemon,
    Timer(TimerSchedule),
    Reconcile,
    Child(ChildCause),
}

// === impl Lowering ===

impl Lowering<'_> {
    /// The name of a handler's method: a Rust identifier in snake case.
    pub(super) fn identifier(&mut self, name: &Spanned<String>, what: &str) -> Option<String> {
        self.method(name, what, |text| {
            format!("; to keep progress that objects carry under another name, add `id: {text}`")
        })
    }

    /// The name of another method, which has no id.
    pub(super) fn predicate(&mut self, name: &Spanned<String>, what: &str) -> Option<String> {
        self.method(name, what, |_| String::new())
    }

    fn method(
        &mut self,
        name: &Spanned<String>,
        what: &str,
        keep_id: impl Fn(&str) -> String,
    ) -> Option<String> {
        let text = &name.value;
        if let Some(method) = method_name(text) {
            return Some(method);
        }
        let suggestion = snake(std::slice::from_ref(text));
        let help = if syn::parse_str::<syn::Ident>(&suggestion).is_ok() && suggestion != *text {
            format!("write `{suggestion}`{}", keep_id(text))
        } else {
            "write it like `create_volume`".to_owned()
        };
        self.push(
            Diagnostic::error(
                Code::HandlerName,
                format!(
                    "{what} must be a Rust function name, and {} is not",
                    QuotedName(text)
                ),
            )
            .at(self.source, name.span, "not a function name in snake case")
            .help(help),
        );
        None
    }

    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: impl Into<String>,
    ) {
        self.push(Diagnostic::error(code, message).at(self.source, span, label));
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }
}

/// The text as the name of a method, if it can be one.
pub(super) fn method_name(text: &str) -> Option<String> {
    let snake_case = text
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        && text.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && text.chars().any(|c| c != '_');
    let names = [text.to_owned(), format!("r#{text}")];
    let is_name = |name: &String| snake_case && syn::parse_str::<syn::Ident>(name).is_ok();
    names.into_iter().find(is_name)
}

/// `spec.nodeName` as a part of a method name: `spec_node_name`.
pub(super) fn snake(keys: &[String]) -> String {
    let mut name = String::new();
    let mut previous_lower = false;
    for c in keys.join("_").chars() {
        if c.is_ascii_uppercase() {
            if previous_lower {
                name.push('_');
            }
            name.push(c.to_ascii_lowercase());
        } else if c.is_ascii_alphanumeric() {
            name.push(c);
        } else if !name.ends_with('_') {
            name.push('_');
        }
        previous_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    name.trim_end_matches('_').to_owned()
}
