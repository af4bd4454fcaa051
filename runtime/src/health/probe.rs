//! Runs the probe handlers for liveness probes, and caches their results.
//!
//! Probe handlers run as tasks of the operator, not on the thread of the health endpoint, and all
//! at once. Probes that arrive within the cache time get the same results.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::index::Indices;
use crate::operator::hook::{Hook, ProbeContext};
use crate::settings::Settings;

/// How long a probe waits for the handlers. Later results are cached for the next probe.
const TIMEOUT: Duration = Duration::from_secs(8);

/// How many probes may wait for the handlers at the same time.
const WAITING_PROBES: usize = 64;

/// The results of the probe handlers.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ProbeOutcome {
    /// All handlers succeeded; their results by handler id, without nulls.
    Results(Map<String, Value>),
    /// Some handlers failed.
    Failed(Vec<String>),
    /// The handlers did not finish in time, or were not called.
    Unanswered(String),
}

/// Requests the probe handlers' results, from any thread.
#[derive(Debug, Clone)]
pub(crate) struct ProbeSender {
    probe_requests: Option<mpsc::Sender<oneshot::Sender<ProbeOutcome>>>,
}

/// Receives the requests of a [`ProbeSender`].
#[derive(Debug)]
pub(crate) struct ProbeReceiver {
    probe_requests: mpsc::Receiver<oneshot::Sender<ProbeOutcome>>,
}

/// The probe handlers and the contexts for them.
pub(crate) struct ProbeRunner {
    pub(crate) probes: Vec<Hook<ProbeContext>>,
    pub(crate) client: Client,
    pub(crate) indices: Indices,
    pub(crate) settings: Arc<Settings>,
}

/// Makes a channel to the probe handlers; without a receiver if there are none.
pub(crate) fn probe_channel(probes: &[Hook<ProbeContext>]) -> (ProbeSender, Option<ProbeReceiver>) {
    if probes.is_empty() {
        return (
            ProbeSender {
                probe_requests: None,
            },
            None,
        );
    }
    let (sender, probe_requests) = mpsc::channel(WAITING_PROBES);
    let sender = ProbeSender {
        probe_requests: Some(sender),
    };
    (sender, Some(ProbeReceiver { probe_requests }))
}

// === impl ProbeSender ===

impl ProbeSender {
    pub(super) async fn probe(&self) -> ProbeOutcome {
        let Some(probe_requests) = &self.probe_requests else {
            return ProbeOutcome::Results(Map::new());
        };
        let (answer, answered) = oneshot::channel();
        if probe_requests.try_send(answer).is_err() {
            return ProbeOutcome::Unanswered(
                "too many probes wait for the probe handlers".to_owned(),
            );
        }
        match tokio::time::timeout(TIMEOUT, answered).await {
            Ok(Ok(probed)) => probed,
            Ok(Err(_)) => {
                ProbeOutcome::Unanswered("probe handlers are no longer called".to_owned())
            }
            Err(_) => ProbeOutcome::Unanswered(format!(
                "the probe handlers have not answered within {} s",
                TIMEOUT.as_secs()
            )),
        }
    }
}

// === impl ProbeRunner ===

impl ProbeRunner {
    /// Answers probes for as long as the operator runs.
    pub(crate) async fn run(self, mut receiver: ProbeReceiver) {
        let mut cached: Option<(Instant, ProbeOutcome)> = None;
        while let Some(request) = receiver.probe_requests.recv().await {
            let fresh = cached
                .take()
                .filter(|(at, _)| at.elapsed() < self.settings.health.probe_cache);
            let (at, probed) = match fresh {
                Some(fresh) => fresh,
                None => {
                    let probed = self.probe().await;
                    (Instant::now(), probed)
                }
            };
            // The receiver is dropped if the probe has timed out.
            let _ = request.send(probed.clone());
            cached = Some((at, probed));
        }
        std::future::pending().await
    }

    async fn probe(&self) -> ProbeOutcome {
        let calls = self.probes.iter().map(async |probe| {
            let (client, indices) = (self.client.clone(), self.indices.clone());
            let settings = Arc::clone(&self.settings);
            let answer = probe.call_once(client, settings, indices).await?;
            Ok((probe.id(), answer))
        });
        let mut results = Map::new();
        let mut failures = Vec::new();
        for answer in join_all(calls).await {
            match answer {
                Ok((id, Some(result))) if !result.is_null() => {
                    results.insert(id.to_owned(), result);
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        if failures.is_empty() {
            ProbeOutcome::Results(results)
        } else {
            ProbeOutcome::Failed(failures)
        }
    }
}
