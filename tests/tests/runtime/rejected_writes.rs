//! Writes that the API server forbids, and writes that change nothing.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use kopf_runtime::{
    ChangeHandler, DaemonHandler, HandlerError, LeaderElectionSettings, On, Operator,
    ResourceHandlers, Settings, TextTest,
};
use kopf_tests::{
    Fault, FaultProxy, RequestMatch, TestFailure, TestResult, eventually, try_eventually,
};
use kube::ResourceExt as _;
use serde_json::json;

use crate::fixture::{HandlerFixture, records};

/// Makes the API server answer 403 to updates of the object `denied` for which this CEL expression
/// is false, and waits until it does. The test is over before it is deleted with the sandbox.
async fn forbid_unless(fixture: &HandlerFixture, expression: &str) -> TestResult {
    let policy = format!(
        "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {{name: $NAMESPACE}}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {{apiGroups: [$GROUP], apiVersions: [v1], operations: [UPDATE], resources: [widgets]}}
  validations:
    - expression: >-
        object.metadata.name != 'denied' || {expression}
      message: not on my watch
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {{name: $NAMESPACE}}
spec: {{policyName: $NAMESPACE, validationActions: [Deny]}}
"
    );
    fixture.sandbox.apply(&policy).await?;
    fixture
        .objects
        .create("denied", json!({"spec": {"size": 0}}))
        .await?;
    let edit = json!({"metadata": {
        "labels": {"forbidden": "yes"},
        "annotations": {"kopf.zalando.org/try": "it"},
    }});
    try_eventually("the policy is in force", async || {
        let error = fixture.objects.merge("denied", edit.clone()).await.err();
        Ok(error.map(|error| error.to_string()))
    })
    .await?;
    // What was written before the policy was in force must not look like progress.
    fixture.objects.delete("denied").await?;
    fixture.objects.wait_gone("denied").await?;
    let fresh = json!({"spec": {"size": 0}});
    fixture.objects.create("denied", fresh).await?;
    Ok(())
}

async fn events_with(fixture: &HandlerFixture, part: &str) -> Result<Vec<String>, kube::Error> {
    let events = fixture.sandbox.objects("v1", "Event").await;
    let events = events.expect("events are served");
    let all = events.api().list(&Default::default()).await?;
    Ok(all
        .into_iter()
        .filter_map(|event| event.data["message"].as_str().map(str::to_owned))
        .filter(|message| message.contains(part))
        .collect())
}

