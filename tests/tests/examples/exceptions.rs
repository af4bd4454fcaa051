//! `03-exceptions`: each kind of error, until success or the last retry.

use k8s_openapi::api::core::v1::Event;
use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, eventually};
use kube::Api;
use kube::api::ListParams;

use crate::fixture::{EXAMPLE, ExampleFixture, count, is_handled};

#[tokio::test]
async fn each_kind_of_error_is_retried_as_declared() -> TestResult {
    let fixture = ExampleFixture::open("03-exceptions", "exceptions-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let operator = fixture.start()?;
    fixture.apply_object().await?;
    examples
        .wait_until(EXAMPLE, "every handler is done", is_handled)
        .await?;
    for (times, line) in [
        (
            1,
            "Handler 'instant_failure' failed permanently: Fail once and for all.",
        ),
        (
            3,
            "Handler 'eventual_success' failed temporarily: Expected recoverable error.",
        ),
        (1, "Handler 'eventual_success' succeeded."),
        (
            2,
            "Handler 'eventual_failure' failed with an exception and will try again in 1 seconds",
        ),
        (
            1,
            "Handler 'eventual_failure' failed with an exception and will stop now",
        ),
        (
            1,
            "Handler 'instant_failure_of_any_sort' failed with an exception and will stop now",
        ),
        (8, "' failed "),
        // The other one is the login.
        (2, "' succeeded."),
    ] {
        assert_eq!(count(&operator, line), times, "{line}\n{}", operator.log());
    }
    let events: Api<Event> = Api::namespaced(fixture.sandbox.client(), fixture.sandbox.namespace());
    eventually("the failures are posted on the object", async || {
        let posted = events.list(&ListParams::default()).await.ok()?.items;
        let about_it = posted
            .iter()
            .filter(|it| it.involved_object.name.as_deref() == Some(EXAMPLE));
        let failures: i32 = about_it
            .filter(|it| {
                it.message
                    .as_deref()
                    .is_some_and(|it| it.contains("' failed "))
            })
            // Repeated events are counted, not posted again.
            .map(|it| it.count.unwrap_or(1))
            .sum();
        (failures == 8).then_some(())
    })
    .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
