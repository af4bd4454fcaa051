//! Selectors for the API server, derived from filters where nothing changes by them.

use std::{collections::BTreeMap, collections::BTreeSet, fmt};

use serde_json::Value;

use crate::handler::{
    filter::{Combined, FieldTest, Filters, TextTest, ValueTest},
    registry::Registry,
};

/// What lists and watches of a kind may be restricted to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selectors {
    /// Demands on labels.
    pub labels: BTreeMap<String, LabelDemand>,
    /// Demands on fields that every kind can be selected by.
    pub fields: BTreeMap<String, String>,
}

/// A demand on one label that the API server understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelDemand {
    /// It has one of these values.
    In(BTreeSet<String>),
    /// It is there.
    Exists,
    /// It is not there.
    Missing,
}

// === impl Selectors ===

impl Selectors {
    /// What every handler of a kind demands anyway.
    ///
    /// Nothing, if some handler or daemon must not miss that an object stops matching: an
    /// object with a finalizer has to be released then. Nothing either, if all objects are
    /// tracked. Objects that still carry a finalizer of an earlier version of the operator must
    /// be looked for without the selectors.
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
                    .map(|handler| label_demands(&handler.filters)),
                widen,
            ),
            fields: common(
                handlers
                    .iter()
                    .map(|handler| field_demands(&handler.filters)),
                |a, b| (a == b).then_some(a),
            ),
        }
    }

    /// Whether everything is to be listed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The `labelSelector` parameter.
    #[must_use]
    pub fn label_selector(&self) -> Option<String> {
        joined(self.labels.iter().map(|(key, demand)| match demand {
            LabelDemand::In(values) if values.len() == 1 => {
                format!("{key}={}", values.iter().cloned().collect::<String>())
            }
            LabelDemand::In(values) => {
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                format!("{key} in ({})", values.join(","))
            }
            LabelDemand::Exists => key.clone(),
            LabelDemand::Missing => format!("!{key}"),
        }))
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

impl fmt::Display for Selectors {
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

/// Keeps the demands that all handlers share, in the widest form among them.
fn common<D>(
    demands: impl Iterator<Item = BTreeMap<String, D>>,
    widen: impl Fn(D, D) -> Option<D>,
) -> BTreeMap<String, D> {
    demands
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

fn widen(a: LabelDemand, b: LabelDemand) -> Option<LabelDemand> {
    match (a, b) {
        (LabelDemand::In(a), LabelDemand::In(b)) => {
            Some(LabelDemand::In(a.union(&b).cloned().collect()))
        }
        (LabelDemand::In(_) | LabelDemand::Exists, LabelDemand::In(_) | LabelDemand::Exists) => {
            Some(LabelDemand::Exists)
        }
        (LabelDemand::Missing, LabelDemand::Missing) => Some(LabelDemand::Missing),
        (LabelDemand::Missing, _) | (_, LabelDemand::Missing) => None,
    }
}

/// What filters demand of labels, as far as the API server understands it.
#[must_use]
pub fn label_demands(filters: &Filters) -> BTreeMap<String, LabelDemand> {
    let mut demands: BTreeMap<String, LabelDemand> = BTreeMap::new();
    for (key, test) in &filters.labels {
        if let Some(demand) = demand(test) {
            demands.entry(key.clone()).or_insert(demand);
        }
    }
    demands
}

/// The demand behind a test, if the API server can express it without loss or excess.
fn demand(test: &Combined<TextTest>) -> Option<LabelDemand> {
    match test {
        Combined::One(TextTest::Equals(value)) => {
            is_label_value(value).then(|| LabelDemand::In(BTreeSet::from([value.clone()])))
        }
        Combined::One(TextTest::Present) => Some(LabelDemand::Exists),
        Combined::One(TextTest::Absent) => Some(LabelDemand::Missing),
        Combined::One(TextTest::Matches(_)) => None,
        Combined::Any(parts) => parts.iter().map(demand).reduce(|a, b| widen(a?, b?))?,
        Combined::All(parts) => parts.iter().find_map(demand),
        Combined::Not(part) => match &**part {
            Combined::One(TextTest::Present) => Some(LabelDemand::Missing),
            Combined::One(TextTest::Absent) => Some(LabelDemand::Exists),
            _ => None,
        },
        Combined::NoneOf(_) => None,
    }
}

/// Whether a text can be a label value at all, and hence stand in a selector.
fn is_label_value(text: &str) -> bool {
    text.len() <= 63
        && text
            .chars()
            .all(|char| char.is_ascii_alphanumeric() || "-_.".contains(char))
        && !text.starts_with(['-', '_', '.'])
        && !text.ends_with(['-', '_', '.'])
}

fn field_demands(filters: &Filters) -> BTreeMap<String, String> {
    let mut demands = BTreeMap::new();
    if let Some(field) = &filters.field
        && let FieldTest::Value(Combined::One(ValueTest::Equals(Value::String(value)))) =
            &field.test
    {
        let path = field.path.to_string();
        if ["metadata.name", "metadata.namespace"].contains(&path.as_str()) {
            demands.insert(path, value.clone());
        }
    }
    demands
}

#[cfg(test)]
mod tests;
