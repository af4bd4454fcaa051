//! Tests of `kopf_runtime::testing`, on the cluster that `KUBECONFIG` names.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use k8s_openapi::api::core::v1::Namespace;
use kopf_runtime::prelude::*;
use kopf_runtime::testing::{TestResult, on_cluster};
use kopf_runtime::{
    ChangeHandler, On, Operator, PeeringSettings, Resource, ResourceSpec, Scope, StatusSubresource,
};
use kube::Api;

const CONFIG_MAPS: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// An operator that logs the names of created objects.
fn operator() -> Operator {
    let handler = ChangeHandler::new("greet", On::create());
    let resource = Resource::<Value, ()>::new(CONFIG_MAPS, &Arc::new(()));
    let resource = resource.change(handler, |(), cx| {
        Box::pin(async move {
            info!("welcome, {}", cx.name());
            Ok(())
        })
    });
    Operator::new("testing")
        .peering(PeeringSettings::standalone())
        .resource(resource.build())
}

#[test]
fn an_operator_in_the_test_program_gets_ready_logs_and_stops() -> TestResult {
    on_cluster(async |cluster| {
        let maps = cluster.objects("v1", "ConfigMap", "configmaps");
        let operator = cluster.start(operator()).await?;
        maps.create("first", json!({"data": {"a": "b"}})).await?;
        let line = operator.wait_for_log("welcome, first").await?;
        assert!(operator.log().contains(&line));
        operator.stop().await?;

        let again = cluster.start(self::operator()).await?;
        assert!(
            !again.log().contains("welcome, first"),
            "the log of an earlier operator"
        );
        maps.create("second", json!({"data": {"a": "b"}})).await?;
        again.wait_for_log("welcome, second").await?;
        again.stop().await
    })
}

#[test]
fn the_namespace_of_a_test_that_panics_is_deleted() -> TestResult {
    let namespace = OnceLock::new();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        on_cluster(async |cluster| {
            namespace.get_or_init(|| cluster.namespace().to_owned());
            let _operator = cluster.start(operator()).await?;
            panic!("as expected");
        })
    }));
    let panic = panicked.expect_err("the panic of the test is passed on");
    assert_eq!(panic.downcast_ref(), Some(&"as expected"));
    let namespace = namespace.get().expect("the test has begun");
    on_cluster(async |cluster| {
        let namespaces: Api<Namespace> = Api::all(cluster.client());
        let left = namespaces.get_opt(namespace).await?;
        let stays = left.is_some_and(|it| it.metadata.deletion_timestamp.is_none());
        assert!(!stays, "{namespace} still exists");
        Ok(())
    })
}
