//! Requests for one object: repeated until the API server answers, and until it accepts or rejects.
//!
//! Edits of the newest state become one JSON patch that tests the resource version, and are
//! computed anew after a conflict. Nothing is sent after the operator's lease has ended.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::applied::shows_change;
use kopf_core::object::patch::{PatchFn, apply_merge, json_patch};
use kopf_core::object::patch_response::version_if_expected;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::pruned_fields;
use crate::client::backoff::Backoff;
use crate::client::requests::{self, KindApi, PatchBody, PatchTarget};
use crate::client::resource::StatusSubresource;
use crate::client::resource_version::ResourceVersion;
use crate::coordination::pause::{LeaseEnded, PauseGate};
use crate::watch::ObjectKey;

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The time for which a forbidden write is sent again.
const FORBIDDEN_RETRIES: Duration = Duration::from_secs(50);

/// The reaction to a conflict with another writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnConflict {
    /// Write the patch on top of the newer state.
    Repeat,
    /// Write nothing, and return the newer state.
    Report,
}

/// The reaction to a write that the API server forbids, for want of a permission or by a policy.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OnForbidden<'a> {
    /// The write is rejected at once: the caller tries it again later.
    Reject,
    /// The write is sent again for about a minute, as by Kopf: permissions take time to arrive.
    /// A stop of the operator ends that.
    Retry(Option<&'a CancellationToken>),
}

/// Writes to one object.
pub(crate) struct ObjectWriter<'a> {
    pub(crate) api: &'a KindApi,
    pub(crate) key: &'a ObjectKey,
    pub(crate) status: StatusSubresource,
    pub(crate) pause_gate: &'a PauseGate,
    pub(crate) on_forbidden: OnForbidden<'a>,
}

/// The part of an object that one endpoint can change.
#[derive(Debug, Clone, Copy)]
enum ObjectPart {
    All,
    Status,
    AllButStatus,
}

#[derive(Clone, Copy)]
pub(super) enum ObjectRequest<'a> {
    Get,
    /// The same, for a caller to which a forbidden object is one that exists.
    Check,
    Patch(PatchTarget, &'a PatchBody<'a>),
}

/// The requests that were sent until an answer came.
#[derive(Default)]
struct SentRequests {
    /// Whether the API server may have executed one of them without an answer.
    unanswered: bool,
}

/// The edits of one part of an object.
struct PartChange {
    /// The object with the edits.
    wanted: Value,
    /// The JSON patch that makes them.
    patch: Value,
}

/// The expected state of an object after a merge patch.
#[derive(Clone, Copy)]
pub(super) struct ExpectedState<'a> {
    pub(super) known: &'a Value,
    pub(super) patch: &'a Value,
}

/// The content of an answer; none if it is about another object of the same name.
pub(super) type DecodedAnswer<T> = Result<Option<T>, serde_json::Error>;

/// The object after a request.
pub(super) enum WriteAnswer {
    AsExpected(ResourceVersion),
    Object(Arc<Value>),
}

/// Edits of the newest state, with the merge patch that is applied before them.
#[derive(Clone, Copy)]
pub(super) struct PatchEdits<'a> {
    pub(super) merge: Option<&'a Value>,
    pub(super) edits: &'a [PatchFn],
    pub(super) split: bool,
    pub(super) on_conflict: OnConflict,
}

pub(super) enum WriteFailure {
    Gone,
    Outdated(Arc<Value>),
    Conflict,
    WriteRejected(String),
    LeaseEnded,
}

// === impl ObjectWriter ===

