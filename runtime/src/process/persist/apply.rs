//! Writes a patch to an object: at most one request for each of its endpoints.

use std::sync::Arc;

use kopf_core::object::patch::{ObjectPatch, apply_merge};
use serde_json::{Value, json};
use tracing::warn;

use super::object_writer::{
    ExpectedState, ObjectWriter, OnConflict, PatchEdits, WriteAnswer, WriteFailure, version,
};
use super::pruned_fields;
use crate::client::requests::PatchTarget;
use crate::client::resource::StatusSubresource;
use crate::client::resource_version::ResourceVersion;

/// The result of a write that the API server did not reject.
#[derive(Debug)]
pub(crate) enum WriteResult {
    /// The object after the last request.
    Written(Arc<Value>),
    /// The same, but the API server has not kept these annotations.
    Stripped(Arc<Value>, Vec<String>),
    /// At this version, the object is the known state with the patch applied.
    AsExpected(ResourceVersion),
    /// There was nothing to change.
    Unchanged,
    /// Nothing was written: the known state is outdated, and this is the newest one.
    Outdated(Arc<Value>),
    /// The object does not exist any more.
    Gone,
    /// The lease ended first; something may have been written.
    LeaseEnded,
}

/// The API server rejects the patch.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WriteRejected(String);

/// The need to know the object after the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadBack {
    /// The object is decoded.
    Always,
    /// The object is decoded only if it is not the known state with the patch applied.
    IfUnexpected,
}

/// A patch on its way to the endpoints of an object.
struct PatchWrite<'a> {
    writer: &'a ObjectWriter<'a>,
    known: Arc<Value>,
    /// True if the status has an endpoint of its own.
    split: bool,
    read_back: ReadBack,
    /// The status that was written, if the object was as expected and not decoded after it.
    unread_status: Option<Value>,
    /// The status that was written, if the object was decoded after it.
    read_status: Option<Value>,
    status_answer: Option<WriteAnswer>,
}

/// Writes a patch; `known` is the newest known state.
pub(crate) async fn apply(
    writer: &ObjectWriter<'_>,
    known: &Arc<Value>,
    patch: ObjectPatch,
    on_conflict: OnConflict,
    read_back: ReadBack,
) -> Result<WriteResult, WriteRejected> {
    let split = writer.status == StatusSubresource::Present;
    let mut requests = patch.into_requests(split);
    let mut write = PatchWrite {
        writer,
        known: Arc::clone(known),
        split,
        // Edits are made on the object itself.
        read_back: if requests.edits.is_empty() {
            read_back
        } else {
            ReadBack::Always
        },
        unread_status: None,
        read_status: None,
        status_answer: None,
    };
    if let Some(status) = requests.status.take()
        && let Err(failure) = write.send_status(status, &mut requests.body).await
    {
        return failure.into_result();
    }
    let edits = PatchEdits {
        merge: requests.body.as_ref(),
        edits: &requests.edits,
        split: write.split,
        on_conflict,
    };
    match write.send_body(edits).await {
        Ok(answer) => Ok(write.result(answer, requests.body.as_ref(), known)),
        Err(failure) => failure.into_result(),
    }
}

/// Reads the newest state from the API server; none if the object is gone, or the lease ended.
pub(crate) async fn newest(writer: &ObjectWriter<'_>) -> Result<Option<Arc<Value>>, WriteRejected> {
    match writer.fetch().await {
        Ok(newest) => Ok(Some(newest)),
        Err(failure) => failure.into_result().map(|_| None),
    }
}

// === impl ReadBack ===

impl ReadBack {
    fn expected<'a>(self, known: &'a Value, patch: &'a Value) -> Option<ExpectedState<'a>> {
        (self == Self::IfUnexpected).then_some(ExpectedState { known, patch })
    }
}

// === impl PatchWrite ===

