//! Posts Kubernetes events in the background, without making handlers wait.
//!
//! Handlers put events into a correlator, which merges repeats; one task sends those that are due.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::posting::{DueEvent, EventContent, EventCorrelator, EventKey};
use kube::Client;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::{debug, warn};

use super::object_ref::ObjectRef;
use crate::coordination::pause::PauseGate;
use crate::health::metrics::PostingMetrics;
use crate::page::journal::PageJournal;
use crate::settings::{PostingLevel, PostingSettings};
use crate::task::heartbeat::Heartbeat;

/// How long one request may take.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The type of a Kubernetes event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventSeverity {
    /// Information.
    Normal,
    /// A problem that needs attention.
    Warning,
    /// A failure.
    Error,
    /// A custom type, in one word.
    Other(String),
}

/// Passes events to the task that sends them; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct EventPoster {
    state: Arc<PosterState>,
    /// Wakes the sending task; closed when the last poster is dropped, which ends that task.
    wakeup: mpsc::Sender<()>,
    journal: PageJournal,
}

#[derive(Debug)]
struct PosterState {
    settings: PostingSettings,
    /// Never held across an await.
    correlator: Mutex<EventCorrelator<ObjectRef>>,
    origin: Instant,
}

/// The task that sends what is due.
struct EventSender {
    client: Client,
    pause_gate: PauseGate,
    state: Arc<PosterState>,
    metrics: Arc<PostingMetrics>,
    heartbeat: Heartbeat,
    /// True if it has logged that events are forbidden.
    warned_forbidden: bool,
}

// === impl EventSeverity ===

impl EventSeverity {
    fn as_str(&self) -> &str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
            Self::Error => "Error",
            Self::Other(word) => word,
        }
    }
}

impl From<&str> for EventSeverity {
    fn from(word: &str) -> Self {
        match word {
            "Normal" => Self::Normal,
            "Warning" => Self::Warning,
            "Error" => Self::Error,
            other => Self::Other(other.to_owned()),
        }
    }
}

// === impl EventPoster ===

/// Makes a poster, and the task that sends its events until all of its clones are dropped.
pub(crate) fn poster(
    client: Client,
    pause_gate: PauseGate,
    settings: PostingSettings,
    metrics: Arc<PostingMetrics>,
    heartbeat: Heartbeat,
) -> (EventPoster, impl Future<Output = ()>) {
    let (wakeup, wakeups) = mpsc::channel(1);
    let state = Arc::new(PosterState {
        correlator: Mutex::new(EventCorrelator::new(settings.limits())),
        settings,
        origin: Instant::now(),
    });
    let sender = EventSender {
        client,
        pause_gate,
        state: Arc::clone(&state),
        metrics,
        heartbeat,
        warned_forbidden: false,
    };
    let poster = EventPoster {
        state,
        wakeup,
        journal: PageJournal::default(),
    };
    (poster, sender.run(wakeups))
}

impl EventPoster {
    /// Reports each event to a journal, too.
    pub(crate) fn with_journal(self, journal: PageJournal) -> Self {
        Self { journal, ..self }
    }

    /// Returns true if the settings let events of this level be posted.
    pub(crate) fn wants(&self, level: PostingLevel) -> bool {
        level >= self.state.settings.level
    }

    pub(crate) fn settings(&self) -> &PostingSettings {
        &self.state.settings
    }

