//! The changes of a schema that reject or drop what was accepted.

use super::BreakingChanges;
use crate::diagnostic::Span;
use crate::load::yaml::{Node, Value};

/// Keywords that allow less the larger they are.
const LOWER_BOUNDS: [&str; 4] = ["minimum", "minLength", "minItems", "minProperties"];

/// Keywords that allow less the smaller they are.
const UPPER_BOUNDS: [&str; 4] = ["maximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords of which any new value may allow less.
const CONDITIONS: [&str; 6] = ["pattern", "multipleOf", "allOf", "anyOf", "oneOf", "not"];

/// Keywords that allow less if they become true.
const SWITCHES: [&str; 3] = ["uniqueItems", "exclusiveMinimum", "exclusiveMaximum"];

/// Types and formats whose values the other one has, too.
const WIDER: [(&str, &str); 3] = [
    ("integer", "number"),
    ("int32", "int64"),
    ("float", "double"),
];

impl BreakingChanges<'_> {
    /// Compares two schemas of the field at `path`; `place` is that of its key.
    pub(super) fn schema(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        // A schema without its own keys is at the place of its field.
        self.type_and_format(path, old, new, place);
        self.values(path, old, new, place);
        self.fields(path, old, new, place);
        for key in ["items", "additionalProperties"] {
            if let (Some(before), Some(after)) = (old.get(key), new.entry(key)) {
                let below = if key == "items" { "[]" } else { ".*" };
                let path = format!("{path}{below}");
                self.schema(&path, before, &after.value, after.key.span);
            }
        }
        let accepts_any = |it: &Node| {
            let additional = it.get("additionalProperties");
            additional.is_some_and(|it| it.as_bool() != Some(false))
        };
        if accepts_any(old) && !accepts_any(new) && !keeps_unknown(new) {
            self.report(
                place,
                &format!("`{path}` does not have any other fields now"),
                "the API server drops them",
            );
        }
        if keeps_unknown(old) && !keeps_unknown(new) && !accepts_any(new) {
            self.report(
                place,
                &format!("`{path}` does not keep unknown fields any more"),
                "the API server drops them",
            );
        }
    }

    fn type_and_format(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        let text = |it: &Node, key: &str| it.get(key).and_then(Node::as_str).map(str::to_owned);
        for key in ["type", "format"] {
            let (before, after) = (text(old, key), text(new, key));
            let Some(after) = after.filter(|after| Some(after) != before.as_ref()) else {
                continue;
            };
            let is_wider = before
                .as_deref()
                .is_some_and(|before| WIDER.contains(&(before, after.as_str())));
            if is_wider {
                continue;
            }
            let before = before.map_or_else(|| "not set".to_owned(), |it| format!("`{it}`"));
            let message = format!("the {key} of `{path}` was {before} and is `{after}`");
            self.report(
                key_place(new, key, place),
                &message,
                "stored objects may not fit",
            );
        }
        let is = |it: &Node, key: &str| it.get(key).and_then(Node::as_bool) == Some(true);
        if is(old, "x-kubernetes-int-or-string") && !is(new, "x-kubernetes-int-or-string") {
            let message = format!("`{path}` is not a number or a string any more");
            self.report(place, &message, "stored objects may not fit");
        }
        if is(old, "nullable") && !is(new, "nullable") {
            let message = format!("`{path}` cannot be null any more");
            self.report(key_place(new, "nullable", place), &message, "it could be");
        }
    }

    fn values(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        self.enumeration(path, old, new);
        let bounds = LOWER_BOUNDS.map(|key| (key, true));
        let bounds = bounds
            .into_iter()
            .chain(UPPER_BOUNDS.map(|key| (key, false)));
        for (key, is_lower) in bounds {
            let Some(after) = new.get(key).and_then(number) else {
                continue;
            };
            let before = old.get(key).and_then(number);
            let is_narrower = before.is_none_or(|before| {
                if is_lower {
                    after > before
                } else {
                    after < before
                }
            });
            // Nothing is smaller than nothing.
            let is_trivial = is_lower && key != "minimum" && after <= 0.0;
            if is_narrower && !is_trivial {
                let message = format!("`{key}` of `{path}` allows less");
                let span = key_place(new, key, place);
                self.report(span, &message, "stored objects may not fit");
            }
        }
        for key in CONDITIONS {
            let after = new.get(key);
            if after.is_some() && after.map(Node::to_json) != old.get(key).map(Node::to_json) {
                let message = format!("`{key}` of `{path}` is another one");
                let span = key_place(new, key, place);
                self.report(span, &message, "stored objects may not fit");
            }
        }
        let is = |it: &Node, key: &str| it.get(key).and_then(Node::as_bool) == Some(true);
        for key in SWITCHES {
            if is(new, key) && !is(old, key) {
                let message = format!("`{key}` of `{path}` is new");
                let span = key_place(new, key, place);
                self.report(span, &message, "stored objects may not fit");
            }
        }
        self.rules(path, old, new, place);
    }

    fn enumeration(&mut self, path: &str, old: &Node, new: &Node) {
        let Some(after) = new.entry("enum") else {
            return;
        };
        let values = |it: &Node| -> Vec<serde_json::Value> {
            let items = it.as_seq().unwrap_or_default();
            items.iter().map(Node::to_json).collect()
        };
        let allowed = values(&after.value);
        let Some(before) = old.get("enum") else {
            let message = format!("`{path}` could have any value");
            self.report(after.key.span, &message, "only these are left");
            return;
        };
        for value in values(before).iter().filter(|it| !allowed.contains(it)) {
            let message = format!("`{path}` cannot be {value} any more");
            self.report(after.key.span, &message, "it could be");
        }
    }

    /// Validation rules, and what clients apply together.
    fn rules(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        let rule = |it: &Node| it.get("rule").and_then(Node::as_str).map(str::to_owned);
        let rules = |it: &Node| {
            let listed = it.get("x-kubernetes-validations").and_then(Node::as_seq);
            listed.unwrap_or_default().to_vec()
        };
        let known: Vec<_> = rules(old).iter().filter_map(rule).collect();
        for new_rule in rules(new) {
            if rule(&new_rule).is_some_and(|text| !known.contains(&text)) {
                let message = format!("a validation rule of `{path}` is new");
                self.report(new_rule.span, &message, "stored objects may not fit");
            }
        }
        self.merging(path, old, new, place);
    }

    /// How the API server merges what several clients apply.
    fn merging(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        let text = |it: &Node, key: &str, default: &str| {
            let named = it.get(key).and_then(Node::as_str);
            named.unwrap_or(default).to_owned()
        };
        let key = "x-kubernetes-list-type";
        let (before, after) = (text(old, key, "atomic"), text(new, key, "atomic"));
        if before != after {
            let message = format!("`{path}` was a list of type `{before}` and is `{after}`");
            let why = match after.as_str() {
                "atomic" => "a client that applies some items replaces all of them now",
                _ => "its items have to be unique now",
            };
            self.report(key_place(new, key, place), &message, why);
        }
        let key = "x-kubernetes-list-map-keys";
        if let (Some(before), Some(after)) = (old.get(key), new.entry(key))
            && before.to_json() != after.value.to_json()
        {
            let message = format!("the items of `{path}` have other keys");
            let why = "stored items may not be unique, and clients apply them by the old keys";
            self.report(after.key.span, &message, why);
        }
        let key = "x-kubernetes-map-type";
        if text(old, key, "granular") != "atomic" && text(new, key, "granular") == "atomic" {
            let message = format!("`{path}` is an atomic map now");
            let why = "a client that applies some fields replaces all of them now";
            self.report(key_place(new, key, place), &message, why);
        }
    }

    fn fields(&mut self, path: &str, old: &Node, new: &Node, place: Span) {
        let entries = |it: &Node| {
            let properties = it.get("properties").and_then(Node::as_map);
            properties.unwrap_or_default().to_vec()
        };
        let after = entries(new);
        for before in entries(old) {
            let name = &before.key.name;
            let below = format!("{path}.{name}");
            match after.iter().find(|it| it.key.name == *name) {
                Some(after) => self.schema(&below, &before.value, &after.value, after.key.span),
                None if keeps_unknown(new) || new.get("additionalProperties").is_some() => {}
                None => {
                    let span = key_place(new, "properties", place);
                    self.report(
                        span,
                        &format!("`{below}` is gone"),
                        "the API server drops it from stored objects",
                    );
                }
            }
        }
        let required = |it: &Node| {
            let listed = it.get("required").and_then(Node::as_seq);
            listed.unwrap_or_default().to_vec()
        };
        let before: Vec<_> = required(old).iter().map(Node::to_json).collect();
        for field in required(new) {
            let name = field.as_str().unwrap_or_default();
            let schema = after.iter().find(|it| it.key.name == name);
            let has_default = schema.is_some_and(|it| it.value.get("default").is_some());
            if !before.contains(&field.to_json()) && !has_default {
                let message = format!("`{path}.{name}` is required now");
                self.report(field.span, &message, "stored objects may be without it");
            }
        }
    }
}

fn keeps_unknown(schema: &Node) -> bool {
    let keeps = schema.get("x-kubernetes-preserve-unknown-fields");
    keeps.and_then(Node::as_bool) == Some(true)
}

fn key_place(schema: &Node, key: &str, otherwise: Span) -> Span {
    schema.entry(key).map_or(otherwise, |it| it.key.span)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bounds beyond 2^53 are compared roughly"
)]
fn number(node: &Node) -> Option<f64> {
    match node.value {
        Value::Int(number) => Some(number as f64),
        Value::Float(number) => Some(number),
        _ => None,
    }
}
