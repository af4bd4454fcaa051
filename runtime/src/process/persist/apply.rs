//! Sends a patch and does not give up until it has landed, or can never land.
//!
//! At most one request goes to each endpoint of the object: what needs the newest state is merged
//! with the rest into one JSON patch that insists on that state, and is computed anew whenever
//! somebody else was faster. Nothing is sent after the operator's lease has ended.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::object::ObjectView;
use kopf_core::object::patch::{Patch, PatchFn, apply_merge, json_patch};
use kopf_core::object::write_effect::version_if_foreseen;
use serde_json::{Value, json};
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

/// What became of a patch that could be sent.
#[derive(Debug)]
pub(crate) enum WriteResult {
    /// The object as it is after the last request.
    Written(Arc<Value>),
    /// The same, but the server has not kept these annotations.
    Stripped(Arc<Value>, Vec<String>),
    /// The object is at this version what it was before, with the patch on it.
    Foreseen(ResourceVersion),
    /// There was nothing to change.
    Unchanged,
    /// Nothing was written: the object is not what it was taken for, but this.
    Outdated(Arc<Value>),
    /// The object does not exist any more.
    Gone,
    /// The right to write ended first; something may have been written.
    LeaseEnded,
}

/// The server will never accept the patch.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WriteRejected(String);

/// What to do when the object was changed by somebody else in the meantime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnConflict {
    /// Write it nevertheless, on top of the newer state.
    Repeat,
    /// Write nothing, and think again.
    Report,
}

/// What is to be told about the object after the write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tell {
    /// The object.
    All,
    /// The object only if it is not what the write was meant to leave.
    Surprises,
}

/// The object that is written to.
pub(crate) struct Place<'a> {
    pub(crate) api: &'a KindApi,
    pub(crate) key: &'a ObjectKey,
    pub(crate) status: StatusSubresource,
    pub(crate) pause_gate: &'a PauseGate,
}

/// What one endpoint of the object can change.
#[derive(Debug, Clone, Copy)]
enum Part {
    All,
    Status,
    AllButStatus,
}

#[derive(Clone, Copy)]
enum Ask<'a> {
    Get,
    Patch(PatchTarget, &'a PatchBody<'a>),
}

/// What an object should be after a merge, if that is all that anybody wants to know.
#[derive(Clone, Copy)]
struct Foreseen<'a> {
    known: &'a Value,
    patch: &'a Value,
}

/// What the text of an answer says; nothing if it is about a namesake of the object.
type Read<T> = Result<Option<T>, serde_json::Error>;

/// The object after a request.
enum Answer {
    Foreseen(ResourceVersion),
    Object(Arc<Value>),
}

/// Edits of the newest state, with the merge that goes with them.
#[derive(Clone, Copy)]
struct Edits<'a> {
    merge: Option<&'a Value>,
    edits: &'a [PatchFn],
    split: bool,
    on_conflict: OnConflict,
}

enum Failure {
    Gone,
    Outdated(Arc<Value>),
    Conflict,
    WriteRejected(String),
    LeaseEnded,
}

/// Writes a patch; `known` is the newest state that was seen.
pub(crate) async fn apply(
    place: &Place<'_>,
    known: &Arc<Value>,
    patch: Patch,
    on_conflict: OnConflict,
    tell: Tell,
) -> Result<WriteResult, WriteRejected> {
    let mut split = place.status == StatusSubresource::Present;
    let mut requests = patch.into_requests(split);
    // Edits are made on the object itself.
    let mut tell = if requests.edits.is_empty() {
        tell
    } else {
        Tell::All
    };
    let mut known = Arc::clone(known);
    let mut unseen = None;
    let mut answer = None;
    if let Some(status) = requests.status.take() {
        let foreseen = tell.foreseen(&known, &status);
        match place.merge(PatchTarget::Status, &status, foreseen).await {
            Ok(Answer::Object(body)) => {
                // What surprises here is part of what is known for the next request.
                tell = Tell::All;
                known = Arc::clone(&body);
                answer = Some(Answer::Object(body));
            }
            Ok(Answer::Foreseen(version)) => {
                answer = Some(Answer::Foreseen(version));
                unseen = Some(status);
            }
            Err(Failure::Gone) if place.exists().await => {
                warn!(
                    "the definition of the kind has no status subresource (any more), unlike the \
                     generated code: the status is written with the rest"
                );
                split = false;
                apply_merge(requests.body.get_or_insert_with(|| json!({})), &status);
            }
            Err(failure) => return failure.into_landing(),
        }
    }
    let merge = requests.body;
    let written = if requests.edits.is_empty() {
        match &merge {
            Some(body) => {
                let both = unseen.map(|status| joined(body, status));
                let foreseen = tell.foreseen(&known, both.as_ref().unwrap_or(body));
                place
                    .merge(PatchTarget::Body, body, foreseen)
                    .await
                    .map(Some)
            }
            None => Ok(None),
        }
    } else {
        let edits = Edits {
            merge: merge.as_ref(),
            edits: &requests.edits,
            split,
            on_conflict,
        };
        let edited = place.edit(&known, edits).await;
        edited.map(|written| written.map(Answer::Object))
    };
    let written = match written {
        Ok(written) => written,
        Err(failure) => return failure.into_landing(),
    };
    Ok(match (written, merge) {
        (Some(Answer::Object(body)), Some(merge)) => {
            let stripped = pruned_fields::stripped(&merge, &body);
            if stripped.is_empty() {
                WriteResult::Written(body)
            } else {
                WriteResult::Stripped(body, stripped)
            }
        }
        (written, _) => match written.or(answer) {
            Some(Answer::Object(body)) => WriteResult::Written(body),
            Some(Answer::Foreseen(version)) => WriteResult::Foreseen(version),
            None => WriteResult::Unchanged,
        },
    })
}

