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
            "Label is matching: kopf-example-1",
            "Label is present: kopf-example-1",
            "Label is absent: kopf-example-1",
            "Label is accepted by the predicate: kopf-example-1",
            "Annotation is matching: kopf-example-1",
            "Annotation is present: kopf-example-1",
            "Annotation is absent: kopf-example-1",
            "Annotation is accepted by the predicate: kopf-example-1",
            "Object is accepted by the condition: kopf-example-1",
            "Field value is satisfied: kopf-example-1",
            "Field change is satisfied: kopf-example-1",
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
        ["Label is present: two", "Object has items: two"]
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
