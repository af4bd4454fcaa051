//! The last handled state in the status, as a string, so that merge patches replace it whole.

use serde_json::Value;

use crate::{
    diffbase::{DiffBaseStorage, packed},
    json,
    object::{ObjectView, diff::Baseline, essence::Essence, patch::ObjectPatch, path::FieldPath},
};

/// The last handled state in one field of the status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusDiffBase {
    /// Kopf's field.
    pub field: FieldPath,
    /// The field for states that must not be readable.
    pub packed_field: FieldPath,
}

const BUDGET: usize = 512 * 1024;

// === impl StatusDiffBase ===

impl StatusDiffBase {
    /// States in `status.<name>.last-handled-configuration` and beside it.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            field: FieldPath::new(["status", name, "last-handled-configuration"]),
            packed_field: FieldPath::new(["status", name, "last-handled-packed"]),
        }
    }

    /// States in a field, and beside it.
    #[must_use]
    pub fn at(field: FieldPath) -> Self {
        let last = field.parts().last().map_or("", String::as_str);
        Self {
            packed_field: field.sibling(&format!("{last}-packed")),
            field,
        }
    }
}

impl Default for StatusDiffBase {
    fn default() -> Self {
        Self::new("kopf")
    }
}

impl DiffBaseStorage for StatusDiffBase {
    fn fetch(&self, view: ObjectView<'_>) -> Baseline {
        let read = |field: &FieldPath| field.resolve(view.body()).and_then(Value::as_str);
        if let Some(text) = read(&self.field) {
            return match serde_json::from_str::<Value>(text) {
                Ok(Value::Null) => Baseline::Absent,
                Ok(essence) => Baseline::Known(Essence::from_value(essence)),
                Err(_) => packed::unreadable(),
            };
        }
        match read(&self.packed_field) {
            Some(text) => packed::unpack(text, view.uid().unwrap_or_default())
                .unwrap_or_else(packed::unreadable),
            None => Baseline::Absent,
        }
    }

    fn store(&self, state: &Baseline, view: ObjectView<'_>, patch: &mut ObjectPatch) {
        let salt = view.uid().unwrap_or_default();
        match state {
            Baseline::Known(essence) => {
                patch.set(&self.field, json::to_ascii(essence.as_value()).into());
                patch.purge(&self.packed_field, view);
            }
            Baseline::Hashed(_) => {
                patch.purge(&self.field, view);
                patch.set(&self.packed_field, packed::pack(state, salt, BUDGET).into());
            }
            Baseline::Absent => {
                patch.purge(&self.field, view);
                patch.purge(&self.packed_field, view);
            }
        }
    }

    fn clear(&self, essence: &mut Essence, _view: ObjectView<'_>) {
        essence.remove(&self.field);
        essence.remove(&self.packed_field);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::{hashed::HashedState, patch::apply_merge};

    #[test]
    fn states_are_strings_without_a_newline() {
        let storage = StatusDiffBase::default();
        let known = Baseline::Known(Essence::from_value(json!({"spec": {"a": 1}})));
        let hashed = Baseline::Hashed(HashedState::new(&json!({"spec": 1}), "", 9));
        let mut body = json!({});
        for state in [&known, &hashed, &known, &Baseline::Absent] {
            let mut patch = ObjectPatch::new();
            storage.store(state, ObjectView::new(&body), &mut patch);
            apply_merge(&mut body, &Value::Object(patch.merge_patch().clone()));
            assert_eq!(storage.fetch(ObjectView::new(&body)), *state);
            if *state == known {
                let text = &body["status"]["kopf"]["last-handled-configuration"];
                assert_eq!(text, r#"{"spec":{"a":1}}"#);
            }
            let mut essence = Essence::from_value(body.clone());
            storage.clear(&mut essence, ObjectView::new(&body));
            assert_eq!(
                essence
                    .as_value()
                    .pointer("/status/kopf/last-handled-configuration"),
                None
            );
        }
    }
}
