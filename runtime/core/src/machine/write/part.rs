//! The part of an object that one endpoint can change, and the edits of it.

use std::{any::Any, panic::AssertUnwindSafe};

use serde_json::Value;

use crate::{
    machine::request::PatchEndpoint,
    object::patch::{PatchFn, apply_merge, json_patch},
};

/// The part of an object that one endpoint can change.
#[derive(Clone, Copy, Debug)]
pub(super) enum ObjectPart {
    All,
    Status,
    AllButStatus,
}

/// The edits of one part of an object.
#[derive(Debug)]
pub(super) struct PartChange {
    pub(super) endpoint: PatchEndpoint,
    /// The object with the edits.
    pub(super) wanted: Value,
    /// The JSON patch that makes them.
    pub(super) patch: Value,
}

// === impl ObjectPart ===

impl ObjectPart {
    /// The parts of an object, in the order in which they are written.
    pub(super) fn all(status_endpoint: bool) -> &'static [Self] {
        match status_endpoint {
            true => &[Self::Status, Self::AllButStatus],
            false => &[Self::All],
        }
    }

    /// The edits of this part of the newest state; none if they change nothing.
    ///
    /// Edits are code of the user: the error is the message of a panic.
    pub(super) fn change(
        self,
        newest_state: &Value,
        merge: Option<&Value>,
        edits: &[PatchFn],
    ) -> Result<Option<PartChange>, String> {
        let mut edited = newest_state.clone();
        if let Some(merge) = merge {
            apply_merge(&mut edited, merge);
        }
        let edit_all = || edits.iter().for_each(|edit| edit(&mut edited));
        std::panic::catch_unwind(AssertUnwindSafe(edit_all))
            .map_err(|payload| panic_message(&*payload))?;
        let wanted = match self {
            Self::All => edited,
            Self::Status => with_status_of(&edited, newest_state.clone()),
            Self::AllButStatus => with_status_of(newest_state, edited),
        };
        let patch = json_patch(newest_state, &wanted);
        Ok(patch.map(|patch| PartChange {
            endpoint: self.endpoint(),
            wanted,
            patch: patch.to_json(),
        }))
    }

    fn endpoint(self) -> PatchEndpoint {
        match self {
            Self::Status => PatchEndpoint::Status,
            Self::AllButStatus | Self::All => PatchEndpoint::Object,
        }
    }
}

fn with_status_of(source: &Value, mut target: Value) -> Value {
    if let Some(target) = target.as_object_mut() {
        match source.get("status") {
            Some(status) => target.insert("status".to_owned(), status.clone()),
            None => target.shift_remove("status"),
        };
    }
    target
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked with a value that is not text".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::object::patch::ObjectPatch;

    #[test]
    fn each_endpoint_gets_its_part_of_the_edits_in_one_patch() {
        let newest_state = json!({
            "metadata": {"resourceVersion": "5", "finalizers": ["ours"]},
            "status": {"seen": [1]},
        });
        let mut patch = ObjectPatch::new();
        patch.set_annotation("note", "new");
        patch.edit(|body| {
            if let Some(meta) = body["metadata"].as_object_mut() {
                meta.shift_remove("finalizers");
            }
            if let Some(seen) = body["status"]["seen"].as_array_mut() {
                seen.push(json!(2));
            }
        });
        let requests = patch.into_requests(true);
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"});
        let patch = |part: ObjectPart| {
            let change = part.change(&newest_state, requests.body.as_ref(), &requests.edits);
            change.expect("no edit panics").map(|it| it.patch)
        };
        assert_eq!(
            patch(ObjectPart::Status),
            Some(json!([test, {"op": "add", "path": "/status/seen/1", "value": 2}]))
        );
        assert_eq!(
            patch(ObjectPart::AllButStatus),
            Some(json!([
                test,
                {"op": "remove", "path": "/metadata/finalizers"},
                {"op": "add", "path": "/metadata/annotations", "value": {"note": "new"}},
            ]))
        );
    }
}
