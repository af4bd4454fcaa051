//! Reports filters that no object can match: impossible field values, invalid labels.

use kopf_core::handler::filter::Combined;
use serde_json::Value as Json;

use super::lowering::{LimitsCheck, Lowering};
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::load::manifest::{HandlerSection, OneOrMany, Spanned, Trigger, ValueFilter};
use crate::load::names::{NameRule, QuotedName};
use crate::model::handler::TypedField;
use crate::model::schema_check::{self, JsonType, SchemaViolation, ViolationReason};
use crate::suggest::did_you_mean;

/// The number of allowed values to list in a message.
const MAX_LISTED: usize = 12;

impl Lowering<'_> {
    /// Checks all filters of one entry.
    pub(super) fn check_filters(&mut self, section: &HandlerSection, fields: &[TypedField]) {
        // The old state may have been stored when the schema allowed more.
        for (filter, if_restricted) in [
            (&section.value, Severity::Error),
            (&section.new, Severity::Error),
            (&section.old, Severity::Warning),
        ] {
            for filter in filter.iter().flat_map(|it| it.combined.conditions()) {
                self.check_value(filter, fields, if_restricted);
            }
        }
        self.check_old(section);
        self.check_labels(section);
    }

    /// A new object has no old value.
    fn check_old(&mut self, section: &HandlerSection) {
        let triggers = section.on.as_ref().map_or(&[][..], OneOrMany::as_slice);
        let only_creates = !triggers.is_empty()
            && triggers
                .iter()
                .all(|trigger| trigger.value == Trigger::Create);
        if let Some(old) = &section.old
            && only_creates
            && let Combined::One(condition) = &old.combined
            && matches!(
                condition.value,
                ValueFilter::Present | ValueFilter::Equals(_)
            )
        {
            let message = "a new object has no old value";
            self.push(
                Diagnostic::error(Code::FilterValue, message)
                    .at(self.source, old.span, "always absent at creation")
                    .help("`new` is about the value with which it is created"),
            );
        }
    }

    fn check_value(
        &mut self,
        filter: &Spanned<ValueFilter>,
        fields: &[TypedField],
        if_restricted: Severity,
    ) {
        let ValueFilter::Equals(value) = &filter.value else {
            return;
        };
        for field in fields {
            let Some(violation) = self.violation(field, value) else {
                continue;
            };
            if self.limits == LimitsCheck::Unchecked
                && matches!(violation.reason, ViolationReason::Limit(..))
            {
                continue;
            }
            let message = format!("`{field}` can never be `{value}`");
            let diagnostic = match (&violation.reason, if_restricted) {
                (ViolationReason::Type(_), _) | (_, Severity::Error) => {
                    Diagnostic::error(Code::FilterValue, message)
                }
                _ => Diagnostic::warning(Code::FilterValue, message),
            };
            let label = match violation.at.as_str() {
                "" => violation.reason.to_string(),
                at => format!("at `{}`, {}", at.trim_start_matches('.'), violation.reason),
            };
            self.push(
                diagnostic
                    .at(self.source, filter.span, label)
                    .maybe_help(help(&violation, value)),
            );
        }
    }

    /// Checks by the schema if there is one, and otherwise by the type.
    fn violation(&self, field: &TypedField, value: &Json) -> Option<SchemaViolation> {
        let schema = self
            .schema
            .and_then(|root| schema_check::field(root, &field.keys));
        match schema {
            Some(schema) => schema_check::violation(schema, value),
            None => JsonType::of_rust_type(&field.rust_type)
                .filter(|expected| !expected.can_hold(value))
                .map(|expected| ViolationReason::Type(expected).into()),
        }
    }

    /// No object has a label or annotation that the API server rejects.
    fn check_labels(&mut self, section: &HandlerSection) {
        for (what, filters) in [
            ("a label", &section.labels),
            ("an annotation", &section.annotations),
        ] {
            for (key, filter) in filters.iter().flat_map(|filters| &filters.list) {
                if !NameRule::QualifiedName.accepts(&key.value) {
                    let message = format!("no object has {what} {}", QuotedName(&key.value));
                    self.push(
                        Diagnostic::error(Code::FilterValue, message)
                            .at(self.source, key.span, format!("not the name of {what}"))
                            .help("names look like `tier` or `example.com/tier`"),
                    );
                }
                if what == "a label" {
                    for condition in filter.combined.conditions() {
                        self.check_label_value(condition);
                    }
                }
            }
        }
    }

    fn check_label_value(&mut self, condition: &Spanned<ValueFilter>) {
        if let ValueFilter::Equals(Json::String(value)) = &condition.value
            && !NameRule::LabelValue.accepts(value)
        {
            let message = format!("no object has a label of the value {}", QuotedName(value));
            self.push(
                Diagnostic::error(Code::FilterValue, message)
                    .at(self.source, condition.span, "not the value of a label")
                    .help("values are up to 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends"),
            );
        }
    }
}

/// A suggestion for what the user probably meant.
fn help(violation: &SchemaViolation, value: &Json) -> Option<String> {
    match &violation.reason {
        ViolationReason::Type(JsonType::String)
            if violation.at.is_empty() && !value.is_object() =>
        {
            let is_scalar = value.is_number() || value.is_boolean();
            is_scalar.then(|| format!("write it as a text: \"{value}\""))
        }
        ViolationReason::Type(_) if violation.at.is_empty() => {
            let meant: Json = serde_json::from_str(value.as_str()?).ok()?;
            let is_scalar = meant.is_number() || meant.is_boolean();
            is_scalar.then(|| format!("write it without quotes: {meant}"))
        }
        ViolationReason::Enumeration(values) => {
            let texts = || values.iter().filter_map(Json::as_str);
            let meant = value.as_str().filter(|_| violation.at.is_empty());
            meant
                .and_then(|text| did_you_mean(text, texts()))
                .or_else(|| Some(format!("the schema allows {}", listed(values))))
        }
        ViolationReason::Unknown(name, known) => {
            did_you_mean(name, known.iter().map(String::as_str))
        }
        ViolationReason::Type(_)
        | ViolationReason::Limit(..)
        | ViolationReason::Missing(_)
        | ViolationReason::NoBranch => None,
    }
}

fn listed(values: &[Json]) -> String {
    let mut shown: Vec<String> = values
        .iter()
        .take(MAX_LISTED)
        .map(|value| match value {
            Json::String(text) if !text.is_empty() => format!("`{text}`"),
            other => format!("`{other}`"),
        })
        .collect();
    if values.len() > MAX_LISTED {
        shown.push(format!("and {} others", values.len() - MAX_LISTED));
    }
    shown.join(", ")
}
