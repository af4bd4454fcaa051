//! Probe handlers: what the user's own code says about the operator's health.
//!
//! They run where all handlers run, not in the thread that serves the endpoint, and all at once.
//! Whoever asks soon after another one is given the same answer.

use std::time::Duration;

use futures::future::join_all;
use kube::Client;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::index::Indices;
use crate::operator::hook::{Hook, ProbeContext};

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

/// Where the questions of a [`Prober`] arrive.
#[derive(Debug)]
pub(crate) struct Questions {
    questions: mpsc::Receiver<oneshot::Sender<Probed>>,
}

/// The probe handlers with what they need.
pub(crate) struct Probing {
    pub(crate) probes: Vec<Hook<ProbeContext>>,
    pub(crate) client: Client,
    pub(crate) indices: Indices,
    pub(crate) cached_for: Duration,
}

/// Makes the way to ask handlers; if there are none, nobody needs to answer.
pub(crate) fn prober(probes: &[Hook<ProbeContext>]) -> (Prober, Option<Questions>) {
    if probes.is_empty() {
        return (Prober { questions: None }, None);
    }
    let (asking, questions) = mpsc::channel(AUDIENCE);
    let prober = Prober {
        questions: Some(asking),
    };
    (prober, Some(Questions { questions }))
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
    /// Answers as long as the operator runs.
    pub(crate) async fn run(self, mut asked: Questions) {
        let mut cached: Option<(Instant, Probed)> = None;
        while let Some(question) = asked.questions.recv().await {
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
        let asked = self.probes.iter().map(async |probe| {
            let (client, indices) = (self.client.clone(), self.indices.clone());
            let answer = probe.call_once(client, indices).await?;
            Ok((probe.id(), answer))
        });
        let mut results = Map::new();
        let mut failures = Vec::new();
        for answer in join_all(asked).await {
            match answer {
                Ok((id, Some(result))) if !result.is_null() => {
                    results.insert(id.to_owned(), result);
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
