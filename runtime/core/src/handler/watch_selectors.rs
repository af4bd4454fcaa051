//! Label and field selectors for lists and watches, derived from the filters of all handlers.

use std::{collections::BTreeMap, collections::BTreeSet, fmt};

use serde_json::Value;

use crate::handler::{
    filter::{Combined, FieldTest, Filters, TextTest, ValueTest},
    registry::Registry,
};

/// The selectors of the lists and watches of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WatchSelectors {
    /// Requirements on labels.
    pub labels: BTreeMap<String, LabelRequirement>,
    /// Requirements on fields that every kind supports in selectors.
    pub fields: BTreeMap<String, String>,
}

/// A requirement on one label that a label selector can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelRequirement {
    /// It has one of these values.
    In(BTreeSet<String>),
    /// It is present.
    Exists,
    /// It is absent.
    Missing,
}

// === impl WatchSelectors ===

impl WatchSelectors {
    /// The requirements that every handler of a kind shares.
    ///
    /// There are none if a handler needs the finalizer: it must notice that an object stops
    /// matching, and release it. There are none either if all objects are tracked. Objects that
    /// have the finalizer from an earlier version of the operator must be listed without selectors.
    #[must_use]
    pub fn derive(registry: &Registry) -> Self {
        let handlers = registry.handlers();
        if handlers.is_empty()
            || registry.tracks_all()
            || handlers
                .iter()
                .any(|handler| handler.trigger.needs_finalizer())
        {
            return Self::default();
        }
        Self {
            labels: common(
                handlers
                    .iter()
                    .map(|handler| label_requirements(&handler.filters)),
                widen,
            ),
            fields: common(
                handlers
                    .iter()
                    .map(|handler| field_requirements(&handler.filters)),
                |a, b| (a == b).then_some(a),
            ),
        }
    }

    /// Whether all objects are listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The `labelSelector` parameter.
    #[must_use]
    pub fn label_selector(&self) -> Option<String> {
        joined(
            self.labels
                .iter()
                .map(|(key, requirement)| match requirement {
                    LabelRequirement::In(values) if values.len() == 1 => {
                        format!("{key}={}", values.iter().cloned().collect::<String>())
                    }
                    LabelRequirement::In(values) => {
                        let values: Vec<&str> = values.iter().map(String::as_str).collect();
                        format!("{key} in ({})", values.join(","))
                    }
                    LabelRequirement::Exists => key.clone(),
                    LabelRequirement::Missing => format!("!{key}"),
                }),
        )
    }

    /// The `fieldSelector` parameter.
    #[must_use]
    pub fn field_selector(&self) -> Option<String> {
        joined(
            self.fields
                .iter()
                .map(|(field, value)| format!("{field}={value}")),
        )
    }
}

impl fmt::Display for WatchSelectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = [self.label_selector(), self.field_selector()]
            .into_iter()
            .flatten()
            .collect();
        f.write_str(&parts.join(" "))
    }
}

fn joined(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(","))
}

/// The requirements that all handlers share, in the widest form among them.
fn common<D>(
    requirements: impl Iterator<Item = BTreeMap<String, D>>,
    widen: impl Fn(D, D) -> Option<D>,
) -> BTreeMap<String, D> {
    requirements
        .reduce(|mut shared, mut next| {
            let keys: Vec<String> = shared.keys().cloned().collect();
            keys.into_iter()
                .filter_map(|key| {
                    let wider = widen(shared.remove(&key)?, next.remove(&key)?)?;
                    Some((key, wider))
                })
                .collect()
        })
        .unwrap_or_default()
}

fn widen(a: LabelRequirement, b: LabelRequirement) -> Option<LabelRequirement> {
    match (a, b) {
        (LabelRequirement::In(a), LabelRequirement::In(b)) => {
            Some(LabelRequirement::In(a.union(&b).cloned().collect()))
        }
        (
            LabelRequirement::In(_) | LabelRequirement::Exists,
            LabelRequirement::In(_) | LabelRequirement::Exists,
        ) => Some(LabelRequirement::Exists),
        (LabelRequirement::Missing, LabelRequirement::Missing) => Some(LabelRequirement::Missing),
        (LabelRequirement::Missing, _) | (_, LabelRequirement::Missing) => None,
    }
}

/// The requirements of filters on labels, as far as a label selector can express them.
#[must_use]
pub fn label_requirements(filters: &Filters) -> BTreeMap<String, LabelRequirement> {
    let mut requirements: BTreeMap<String, LabelRequirement> = BTreeMap::new();
    for (key, test) in &filters.labels {
        if let Some(requirement) = requirement(test) {
            requirements.entry(key.clone()).or_insert(requirement);
        }
    }
    requirements
}

/// The requirement of a test, if a label selector can express it exactly.
fn requirement(test: &Combined<TextTest>) -> Option<LabelRequirement> {
    match test {
        Combined::One(TextTest::Equals(value)) => {
            is_label_value(value).then(|| LabelRequirement::In(BTreeSet::from([value.clone()])))
        }
        Combined::One(TextTest::Present) => Some(LabelRequirement::Exists),
        Combined::One(TextTest::Absent) => Some(LabelRequirement::Missing),
        Combined::One(TextTest::Matches(_)) => None,
        Combined::Any(parts) => parts.iter().map(requirement).reduce(|a, b| widen(a?, b?))?,
        Combined::All(parts) => parts.iter().find_map(requirement),
        Combined::Not(part) => match &**part {
            Combined::One(TextTest::Present) => Some(LabelRequirement::Missing),
            Combined::One(TextTest::Absent) => Some(LabelRequirement::Exists),
            _ => None,
        },
        Combined::NoneOf(_) => None,
    }
}

/// Whether a text is a valid label value, as selectors require.
fn is_label_value(text: &str) -> bool {
    text.len() <= 63
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

fn field_requirements(filters: &Filters) -> BTreeMap<String, String> {
    let mut requirements = BTreeMap::new();
    if let Some(field) = &filters.field
        && let FieldTest::Value(Combined::One(ValueTest::Equals(Value::String(value)))) =
            &field.test
    {
        let path = field.path.to_string();
        if ["metadata.name", "metadata.namespace"].contains(&path.as_str()) {
            requirements.insert(path, value.clone());
        }
    }
    requirements
}

#[cfg(test)]
mod tests;
