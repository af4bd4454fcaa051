//! Other clients that write to the same objects: stamps of their own, and garbage in the facts of
//! the operator.

use std::time::Duration;

use fastrand::Rng;
use kopf_tests::TestFailure;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::stage::Stage;
use crate::state::LAST_HANDLED;

/// The pause between two writes.
const PAUSE: Duration = Duration::from_millis(40);

/// An annotation of another controller.
const STAMP: &str = "faults.kopf.test/stamp";

/// What no version of the operator writes.
const GARBAGE: [&str; 4] = ["", "{", "[1, 2]", "{\"started\": 7}"];

/// The annotations that get garbage.
const FACTS: [&str; 4] = [
    LAST_HANDLED,
    "kopf.zalando.org/changed",
    "kopf.zalando.org/parts.left",
    "kopf.zalando.org/last-seen-states",
];

/// Stamps objects as another controller does, which changes their states.
pub(super) async fn stamp(stage: &Stage, lasts: Duration) {
    let objects = stage.here(&stage.widgets);
    let mut random = Rng::with_seed(lasts.subsec_nanos().into());
    let end = Instant::now() + lasts;
    let mut number = 0;
    while Instant::now() < end {
        number += 1;
        if let Some(name) = any_name(&objects, &mut random).await {
            let stamp = json!({"metadata": {"annotations": {STAMP: number.to_string()}}});
            patch(&objects, &name, &stamp).await;
        }
        sleep(PAUSE).await;
    }
}

/// Writes garbage into the facts of the operator, and removes what the operator leaves of it.
pub(super) async fn scramble(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let objects = stage.here(&stage.widgets);
    let mut random = Rng::with_seed(lasts.subsec_nanos().into());
    let end = Instant::now() + lasts;
    let mut written = Vec::new();
    while Instant::now() < end {
        if let Some(name) = any_name(&objects, &mut random).await
            && let Ok(object) = objects.get(&name).await
        {
            stage.note_tampered(object.metadata.uid.as_deref().unwrap_or_default());
            let fact = FACTS[random.usize(..FACTS.len())];
            let garbage = GARBAGE[random.usize(..GARBAGE.len())];
            let garbled = json!({
                "metadata": {
                    "uid": object.metadata.uid,
                    "annotations": {fact: garbage},
                },
            });
            patch(&objects, &name, &garbled).await;
            written.push((name, fact, garbage));
        }
        sleep(PAUSE * 5).await;
    }
    // The operator replaces a garbled base, but does not know each record that others invent.
    for (name, fact, garbage) in written {
        if fact == LAST_HANDLED {
            continue;
        }
        let Ok(object) = objects.get(&name).await else {
            continue;
        };
        let found = object.metadata.annotations.unwrap_or_default();
        if found.get(fact).map(String::as_str) == Some(garbage) {
            let removal = json!({"metadata": {"annotations": {fact: null}}});
            patch(&objects, &name, &removal).await;
        }
    }
    Ok(())
}

async fn any_name(objects: &Api<DynamicObject>, random: &mut Rng) -> Option<String> {
    let list = objects.list_metadata(&ListParams::default()).await.ok()?;
    let object = random.choice(list.items)?;
    object.metadata.name
}

async fn patch(objects: &Api<DynamicObject>, name: &str, patch: &Value) {
    let patch = Patch::Merge(patch);
    // Other troubles go on; a write that fails is none.
    let _ = objects.patch(name, &PatchParams::default(), &patch).await;
}
