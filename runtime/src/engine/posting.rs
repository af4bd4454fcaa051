//! Posts Kubernetes events about objects, in order, without ever making a handler wait.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;
use tracing::{Span, debug, warn};

use crate::span;

use crate::activity::Activity;
use crate::metrics::PostingMetrics;

/// Events beyond this number are dropped: they inform people, and nobody reads that many.
const BACKLOG: usize = 1000;

/// The longest message that the API accepts.
const LONGEST_MESSAGE: usize = 1024;

/// How serious an event is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventSeverity {
    /// Something happened as it should.
    Normal,
    /// Something needs attention.
    Warning,
    /// Something failed.
    Error,
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
}

// === impl Subject ===

impl Subject {
    /// The span of everything that is done about the object.
    pub(crate) fn span(&self) -> Span {
        let namespace = self.namespace.as_deref();
        span::object(
            &self.api_version,
            &self.kind,
            namespace,
            &self.name,
            &self.uid,
        )
    }

    /// The span of one call of a handler that has no other span around it.
    pub(crate) fn handler_span(&self, id: &str) -> Span {
        let subject = [&*self.api_version, &*self.kind, &*self.name, &*self.uid];
        span::handler_of(subject, self.namespace.as_deref(), id)
    }
}

struct Post {
    subject: Arc<Subject>,
    severity: EventSeverity,
    reason: String,
    message: String,
    at: Timestamp,
}

/// Hands events to the poster; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Poster {
    sender: mpsc::Sender<Post>,
    metrics: Arc<PostingMetrics>,
}

/// Makes a handle, and the task that posts what it is given until all handles are gone.
pub(crate) fn poster(
    client: Client,
    activity: Activity,
    metrics: Arc<PostingMetrics>,
) -> (Poster, impl Future<Output = ()>) {
    let (sender, mut posts) = mpsc::channel::<Post>(BACKLOG);
    let counted = Arc::clone(&metrics);
    let task = async move {
        while let Some(post) = posts.recv().await {
            match activity.while_leading(send(&client, &post)).await {
                Ok(Ok(())) => counted.posted.add(),
                Ok(Err(error)) => {
                    counted.failed.add();
                    debug!("an event could not be posted: {error}");
                }
                Err(lapsed) => {
                    counted.dropped.add();
                    debug!("an event is not posted: {lapsed}");
                }
            }
        }
    };
    (Poster { sender, metrics }, task)
}

impl Poster {
    pub(crate) fn post(
        &self,
        subject: &Arc<Subject>,
        severity: EventSeverity,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) {
        let about_an_event = subject.api_version == "v1" && subject.kind == "Event";
        if about_an_event {
            return;
        }
        let post = Post {
            subject: Arc::clone(subject),
            severity,
            reason: reason.into(),
            message: message.into(),
            at: Timestamp::now(),
        };
        if self.sender.try_send(post).is_err() {
            self.metrics.dropped.add();
            warn!("an event about {} is dropped: too many wait", subject.name);
        }
    }
}

async fn send(client: &Client, post: &Post) -> Result<(), kube::Error> {
    let namespace = post
        .subject
        .namespace
        .as_deref()
        .unwrap_or(client.default_namespace());
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/events"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body(post, namespace).to_string().into_bytes())
        .map_err(kube::Error::HttpError)?;
    client.request_text(request).await.map(drop)
}

fn body(post: &Post, namespace: &str) -> Value {
    let subject = &post.subject;
    let involved: Map<String, Value> = [
        ("apiVersion", &*subject.api_version),
        ("kind", &subject.kind),
        ("name", &subject.name),
        ("uid", &subject.uid),
        ("namespace", namespace),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), Value::from(value)))
    .collect();
    let now = format!("{:.6}", post.at);
    json!({
        "metadata": {"namespace": namespace, "generateName": "kopf-event-"},
        "action": "Action?",
        "type": match post.severity {
            EventSeverity::Normal => "Normal",
            EventSeverity::Warning => "Warning",
            EventSeverity::Error => "Error",
        },
        "reason": post.reason,
        "message": shortened(&post.message),
        "reportingComponent": "kopf",
        "reportingInstance": "dev",
        "source": {"component": "kopf"},
        "involvedObject": involved,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "eventTime": now,
    })
}

/// Keeps the beginning and the end of what is too long.
fn shortened(message: &str) -> String {
    let length = message.chars().count();
    if length <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let head: String = message.chars().take(511).collect();
    let tail: String = message.chars().skip(length - 510).collect();
    format!("{head}...{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_loses_its_middle() {
        let message = format!("{}{}", "a".repeat(1000), "z".repeat(1000));
        let short = shortened(&message);
        assert_eq!(short.chars().count(), LONGEST_MESSAGE);
        assert!(short.starts_with("aaa") && short.contains("a...z") && short.ends_with("zzz"));
        assert_eq!(shortened("short"), "short");
    }

    #[test]
    fn the_body_is_what_kopf_posts() {
        let post = Post {
            subject: Arc::new(Subject {
                api_version: "kopf.dev/v1".to_owned(),
                kind: "KopfExample".to_owned(),
                namespace: None,
                name: "one".to_owned(),
                uid: "u".to_owned(),
            }),
            severity: EventSeverity::Error,
            reason: "Logging".to_owned(),
            message: "no".to_owned(),
            at: "2020-12-31T23:59:59.000001Z".parse().unwrap(),
        };
        assert_eq!(
            body(&post, "default"),
            json!({
                "metadata": {"namespace": "default", "generateName": "kopf-event-"},
                "action": "Action?",
                "type": "Error",
                "reason": "Logging",
                "message": "no",
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
}
