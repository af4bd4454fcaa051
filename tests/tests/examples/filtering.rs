//! `11-filtering`: handlers are called exactly for the objects that match their filters.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, is_handled, is_handled_with, lines_with};

#[tokio::test]
async fn handlers_are_called_for_objects_that_match_their_filters() -> TestResult {
    let fixture = ExampleFixture::open("11-filtering", "filtering-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "its creation is handled", is_handled)
        .await?;
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "changed"}}))
        .await?;
    examples
        .wait_until(EXAMPLE, "the change is handled", |it| {
            is_handled_with(it, "changed")
        })
        .await?;
    let all = ["Label is", "Annotation is", "Object ", "Field "];
    assert_eq!(
        lines_with(&operator, &all),
        [
            "Label is matching.",
            "Label is present.",
            "Label is absent.",
            "Label is accepted by the predicate.",
            "Annotation is matching.",
            "Annotation is present.",
            "Annotation is absent.",
            "Annotation is accepted by the predicate.",
            "Object is accepted by the condition.",
            "Field value is satisfied.",
            "Field change is satisfied.",
        ]
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));

    // Present, but with other values.
    let operator = fixture.start()?;
    let metadata = json!({
        "labels": {"somelabel": "else", "otherlabel": "x"},
        "annotations": {"otherannotation": "x"},
    });
    examples
        .create("two", json!({"metadata": metadata, "spec": {"items": []}}))
        .await?;
    examples
        .wait_until("two", "it is handled", is_handled)
        .await?;
    assert_eq!(
        lines_with(&operator, &all),
        ["Label is present.", "Object has items."]
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
