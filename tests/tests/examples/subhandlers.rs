//! `07-subhandlers`: one sub-handler for each item, each recorded on its own.

use kopf_tests::TestResult;
use kopf_tests::child_process::Ending;

use crate::fixture::{EXAMPLE, ExampleFixture, count, is_handled};

#[tokio::test]
async fn every_item_is_handled_once_by_a_sub_handler() -> TestResult {
    let fixture = ExampleFixture::open("07-subhandlers", "subhandlers-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "all items are handled", is_handled)
        .await?;
    for line in [
        "=== Handling creation for item1. ===",
        "=== Handling creation for item2. ===",
        "=== Handling creation for item3. ===",
        "Handler 'create_fn/item2' succeeded.",
        "Handler 'create_fn' succeeded.",
    ] {
        assert_eq!(count(&operator, line), 1, "{line}\n{}", operator.log());
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
