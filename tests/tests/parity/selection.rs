//! Filters: which handlers are called for which objects, and which objects are not written.

use kopf_tests::TestResult;
use serde_json::json;

use crate::scenario::{compare, is_settled};

#[tokio::test]
async fn filters_select_the_same_handlers() -> TestResult {
    compare("filters", async |run| {
        run.start().await?;
        let bodies = [
            ("plain", json!({"spec": {"size": 1}})),
            ("gold", json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 3}})),
            ("empty", json!({"metadata": {"labels": {"tier": ""}}, "spec": {}})),
            ("noted", json!({"metadata": {"labels": {"tier": "tin"}, "annotations": {"note": "yes"}}, "spec": {"size": 5}})),
        ];
        // One after another, so that the calls have the same order on both sides.
        for (name, body) in bodies {
            run.create(name, body).await?;
            run.note_settled(name).await?;
        }
        run.merge("gold", json!({"spec": {"size": 4}})).await?;
        run.note_settled_with("gold", 4).await?;
        run.merge("noted", json!({"spec": {"size": 4}})).await?;
        run.note_settled_with("noted", 4).await
    })
    .await
}

#[tokio::test]
async fn an_object_is_not_written_until_it_matches_a_handler() -> TestResult {
    compare("stealth", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        // Events are handled in order: when the later object is settled, the first was processed.
        let managed = json!({"metadata": {"labels": {"managed": "yes"}}, "spec": {"size": 1}});
        run.create("two", managed).await?;
        run.note_settled("two").await?;
        run.note("one", "untouched", |it| it.metadata.annotations.is_none())
            .await?;
        assert_eq!(run.writes("one").await?, 0, "nothing is written");
        run.merge("one", json!({"metadata": {"labels": {"managed": "yes"}}}))
            .await?;
        run.note_settled("one").await?;
        run.merge("one", json!({"metadata": {"labels": {"managed": null}}}))
            .await?;
        run.note("one", "released", |it| it.metadata.finalizers.is_none())
            .await?;
        run.widgets.delete("one").await?;
        run.note_gone("one").await
    })
    .await
}

#[tokio::test]
async fn event_handlers_get_all_watch_events_and_nothing_is_written() -> TestResult {
    compare("events", async |run| {
        run.start().await?;
        run.create("silent", json!({"spec": {"size": 1}})).await?;
        run.merge("silent", json!({"spec": {"size": 2}})).await?;
        run.note("silent", "changed", |it| it.data["spec"]["size"] == 2)
            .await?;
        run.widgets.delete("silent").await?;
        run.note_gone("silent").await?;
        run.operator().wait_for_log("DELETED").await?;
        assert_eq!(run.writes("silent").await?, 0, "nothing is written");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn the_result_of_an_event_handler_is_the_only_write() -> TestResult {
    compare("event_results", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "seen", |it| it.data["status"]["spy"]["size"] == 1)
            .await?;
        assert!(
            !is_settled(&run.widgets.get("one").await?),
            "there is no handled state"
        );
        let labelled = json!({"spec": {"size": 2}, "metadata": {"labels": {"a": "b"}}});
        run.merge("one", labelled).await?;
        run.note("one", "seen again", |it| {
            let status = &it.data["status"];
            status["spy"]["size"] == 2 && status["part/metadata.labels"]["is"] == "labels"
        })
        .await
    })
    .await
}