#[tokio::test]
async fn a_patch_that_changes_nothing_succeeds_at_every_start() -> TestResult {
    let mut fixture = HandlerFixture::new("unchanged").await?;
    let sync = ChangeHandler::new("sync", On::create().or(On::resume()));
    fixture.script("sync", |cx| {
        if cx.name().starts_with("slow") && cx.retry() == 0 {
            return Err(HandlerError::temporary_after(
                Duration::from_secs(2),
                "later",
            ));
        }
        cx.patch().label("synced", "yes");
        cx.patch().status(json!({"phase": "Ready"}));
        Ok(())
    });
    for start in 1..=3 {
        let handlers = fixture.handlers([sync.clone()]);
        let operator = fixture.start(handlers).await?;
        if start == 1 {
            fixture.create("one", 1).await?;
        }
        while fixture.next_call().await.object != "one" {}
        // An object that is created now is handled after the other one is settled.
        let later = format!("later-{start}");
        fixture.create(&later, 2).await?;
        fixture.wait_until_handled(&later, 2).await?;
        // A call that is repeated comes after a second; this object is handled after two.
        let slow = format!("slow-{start}");
        fixture.create(&slow, 3).await?;
        fixture.wait_until_handled(&slow, 3).await?;
        let one = fixture.wait_until_handled("one", 1).await?;
        assert_eq!(one.data["status"]["phase"], "Ready");
        assert_eq!(one.labels()["synced"], "yes");
        operator.stop().await?;
        let again: Vec<_> = fixture
            .calls_so_far()
            .into_iter()
            .filter(|call| call.object == "one")
            .collect();
        assert!(again.is_empty(), "start {start}: {again:?}");
    }
    assert!(events_with(&fixture, "has not changed").await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn a_forbidden_patch_of_a_handler_fails_its_attempt_with_the_reason() -> TestResult {
    let mut fixture = HandlerFixture::new("forbidden-patch").await?;
    forbid_unless(&fixture, "!has(object.metadata.labels)").await?;
    fixture.script("create_fn", |cx| {
        if cx.retry() == 0 {
            cx.patch().label("forbidden", "yes");
        }
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).backoff(Duration::from_secs(1));
    let handlers = fixture.handlers([handler]);
    let operator = fixture.start(handlers).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    let version = format!("{}/v1", fixture.sandbox.group());
    let widgets = fixture.sandbox.objects(&version, "Widget").await?;
    let failed = widgets
        .within(Duration::from_secs(120))
        .wait_until("denied", "the attempt has failed", |it| {
            records(it)
                .get("create_fn")
                .is_some_and(|record| record["retries"] == 1)
        })
        .await?;
    let message = records(&failed)["create_fn"]["message"].to_string();
    assert!(message.contains("not on my watch"), "{message}");
    assert_eq!(fixture.next_call().await.retry, 1);
    fixture.wait_until_handled("denied", 0).await?;
    operator.stop().await
}

#[tokio::test]
async fn forbidden_progress_is_kept_and_no_worker_waits_for_it() -> TestResult {
    let mut fixture = HandlerFixture::new("forbidden-record").await?;
    forbid_unless(&fixture, "!has(object.metadata.annotations)").await?;
    let mut settings = Settings::default();
    // If the only worker waited, nothing else would run.
    settings.queueing.worker_limit = Some(1);
    let resource = create_handler(&fixture);
    let operator = fixture.start_with(resource, settings).await?;
    assert_eq!(fixture.next_call().await.object, "denied");
    eventually("the reason is posted", async || {
        let events = events_with(&fixture, "not on my watch").await.ok()?;
        (!events.is_empty()).then_some(())
    })
    .await?;
    fixture.create("fine", 1).await?;
    fixture.wait_until_handled("fine", 1).await?;
    assert_eq!(fixture.next_call().await.object, "fine");
    let bindings = fixture
        .sandbox
        .objects(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
        )
        .await?;
    bindings.delete(fixture.sandbox.namespace()).await?;
    fixture.wait_until_handled("denied", 0).await?;
    let again = fixture.calls_so_far();
    assert!(again.is_empty(), "the handler is not repeated: {again:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_stop_does_not_wait_for_a_forbidden_patch() -> TestResult {
    let mut fixture = HandlerFixture::new("forbidden-stop").await?;
    forbid_unless(
        &fixture,
        "(!has(object.metadata.labels) && !has(object.metadata.annotations))",
    )
    .await?;
    fixture.script("create_fn", |cx| {
        cx.patch().label("forbidden", "yes");
        Ok(())
    });
    let handlers = create_handler(&fixture);
    let operator = fixture.start(handlers).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    let user = operator.user.clone();
    eventually("the patch is sent", async || {
        let requests = fixture.sandbox.requests_of(&user).await.ok()?;
        let mut patches = requests.iter().filter(|request| request.verb == "patch");
        patches.next().map(|_| ())
    })
    .await?;
    let begun = Instant::now();
    operator.stop().await?;
    let took = begun.elapsed();
    let grace = Settings::default().shutdown.grace;
    assert!(took < grace, "the stop took {took:?}");
    Ok(())
}

#[tokio::test]
async fn a_missing_namespace_of_the_lease_is_asked_for_seldom_until_it_exists() -> TestResult {
    let mut fixture = HandlerFixture::new("no-namespace").await?;
    let namespace = format!("{}-lease", fixture.sandbox.namespace());
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator =
        Operator::new("fixture")
            .resource(handlers)
            .leader_election(LeaderElectionSettings {
                namespace: Some(namespace.clone()),
                ..LeaderElectionSettings::default()
            });
    let begun = Instant::now();
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 1).await?;
    let user = operator.user.clone();
    let attempts = async || -> Result<usize, TestFailure> {
        let requests = fixture.sandbox.requests_of(&user).await?;
        let leases = requests.iter().filter(|request| {
            request.verb == "create" && request.resource.as_deref() == Some("leases")
        });
        Ok(leases.count())
    };
    try_eventually("the lease was asked for three times", async || {
        Ok((attempts().await? >= 3).then_some(()))
    })
    .await?;
    assert!(
        begun.elapsed() >= Duration::from_secs(3),
        "the pauses are at least two seconds each"
    );
    let text = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {namespace}}}\n");
    fixture.sandbox.apply(&text).await?;
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await?;
    let namespaces = fixture.sandbox.objects("v1", "Namespace").await?;
    namespaces.delete(&namespace).await?;
    Ok(())
}

fn create_handler(fixture: &HandlerFixture) -> ResourceHandlers {
    fixture.handlers([ChangeHandler::new("create_fn", On::create())])
}

#[tokio::test]
async fn an_object_whose_progress_is_rejected_can_still_be_deleted() -> TestResult {
    let mut fixture = HandlerFixture::new("rejected-deletion").await?;
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("delete_fn", On::delete()),
    ]);
    let operator = fixture.start(handlers).await?;
    // No other annotation fits beside this one.
    let full = json!({"metadata": {"annotations": {"x": "y".repeat(256 * 1024 - 1)}}});
    fixture.objects.create("full", full).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    try_eventually("the progress is rejected", async || {
        let events = events_with(&fixture, "rejects the progress").await?;
        Ok((!events.is_empty()).then_some(()))
    })
    .await?;
    fixture.objects.delete("full").await?;
    assert_eq!(fixture.next_call().await.handler, "delete_fn");
    fixture.objects.wait_gone("full").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_patch_that_the_server_does_not_support_fails_its_attempt() -> TestResult {
    let mut fixture = HandlerFixture::new("unsupported").await?;
    fixture.script("create_fn", |cx| {
        if cx.retry() == 0 {
            cx.patch().label("unsupported", "yes");
        }
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).backoff(Duration::from_secs(1));
    let handlers = fixture.handlers([handler]);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    let patches = RequestMatch::any().method(Method::PATCH).path("/widgets/");
    proxy.once(
        patches.clone(),
        Fault::Answer(StatusCode::UNSUPPORTED_MEDIA_TYPE),
    );
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    assert_eq!(fixture.next_call().await.retry, 1);
    let one = fixture.wait_until_handled("one", 1).await?;
    assert!(one.labels().is_empty(), "{:?}", one.labels());
    // A stop does not wait for progress that is rejected in this way.
    proxy.always(patches, Fault::Answer(StatusCode::METHOD_NOT_ALLOWED));
    fixture.create("two", 2).await?;
    assert_eq!(fixture.next_call().await.object, "two");
    try_eventually("the rejection is reported", async || {
        let events = events_with(&fixture, "rejects the progress").await?;
        Ok((!events.is_empty()).then_some(()))
    })
    .await?;
    let begun = Instant::now();
    operator.stop().await?;
    let took = begun.elapsed();
    let grace = Settings::default().shutdown.grace;
    assert!(took < grace, "the stop took {took:?}");
    Ok(())
}

#[tokio::test]
async fn daemons_follow_their_filters_while_progress_is_rejected() -> TestResult {
    let mut fixture = HandlerFixture::new("rejected-daemon").await?;
    forbid_unless(&fixture, "!has(object.metadata.annotations)").await?;
    let labels = json!({"metadata": {"labels": {"on": "yes"}}});
    fixture.objects.merge("denied", labels).await?;
    let daemon = DaemonHandler::new("watch").label("on", TextTest::Present);
    let resource = fixture
        .resource()
        .change(
            ChangeHandler::new("create_fn", On::create()),
            |scripts, cx| Box::pin(scripts.run(cx)),
        )
        .daemon(daemon, |scripts, cx| {
            Box::pin(async {
                scripts.report("it starts".to_owned());
                cx.stop().wait().await;
                scripts.report("it stops".to_owned());
                Ok(())
            })
        });
    let operator = fixture.start(resource.build()).await?;
    assert_eq!(fixture.next_report().await, "it starts");
    assert_eq!(fixture.next_call().await.object, "denied");
    try_eventually("the progress is rejected", async || {
        let events = events_with(&fixture, "not on my watch").await?;
        Ok((!events.is_empty()).then_some(()))
    })
    .await?;
    let labels = json!({"metadata": {"labels": {"on": null}}});
    fixture.objects.merge("denied", labels).await?;
    assert_eq!(fixture.next_report().await, "it stops");
    operator.stop().await
}

#[tokio::test]
async fn an_object_that_may_not_be_got_is_listed_after_a_conflict() -> TestResult {
    let mut fixture = HandlerFixture::new("unread").await?;
    fixture.script("create_fn", |cx| {
        cx.patch().label("synced", "yes");
        Ok(())
    });
    let user = fixture.sandbox.user("unread");
    fixture
        .sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: unread}}
