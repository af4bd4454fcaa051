//! Filters: which handlers are called for which objects, and which objects are not written.

use kopf_tests::TestResult;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::json;

use crate::scenario::{compare, is_held, is_settled, last_handled};

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

#[tokio::test]
async fn filters_that_look_at_a_value_and_the_whole_object_select_the_same_handlers() -> TestResult
{
    compare("value_functions", async |run| {
        run.start().await?;
        let labelled =
            |tier: &str, spec| json!({"metadata": {"labels": {"tier": tier}}, "spec": spec});
        let bodies = [
            (
                "gold",
                labelled("gold", json!({"tier": "gold", "size": 1, "limit": 3})),
            ),
            (
                "tin",
                labelled("tin", json!({"tier": "gold", "size": 3, "limit": 3})),
            ),
        ];
        for (name, body) in bodies {
            run.create(name, body).await?;
            run.note_settled(name).await?;
        }
        for size in [2, 4, 5, 2] {
            run.merge("gold", json!({"spec": {"size": size}})).await?;
            run.note_settled_with("gold", size).await?;
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn annotations_exclude_an_object_from_handlers_for_good() -> TestResult {
    compare("never_again", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_settled("one").await?;
        let is_marked = |it: &DynamicObject| {
            is_settled(it) && it.annotations().contains_key("update-fn-never-again")
        };
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note("one", "marked", |it| is_marked(it)).await?;
        run.wait_for_calls(2).await?;
        run.merge("one", json!({"spec": {"size": 3}})).await?;
        run.note_settled_with("one", 3).await?;
        run.wait_for_calls(3).await?;

        let monitored = json!({"metadata": {"labels": {"monitored": "yes"}}, "spec": {"size": 1}});
        run.create("two", monitored).await?;
        // The annotation of the daemon is a change, which the update handler marks in turn.
        let is_done = |it: &DynamicObject| {
            let handled = last_handled(it);
            let handled = &handled["metadata"]["annotations"];
            let marks = ["monitor-never-again", "update-fn-never-again"];
            is_settled(it) && !is_held(it) && marks.iter().all(|mark| handled[mark] == "yes")
        };
        run.note("two", "released", is_done).await?;
        run.wait_for_calls(5).await
    })
    .await
}
