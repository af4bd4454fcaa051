//! Faults of a private control plane: kills, pauses, compaction, request limits.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use kopf_tests::{Component, Objects, PrivateControlPlane, Sandbox, TestResult, eventually};
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::timeout;

use super::code;

#[tokio::test]
async fn after_compaction_an_old_watch_gets_410_and_a_new_list_works() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "compaction").await?;
    let widgets = sandbox.define("Widget").await?;
    let created = widgets.create("one", json!({"spec": {"size": 1}})).await?;
    let old = created.metadata.resource_version.unwrap_or_default();
    widgets.merge("one", json!({"spec": {"size": 2}})).await?;

    plane.expire_resource_versions().await?;

    let mut events = eventually("the definition is served again", async || {
        widgets
            .api()
            .watch(&WatchParams::default(), &old)
            .await
            .ok()
    })
    .await?
    .boxed();
    let answer = match events.try_next().await? {
        Some(WatchEvent::Error(status)) => status.code,
        other => {
            return Err(kopf_tests::TestFailure::new(format!(
                "no error but {other:?}"
            )));
        }
    };
    assert_eq!(answer, 410);
    let list = widgets.api().list(&ListParams::default()).await?;
    assert_eq!(list.items[0].data["spec"]["size"], 2);
    let fresh = list.metadata.resource_version.unwrap_or_default();
    let mut events = widgets
        .api()
        .watch(&WatchParams::default(), &fresh)
        .await?
        .boxed();
    widgets.merge("one", json!({"spec": {"size": 3}})).await?;
    let Some(WatchEvent::Modified(object)) = events.try_next().await? else {
        return Err(kopf_tests::TestFailure::new(
            "the new watch does not see the change",
        ));
    };
    assert_eq!(object.data["spec"]["size"], 3);
    Ok(())
}

#[tokio::test]
async fn objects_and_waits_survive_a_restart_of_the_api_server_and_of_etcd() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "restart").await?;
    let widgets = sandbox.define("Widget").await?;
    widgets.create("one", json!({"spec": {"size": 1}})).await?;
    let waiting = tokio::spawn({
        let widgets = widgets.clone();
        async move {
            widgets
                .wait_until("one", "size is 2", |it| it.data["spec"]["size"] == 2)
                .await
        }
    });

    plane.kill(Component::ApiServer).await?;
    assert!(
        widgets.get("one").await.is_err(),
        "the API server does not answer"
    );
    plane.revive(Component::ApiServer).await?;
    plane.restart(Component::Etcd).await?;

    eventually("the object can be changed again", async || {
        widgets
            .merge("one", json!({"spec": {"size": 2}}))
            .await
            .ok()
    })
    .await?;
    waiting.await??;
    Ok(())
}

#[tokio::test]
async fn a_paused_api_server_does_not_answer_until_it_is_resumed() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "pause").await?;
    let maps = sandbox.objects("v1", "ConfigMap").await?;
    maps.create("one", json!({})).await?;

    plane.pause(Component::ApiServer).await?;
    let mut silent = std::pin::pin!(maps.get("one"));
    let answer = timeout(Duration::from_millis(500), &mut silent).await;
    assert!(answer.is_err(), "a paused server does not answer");
    plane.resume(Component::ApiServer).await?;

    silent.await?;
    Ok(())
}

#[tokio::test]
async fn request_limits_can_be_changed_and_give_429() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "limits").await?;
    // Administrators are exempt from limits.
    sandbox
        .apply(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: flood}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: flooders}]
",
        )
        .await?;
    let client = plane
        .client(&sandbox.user("flooder").in_group("flooders"))
        .await?;
    let maps = sandbox.objects("v1", "ConfigMap").await?.through(&client);
    eventually("the flooder may list", async || {
        maps.api().list(&ListParams::default()).await.ok()
    })
    .await?;
    assert_eq!(
        flood(&maps).await,
        BTreeSet::from([200]),
        "the default limits allow this"
    );

    // Without priority and fairness, requests beyond the limit are rejected at once.
    plane
        .restart_api_server_with(&[
            "--enable-priority-and-fairness=false",
            "--max-requests-inflight=1",
            "--max-mutating-requests-inflight=1",
        ])
        .await?;

    eventually("a request is rejected", async || {
        flood(&maps).await.contains(&429).then_some(())
    })
    .await
}

/// Sends many requests at once; the codes of the responses.
async fn flood(objects: &Objects) -> BTreeSet<u16> {
    let params = ListParams::default();
    let requests = (0..200).map(|_| objects.api().list(&params));
    let answers = futures::future::join_all(requests).await;
    answers
        .into_iter()
        .map(|answer| code(answer).unwrap_or(200))
        .collect()
}
