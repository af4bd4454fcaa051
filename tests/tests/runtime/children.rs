//! Children: adopted by the handled object, and deleted with it.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::hierarchy::{Adoption, Naming};
use kopf_runtime::{ChangeHandler, On};
use kopf_tests::TestResult;
use kube::Api;
use serde_json::json;

use crate::fixture::HandlerFixture;

#[tokio::test]
async fn an_adopted_child_is_deleted_with_its_owner() -> TestResult {
    let mut fixture = HandlerFixture::new("children").await?;
    fixture.script_async("create_fn", |cx| {
        let mut child = ConfigMap::default();
        let strict = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        let adopted = cx.adopt_as(&mut child, &strict);
        let client = cx.client().clone();
        async move {
            adopted?;
            let namespace = child.metadata.namespace.clone().unwrap_or_default();
            let children: Api<ConfigMap> = Api::namespaced(client, &namespace);
            children.create(&Default::default(), &child).await?;
            Ok(())
        }
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    let body = json!({"metadata": {"labels": {"tier": "gold"}}, "spec": {"size": 1}});
    fixture.objects.create("one", body).await?;
    fixture.wait_until_handled("one", 1).await?;
    let children = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let child = children.get("one").await?;
    assert_eq!(
        child.metadata.labels,
        Some([("tier".to_owned(), "gold".to_owned())].into())
    );
    fixture.objects.delete("one").await?;
    children.wait_gone("one").await?;
    operator.stop().await
}
