//! Waiting on one object by watching it, and telling what was seen when the time is over.

use std::fmt::Write as _;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use tokio::time::{sleep, timeout};

use super::{ASK_EVERY, PATIENCE, Place, lock};
use crate::failure::Failure;

/// How many lines of an operator's log a failure shows.
const LOG_LINES: usize = 60;

/// How long a failed wait may still take to collect its report.
const REPORT_WITHIN: Duration = Duration::from_secs(5);

pub(super) struct Wait<'a> {
    pub(super) api: &'a Api<DynamicObject>,
    pub(super) name: &'a str,
    pub(super) patience: Duration,
    pub(super) from: From,
}

/// Which states of the object a wait is about.
pub(super) enum From {
    /// The present one and those to come.
    Now,
    /// This one and all that came after it, however short they lasted.
    Earlier(Box<DynamicObject>),
}

/// What a wait had seen when its time was over.
#[derive(Default)]
pub(super) struct Seen {
    object: Option<DynamicObject>,
    error: Option<String>,
}

/// Asks again and again until there is an answer, for what no watch tells.
#[track_caller]
pub fn eventually<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Option<T>,
) -> impl Future<Output = Result<T, Failure>> {
    try_eventually(what, async move || Ok(ask().await))
}

/// The same, but a question that fails is not asked again.
#[track_caller]
pub fn try_eventually<T>(
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<T>, Failure>,
) -> impl Future<Output = Result<T, Failure>> {
    let failure = Failure::here();
    async move {
        let asking = async {
            loop {
                if let Some(answer) = ask().await? {
                    return Ok(answer);
                }
                sleep(ASK_EVERY).await;
            }
        };
        let over = |_| {
            failure.saying(format!(
                "still waiting after {} s until {what}",
                PATIENCE.as_secs()
            ))
        };
        timeout(PATIENCE, asking).await.map_err(over)?
    }
}

/// Waits until `holds`, which is asked about every state of the object, none meaning that there is
/// no such object.
pub(super) async fn until(
    wait: &Wait<'_>,
    mut holds: impl FnMut(Option<&DynamicObject>) -> bool,
) -> Result<Option<DynamicObject>, Seen> {
    let mut seen = Seen::default();
    let mut missed_none = match &wait.from {
        From::Now => None,
        From::Earlier(earlier) => {
            seen.object = Some((**earlier).clone());
            if holds(seen.object.as_ref()) {
                return Ok(seen.object);
            }
            earlier.metadata.resource_version.clone()
        }
    };
    let watching = async {
        loop {
            let followed = match missed_none.take() {
                Some(version) => watch(wait, &version, &mut seen.object, &mut holds).await,
                None => follow(wait, &mut seen.object, &mut holds).await,
            };
            match followed {
                Ok(true) => return,
                // The server ended the watch, which it may do at any time.
                Ok(false) => seen.error = None,
                Err(error) => {
                    seen.error = Some(error.to_string());
                    sleep(ASK_EVERY).await;
                }
            }
        }
    };
    match timeout(wait.patience, watching).await {
        Ok(()) => Ok(seen.object),
        Err(_) => Err(seen),
    }
}

/// Lists and then watches the object; says whether the condition held before the watch ended.
async fn follow(
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

/// Watches the object from a version on; says whether the condition held before the watch ended.
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

/// Everything that helps to see why a wait failed.
pub(super) async fn describe(place: &Place, title: String, name: &str, seen: Seen) -> String {
    let mut text = title;
    // Writing to a string cannot fail.
    let _ = match seen.object {
        None => write!(text, "\n--- the object: there is none"),
        Some(mut object) => {
            object.metadata.managed_fields = None;
            let yaml = serde_saphyr::to_string(&object).unwrap_or_else(|error| error.to_string());
            write!(text, "\n--- the object:\n{}", yaml.trim_end())
        }
    };
    if let Some(error) = seen.error {
        let _ = write!(text, "\n--- the last error: {error}");
    }
    let events = timeout(REPORT_WITHIN, events_of(place, name)).await;
    let _ = match events {
        Ok(Ok(lines)) if lines.is_empty() => write!(text, "\n--- its events: none"),
        Ok(Ok(lines)) => write!(text, "\n--- its events:\n{}", lines.join("\n")),
        Ok(Err(error)) => write!(text, "\n--- its events are not to be had: {error}"),
        Err(_) => write!(
            text,
            "\n--- its events are not to be had: the server does not answer"
        ),
    };
    for log in lock(&place.logs).iter() {
        let _ = write!(text, "\n--- the operator's log:\n{}", log.tail(LOG_LINES));
    }
    text
}

async fn events_of(place: &Place, name: &str) -> kube::Result<Vec<String>> {
    let events: Api<Event> = Api::namespaced(place.client.clone(), &place.namespace);
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
