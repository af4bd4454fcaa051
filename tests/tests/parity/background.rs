//! Daemons and timers: when they run, what they write, and when finalizers are removed.

use kopf_tests::TestResult;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::scenario::{compare, is_held};

fn widget(role: &str) -> Value {
    json!({"metadata": {"labels": {"role": role}}, "spec": {"size": 1}})
}

fn is_released(object: &DynamicObject) -> bool {
    !is_held(object)
}

/// An unrelated change: Kopf removes the finalizer only at a watch event after the end of its daemons.
fn poke() -> Value {
    json!({"metadata": {"labels": {"poked": "yes"}}})
}

#[tokio::test]
async fn daemons_and_timers_run_fail_and_remove_finalizers_in_the_same_way() -> TestResult {
    // One object after another, so that the calls have the same order on both sides.
    compare("background", async |run| {
        run.start().await?;
        run.create("steady", widget("steady")).await?;
        run.note("steady", "held", is_held).await?;
        run.wait_for_calls(1).await?;
        let unlabelled = json!({"metadata": {"labels": {"role": null}}});
        run.merge("steady", unlabelled).await?;
        run.note("steady", "released", is_released).await?;
        let labelled = json!({"metadata": {"labels": {"role": "steady"}}});
        run.merge("steady", labelled).await?;
        run.note("steady", "held again", is_held).await?;
        run.wait_for_calls(3).await?;
        run.widgets.delete("steady").await?;
        run.note_gone("steady").await?;

        run.create("shaky", widget("shaky")).await?;
        let done = |it: &DynamicObject| it.data["status"]["shaky"]["done"] == 2;
        run.widgets.wait_until("shaky", "it is done", done).await?;
        run.merge("shaky", poke()).await?;
        run.note("shaky", "released", is_released).await?;

        run.create("hopeless", widget("hopeless")).await?;
        run.note("hopeless", "held", is_held).await?;
        run.wait_for_calls(8).await?;
        run.merge("hopeless", poke()).await?;
        run.note("hopeless", "released", is_released).await?;

        run.create("timed", widget("timed")).await?;
        // Kopf may call the timer before it adds the finalizer.
        let delivered = |it: &DynamicObject| it.data["status"]["timed"]["size"] == 1 && is_held(it);
        run.note("timed", "delivered", delivered).await?;
        run.widgets.delete("timed").await?;
        run.note_gone("timed").await?;

        run.create("idle", widget("idle")).await?;
        run.merge("idle", json!({"spec": {"size": 2}})).await?;
        run.wait_for_calls(10).await?;
        run.widgets.delete("idle").await?;
        run.note_gone("idle").await
    })
    .await
}
