//! Tests of the helpers, on a control plane that starts by itself.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier, Mutex, OnceLock};
use std::thread;

use k8s_openapi::api::core::v1::Namespace;
use kopf_runtime::admission::{Server, Webhooks};
use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, On, Operator, PeeringSettings, Resource, ResourceSpec, Scope, StatusSubresource,
    WebhookHandler,
};
use kopf_testing::{TestResult, on_cluster};
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

/// The namespaces whose objects a webhook has reviewed.
#[derive(Default)]
struct ReviewedNamespaces(Mutex<Vec<String>>);

fn operator_with_webhook(reviewed: &Arc<ReviewedNamespaces>) -> Operator {
    let resource = Resource::<Value, ReviewedNamespaces>::new(CONFIG_MAPS, reviewed);
    let resource = resource.validate(
        WebhookHandler::new("note"),
        |reviewed, cx: &mut ValidationContext<Value>| {
            Box::pin(async move {
                let namespace = cx.namespace().unwrap_or_default().to_owned();
                reviewed.0.lock().expect("no thread panics").push(namespace);
                Ok(())
            })
        },
    );
    let webhooks = Webhooks::default()
        .managed("replaced-by-the-test")
        .server(Server::local("localhost"));
    Operator::new("reviewing")
        .peering(PeeringSettings::standalone())
        .webhooks(webhooks)
        .resource(resource.build())
}

#[test]
fn tests_in_parallel_have_webhooks_of_their_own() {
    let both_run = Barrier::new(2);
    let test = || {
        on_cluster(async |cluster| {
            let reviewed = Arc::default();
            let started = cluster.start(operator_with_webhook(&reviewed)).await;
            // Also after a failure, for which the other test must not wait.
            tokio::task::block_in_place(|| both_run.wait());
            let operator = started?;
            let maps = cluster.objects("v1", "ConfigMap", "configmaps");
            let seen = || reviewed.0.lock().expect("no thread panics").clone();
            cluster
                .eventually("the webhook is called", async || {
                    maps.create("map", json!({"data": {"a": "b"}})).await?;
                    maps.delete("map").await?;
                    Ok((!seen().is_empty()).then_some(()))
                })
                .await?;
            tokio::task::block_in_place(|| both_run.wait());
            let own = cluster.namespace();
            assert!(seen().iter().all(|it| it == own), "{own}: {:?}", seen());
            operator.stop().await
        })
    };
    thread::scope(|threads| {
        let tests = [threads.spawn(test), threads.spawn(test)];
        for test in tests {
            test.join()
                .expect("no test panics")
                .expect("each test passes");
        }
    });
}
