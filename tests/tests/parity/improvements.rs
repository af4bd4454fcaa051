//! Differences from Kopf that are improvements: each test asserts both behaviours.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Event;
use kopf_tests::rewriting_webhook::{RewritingWebhook, strip_kopf_annotations};
use kopf_tests::{TestFailure, TestResult, eventually};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::{Value, json};

use crate::scenario::{Implementation, ScenarioRun, both, is_held, is_settled, waits_after};
use crate::trace::Trace;

/// The sizes with which a handler was called.
fn sizes(trace: &Trace, handler: &str) -> Vec<Value> {
    let calls = trace.calls.iter().filter(|it| it["handler"] == handler);
    calls.map(|it| it["new"]["spec"]["size"].clone()).collect()
}

#[tokio::test]
async fn an_edit_during_an_update_calls_finished_handlers_again() -> TestResult {
    let (kopf, ours) = both("mid_cycle", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_settled_with("one", 1).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note("one", "slow waits", waits_after("slow", 1))
            .await?;
        run.merge("one", json!({"spec": {"size": 3}})).await?;
        run.note_settled_with("one", 3).await
    })
    .await?;

    assert_eq!(
        sizes(&kopf, "quick"),
        [2],
        "Kopf never calls the quick handler again"
    );
    assert_eq!(sizes(&ours, "quick"), [2, 3]);
    let last = ours.calls.iter().rfind(|it| it["handler"] == "quick");
    let diff = last.map(|call| call["diff"].clone()).unwrap_or_default();
    assert_eq!(
        diff,
        json!([["change", ["spec", "size"], 2, 3]]),
        "from the state that the handler knew"
    );
    assert_eq!(
        sizes(&ours, "slow"),
        sizes(&kopf, "slow"),
        "a handler that had the newest state is not called again"
    );
    assert_eq!(kopf.states, ours.states, "the objects are the same");
    Ok(())
}

#[tokio::test]
async fn an_edit_during_a_creation_is_handled_as_an_update() -> TestResult {
    let (kopf, ours) = both("takeover", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "second waits", waits_after("second", 1))
            .await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_settled_with("one", 2).await
    })
    .await?;

    assert_eq!(sizes(&kopf, "first"), [1]);
    assert_eq!(
        sizes(&kopf, "update_first"),
        [] as [i32; 0],
        "Kopf includes the edit in the creation"
    );
    assert_eq!(sizes(&ours, "first"), [1], "a creation is not repeated");
    assert_eq!(sizes(&ours, "update_first"), [2]);
    let update = ours.calls.iter().find(|it| it["handler"] == "update_first");
    let diff = update.map(|call| call["diff"].clone()).unwrap_or_default();
    assert_eq!(
        diff,
        json!([["change", ["spec", "size"], 1, 2]]),
        "from the state that the create handler knew"
    );
    Ok(())
}

#[tokio::test]
async fn a_timeout_interrupts_a_handler_that_hangs() -> TestResult {
    let (kopf, ours) = both("timeout", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        match run.implementation {
            Implementation::Kopf => run.note_results("one", &["stuck"]).await,
            Implementation::Ours => run.note_settled("one").await,
        }
    })
    .await?;

    let result = |trace: &Trace| trace.states[0].1["status"]["stuck"].clone();
    assert_eq!(result(&kopf), json!({"late": true}), "Kopf waits for ever");
    assert_eq!(result(&ours), Value::Null);
    assert_eq!((kopf.calls.len(), ours.calls.len()), (1, 1));
    assert_eq!(
        ours.events.len(),
        1,
        "the timeout is posted: {:?}",
        ours.events
    );
    Ok(())
}

#[tokio::test]
async fn annotations_that_a_webhook_removes_cause_no_hot_loop() -> TestResult {
    let (kopf, ours) = both("create_with_result", async |run| {
        let _webhook =
            RewritingWebhook::register(&run.sandbox, &run.widgets, strip_kopf_annotations).await?;
        run.start().await?;
        let begun = Instant::now();
        run.create("one", json!({"spec": {"size": 1}})).await?;
        let rounds = match run.implementation {
            // With pauses like ours, there are nine in the time of `eventually`.
            Implementation::Kopf => 12,
            Implementation::Ours => 4,
        };
        // The calls of the webhook do not tell: the API server reviews a write once more if its
        // cache does not have the write before it yet.
        eventually(&format!("it is written to {rounds} times"), async || {
            (run.body_writes().await.ok()? >= rounds).then_some(())
        })
        .await?;
        if run.implementation == Implementation::Ours {
            let pauses = begun.elapsed();
            assert!(pauses >= Duration::from_secs(4), "1, 1 and 2 s: {pauses:?}");
        }
        run.stop().await
    })
    .await?;

    let is_posted = |trace: &Trace| {
        let mut events = trace.events.iter().map(|event| event.to_string());
        events.any(|event| event.contains("admission webhook"))
    };
    assert!(is_posted(&ours), "the cause is posted: {:?}", ours.events);
    assert!(!is_posted(&kopf));
    Ok(())
}