impl ObjectWriter<'_> {
    pub(super) async fn merge(
        &self,
        target: PatchTarget,
        patch: &Value,
        known: &Value,
        expected: Option<ExpectedState<'_>>,
    ) -> Result<WriteAnswer, WriteFailure> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let mut newer: Option<Arc<Value>> = None;
        loop {
            let newest = newer.as_deref().unwrap_or(known);
            let mut guarded = patch.clone();
            apply_merge(
                &mut guarded,
                &json!({"metadata": self.precondition(target, newest)}),
            );
            let body = PatchBody::Merge(&guarded);
            let request = ObjectRequest::Patch(target, &body);
            match self
                .request(request, |text| self.decode_or_expected(text, expected))
                .await
            {
                Ok(WriteAnswer::Object(body)) => {
                    pruned_fields::warn_if_dropped(self.key, patch, &body);
                    return Ok(WriteAnswer::Object(body));
                }
                Ok(expected) => return Ok(expected),
                Err(WriteFailure::Conflict) if target == PatchTarget::Status => {
                    if newer.is_some() {
                        tokio::time::sleep(backoff.next(None)).await;
                    }
                    newer = Some(self.fetch().await?);
                }
                Err(WriteFailure::Conflict | WriteFailure::WriteRejected(_))
                    if !self.exists().await =>
                {
                    return Err(WriteFailure::Gone);
                }
                // The patch tests no version: the API server gave up against faster writers.
                Err(WriteFailure::Conflict) => tokio::time::sleep(backoff.next(None)).await,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// The metadata that the API server compares with the object before it merges a patch.
    ///
    /// The endpoint of the status ignores the uid, but no two objects have the same version.
    fn precondition(&self, target: PatchTarget, newest: &Value) -> Value {
        match (target, version(newest)) {
            (PatchTarget::Status, Some(version)) => {
                json!({"uid": &*self.key.uid, "resourceVersion": version})
            }
            _ => json!({"uid": &*self.key.uid}),
        }
    }

    /// Repeats the edits on newer states until the API server reports no conflict.
    ///
    /// Each endpoint takes its own part of the edits once, so an edit need not be idempotent.
    pub(super) async fn edit(
        &self,
        known: &Arc<Value>,
        edits: PatchEdits<'_>,
    ) -> Result<Option<Arc<Value>>, WriteFailure> {
        let mut newest_state = Arc::clone(known);
        let mut written = None;
        let parts: &[ObjectPart] = if edits.split {
            &[ObjectPart::Status, ObjectPart::AllButStatus]
        } else {
            &[ObjectPart::All]
        };
        for part in parts {
            while let Some(change) = part.change(&newest_state, edits) {
                let body = PatchBody::Json(&change.patch);
                let request = ObjectRequest::Patch(part.target(), &body);
                let mut sent = SentRequests::default();
                let read = |text: &str| self.decode(text);
                let newer = match self.request_tracked(request, read, &mut sent).await {
                    Ok(body) => {
                        newest_state = Arc::clone(&body);
                        written = Some(body);
                        break;
                    }
                    Err(WriteFailure::Conflict) => self.fetch().await?,
                    Err(WriteFailure::WriteRejected(message)) => {
                        let newer = self.fetch().await?;
                        if version(&newer) == version(&newest_state) {
                            return Err(WriteFailure::WriteRejected(message));
                        }
                        newer
                    }
                    Err(failure) => return Err(failure),
                };
                if edits.on_conflict == OnConflict::Report {
                    return Err(WriteFailure::Outdated(newer));
                }
                let is_written =
                    sent.unanswered && self.is_written(&newest_state, &change, &newer).await?;
                newest_state = newer;
                if is_written {
                    written = Some(Arc::clone(&newest_state));
                    break;
                }
            }
        }
        Ok(written)
    }

    /// Whether the API server executed an edit whose answer was lost.
    ///
    /// The patch tests the version of the state that it is made for, so it is either the first
    /// write after that version or none.
    async fn is_written(
        &self,
        before: &Value,
        change: &PartChange,
        newest: &Value,
    ) -> Result<bool, WriteFailure> {
        if shows_change(before, &change.wanted, newest) {
            return Ok(true);
        }
        let Some(version) = version(before) else {
            return Ok(false);
        };
        let next = self.next_state(version);
        let next = self.pause_gate.while_leading(next).await;
        let next = next.map_err(|LeaseEnded| WriteFailure::LeaseEnded)?;
        Ok(next.is_some_and(|next| shows_change(before, &change.wanted, &next)))
    }

    /// The first state after this version; none if the API server does not know it any more.
    async fn next_state(&self, version: &str) -> Option<Value> {
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let namespace = self.key.namespace.as_deref();
            let next = self.api.next_state(namespace, &self.key.name, version);
            match next.await {
                Ok(next) => return Some(next),
                Err(error) if error.is_transient() => {
                    tokio::time::sleep(backoff.next(error.retry_after())).await;
                }
                Err(error) => {
                    warn!("an edit is made again: whether it was written is unknown, as {error}");
                    return None;
                }
            }
        }
    }

    /// Reads the newest state of this very object.
    pub(super) async fn fetch(&self) -> Result<Arc<Value>, WriteFailure> {
        self.request(ObjectRequest::Get, |text| self.decode(text))
            .await
    }

    pub(super) async fn exists(&self) -> bool {
        let check = self.request(ObjectRequest::Check, |text| self.decode(text));
        !matches!(check.await, Err(WriteFailure::Gone))
    }

    /// Sends a request until there is an answer, or until the lease has ended.
    pub(super) async fn request<T>(
        &self,
        request: ObjectRequest<'_>,
        read: impl Fn(&str) -> DecodedAnswer<T>,
    ) -> Result<T, WriteFailure> {
        self.request_tracked(request, read, &mut SentRequests::default())
            .await
    }

    async fn request_tracked<T>(
        &self,
        request: ObjectRequest<'_>,
        read: impl Fn(&str) -> DecodedAnswer<T>,
        sent: &mut SentRequests,
    ) -> Result<T, WriteFailure> {
        let answer = self
            .pause_gate
            .while_leading(self.request_until_answered(request, read, sent))
            .await;
        answer.unwrap_or_else(|LeaseEnded| Err(WriteFailure::LeaseEnded))
    }

    async fn request_until_answered<T>(
        &self,
        request: ObjectRequest<'_>,
        read: impl Fn(&str) -> DecodedAnswer<T>,
        sent: &mut SentRequests,
    ) -> Result<T, WriteFailure> {
        let name = &self.key.name;
        let namespace = self.key.namespace.as_deref();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        let begun = Instant::now();
        loop {
            let answer = match request {
                ObjectRequest::Get | ObjectRequest::Check => {
                    self.api.get_text(namespace, name).await
                }
                ObjectRequest::Patch(target, patch) => {
                    let answer = self.api.patch_text(namespace, name, target, patch);
                    answer.await
                }
            };
            let answer = answer.and_then(|text| read(&text).map_err(requests::Error::Decode));
            let error = match answer {
                Ok(answer) => return answer.ok_or(WriteFailure::Gone),
                Err(requests::Error::NotFound) => return Err(WriteFailure::Gone),
                Err(requests::Error::Conflict(_)) => return Err(WriteFailure::Conflict),
                Err(requests::Error::Forbidden(message))
                    if self.ends_when_forbidden(request, begun.elapsed()) =>
                {
                    return Err(WriteFailure::WriteRejected(message));
                }
                Err(error) => error,
            };
            sent.unanswered |= error.may_be_executed();
            if let Some(reason) = error.rejection() {
                return Err(WriteFailure::WriteRejected(reason));
            }
            let pause = backoff.next(error.retry_after());
            warn!(
                "a request for the object failed: {error}; trying again in {:.1} s",
                pause.as_secs_f32()
            );
            self.sleep_unless_stopped(pause, error.is_forbidden()).await;
        }
    }

    /// Whether a request that the API server forbids is given up.
    fn ends_when_forbidden(&self, request: ObjectRequest<'_>, elapsed: Duration) -> bool {
        match (request, self.on_forbidden) {
            (ObjectRequest::Get, _) => false,
            (ObjectRequest::Check, _) | (_, OnForbidden::Reject) => true,
            (_, OnForbidden::Retry(stop)) => {
                elapsed >= FORBIDDEN_RETRIES || stop.is_some_and(CancellationToken::is_cancelled)
            }
        }
    }

    /// Sleeps; a stop of the operator does not wait for a write that is forbidden.
    async fn sleep_unless_stopped(&self, pause: Duration, forbidden: bool) {
        let sleep = tokio::time::sleep(pause);
        match self.on_forbidden {
            OnForbidden::Retry(Some(stop)) if forbidden && !stop.is_cancelled() => {
                tokio::select! {
                    () = sleep => {}
                    () = stop.cancelled() => {}
                }
            }
            _ => sleep.await,
        }
    }

    fn decode(&self, text: &str) -> DecodedAnswer<Arc<Value>> {
        let body: Value = serde_json::from_str(text)?;
        // A request that tests no version may be answered about another object of the name.
        let is_this_object = ObjectView::new(&body).uid() == Some(&self.key.uid);
        Ok(is_this_object.then(|| Arc::new(body)))
    }

    fn decode_or_expected(
        &self,
        text: &str,
        expected: Option<ExpectedState<'_>>,
    ) -> DecodedAnswer<WriteAnswer> {
        let version = expected
            .and_then(|ExpectedState { known, patch }| version_if_expected(text, known, patch));
        match version {
            Some(version) => Ok(Some(WriteAnswer::AsExpected(ResourceVersion::new(version)))),
            None => Ok(self.decode(text)?.map(WriteAnswer::Object)),
        }
    }
}

