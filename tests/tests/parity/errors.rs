//! Handlers that fail, and the progress that they leave on objects.

use kopf_tests::TestResult;
use serde_json::json;

use crate::scenario::{compare, waits_after};

#[tokio::test]
async fn a_temporary_error_is_retried_after_its_delay_until_success() -> TestResult {
    compare("temporary_error", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note(
            "one",
            "after the first attempt",
            waits_after("create_fn", 1),
        )
        .await?;
        run.note(
            "one",
            "after the second attempt",
            waits_after("create_fn", 2),
        )
        .await?;
        run.note_results("one", &["create_fn"]).await
    })
    .await
}

#[tokio::test]
async fn a_permanent_error_ends_one_handler_and_not_the_others() -> TestResult {
    compare("permanent_error", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "failed for good", |it| {
            let annotations = it.metadata.annotations.as_ref();
            annotations.is_some_and(|it| {
                it.get("kopf.zalando.org/create_fn")
                    .is_some_and(|it| it.contains(r#""failure":true"#))
            })
        })
        .await?;
        run.note_results("one", &["create_other"]).await
    })
    .await
}

#[tokio::test]
async fn an_arbitrary_error_is_retried_permanent_or_ignored_as_declared() -> TestResult {
    compare("arbitrary_error", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "retried waits", |it| {
            let annotations = it.metadata.annotations.as_ref();
            waits_after("retried", 1)(it)
                && annotations.is_some_and(|it| {
                    it.get("kopf.zalando.org/ignored")
                        .is_some_and(|it| it.contains(r#""success":true"#))
                })
        })
        .await?;
        run.note_settled("one").await
    })
    .await
}

#[tokio::test]
async fn attempts_end_when_retries_or_timeout_are_exceeded() -> TestResult {
    compare("limits", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note_settled("one").await
    })
    .await
}

#[tokio::test]
async fn a_deletion_supersedes_an_unfinished_creation() -> TestResult {
    compare("superseded", async |run| {
        run.start().await?;
        run.create("one", json!({"spec": {"size": 1}})).await?;
        run.note("one", "creation waits", waits_after("create_fn", 1))
            .await?;
        run.widgets.delete("one").await?;
        run.note("one", "deletion waits", waits_after("delete_fn", 1))
            .await?;
        run.note_gone("one").await
    })
    .await
}
