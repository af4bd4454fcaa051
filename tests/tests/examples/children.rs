//! `02-children`: a Pod for each object, deleted with the object.

use kopf_tests::child_process::Ending;
use kopf_tests::{TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;

use crate::fixture::{EXAMPLE, ExampleFixture, is_handled};

#[tokio::test]
async fn a_pod_is_created_for_an_object_and_garbage_collected_with_it() -> TestResult {
    let fixture = ExampleFixture::open("02-children", "children-operator").await?;
    let examples = fixture.kopf_examples().await?;
    let pods = fixture.sandbox.objects("v1", "Pod").await?;
    let operator = fixture.start()?;

    fixture.apply_object().await?;
    let parent = examples
        .wait_until(EXAMPLE, "it is handled", is_handled)
        .await?;
    let found = pods.api().list(&ListParams::default()).await?.items;
    let [pod] = found.as_slice() else {
        panic!("one Pod is made, not {found:#?}");
    };
    assert_eq!(pod.name_any(), EXAMPLE);
    assert_eq!(pod.labels()["somelabel"], "somevalue");
    assert_eq!(
        pod.owner_references()[0].uid,
        parent.uid().unwrap_or_default()
    );
    let container = &pod.data["spec"]["containers"][0];
    assert_eq!(container["args"][0], "echo FIELD=$FIELD; sleep 1m");
    assert_eq!(container["env"][0]["value"], "value");
    assert_eq!(
        parent.data["status"]["create_fn"]["children"],
        json!([pod.uid()])
    );

    examples.delete(EXAMPLE).await?;
    eventually("the Pod is garbage-collected", async || {
        let left = pods.api().list(&ListParams::default()).await.ok()?;
        left.items.is_empty().then_some(())
    })
    .await?;
    assert_eq!(operator.terminate().await?, Ending::Exit(0));
    Ok(())
}