// === impl ObjectPart ===

impl ObjectPart {
    fn target(self) -> PatchTarget {
        match self {
            Self::Status => PatchTarget::Status,
            Self::AllButStatus | Self::All => PatchTarget::Body,
        }
    }

    /// The edits of this part of the newest state; none if they change nothing.
    fn change(self, newest_state: &Value, edits: PatchEdits<'_>) -> Option<PartChange> {
        let mut edited = newest_state.clone();
        if let Some(merge) = edits.merge {
            apply_merge(&mut edited, merge);
        }
        for edit in edits.edits {
            edit(&mut edited);
        }
        let wanted = match self {
            Self::All => edited,
            Self::Status => with_status_of(&edited, newest_state.clone()),
            Self::AllButStatus => with_status_of(newest_state, edited),
        };
        let patch = json_patch(newest_state, &wanted)?.to_json();
        Some(PartChange { wanted, patch })
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

pub(super) fn version(body: &Value) -> Option<&str> {
    ObjectView::new(body).resource_version()
}

#[cfg(test)]
mod tests {
    use kopf_core::object::patch::ObjectPatch;

    use super::*;

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
        let edits = PatchEdits {
            merge: requests.body.as_ref(),
            edits: &requests.edits,
            split: true,
            on_conflict: OnConflict::Repeat,
        };
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"});
        let patch = |part: ObjectPart| part.change(&newest_state, edits).map(|it| it.patch);
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