    pub(crate) fn post(
        &self,
        subject: &ObjectRef,
        severity: &EventSeverity,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        // An event on an event would cause another one, without an end.
        if subject.is_event() {
            return;
        }
        let note = EventContent {
            r#type: severity.as_str().to_owned(),
            reason: reason.into(),
            message: message.into(),
            at: Timestamp::now(),
        };
        let (r#type, reason) = (&note.r#type, &note.reason);
        self.journal
            .posted(subject.uid(), r#type, reason, &note.message);
        let now = self.state.now();
        self.state.correlator().add(subject.clone(), note, now);
        // The channel is full if the task is going to wake up anyway.
        let _ = self.wakeup.try_send(());
    }
}

// === impl PosterState ===

impl PosterState {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn correlator(&self) -> MutexGuard<'_, EventCorrelator<ObjectRef>> {
        self.correlator
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl EventSender ===

impl EventSender {
    async fn run(mut self, mut wakeups: mpsc::Receiver<()>) {
        loop {
            self.send_due().await;
            let wait = self.state.correlator().wait(self.state.now());
            match wait {
                Some(wait) => self.heartbeat.within(wait),
                None => self.heartbeat.rest(),
            }
            let woken = async {
                match wait {
                    Some(wait) => timeout(wait, wakeups.recv()).await.unwrap_or(Some(())),
                    None => wakeups.recv().await,
                }
            };
            if woken.await.is_none() {
                break;
            }
        }
        self.state.correlator().skip_delays();
        self.send_due().await;
    }

    async fn send_due(&mut self) {
        loop {
            let (due, dropped) = {
                let mut correlator = self.state.correlator();
                (correlator.next(self.state.now()), correlator.dropped())
            };
            for _ in 0..dropped {
                self.metrics.dropped.add();
            }
            if dropped > 0 {
                warn!("{dropped} events are dropped: too many are waiting");
            }
            let Some(due) = due else {
                return;
            };
            self.heartbeat.within(REQUEST_TIMEOUT);
            let pause_gate = self.pause_gate.clone();
            match pause_gate.while_leading(self.send(&due)).await {
                Ok(()) => {}
                Err(lapsed) => {
                    self.metrics.dropped.add();
                    debug!("an event is not posted: {lapsed}");
                    self.state.correlator().forget(&due.key);
                    // Do not spin while this replica may not write.
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }

    async fn send(&mut self, due: &DueEvent<ObjectRef>) {
        let key = &due.key;
        let answer = timeout(REQUEST_TIMEOUT, self.request(due)).await;
        let state = Arc::clone(&self.state);
        let mut correlator = state.correlator();
        match &answer {
            Ok(Ok(_)) => self.metrics.posted.add(),
            _ => self.metrics.failed.add(),
        }
        match answer {
            Ok(Ok(name)) => correlator.sent(key, &name),
            Ok(Err(kube::Error::Api(status))) if due.update.is_some() && status.code == 404 => {
                correlator.recreate(key);
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
                // Updates are forbidden: repeats become new events, within the limit per object.
                if due.update.is_some() {
                    correlator.recreate(key);
                } else {
                    correlator.forget(key);
                }
                if !std::mem::replace(&mut self.warned_forbidden, true) {
                    warn!("the API server forbids to post events: {}", status.message);
                }
            }
            Ok(Err(kube::Error::Api(status))) if is_final(status.code) => {
                debug!("the API server rejects an event: {}", status.message);
                correlator.forget(key);
            }
            failed => {
                let reason = match failed {
                    Ok(Err(error)) => error.to_string(),
                    _ => "no answer".to_owned(),
                };
                let retried = correlator.failed(key, state.now());
                debug!(retried, "an event could not be posted: {reason}");
            }
        }
    }

    /// Creates or updates the event; returns its name.
    async fn request(&self, due: &DueEvent<ObjectRef>) -> Result<String, kube::Error> {
        let settings = &self.state.settings;
        let namespace = due.key.subject.namespace();
        let namespace = namespace.unwrap_or(self.client.default_namespace());
        let collection = format!("/api/v1/namespaces/{namespace}/events");
        let (request, body) = match &due.update {
            Some(name) => (
                http::Request::patch(format!("{collection}/{name}"))
                    .header(http::header::CONTENT_TYPE, "application/merge-patch+json"),
                update(due),
            ),
            None => (
                http::Request::post(collection)
                    .header(http::header::CONTENT_TYPE, "application/json"),
                creation(due, namespace, settings),
            ),
        };
        let request = request
            .body(body.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        let stored: Value = self.client.request(request).await?;
        let name = stored["metadata"]["name"].as_str().unwrap_or_default();
        Ok(name.to_owned())
    }
}

/// Returns true if the same request would always fail.
fn is_final(code: u16) -> bool {
    (400..500).contains(&code) && ![401, 408, 409, 429].contains(&code)
}

fn update(due: &DueEvent<ObjectRef>) -> Value {
    json!({
        "count": due.count,
        "lastTimestamp": stamp(due.last),
        "message": due.message,
    })
}

fn creation(due: &DueEvent<ObjectRef>, namespace: &str, settings: &PostingSettings) -> Value {
    let EventKey {
        subject,
        r#type,
        reason,
        ..
    } = &due.key;
    let involved: Map<String, Value> = [
        ("apiVersion", subject.api_version()),
        ("kind", subject.kind()),
        ("name", subject.name()),
        ("uid", subject.uid()),
        ("namespace", namespace),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(value)))
    .collect();
    json!({
        "metadata": {"namespace": namespace, "generateName": settings.event_name_prefix},
        "action": "Action?",
        "type": r#type,
        "reason": reason,
        "message": due.message,
        "count": due.count,
        "reportingComponent": settings.reporting_component,
        "reportingInstance": settings.reporting_instance,
        "source": {"component": settings.reporting_component},
        "involvedObject": involved,
        "firstTimestamp": stamp(due.first),
        "lastTimestamp": stamp(due.last),
        "eventTime": stamp(due.last),
    })
}

fn stamp(at: Timestamp) -> String {
    format!("{at:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::resource::KindName;
    use crate::events::object_ref::ObjectIdentity;
    use crate::health::metrics::Metrics;
    use crate::task::heartbeat::Heartbeats;

    #[test]
    fn the_body_is_that_of_kopf_with_a_count() {
        let kind = KindName {
            api_version: "kopf.dev/v1".to_owned(),
            kind: "KopfExample".to_owned(),
        };
        let object = ObjectIdentity {
            namespace: None,
            name: "one".to_owned(),
            uid: "u".to_owned(),
        };
        let subject = ObjectRef::other(kind, object);
        let settings = PostingSettings::default();
        let mut correlator = EventCorrelator::new(settings.limits());
        let note = EventContent {
            r#type: "Error".to_owned(),
            reason: "Logging".to_owned(),
            message: "no".to_owned(),
            at: "2020-12-31T23:59:59.000001Z".parse().unwrap(),
        };
        correlator.add(subject, note, Duration::ZERO);
        let due = correlator.next(Duration::ZERO).unwrap();
        assert_eq!(
            creation(&due, "default", &settings),
            json!({
                "metadata": {"namespace": "default", "generateName": "kopf-event-"},
                "action": "Action?",
                "type": "Error",
                "reason": "Logging",
                "message": "no",
                "count": 1,
                "reportingComponent": "kopf",
                "reportingInstance": "dev",
                "source": {"component": "kopf"},
                "involvedObject": {
                    "apiVersion": "kopf.dev/v1",
                    "kind": "KopfExample",
                    "name": "one",
                    "uid": "u",
                    "namespace": "default",
                },
                "firstTimestamp": "2020-12-31T23:59:59.000001Z",
                "lastTimestamp": "2020-12-31T23:59:59.000001Z",
                "eventTime": "2020-12-31T23:59:59.000001Z",
            })
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stuck_poster_is_reported_and_an_idle_one_is_not() {
        let nowhere = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
        let client = Client::try_from(nowhere).unwrap();
        let heartbeats = Heartbeats::default();
        let late = || {
            heartbeats.advance(Duration::from_secs(600));
            let stuck = heartbeats.stuck(Duration::from_secs(30)).into_iter();
            stuck.map(|it| it.part).collect::<Vec<_>>()
        };
        let (poster, posting) = poster(
            client,
            PauseGate::always(),
            PostingSettings::default(),
            Metrics::new("operator", Arc::default()).posting(),
            heartbeats.heartbeat("the posting of events"),
        );
        let posting = tokio::spawn(posting);
        sleep(Duration::from_millis(1)).await;
        assert!(late().is_empty(), "there is nothing to post");
        let kind = KindName {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
        };
        let object = ObjectIdentity {
            namespace: None,
            name: "one".to_owned(),
            uid: "u".to_owned(),
        };
        let subject = ObjectRef::other(kind, object);
        poster.post(&subject, &EventSeverity::Normal, "Reason", "message");
        sleep(Duration::from_millis(1)).await;
        assert_eq!(late(), ["the posting of events"]);
        // There is no server, so that the event is dropped after some retries.
        sleep(Duration::from_secs(3600)).await;
        assert!(late().is_empty(), "it has gone on");
        drop(poster);
        posting.await.unwrap();
    }
}
