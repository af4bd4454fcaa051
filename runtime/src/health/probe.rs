//! Probe handlers: what the user's own code says about the operator's health.
//!
//! They run where all handlers run, not in the thread that serves the endpoint, and all at once.
//! Whoever asks soon after another one is given the same answer.

use std::time::Duration;

use futures::future::join_all;
use kopf_core::handler::retry::ErrorMode;
use kube::Client;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tracing::{Instrument as _, error};

use crate::context::probe::Probe;
use crate::declare::probe::DeclaredProbe;
use crate::execute::invoke::Verdict;
use crate::span;

/// How long an answer is waited for; it is kept for the next who asks.
const PATIENCE: Duration = Duration::from_secs(8);

/// Those who wait for the same answer.
const AUDIENCE: usize = 64;

/// What the probe handlers say.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Probed {
    /// All is well; the results that are not null, by handler.
    Results(Map<String, Value>),
    /// Something is wrong.
    Failed(Vec<String>),
    /// They have not answered.
    Unanswered(String),
}

/// The way to ask the probe handlers, from any thread.
#[derive(Debug, Clone)]
pub(crate) struct Prober {
    questions: Option<mpsc::Sender<oneshot::Sender<Probed>>>,
}

/// The probe handlers, waiting to be asked.
pub(crate) struct Probing {
    probes: Vec<DeclaredProbe>,
    client: Client,
    cached_for: Duration,
    questions: mpsc::Receiver<oneshot::Sender<Probed>>,
}

/// Makes the way to ask these handlers; nobody needs to answer if there are none.
pub(crate) fn prober(
    probes: Vec<DeclaredProbe>,
    client: Client,
    cached_for: Duration,
) -> (Prober, Option<Probing>) {
    if probes.is_empty() {
        return (Prober { questions: None }, None);
    }
    let (asking, questions) = mpsc::channel(AUDIENCE);
    let prober = Prober {
        questions: Some(asking),
    };
    let probing = Probing {
        probes,
        client,
        cached_for,
        questions,
    };
    (prober, Some(probing))
}

// === impl Prober ===

impl Prober {
    pub(super) async fn ask(&self) -> Probed {
        let Some(questions) = &self.questions else {
            return Probed::Results(Map::new());
        };
        let (answer, answered) = oneshot::channel();
        if questions.try_send(answer).is_err() {
            return Probed::Unanswered("too many wait for the probe handlers".to_owned());
        }
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(probed)) => probed,
            Ok(Err(_)) => Probed::Unanswered("probe handlers are no longer called".to_owned()),
            Err(_) => Probed::Unanswered(format!(
                "the probe handlers have not answered within {} s",
                PATIENCE.as_secs()
            )),
        }
    }
}

// === impl Probing ===

impl Probing {
    /// Answers until nobody is left to ask.
    pub(crate) async fn run(mut self) {
        let mut cached: Option<(Instant, Probed)> = None;
        while let Some(question) = self.questions.recv().await {
            let fresh = cached
                .take()
                .filter(|(at, _)| at.elapsed() < self.cached_for);
            let (at, probed) = match fresh {
                Some(fresh) => fresh,
                None => {
                    let probed = self.probe().await;
                    (Instant::now(), probed)
                }
            };
            // Whoever has lost patience asks again.
            let _ = question.send(probed.clone());
            cached = Some((at, probed));
        }
        std::future::pending().await
    }

    async fn probe(&self) -> Probed {
        let calls = self.probes.iter().map(|probe| {
            let cx = Probe::new(self.client.clone(), probe.param.clone());
            let span = span::handler(&probe.id);
            async move {
                let (verdict, result) = probe.function.call(cx, probe.timeout).await;
                judged(probe, verdict).map(|()| (probe.id.clone(), result))
            }
            .instrument(span)
        });
        let mut results = Map::new();
        let mut failures = Vec::new();
        for ended in join_all(calls).await {
            match ended {
                Ok((id, Some(result))) if !result.is_null() => {
                    results.insert(id, result);
                }
                Ok(_) => {}
                Err(failure) => failures.push(failure),
            }
        }
        if failures.is_empty() {
            Probed::Results(results)
        } else {
            Probed::Failed(failures)
        }
    }
}

/// Whether a call ended well enough; what is wrong otherwise.
fn judged(probe: &DeclaredProbe, verdict: Verdict) -> Result<(), String> {
    let ignored = probe.errors == ErrorMode::Ignored && verdict.is_arbitrary();
    let Some(complaint) = verdict.problem() else {
        return Ok(());
    };
    let story = format!("Probe '{}' failed: {complaint}", probe.id);
    error!("{story}");
    if ignored { Ok(()) } else { Err(story) }
}
