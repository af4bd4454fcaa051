//! Daemons and timers: when they run, what they leave on objects, and when objects are let go.

use kopf_tests::TestResult;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::stage::{compare, is_held};

fn widget(role: &str) -> Value {
    json!({"metadata": {"labels": {"role": role}}, "spec": {"size": 1}})
}

fn is_released(object: &DynamicObject) -> bool {
    !is_held(object)
}

/// Something to notice: Kopf lets an object go only when it is told of a change after the end of
/// its daemons.
fn poke() -> Value {
    json!({"metadata": {"labels": {"poked": "yes"}}})
}

#[tokio::test]
async fn daemons_and_timers_run_fail_and_let_go_in_the_same_way() -> TestResult {
    // One object after another, so that the calls come in the same order on both sides.
    compare("background", async |stage| {
        stage.start().await?;
        stage.create("steady", widget("steady")).await?;
        stage.note("steady", "held", is_held).await?;
        stage.wait_for_calls(1).await?;
        let unlabelled = json!({"metadata": {"labels": {"role": null}}});
        stage.merge("steady", unlabelled).await?;
        stage.note("steady", "released", is_released).await?;
        let labelled = json!({"metadata": {"labels": {"role": "steady"}}});
        stage.merge("steady", labelled).await?;
        stage.note("steady", "held again", is_held).await?;
        stage.wait_for_calls(3).await?;
        stage.widgets.delete("steady").await?;
        stage.note_gone("steady").await?;

        stage.create("shaky", widget("shaky")).await?;
        let done = |it: &DynamicObject| it.data["status"]["shaky"]["done"] == 2;
        stage
            .widgets
            .wait_until("shaky", "it is done", done)
            .await?;
        stage.merge("shaky", poke()).await?;
        stage.note("shaky", "released", is_released).await?;

        stage.create("hopeless", widget("hopeless")).await?;
        stage.note("hopeless", "held", is_held).await?;
        stage.wait_for_calls(8).await?;
        stage.merge("hopeless", poke()).await?;
        stage.note("hopeless", "released", is_released).await?;

        stage.create("timed", widget("timed")).await?;
        // Kopf may tick before it holds the object.
        let delivered = |it: &DynamicObject| it.data["status"]["timed"]["size"] == 1 && is_held(it);
        stage.note("timed", "delivered", delivered).await?;
        stage.widgets.delete("timed").await?;
        stage.note_gone("timed").await?;

        stage.create("idle", widget("idle")).await?;
        stage.merge("idle", json!({"spec": {"size": 2}})).await?;
        stage.wait_for_calls(10).await?;
        stage.widgets.delete("idle").await?;
        stage.note_gone("idle").await
    })
    .await
}
