//! Reads and edits our finalizer in `metadata.finalizers`.
//!
//! [`crate::handler::finalizer_need`] decides whether an object needs it.

use serde_json::{Map, Value};

use crate::object::{
    ObjectView,
    patch::{JsonPatch, json_patch},
};

/// The finalizer of Kopf, the same here, so that operators can replace each other.
pub const KOPF_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Whether the object has the finalizer.
#[must_use]
pub fn is_present(view: ObjectView<'_>, finalizer: &str) -> bool {
    view.finalizers().any(|present| present == finalizer)
}

/// Appends the finalizer to a body that does not have it.
pub fn insert(body: &mut Value, finalizer: &str) {
    if is_present(ObjectView::new(body), finalizer) {
        return;
    }
    let Some(meta) = stanza(body, "metadata") else {
        return;
    };
    match meta.get_mut("finalizers").and_then(Value::as_array_mut) {
        Some(finalizers) => finalizers.push(finalizer.into()),
        None => {
            meta.insert("finalizers".to_owned(), vec![finalizer].into());
        }
    }
}

/// Removes the finalizer and its duplicates from a body, and an empty list with them.
pub fn remove(body: &mut Value, finalizer: &str) {
    let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(finalizers) = meta.get_mut("finalizers").and_then(Value::as_array_mut) else {
        return;
    };
    finalizers.retain(|present| present != finalizer);
    if finalizers.is_empty() {
        meta.shift_remove("finalizers");
    }
}

/// The precise patch that adds the finalizer, none if it is there.
#[must_use]
pub fn addition(body: &Value, finalizer: &str) -> Option<JsonPatch> {
    edit(body, |body| insert(body, finalizer))
}

/// The precise patch that removes the finalizer, none if it is not there.
#[must_use]
pub fn removal(body: &Value, finalizer: &str) -> Option<JsonPatch> {
    edit(body, |body| remove(body, finalizer))
}

fn edit(body: &Value, change: impl FnOnce(&mut Value)) -> Option<JsonPatch> {
    let mut edited = body.clone();
    change(&mut edited);
    json_patch(body, &edited)
}

fn stanza<'a>(body: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    body.as_object_mut()?
        .entry(name)
        .or_insert_with(|| Value::Object(Map::new()))
        .as_object_mut()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_finalizer_is_appended_to_the_others() {
        let body = json!({"metadata": {"resourceVersion": "5", "finalizers": ["other"]}});
        let patch = addition(&body, "ours").expect("it was absent");
        assert_eq!(
            patch.to_json(),
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
                {"op": "add", "path": "/metadata/finalizers/1", "value": "ours"},
            ])
        );
        let mut patched = body;
        insert(&mut patched, "ours");
        assert_eq!(addition(&patched, "ours"), None);
    }

    #[test]
    fn all_duplicates_are_removed_and_an_empty_list_with_them() {
        let body =
            json!({"metadata": {"resourceVersion": "5", "finalizers": ["ours", "a", "ours"]}});
        let mut edited = body.clone();
        remove(&mut edited, "ours");
        assert_eq!(edited["metadata"]["finalizers"], json!(["a"]));
        assert!(removal(&body, "ours").is_some());

        let body = json!({"metadata": {"resourceVersion": "5", "finalizers": ["ours"]}});
        assert_eq!(
            removal(&body, "ours").expect("it was there").to_json(),
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "5"},
                {"op": "remove", "path": "/metadata/finalizers"},
            ])
        );
        assert_eq!(removal(&edited, "ours"), None);
    }
}
