//! `17-admission`: numbers are checked, converted and completed before they are stored.

use kopf_tests::child_process::Ending;
use kopf_tests::sandbox::eventually;
use kopf_tests::{Objects, TestResult};
use serde_json::{Value, json};

use crate::fixture::{EXAMPLE, ExampleFixture};

#[tokio::test]
async fn numbers_are_checked_converted_and_completed_before_they_are_stored() -> TestResult {
    let fixture = ExampleFixture::open("17-admission", "admission-operator").await?;
    let lists = fixture.sandbox.objects("kopf.dev/v1", "NumberList").await?;
    let operator = fixture.start()?;
    operator
        .wait_for_log("the webhooks are configured in")
        .await?;
    let number = |it: &Value| it.as_f64().unwrap_or(f64::NAN);
    let stored = async |name: &str| -> Result<Vec<f64>, kopf_tests::TestFailure> {
        let list = lists.get(name).await?;
        let numbers = list.data["spec"]["numbers"].as_array().cloned();
        Ok(numbers.unwrap_or_default().iter().map(number).collect())
    };
    eventually("the API server calls the webhooks", async || {
        let made = lists.create("probe", json!({"spec": {}})).await.ok()?;
        lists.delete("probe").await.ok()?;
        (made.data["spec"]["numbers"] == json!([1, 2, 3])).then_some(())
    })
    .await?;

    fixture.apply_object().await?;
    assert_eq!(stored(EXAMPLE).await?, [1.0, 2.5, 99.0]);
    lists.create("default", json!({"spec": {}})).await?;
    assert_eq!(stored("default").await?, [1.0, 2.0, 3.0]);

    let range = (499, "Numbers must be in 0..100.");
    let list = (403, "Numbers must be a list if present.");
    let text = (403, "Cannot convert \"many\" to a number.");
    for (numbers, expected) in [
        (json!([101]), range),
        (json!(["-1"]), range),
        (json!("many"), list),
        (json!(["many"]), text),
    ] {
        let (code, message) = rejection(&lists, numbers).await;
        assert_eq!(code, expected.0, "{message}");
        assert!(message.ends_with(expected.1), "{message}");
    }
    assert_eq!(stored(EXAMPLE).await?, [1.0, 2.5, 99.0]);

    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    eventually(
        "everything passes after the operator has stopped",
        async || {
            let anything = json!({"spec": {"numbers": "many"}});
            lists.merge(EXAMPLE, anything).await.ok()
        },
    )
    .await?;
    Ok(())
}

/// The code and message with which the API server rejects these numbers.
async fn rejection(lists: &Objects, numbers: Value) -> (u16, String) {
    match lists
        .merge(EXAMPLE, json!({"spec": {"numbers": numbers}}))
        .await
    {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{numbers} is not rejected: {other:?}"),
    }
}
