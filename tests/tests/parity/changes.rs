//! Creations, updates and deletions, and what handlers write to objects.

use k8s_openapi::api::core::v1::Event;
use kopf_tests::{TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::scenario::{both, compare, is_settled, last_handled, waits_after};
use crate::trace::{Trace, assert_same};

#[tokio::test]
async fn results_of_create_handlers_and_the_last_handled_state_are_written() -> TestResult {
    compare("create_with_result", async |run| {
        run.start().await?;
        let body = json!({
            "metadata": {"labels": {"app": "parity"}, "annotations": {"note": "kept ✓"}},
            "spec": {"size": 1, "text": "größe \"quoted\" \\ </tag>", "list": [1, 2.5, null, {"b": 1, "a": 2}], "empty": {}},
        });
        run.create("one", body).await?;
        run.note_results("one", &["create_map", "create_text"]).await
    })
    .await
}

#[tokio::test]
async fn update_handlers_get_the_diff_and_field_handlers_their_field() -> TestResult {
    compare("update_with_diff", async |run| {
        run.start().await?;
        let spec = json!({"size": 1, "colour": "red", "list": [1, 2], "map": {"a": 1, "b": 2}});
        run.create("one", json!({"spec": spec})).await?;
        run.note_settled_with("one", 1).await?;
        let change =
            json!({"size": 2, "colour": null, "list": [2], "map": {"a": null, "b": 3, "c": 4}});
        run.merge(
            "one",
            json!({"spec": change, "metadata": {"labels": {"new": "label"}}}),
        )
        .await?;
        run.note_settled_with("one", 2).await?;
        run.note_results("one", &["update_fn"]).await?;
        run.merge("one", json!({"spec": {"size": 3}})).await?;
        run.note_settled_with("one", 3).await
    })
    .await
}

#[tokio::test]
async fn a_deletion_waits_for_its_handler_and_keeps_other_finalizers() -> TestResult {
    compare("delete_with_finalizer", async |run| {
        run.start().await?;
        let foreign =
            json!({"metadata": {"finalizers": ["kopf.test/foreign"]}, "spec": {"size": 1}});
        run.create("one", foreign).await?;
        run.note_settled("one").await?;
        run.widgets.delete("one").await?;
        run.note("one", "waiting", waits_after("delete_fn", 1))
            .await?;
        run.note("one", "released", |object| {
            object.metadata.finalizers.as_deref() == Some(&["kopf.test/foreign".to_owned()])
        })
        .await?;
        run.merge("one", json!({"metadata": {"finalizers": null}}))
            .await?;
        run.note_gone("one").await
    })
    .await
}

#[tokio::test]
async fn an_optional_delete_handler_adds_no_finalizer_but_runs_beside_another_handler() -> TestResult
{
    compare("optional_delete", async |run| {
        run.start().await?;
        run.create("free", json!({"spec": {"size": 1}})).await?;
        run.note_settled("free").await?;
        run.widgets.delete("free").await?;
        run.note_gone("free").await?;
        let held = json!({"metadata": {"labels": {"hold": "yes"}}, "spec": {"size": 1}});
        run.create("held", held).await?;
        run.note_settled("held").await?;
        run.widgets.delete("held").await?;
        run.note_gone("held").await
    })
    .await
}

#[tokio::test]
async fn handlers_run_in_order_and_each_success_is_written_before_the_next_starts() -> TestResult {
    compare("two_handlers", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "second waits", waits_after("second", 1))
            .await?;
        run.note_results("one", &["first", "second", "third"]).await
    })
    .await
}

#[tokio::test]
async fn long_and_unusual_handler_ids_make_the_same_annotations() -> TestResult {
    let ids = [
        "main.<locals>.create_fn".to_owned(),
        "a_rather_long_handler_name_for_testing_the_cut.spec.some.field".to_owned(),
        "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one".to_owned(),
        "x".repeat(64),
    ];
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    compare("long_ids", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        let last = format!("{}-SItAqA", "x".repeat(56));
        run.note("one", "all wait", waits_after(&last, 1)).await?;
        run.note_results("one", &ids).await
    })
    .await
}

#[tokio::test]
async fn annotations_of_other_operators_and_kubectl_are_ignored_in_the_diff() -> TestResult {
    compare("down", async |run| {
        run.start().await?;
        let annotations = json!({
            "other.example/kopf-managed": "yes",
            "other.example/progress": "1",
            "sub.kopf.zalando.org/progress": "1",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "plain": "kept",
        });
        let body = json!({"metadata": {"annotations": annotations}, "spec": {"size": 1}});
        run.create("one", body).await?;
        run.note_results("one", &["create_fn"]).await?;
        let changed = json!({
            "other.example/progress": "2",
            "sub.kopf.zalando.org/progress": null,
            "kubectl.kubernetes.io/last-applied-configuration": "{} ",
        });
        run.merge("one", json!({"metadata": {"annotations": changed}}))
            .await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_results("one", &["update_fn"]).await
    })
    .await
}

#[tokio::test]
async fn a_function_for_overlapping_fields_is_called_for_each() -> TestResult {
    compare("overlapping_fields", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1, "other": 1}}))
            .await?;
        run.note_settled_with("one", 1).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_settled_with("one", 2).await?;
        run.merge("one", json!({"spec": {"other": 2}})).await?;
        run.note("one", "only the outer field", |it| {
            is_settled(it) && last_handled(it)["spec"]["other"] == 2
        })
        .await
    })
    .await
}

#[tokio::test]
async fn a_handler_waits_for_the_result_of_one_that_is_declared_later() -> TestResult {
    compare("results_in_order", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_results("one", &["first", "second"]).await
    })
    .await
}