rules: [{{apiGroups: [$GROUP], resources: [widgets], verbs: [list, watch, patch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: unread}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: unread}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;
    let proxy = FaultProxy::start(fixture.sandbox.control_plane(), &user).await?;
    let patches = RequestMatch::any().method(Method::PATCH).path("/widgets/");
    proxy.once(patches, Fault::Answer(StatusCode::CONFLICT));
    let create = ChangeHandler::new("create_fn", On::create());
    let operator = Operator::new("fixture").resource(fixture.handlers([create]));
    let operator = fixture.run(operator, proxy.client().await?, user);
    fixture.create("one", 1).await?;
    fixture.next_call().await;
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.labels()["synced"], "yes");
    operator.stop().await?;

    let requests = proxy.requests().into_iter();
    let of_one =
        requests.filter(|it| it.uri.contains("/widgets/one") || it.uri.contains("name%3Done"));
    let statuses: Vec<_> = of_one
        .map(|it| (it.method, it.status.map(|it| it.as_u16())))
        .collect();
    let expected = [
        (Method::PATCH, Some(409)),
        (Method::GET, Some(403)),
        (Method::GET, Some(200)),
        (Method::PATCH, Some(200)),
        // The label of the handler changes the last handled state.
        (Method::PATCH, Some(200)),
    ];
    assert_eq!(statuses, expected);
    assert_eq!(fixture.calls_so_far(), []);
    Ok(())
}
