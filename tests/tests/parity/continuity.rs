//! Operators that stop, crash, and continue each other's progress.

use kopf_tests::{TestFailure, TestResult};
use serde_json::json;

use crate::scenario::{Implementation, ScenarioRun, compare, waits_after};
use crate::trace::{Trace, assert_same};

#[tokio::test]
async fn an_object_is_resumed_once_after_a_restart_together_with_its_changes() -> TestResult {
    compare("resume", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_results("one", &["up"]).await?;
        run.stop().await?;
        run.start().await?;
        run.operator().wait_for_log(r#""resume_fn""#).await?;
        run.note_settled("one").await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.note_settled_with("one", 2).await?;
        run.stop().await?;
        run.merge("one", json!({"spec": {"size": 3}})).await?;
        run.start().await?;
        run.note_settled_with("one", 3).await
    })
    .await
}

#[tokio::test]
async fn an_object_created_during_downtime_is_handled_as_a_creation() -> TestResult {
    compare("down", async |run| {
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.start().await?;
        run.note_results("one", &["create_fn"]).await
    })
    .await
}

#[tokio::test]
async fn changes_made_during_downtime_are_handled_as_one_update() -> TestResult {
    compare("down", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1, "text": "a"}}))
            .await?;
        run.note_results("one", &["create_fn"]).await?;
        run.kill().await?;
        run.merge("one", json!({"spec": {"size": 2}})).await?;
        run.merge("one", json!({"spec": {"text": "b"}})).await?;
        run.merge("one", json!({"spec": {"size": 3}})).await?;
        run.start().await?;
        run.note_results("one", &["update_fn"]).await
    })
    .await
}

#[tokio::test]
async fn an_object_deleted_during_downtime_still_runs_its_delete_handlers() -> TestResult {
    compare("down", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_results("one", &["create_fn"]).await?;
        run.kill().await?;
        run.widgets.delete("one").await?;
        run.note("one", "held", |it| it.metadata.deletion_timestamp.is_some())
            .await?;
        run.start().await?;
        run.note_gone("one").await
    })
    .await
}

#[tokio::test]
async fn an_object_that_is_released_by_hand_during_downtime_is_gone_without_its_handlers()
-> TestResult {
    compare("down", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_results("one", &["create_fn"]).await?;
        run.kill().await?;
        run.widgets.delete("one").await?;
        run.merge("one", json!({"metadata": {"finalizers": null}}))
            .await?;
        run.note_gone("one").await?;
        run.start().await?;
        run.create("two", json!({"spec": {"size": 2}})).await?;
        run.note_results("two", &["create_fn"]).await
    })
    .await
}

#[tokio::test]
async fn an_object_in_deletion_is_resumed_only_by_handlers_declared_for_it() -> TestResult {
    compare("resume_deleted", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_settled("one").await?;
        run.kill().await?;
        run.widgets.delete("one").await?;
        run.start().await?;
        run.note_gone("one").await
    })
    .await
}

#[tokio::test]
async fn progress_in_the_status_of_old_versions_is_continued_and_removed() -> TestResult {
    compare("takeover", async |run| {
        run.create("one", json!({"spec": {"size": 1}})).await?;
        let record = |retries: u32, success: bool| {
            json!({
                "started": "2020-01-01T00:00:00.000000+00:00",
                "stopped": success.then_some("2020-01-01T00:00:01.000000+00:00"),
                "delayed": null,
                "purpose": "create",
                "retries": retries,
                "success": success,
                "failure": false,
                "message": null,
                "subrefs": null,
            })
        };
        let progress = json!({"first": record(1, true), "second": record(1, false)});
        run.widgets
            .merge_status("one", json!({"kopf": {"progress": progress}}))
            .await?;
        run.start().await?;
        run.note_results("one", &["second"]).await
    })
    .await
}

/// Runs the first half of a creation, an update and a deletion on one implementation, the rest on the other.
async fn take_over(
    first: Implementation,
    second: Implementation,
) -> Result<(Trace, ScenarioRun), TestFailure> {
    let mut run = ScenarioRun::open("takeover", second).await?;
    for waiting in ["second", "update_second", "delete_second"] {
        run.start_as(first).await?;
        match waiting {
            "second" => run.create("one", json!({"spec": {"size": 1}})).await?,
            "update_second" => run.merge("one", json!({"spec": {"size": 2}})).await?,
            _ => run.widgets.delete("one").await?,
        }
        run.note("one", waiting, waits_after(waiting, 1)).await?;
        run.kill().await?;
        run.start_as(second).await?;
        match waiting {
            "second" => run.note_results("one", &["first", "second"]).await?,
            "update_second" => run.note_settled_with("one", 2).await?,
            _ => run.note_gone("one").await?,
        }
        run.stop().await?;
    }
    let mut trace = run.trace().await?;
    // The event of the last failure may or may not be posted before the end.
    trace.events.clear();
    Ok((trace, run))
}

/// The handlers called, with their number of earlier attempts.
fn attempts(trace: &Trace) -> Vec<(&str, u64)> {
    trace
        .calls
        .iter()
        .filter_map(|call| Some((call["handler"].as_str()?, call["retry"].as_u64()?)))
        .collect()
}

#[tokio::test]
async fn each_implementation_continues_the_progress_of_the_other_without_repeating_a_success()
-> TestResult {
    let ((python, _kept), (to_ours, _too), (to_kopf, _as_well)) = tokio::try_join!(
        take_over(Implementation::Kopf, Implementation::Kopf),
        take_over(Implementation::Kopf, Implementation::Ours),
        take_over(Implementation::Ours, Implementation::Kopf),
    )?;

    let each_once = [
        "first",
        "second",
        "update_first",
        "update_second",
        "delete_first",
        "delete_second",
    ];
    let expected: Vec<(&str, u64)> = each_once
        .into_iter()
        .flat_map(|handler| {
            let again = handler.ends_with("second").then_some((handler, 1));
            [(handler, 0)].into_iter().chain(again)
        })
        .collect();
    assert_eq!(attempts(&to_ours), expected, "Kopf first, ours second");
    assert_eq!(attempts(&to_kopf), expected, "ours first, Kopf second");
    for (title, trace) in [("Kopf to ours", &to_ours), ("ours to Kopf", &to_kopf)] {
        assert_same(title, &python, trace);
    }
    Ok(())
}