/// Reads the object as the server has it now; none if it is gone.
pub(crate) async fn newest(place: &Place<'_>) -> Option<Arc<Value>> {
    place.fetch().await.ok()
}

// === impl Tell ===

impl Tell {
    fn foreseen<'a>(self, known: &'a Value, patch: &'a Value) -> Option<Foreseen<'a>> {
        (self == Self::Surprises).then_some(Foreseen { known, patch })
    }
}

// === impl Place ===

impl Place<'_> {
    async fn merge(
        &self,
        target: PatchTarget,
        patch: &Value,
        foreseen: Option<Foreseen<'_>>,
    ) -> Result<Answer, Failure> {
        let mut guarded = patch.clone();
        apply_merge(&mut guarded, &json!({"metadata": {"uid": &*self.key.uid}}));
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let body = PatchBody::Merge(&guarded);
            let ask = Ask::Patch(target, &body);
            match self.ask(ask, |text| self.compare(text, foreseen)).await {
                Ok(Answer::Object(body)) => {
                    pruned_fields::warn_if_dropped(self.key, patch, &body);
                    return Ok(Answer::Object(body));
                }
                Ok(foreseen) => return Ok(foreseen),
                Err(Failure::Conflict | Failure::WriteRejected(_)) if !self.exists().await => {
                    return Err(Failure::Gone);
                }
                // The patch insists on nothing: the server gave up against faster writers.
                Err(Failure::Conflict) => tokio::time::sleep(backoff.next(None)).await,
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Repeats the edits on ever newer states until one is still the newest when they arrive.
    ///
    /// Each endpoint takes its own part of the edits once, so an edit need not be idempotent.
    async fn edit(
        &self,
        known: &Arc<Value>,
        edits: Edits<'_>,
    ) -> Result<Option<Arc<Value>>, Failure> {
        let mut fresh = Arc::clone(known);
        let mut written = None;
        let parts: &[Part] = if edits.split {
            &[Part::Status, Part::AllButStatus]
        } else {
            &[Part::All]
        };
        for part in parts {
            while let Some(patch) = part.patch(&fresh, edits) {
                let body = PatchBody::Json(&patch);
                let ask = Ask::Patch(part.target(), &body);
                let newer = match self.ask(ask, |text| self.read(text)).await {
                    Ok(body) => {
                        fresh = Arc::clone(&body);
                        written = Some(body);
                        break;
                    }
                    Err(Failure::Conflict) => self.fetch().await?,
                    Err(Failure::WriteRejected(message)) => {
                        let newer = self.fetch().await?;
                        if version(&newer) == version(&fresh) {
                            return Err(Failure::WriteRejected(message));
                        }
                        newer
                    }
                    Err(failure) => return Err(failure),
                };
                match edits.on_conflict {
                    OnConflict::Repeat => fresh = newer,
                    OnConflict::Report => return Err(Failure::Outdated(newer)),
                }
            }
        }
        Ok(written)
    }

    /// The newest state of this very object.
    async fn fetch(&self) -> Result<Arc<Value>, Failure> {
        self.ask(Ask::Get, |text| self.read(text)).await
    }

    async fn exists(&self) -> bool {
        !matches!(self.fetch().await, Err(Failure::Gone))
    }

    /// Asks until there is an answer, or until nothing may be asked any more.
    async fn ask<T>(&self, ask: Ask<'_>, read: impl Fn(&str) -> Read<T>) -> Result<T, Failure> {
        let answer = self.pause_gate.while_leading(self.ask_on(ask, read)).await;
        answer.unwrap_or_else(|LeaseEnded| Err(Failure::LeaseEnded))
    }

    async fn ask_on<T>(&self, ask: Ask<'_>, read: impl Fn(&str) -> Read<T>) -> Result<T, Failure> {
        let name = &self.key.name;
        let namespace = self.key.namespace.as_deref();
        let mut backoff = Backoff::new(FIRST_PAUSE, LONGEST_PAUSE);
        loop {
            let answer = match ask {
                Ask::Get => self.api.get_text(namespace, name).await,
                Ask::Patch(target, patch) => {
                    let answer = self.api.patch_text(namespace, name, target, patch);
                    answer.await
                }
            };
            let answer = answer.and_then(|text| read(&text).map_err(requests::Error::Decode));
            let error = match answer {
                Ok(answer) => return answer.ok_or(Failure::Gone),
                Err(requests::Error::NotFound) => return Err(Failure::Gone),
                Err(requests::Error::Conflict(_)) => return Err(Failure::Conflict),
                Err(requests::Error::Invalid(message)) => {
                    return Err(Failure::WriteRejected(message));
                }
                Err(error) => error,
            };
            let pause = backoff.next(error.retry_after());
            warn!(
                "a write has not landed: {error}; trying again in {:.1} s",
                pause.as_secs_f32()
            );
            tokio::time::sleep(pause).await;
        }
    }

    fn read(&self, text: &str) -> Read<Arc<Value>> {
        let body: Value = serde_json::from_str(text)?;
        // The server takes the status of a namesake for that of the object.
        let is_meant = ObjectView::new(&body).uid() == Some(&self.key.uid);
        Ok(is_meant.then(|| Arc::new(body)))
    }

    fn compare(&self, text: &str, foreseen: Option<Foreseen<'_>>) -> Read<Answer> {
        let version =
            foreseen.and_then(|Foreseen { known, patch }| version_if_foreseen(text, known, patch));
        match version {
            Some(version) => Ok(Some(Answer::Foreseen(ResourceVersion::new(version)))),
            None => Ok(self.read(text)?.map(Answer::Object)),
        }
    }
}

// === impl Failure ===

impl Failure {
    fn into_landing(self) -> Result<WriteResult, WriteRejected> {
        match self {
            Self::Gone => Ok(WriteResult::Gone),
            Self::LeaseEnded => Ok(WriteResult::LeaseEnded),
            Self::Outdated(newer) => Ok(WriteResult::Outdated(newer)),
            Self::Conflict => Err(WriteRejected("the object was changed meanwhile".to_owned())),
            Self::WriteRejected(message) => Err(WriteRejected(message)),
        }
    }
}

// === impl Part ===

impl Part {
    fn target(self) -> PatchTarget {
        match self {
            Self::Status => PatchTarget::Status,
            Self::AllButStatus | Self::All => PatchTarget::Body,
        }
    }

    /// The difference that the edits make to this part of the newest state.
    fn patch(self, fresh: &Value, edits: Edits<'_>) -> Option<Value> {
        let mut edited = fresh.clone();
        if let Some(merge) = edits.merge {
            apply_merge(&mut edited, merge);
        }
        for edit in edits.edits {
            edit(&mut edited);
        }
        let wanted = match self {
            Self::All => edited,
            Self::Status => with_status_of(&edited, fresh.clone()),
            Self::AllButStatus => with_status_of(fresh, edited),
        };
        json_patch(fresh, &wanted).map(|patch| patch.to_json())
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

/// Both parts of a patch whose status went to an endpoint of its own.
fn joined(body: &Value, mut status: Value) -> Value {
    let mut both = body.clone();
    if let (Some(both), Some(status)) = (both.as_object_mut(), status.as_object_mut()) {
        both.append(status);
    }
    both
}

fn version(body: &Value) -> Option<&str> {
    ObjectView::new(body).resource_version()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_endpoint_gets_its_part_of_the_edits_in_one_patch() {
        let fresh = json!({
            "metadata": {"resourceVersion": "5", "finalizers": ["ours"]},
            "status": {"seen": [1]},
        });
        let mut patch = Patch::new();
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
        let edits = Edits {
            merge: requests.body.as_ref(),
            edits: &requests.edits,
            split: true,
            on_conflict: OnConflict::Repeat,
        };
        let test = json!({"op": "test", "path": "/metadata/resourceVersion", "value": "5"});
        assert_eq!(
            Part::Status.patch(&fresh, edits),
            Some(json!([test, {"op": "add", "path": "/status/seen/1", "value": 2}]))
        );
        assert_eq!(
            Part::AllButStatus.patch(&fresh, edits),
            Some(json!([
                test,
                {"op": "remove", "path": "/metadata/finalizers"},
                {"op": "add", "path": "/metadata/annotations", "value": {"note": "new"}},
            ]))
        );
    }
}
