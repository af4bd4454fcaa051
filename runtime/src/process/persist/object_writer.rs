//! Performs the requests for one object that the machines of the core ask for.
//!
//! Nothing is sent after the operator's lease has ended.

use std::sync::Arc;

use jiff::Timestamp;
use kopf_core::machine::answer::Answer;
use kopf_core::machine::effect::{RequestEffect, RequestMachine, RequestPause, RequestReport};
use kopf_core::machine::now::Now;
use kopf_core::machine::request::{ObjectRequest, PatchContent, PatchEndpoint};
use kopf_core::machine::write::{self, ObjectWrite, WriteResult, WriteRules};
use kopf_core::object::patch::ObjectPatch;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::client::log_text;
use crate::client::requests::KindApi;
use crate::coordination::pause::PauseGate;
use crate::watch::ObjectKey;

/// Makes requests for one object.
pub(crate) struct ObjectWriter<'a> {
    pub(crate) api: &'a KindApi,
    pub(crate) key: &'a ObjectKey,
    pub(crate) pause_gate: &'a PauseGate,
    /// The stop of the operator; none if it does not concern the requests.
    pub(crate) stop: Option<&'a CancellationToken>,
    /// The start of the operator, or of the requests.
    pub(crate) origin: Instant,
}

// === impl ObjectWriter ===

impl ObjectWriter<'_> {
    /// Writes a patch; `known` is the newest known state.
    pub(crate) async fn write(
        &self,
        known: &Arc<Value>,
        patch: ObjectPatch,
        rules: WriteRules,
    ) -> Result<WriteResult, write::Error> {
        let now = self.now();
        self.run(ObjectWrite::new(&self.key.uid, known, patch, rules, &now))
            .await
    }

    pub(crate) fn now(&self) -> Now {
        Now {
            wall: Timestamp::now(),
            steady: self.origin.elapsed(),
            seed: fastrand::u64(..),
            stopping: self.stop.is_some_and(CancellationToken::is_cancelled),
            running: self.pause_gate.is_running(),
            epoch: self.pause_gate.epoch(),
        }
    }

    async fn run<M: RequestMachine>(&self, mut machine: M) -> M::Outcome {
        let mut answer = None;
        loop {
            answer = match machine.step(answer, &self.now()) {
                RequestEffect::Send => Some(self.send(&machine.request()).await),
                RequestEffect::Wait(pause) => self.wait(&pause).await,
                RequestEffect::Report(report) => {
                    self.report(&report);
                    None
                }
                RequestEffect::Done(outcome) => return outcome,
            };
        }
    }

    pub(crate) async fn send(&self, request: &ObjectRequest<'_>) -> Answer {
        if let ObjectRequest::Patch {
            endpoint, content, ..
        } = request
        {
            let form = match content {
                PatchContent::Merge(_) => "Merge",
                PatchContent::Json(_) => "JSON",
            };
            let part = match endpoint {
                PatchEndpoint::Object => "resource",
                PatchEndpoint::Status => "status",
            };
            debug!(
                "{form}-patching the {part} with: {}",
                log_text::patch(self.api.name(), *content)
            );
        }
        let namespace = self.key.namespace.as_deref();
        let sent = self.api.request_object(namespace, &self.key.name, request);
        let answer = self.pause_gate.while_leading(sent).await;
        answer.unwrap_or(Answer::LeaseEnded)
    }

    /// Waits; returns the end of the lease if that comes first.
    pub(crate) async fn wait(&self, pause: &RequestPause) -> Option<Answer> {
        if let Some(failure) = &pause.failure {
            warn!(
                "a request for the object failed: {failure}; trying again in {:.1} s",
                pause.pause.as_secs_f32()
            );
        }
        let sleep = tokio::time::sleep(pause.pause);
        let waited = match self.stop {
            Some(stop) if pause.ends_at_stop && !stop.is_cancelled() => {
                let stopped = async {
                    tokio::select! {
                        () = sleep => {}
                        () = stop.cancelled() => {}
                    }
                };
                self.pause_gate.while_leading(stopped).await
            }
            _ => self.pause_gate.while_leading(sleep).await,
        };
        waited.err().map(|_| Answer::LeaseEnded)
    }

    pub(crate) fn report(&self, report: &RequestReport) {
        match report {
            RequestReport::NoStatusEndpoint => warn!(
                "the definition of the kind has no status subresource (any more), unlike the \
                 generated code: the status is written with the rest"
            ),
            RequestReport::NotKept(fields) => warn!(
                object = %self.key,
                "written, but not kept by the API server: {}; does the schema know these fields?",
                fields.join(", ")
            ),
            RequestReport::ListedInstead(reason) => warn!(
                "the object is read by a list of its name, which costs another request: {reason}"
            ),
            RequestReport::Contended(times) => warn!(
                "not written yet: others have changed the object {times} times between a read and \
                 the write; trying again"
            ),
            RequestReport::EditUnconfirmed(reason) => {
                warn!("an edit is made again: whether it was written is unknown, as {reason}")
            }
        }
    }
}
