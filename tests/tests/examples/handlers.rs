//! `05-handlers`: several handlers for each cause, in order, and one for a field.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, is_handled, is_handled_with, lines_with};

const MARKERS: [&str; 5] = ["CREATED", "UPDATED", "FIELD CHANGED", "RESUMED", "DELETED"];

#[tokio::test]
async fn handlers_are_called_in_order_and_field_handlers_get_old_and_new_values() -> TestResult {
    let fixture = ExampleFixture::open("05-handlers", "handlers-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "its creation is handled", is_handled)
        .await?;
    let duration = json!({"spec": {"duration": "2m"}});
    examples.merge(EXAMPLE, duration).await?;
    examples
        .wait_until(EXAMPLE, "the first change is handled", |it| {
            is_handled_with(it, "2m")
        })
        .await?;
    examples
        .merge(EXAMPLE, json!({"spec": {"field": "changed"}}))
        .await?;
    examples
        .wait_until(EXAMPLE, "the second change is handled", |it| {
            is_handled_with(it, "changed")
        })
        .await?;
    assert_eq!(
        lines_with(&operator, &MARKERS),
        [
            "CREATED 1st: kopf-example-1",
            "CREATED 2nd: kopf-example-1",
            r#"FIELD CHANGED: Absent -> Some("value")"#,
            r#"UPDATED change spec.duration: "1m" -> "2m""#,
            r#"UPDATED change spec.field: "value" -> "changed""#,
            r#"FIELD CHANGED: Known("value") -> Some("changed")"#,
        ]
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));

    let operator = fixture.start()?;
    operator.wait_for_log("RESUMED 2nd").await?;
    examples.delete(EXAMPLE).await?;
    examples.wait_gone(EXAMPLE).await?;
    assert_eq!(
        lines_with(&operator, &MARKERS),
        ["RESUMED 1st", "RESUMED 2nd", "DELETED 1st", "DELETED 2nd"]
            .map(|line| format!("{line}: {EXAMPLE}"))
    );
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
