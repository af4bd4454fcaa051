//! The recorder with which handlers post Kubernetes events on an object.

use std::fmt::{self, Display};

use kopf_core::object::ObjectView;
use serde::Serialize;
use serde_json::Value;

use super::object_ref::{ObjectIdentity, ObjectRef};
use super::posting::{EventPoster, EventSeverity};
use crate::client::resource::KindName;
use crate::settings::PostingLevel;

/// Posts Kubernetes events on an object, in the background: its methods never wait.
///
/// Repeats of an event raise its count. There is a rate limit for the events on each object.
#[derive(Clone)]
pub struct EventRecorder {
    subject: ObjectRef,
    /// Other objects, on which it posts the same events.
    others: Vec<ObjectRef>,
    poster: Option<EventPoster>,
}

// === impl EventRecorder ===

impl EventRecorder {
    pub(crate) fn new(subject: ObjectRef, poster: Option<EventPoster>) -> Self {
        Self {
            subject,
            others: Vec::new(),
            poster,
        }
    }

    /// A recorder for another object: anything with `apiVersion`, `kind` and `metadata`.
    ///
    /// # Errors
    /// If the object cannot be expressed in JSON.
    pub fn on<T: Serialize>(&self, object: &T) -> Result<Self, serde_json::Error> {
        Ok(Self::new(reference(object)?, self.poster.clone()))
    }

    /// A recorder that posts each event also on another object: anything with `apiVersion`, `kind`
    /// and `metadata`.
    ///
    /// # Errors
    /// If the object cannot be expressed in JSON.
    pub fn and_on<T: Serialize>(&self, object: &T) -> Result<Self, serde_json::Error> {
        let mut recorder = self.clone();
        recorder.others.push(reference(object)?);
        Ok(recorder)
    }

    /// Posts an event of the type `Normal`.
    pub fn info(&self, reason: &str, message: impl Into<String>) {
        self.post(PostingLevel::Info, &EventSeverity::Normal, reason, message);
    }

    /// Posts an event of the type `Warning`.
    pub fn warn(&self, reason: &str, message: impl Into<String>) {
        self.post(
            PostingLevel::Warning,
            &EventSeverity::Warning,
            reason,
            message,
        );
    }

    /// Posts an event of the type `Error`; its message ends with the error.
    pub fn exception(&self, reason: &str, message: &str, error: impl Display) {
        let message = if message.is_empty() {
            error.to_string()
        } else {
            format!("{message} {error}")
        };
        self.post(PostingLevel::Error, &EventSeverity::Error, reason, message);
    }

    /// Posts an event of any type, whatever level the settings have.
    pub fn event(
        &self,
        severity: impl Into<EventSeverity>,
        reason: &str,
        message: impl Into<String>,
    ) {
        if let Some(poster) = &self.poster {
            self.post_on_all(poster, &severity.into(), reason, message);
        }
    }

    fn post(
        &self,
        level: PostingLevel,
        severity: &EventSeverity,
        reason: &str,
        message: impl Into<String>,
    ) {
        if let Some(poster) = self.poster.as_ref().filter(|it| it.wants(level)) {
            self.post_on_all(poster, severity, reason, message);
        }
    }

    fn post_on_all(
        &self,
        poster: &EventPoster,
        severity: &EventSeverity,
        reason: &str,
        message: impl Into<String>,
    ) {
        let message = message.into();
        for other in &self.others {
            poster.post(other, severity, reason, message.clone());
        }
        poster.post(&self.subject, severity, reason, message);
    }
}

/// The reference to any object.
fn reference(object: &impl Serialize) -> Result<ObjectRef, serde_json::Error> {
    let object = serde_json::to_value(object)?;
    let view = ObjectView::new(&object);
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = KindName {
        api_version: text("apiVersion").to_owned(),
        kind: text("kind").to_owned(),
    };
    let other = ObjectIdentity {
        namespace: view.namespace().map(str::to_owned),
        name: view.name().unwrap_or_default().to_owned(),
        uid: view.uid().unwrap_or_default().to_owned(),
    };
    Ok(ObjectRef::other(kind, other))
}

impl fmt::Debug for EventRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventRecorder")
            .field("subject", &self.subject)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}
