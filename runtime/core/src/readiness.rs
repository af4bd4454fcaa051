//! Whether objects of well-known kinds are ready, as `kubectl rollout status` and `kubectl wait`
//! see them.

mod pods;
mod workloads;

use std::cmp::Ordering;

use serde_json::Value;

pub use self::pods::{job, persistent_volume_claim, pod, service};
pub use self::workloads::{daemon_set, deployment, stateful_set};

/// Whether an object is ready, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    state: ReadinessState,
    reason: String,
    message: String,
}

/// How far an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReadinessState {
    /// It is ready.
    Ready,
    /// It is not ready yet.
    Waiting,
    /// It does not become ready by waiting.
    Failed,
}

impl Readiness {
    /// Ready, with a reason in CamelCase and a sentence, as conditions have them.
    #[must_use]
    pub fn ready(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ReadinessState::Ready, reason, message)
    }

    /// Not ready yet.
    #[must_use]
    pub fn waiting(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ReadinessState::Waiting, reason, message)
    }

    /// Failed for good, unless something changes.
    #[must_use]
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(ReadinessState::Failed, reason, message)
    }

    fn new(state: ReadinessState, reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            state,
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// The readiness of several objects together: that of the first one which is furthest from
    /// ready.
    #[must_use]
    pub fn of_all(all: impl IntoIterator<Item = Self>) -> Self {
        let worst = all
            .into_iter()
            .reduce(|worst, next| match next.state.cmp(&worst.state) {
                Ordering::Greater => next,
                Ordering::Less | Ordering::Equal => worst,
            });
        worst.unwrap_or_else(|| Self::ready("NothingToWaitFor", "there is nothing to wait for"))
    }

    /// How far the object is.
    #[must_use]
    pub const fn state(&self) -> ReadinessState {
        self.state
    }

    /// Whether the object is ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.state == ReadinessState::Ready
    }

    /// The reason in CamelCase.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// The reason as a sentence.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// Whether an object of any kind is ready.
///
/// Kinds of others are ready if their condition `Ready` is true. Those that have none are ready once
/// their controller has seen the newest spec, if they say which one it has seen.
#[must_use]
pub fn of_kind(api_version: &str, kind: &str, object: &Value) -> Readiness {
    match (api_version, kind) {
        ("apps/v1", "Deployment") => deployment(object),
        ("apps/v1", "StatefulSet") => stateful_set(object),
        ("apps/v1", "DaemonSet") => daemon_set(object),
        ("batch/v1", "Job") => job(object),
        ("v1", "Pod") => pod(object),
        ("v1", "PersistentVolumeClaim") => persistent_volume_claim(object),
        ("v1", "Service") => service(object),
        _ => other(object),
    }
}

fn other(object: &Value) -> Readiness {
    if object["status"]["observedGeneration"].is_i64() && is_unobserved(object) {
        return unobserved();
    }
    match condition(object, "Ready") {
        None => Readiness::ready("Applied", "it is applied"),
        Some(ready) if ready.is_true => Readiness::ready(ready.reason, ready.message),
        Some(ready) => Readiness::waiting(ready.reason, ready.message),
    }
}

/// A condition of an object.
struct ObjectCondition<'a> {
    is_true: bool,
    reason: &'a str,
    message: &'a str,
}

fn condition<'a>(object: &'a Value, condition_type: &str) -> Option<ObjectCondition<'a>> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|it| it["type"] == condition_type)?;
    Some(ObjectCondition {
        is_true: found["status"] == "True",
        reason: found["reason"].as_str().unwrap_or_default(),
        message: found["message"].as_str().unwrap_or_default(),
    })
}

/// A number of the spec or the status; those that the API server leaves out are zero.
fn number(part: &Value, key: &str) -> i64 {
    part[key].as_i64().unwrap_or_default()
}

/// Whether the controller has not seen the newest spec.
fn is_unobserved(object: &Value) -> bool {
    number(&object["metadata"], "generation") > number(&object["status"], "observedGeneration")
}

fn unobserved() -> Readiness {
    Readiness::waiting(
        "Unobserved",
        "its controller has not seen the newest spec yet",
    )
}

#[cfg(test)]
mod tests;
