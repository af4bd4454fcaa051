//! Which handlers are called for which objects, and which objects are left alone.

use kopf_tests::TestResult;
use serde_json::json;

use crate::stage::{compare, is_settled};

#[tokio::test]
async fn filters_by_labels_annotations_values_and_conditions_select_the_same_handlers() -> TestResult
{
    compare("filters", async |stage| {
        stage.start().await?;
        let bodies = [
            ("plain", json!({"spec": {"size": 1}})),
            ("gold", json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 3}})),
            ("empty", json!({"metadata": {"labels": {"tier": ""}}, "spec": {}})),
            ("noted", json!({"metadata": {"labels": {"tier": "tin"}, "annotations": {"note": "yes"}}, "spec": {"size": 5}})),
        ];
        // One after another, so that the calls come in the same order on both sides.
        for (name, body) in bodies {
            stage.create(name, body).await?;
            stage.note_settled(name).await?;
        }
        stage.merge("gold", json!({"spec": {"size": 4}})).await?;
        stage.note_settled_with("gold", 4).await?;
        stage.merge("noted", json!({"spec": {"size": 4}})).await?;
        stage.note_settled_with("noted", 4).await
    })
    .await
}

#[tokio::test]
async fn an_object_that_matches_no_handler_is_not_touched_until_it_does() -> TestResult {
    compare("stealth", async |stage| {
        stage.start().await?;
        stage.create("one", json!({"spec": {"size": 1}})).await?;
        stage.merge("one", json!({"spec": {"size": 2}})).await?;
        // Events are handled in order, so what is seen of a later object tells about the first.
        let managed = json!({"metadata": {"labels": {"managed": "yes"}}, "spec": {"size": 1}});
        stage.create("two", managed).await?;
        stage.note_settled("two").await?;
        stage
            .note("one", "untouched", |it| it.metadata.annotations.is_none())
            .await?;
        assert_eq!(stage.writes("one").await?, 0, "not a byte is written");
        stage
            .merge("one", json!({"metadata": {"labels": {"managed": "yes"}}}))
            .await?;
        stage.note_settled("one").await?;
        stage
            .merge("one", json!({"metadata": {"labels": {"managed": null}}}))
            .await?;
        stage
            .note("one", "released", |it| it.metadata.finalizers.is_none())
            .await?;
        stage.widgets.delete("one").await?;
        stage.note_gone("one").await
    })
    .await
}

#[tokio::test]
async fn event_handlers_see_everything_and_write_nothing() -> TestResult {
    compare("events", async |stage| {
        stage.start().await?;
        stage.create("silent", json!({"spec": {"size": 1}})).await?;
        stage.merge("silent", json!({"spec": {"size": 2}})).await?;
        stage
            .note("silent", "changed", |it| it.data["spec"]["size"] == 2)
            .await?;
        stage.widgets.delete("silent").await?;
        stage.note_gone("silent").await?;
        stage.operator().wait_for_log("DELETED").await?;
        assert_eq!(stage.writes("silent").await?, 0, "not a byte is written");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_result_of_an_event_handler_is_in_the_status_and_nothing_else_is_written() -> TestResult
{
    compare("event_results", async |stage| {
        stage.start().await?;
        stage.create("one", json!({"spec": {"size": 1}})).await?;
        stage
            .note("one", "seen", |it| it.data["status"]["spy"]["size"] == 1)
            .await?;
        assert!(
            !is_settled(&stage.widgets.get("one").await?),
            "there is no handled state"
        );
        stage.merge("one", json!({"spec": {"size": 2}})).await?;
        stage
            .note("one", "seen again", |it| {
                it.data["status"]["spy"]["size"] == 2
            })
            .await
    })
    .await
}