impl PatchWrite<'_> {
    /// Sends the status to its endpoint, or adds it to the body if there is no such endpoint.
    async fn send_status(
        &mut self,
        status: Value,
        body: &mut Option<Value>,
    ) -> Result<(), WriteFailure> {
        let expected = self.read_back.expected(&self.known, &status);
        match self
            .writer
            .merge(PatchTarget::Status, &status, &self.known, expected)
            .await
        {
            Ok(WriteAnswer::Object(object)) => {
                // The next request starts from a state that may be unexpected.
                self.read_back = ReadBack::Always;
                self.known = Arc::clone(&object);
                self.read_status = Some(status);
                self.status_answer = Some(WriteAnswer::Object(object));
            }
            Ok(WriteAnswer::AsExpected(version)) => {
                self.status_answer = Some(WriteAnswer::AsExpected(version));
                self.unread_status = Some(status);
            }
            Err(WriteFailure::Gone) if self.writer.exists().await => {
                warn!(
                    "the definition of the kind has no status subresource (any more), unlike the \
                     generated code: the status is written with the rest"
                );
                self.split = false;
                apply_merge(body.get_or_insert_with(|| json!({})), &status);
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// Sends the rest: a merge patch, or a JSON patch if there are edits.
    async fn send_body(
        &mut self,
        edits: PatchEdits<'_>,
    ) -> Result<Option<WriteAnswer>, WriteFailure> {
        if !edits.edits.is_empty() {
            let edited = self.writer.edit(&self.known, edits).await?;
            return Ok(edited.map(WriteAnswer::Object));
        }
        let Some(body) = edits.merge else {
            return Ok(None);
        };
        let both = self.unread_status.take().map(|status| joined(body, status));
        let both = both.as_ref().unwrap_or(body);
        let expected = self.read_back.expected(&self.known, both);
        let answer = self
            .writer
            .merge(PatchTarget::Body, body, &self.known, expected)
            .await?;
        Ok(Some(answer))
    }

    /// `before` is the state that was known before the first request.
    fn result(
        self,
        answer: Option<WriteAnswer>,
        merge: Option<&Value>,
        before: &Value,
    ) -> WriteResult {
        if let (Some(WriteAnswer::Object(object)), Some(merge)) = (&answer, merge) {
            let stripped = pruned_fields::stripped(merge, object);
            if !stripped.is_empty() {
                return WriteResult::Stripped(Arc::clone(object), stripped);
            }
        }
        let wanted = [self.read_status.as_ref(), merge];
        match answer.or(self.status_answer) {
            // The API server gives no new version to a write that changes nothing.
            Some(WriteAnswer::Object(object))
                if version(&object) == version(before)
                    && wanted.into_iter().flatten().all(|it| is_so(it, &object)) =>
            {
                WriteResult::Unchanged
            }
            Some(WriteAnswer::Object(object)) => WriteResult::Written(object),
            Some(WriteAnswer::AsExpected(version)) => WriteResult::AsExpected(version),
            None => WriteResult::Unchanged,
        }
    }
}

// === impl WriteFailure ===

impl WriteFailure {
    pub(super) fn into_result(self) -> Result<WriteResult, WriteRejected> {
        match self {
            Self::Gone => Ok(WriteResult::Gone),
            Self::LeaseEnded => Ok(WriteResult::LeaseEnded),
            Self::Outdated(newer) => Ok(WriteResult::Outdated(newer)),
            Self::Conflict => Err(WriteRejected(
                "another writer changed the object meanwhile".to_owned(),
            )),
            Self::WriteRejected(message) => Err(WriteRejected(message)),
        }
    }
}

/// Both parts of a patch whose status went to an endpoint of its own.
fn joined(body: &Value, mut status: Value) -> Value {
    let mut both = body.clone();
    if let (Some(both), Some(status)) = (both.as_object_mut(), status.as_object_mut()) {
        both.append(status);
    }
    both
}

/// Whether an object already has everything that a merge patch sets, and nothing that it removes.
fn is_so(merge: &Value, object: &Value) -> bool {
    let Value::Object(merge) = merge else {
        return merge == object;
    };
    merge.iter().all(|(key, wanted)| match object.get(key) {
        None => wanted.is_null() || wanted.as_object().is_some_and(pruned_fields::only_removes),
        Some(present) => is_so(wanted, present),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_patch_that_changes_nothing_is_recognised() {
        let object = json!({
            "metadata": {"labels": {"a": "1"}, "resourceVersion": "5"},
            "status": {"phase": "Ready", "list": [1, 2]},
        });
        for nothing in [
            json!({}),
            json!({"status": {"phase": "Ready"}}),
            json!({"status": {"list": [1, 2], "gone": null}}),
            json!({"metadata": {"labels": {"a": "1"}, "annotations": {"x": null}}}),
        ] {
            assert!(is_so(&nothing, &object), "{nothing}");
        }
        for change in [
            json!({"status": {"phase": "Failed"}}),
            json!({"status": {"list": [1]}}),
            json!({"status": null}),
            json!({"metadata": {"annotations": {"x": "y"}}}),
        ] {
            assert!(!is_so(&change, &object), "{change}");
        }
    }
}
