//! `07-subhandlers`: one sub-handler for each item, each retried on its own.

use kopf_tests::TestResult;
use kopf_tests::operator::Ending;

use crate::stage::{EXAMPLE, Stage, count, is_handled};

#[tokio::test]
async fn every_item_is_handled_until_it_succeeds_and_no_longer() -> TestResult {
    let stage = Stage::open("07-subhandlers", "subhandlers-operator").await?;
    let examples = stage.kopf_examples().await?;
    let operator = stage.start()?;
    stage.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "all items are handled", is_handled)
        .await?;
    for (times, line) in [
        (1, "=== Handling creation for item1. ==="),
        (3, "=== Handling creation for slow-item2. ==="),
        (1, "=== Handling creation for item3. ==="),
        (
            2,
            "Handler 'create_fn/slow-item2' failed temporarily: Not yet.",
        ),
        (1, "Handler 'create_fn/slow-item2' succeeded."),
        (1, "Handler 'create_fn' succeeded."),
    ] {
        assert_eq!(count(&operator, line), times, "{line}\n{}", operator.log());
    }
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