#[tokio::test]
async fn a_field_handler_is_called_when_its_field_is_added_changed_and_removed() -> TestResult {
    compare("fields", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1, "other": 1}}))
            .await?;
        run.note_settled_with("one", 1).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_settled_with("one", 2).await?;
        run.merge("one", json!({"spec": {"size": null, "other": 2}}))
            .await?;
        run.note("one", "size removed", |it| {
            let handled = last_handled(it);
            is_settled(it) && handled["spec"] == json!({"other": 2})
        })
        .await?;
        run.merge("one", json!({"spec": {"size": 5}})).await?;
        run.note_settled_with("one", 5).await?;
        let labels = json!({"a": "1", "b": "2", "app.kubernetes.io/name": "widget"});
        run.merge("one", json!({"metadata": {"labels": labels}}))
            .await?;
        run.note("one", "labelled", |it| {
            let handled = last_handled(it);
            is_settled(it) && handled["metadata"]["labels"]["b"] == "2"
        })
        .await?;
        run.merge(
            "one",
            json!({"metadata": {"labels": {"a": "3", "b": null, "app.kubernetes.io/name": null}}}),
        )
        .await?;
        run.note("one", "relabelled", |it| {
            let handled = last_handled(it);
            is_settled(it) && handled["metadata"]["labels"] == json!({"a": "3"})
        })
        .await?;
        run.widgets
            .merge_status("one", json!({"phase": "Ready", "other": 1}))
            .await?;
        run.note("one", "status changed", |it| {
            let handled = last_handled(it);
            is_settled(it) && handled["status"]["phase"] == "Ready"
        })
        .await
    })
    .await
}

#[tokio::test]
async fn the_patch_of_a_failed_handler_is_written() -> TestResult {
    compare("patches", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "after the first attempt", |it| {
            // The implementations write progress and status in different order.
            waits_after("create_fn", 1)(it) && it.data["status"]["phase"] == "attempt 0"
        })
        .await?;
        run.note("one", "settled", |it| {
            is_settled(it) && it.data["status"]["phase"] == "attempt 1"
        })
        .await
    })
    .await
}

#[tokio::test]
async fn each_sub_handler_has_its_own_progress_and_does_not_use_retries_of_its_parent() -> TestResult
{
    let (mut kopf, mut ours) = both("subhandlers", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"items": ["a", "b", "c"]}}))
            .await?;
        run.note("one", "b waits", waits_after("create_fn.b", 1))
            .await?;
        let results = ["create_fn", "create_fn/a", "create_fn/b", "create_fn/c"];
        run.note_results("one", &results).await
    })
    .await?;

    let attempts = |trace: &mut Trace| -> Vec<Value> {
        let parent = trace
            .calls
            .iter_mut()
            .filter(|it| it["handler"] == "create_fn");
        parent.map(|call| call["retry"].take()).collect()
    };
    assert_eq!(
        attempts(&mut kopf),
        [0, 1, 2, 3],
        "Kopf counts each return of the parent"
    );
    assert_eq!(
        attempts(&mut ours),
        [0, 0, 0, 0],
        "waiting for sub-handlers is no failure"
    );

    let record = |trace: &mut Trace| {
        let annotations = &mut trace.states[0].1["annotations"];
        let text = annotations["kopf.zalando.org/create_fn"].take();
        serde_json::from_str::<Value>(text.as_str().unwrap_or_default())
    };
    let (kopf_record, our_record) = (record(&mut kopf)?, record(&mut ours)?);
    assert_eq!(our_record["subrefs"], kopf_record["subrefs"]);
    assert_eq!(
        kopf_record["message"], "None",
        "Kopf records the text of an error without a message"
    );
    assert_eq!(our_record["message"], Value::Null);
    assert_same("subhandlers", &kopf, &ours);
    Ok(())
}

#[tokio::test]
async fn sub_handlers_are_filtered_by_the_values_of_their_field_and_get_them() -> TestResult {
    compare("subhandler_filters", async |run| {
        run.start().await?;
        let gold = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 1}});
        run.create("one", gold).await?;
        run.note_settled_with("one", 1).await?;
        for size in 2..=3 {
            run.merge("one", json!({"spec": {"size": size}})).await?;
            run.note_settled_with("one", size).await?;
        }
        run.merge("one", json!({"spec": {"size": null, "other": 1}}))
            .await?;
        run.note("one", "without a size", |it| {
            is_settled(it) && last_handled(it)["spec"] == json!({"other": 1})
        })
        .await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_settled_with("one", 2).await?;
        run.merge("one", json!({"metadata": {"labels": {"tier": "lead"}}}))
            .await?;
        run.note("one", "relabelled", |it| {
            let handled = last_handled(it);
            is_settled(it) && handled["metadata"]["labels"] == json!({"tier": "lead"})
        })
        .await
    })
    .await
}

#[tokio::test]
async fn events_posted_by_handlers_look_the_same() -> TestResult {
    compare("posted", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_settled("one").await?;
        let (client, namespace) = (run.sandbox.client(), run.sandbox.namespace());
        let events: Api<Event> = Api::namespaced(client, namespace);
        eventually("the events are posted", async || {
            let posted = events.list(&ListParams::default()).await.ok()?;
            (posted.items.len() >= 3).then_some(())
        })
        .await
    })
    .await
}

#[tokio::test]
async fn the_form_and_the_entries_of_records_follow_the_options_of_the_storage() -> TestResult {
    compare("record_options", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        let has_record = |it: &DynamicObject| {
            let annotations = it.annotations().values();
            let mut records = annotations.filter(|text| text.contains("\"delayed\":"));
            records.any(|text| text.contains("\"retries\":1") && text.contains("null"))
        };
        // Kopf would wait for ever: with all entries it writes the same record again, and no event follows.
        run.note("one", "waits", has_record).await
    })
    .await
}