/// The number of calls of a handler.
fn calls(trace: &Trace, handler: &str) -> usize {
    let calls = trace.calls.iter().filter(|it| it["handler"] == handler);
    calls.count()
}

#[tokio::test]
async fn a_permanent_error_stops_a_timer() -> TestResult {
    let (kopf, ours) = both("background_errors", async |run| {
        run.start().await?;
        let body = json!({"metadata": {"labels": {"role": "refused"}}, "spec": {}});
        run.create("one", body).await?;
        run.wait_for_calls(1).await?;
        match run.implementation {
            Implementation::Kopf => run.wait_for_calls(3).await,
            Implementation::Ours => {
                let held = |it: &DynamicObject| it.metadata.finalizers.is_some();
                run.note("one", "held", held).await?;
                run.note("one", "released", |it| !held(it)).await
            }
        }
    })
    .await?;
    assert!(calls(&kopf, "refused") >= 3, "Kopf continues");
    assert_eq!(calls(&ours, "refused"), 1);
    Ok(())
}

#[tokio::test]
async fn delete_handlers_run_once_while_a_daemon_blocks_the_deletion() -> TestResult {
    let (kopf, ours) = both("background_errors", async |run| {
        run.start().await?;
        let body = json!({"metadata": {"labels": {"role": "slow"}}, "spec": {}});
        run.create("one", body).await?;
        run.wait_for_calls(1).await?;
        // Kopf may start the daemon before it adds the finalizer.
        run.widgets.wait_until("one", "it is held", is_held).await?;
        run.widgets.delete("one").await?;
        run.wait_for_calls(2).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_gone("one").await
    })
    .await?;
    assert!(calls(&kopf, "release") > 1, "Kopf repeats it");
    assert_eq!(calls(&ours, "release"), 1);
    Ok(())
}

/// The number of writes of an implementation to the object `one`.
async fn writes(implementation: Implementation) -> Result<usize, TestFailure> {
    let mut run = ScenarioRun::open("create_with_result", implementation).await?;
    run.start().await?;
    run.create("one", json!({"spec": {"size": 1}})).await?;
    run.note_results("one", &["create_map", "create_text"])
        .await?;
    let writes = run.writes("one").await?;
    assert!(is_settled(&run.widgets.get("one").await?));
    Ok(writes)
}

#[tokio::test]
async fn the_same_handlers_need_no_more_writes() -> TestResult {
    let (kopf, ours) = (
        writes(Implementation::Kopf).await?,
        writes(Implementation::Ours).await?,
    );

    assert_eq!(
        ours, 5,
        "one for each of three handlers, and one for each of two results"
    );
    assert!(ours <= kopf, "{ours} writes where Kopf makes {kopf}");
    Ok(())
}

/// The number of requests for 10,000 events; Kopf's are counted up to a thousand.
async fn flood(implementation: Implementation) -> Result<usize, TestFailure> {
    let mut run = ScenarioRun::open("flood", implementation).await?;
    run.start().await?;
    run.create("one", json!({"spec": {"size": 1}})).await?;
    match implementation {
        Implementation::Kopf => {
            eventually("Kopf has sent a thousand requests", async || {
                let requests = run.event_requests().await.ok()?;
                (requests >= 1000).then_some(())
            })
            .await?;
        }
        Implementation::Ours => {
            let events: Api<Event> = Api::namespaced(run.sandbox.client(), run.sandbox.namespace());
            eventually("all are counted", async || {
                let events = events.list(&ListParams::default()).await.ok()?.items;
                let counted = events.iter().any(|event| event.count == Some(10_000));
                counted.then_some(())
            })
            .await?;
        }
    }
    run.event_requests().await
}

#[tokio::test]
async fn a_flood_of_events_is_counted_and_not_sent_one_by_one() -> TestResult {
    let (kopf, ours) = (
        flood(Implementation::Kopf).await?,
        flood(Implementation::Ours).await?,
    );
    assert!(kopf >= 1000, "{kopf}");
    assert!(
        ours <= 3,
        "{ours} requests where Kopf makes {kopf} and more"
    );
    Ok(())
}
