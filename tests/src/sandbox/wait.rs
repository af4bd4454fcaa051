//! Waits for a condition on one object by watching it, and reports its last state at the time limit.

use std::fmt::Write as _;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use tokio::time::{sleep, timeout};

use super::{DEFAULT_TIMEOUT, POLL_INTERVAL, SandboxState, lock};
use crate::test_failure::TestFailure;

/// The number of log lines that a failure shows.
const LOG_LINES: usize = 60;

/// The time limit for collecting the events of a failed wait.
const REPORT_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) struct Wait<'a> {
    pub(super) api: &'a Api<DynamicObject>,
    pub(super) name: &'a str,
    pub(super) limit: Duration,
    pub(super) from: WaitStart,
}

/// The first state of the object that a wait checks.
pub(super) enum WaitStart {
    /// The current one.
    Now,
    /// This one; the wait also checks every state since.
    Earlier(Box<DynamicObject>),
}

/// The last object and error that a wait got.
#[derive(Default)]
pub(super) struct LastObserved {
    object: Option<DynamicObject>,
    error: Option<String>,
}

/// Polls until the result is not none, where there is no watch.
#[track_caller]
pub fn eventually<T>(
    what: &str,
    mut poll: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = Result<T, TestFailure>> {
    try_eventually(what, async move || Ok(poll().await))
}

/// The same, but an error ends the polling.
#[track_caller]
pub fn try_eventually<T>(
    what: &str,
    mut poll: impl AsyncFnMut() -> Result<Option<T>, TestFailure>,
) -> impl Future<Output = Result<T, TestFailure>> {
    let failure = TestFailure::at_caller();
    async move {
        let polling = async {
            loop {
                if let Some(result) = poll().await? {
                    return Ok(result);
                }
                sleep(POLL_INTERVAL).await;
            }
        };
        let over = |_| {
            failure.with_message(format!(
                "still waiting after {} s until {what}",
                DEFAULT_TIMEOUT.as_secs()
            ))
        };
        timeout(DEFAULT_TIMEOUT, polling).await.map_err(over)?
    }
}

/// Waits until `holds` is true of a state of the object; none means that the object does not exist.
pub(super) async fn until(
    wait: &Wait<'_>,
    mut holds: impl FnMut(Option<&DynamicObject>) -> bool,
) -> Result<Option<DynamicObject>, LastObserved> {
    let mut last = LastObserved::default();
    let mut from_version = match &wait.from {
        WaitStart::Now => None,
        WaitStart::Earlier(earlier) => {
            last.object = Some((**earlier).clone());
            if holds(last.object.as_ref()) {
                return Ok(last.object);
            }
            earlier.metadata.resource_version.clone()
        }
    };
    let watching = async {
        loop {
            let followed = match from_version.take() {
                Some(version) => watch(wait, &version, &mut last.object, &mut holds).await,
                None => list_and_watch(wait, &mut last.object, &mut holds).await,
            };
            match followed {
                Ok(true) => return,
                // The API server may end a watch at any time.
                Ok(false) => last.error = None,
                Err(error) => {
                    last.error = Some(error.to_string());
                    sleep(POLL_INTERVAL).await;
                }
            }
        }
    };
    match timeout(wait.limit, watching).await {
        Ok(()) => Ok(last.object),
        Err(_) => Err(last),
    }
}

/// Lists and then watches the object; whether the condition held before the watch ended.
async fn list_and_watch(
    wait: &Wait<'_>,
    current: &mut Option<DynamicObject>,
    holds: &mut impl FnMut(Option<&DynamicObject>) -> bool,
) -> kube::Result<bool> {
    let selector = format!("metadata.name={}", wait.name);
    let list = wait
        .api
        .list(&ListParams::default().fields(&selector))
        .await?;
    *current = list.items.into_iter().next();
    if holds(current.as_ref()) {
        return Ok(true);
    }
    let version = list.metadata.resource_version.unwrap_or_default();
    watch(wait, &version, current, holds).await
}

/// Watches the object from a resource version on; whether the condition held before the watch ended.
async fn watch(
    wait: &Wait<'_>,
    version: &str,
    current: &mut Option<DynamicObject>,
    holds: &mut impl FnMut(Option<&DynamicObject>) -> bool,
) -> kube::Result<bool> {
    let selector = format!("metadata.name={}", wait.name);
    let params = WatchParams::default().fields(&selector);
    let mut events = wait.api.watch(&params, version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => *current = Some(object),
            WatchEvent::Deleted(_) => *current = None,
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        }
        if holds(current.as_ref()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The report of a failed wait: the object, the last error, its events, the logs of the operators.
pub(super) async fn describe(
    state: &SandboxState,
    title: String,
    name: &str,
    last: LastObserved,
) -> String {
    let mut text = title;
    // Writing to a string cannot fail.
    let _ = match last.object {
        None => write!(text, "\n--- the object does not exist"),
        Some(mut object) => {
            object.metadata.managed_fields = None;
            let yaml = serde_saphyr::to_string(&object).unwrap_or_else(|error| error.to_string());
            write!(text, "\n--- the object:\n{}", yaml.trim_end())
        }
    };
    if let Some(error) = last.error {
        let _ = write!(text, "\n--- the last error: {error}");
    }
    let events = timeout(REPORT_TIMEOUT, events_of(state, name)).await;
    let _ = match events {
        Ok(Ok(lines)) if lines.is_empty() => write!(text, "\n--- its events: none"),
        Ok(Ok(lines)) => write!(text, "\n--- its events:\n{}", lines.join("\n")),
        Ok(Err(error)) => write!(text, "\n--- its events cannot be listed: {error}"),
        Err(_) => write!(
            text,
            "\n--- its events cannot be listed: the API server does not answer"
        ),
    };
    for log in lock(&state.logs).iter() {
        let _ = write!(text, "\n--- the operator's log:\n{}", log.tail(LOG_LINES));
    }
    text
}

async fn events_of(state: &SandboxState, name: &str) -> kube::Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(state.client.clone(), &state.namespace);
    let about = ListParams::default().fields(&format!("involvedObject.name={name}"));
    let list = events.list(&about).await?;
    Ok(list
        .items
        .into_iter()
        .map(|event| {
            let part = |text: Option<String>| text.unwrap_or_default();
            format!(
                "{} {}: {}",
                part(event.type_),
                part(event.reason),
                part(event.message)
            )
        })
        .collect())
}
