//! The contents of admission reviews, and the effects of the webhooks' responses.

use http::{Request, header};
use kopf_runtime::{
    AdmissionError, AdmissionResult, FilterContext, Operation, Resource, ResourceSpec, Scope,
    StatusSubresource, TextTest, ValidationContext, ValueTest, WebhookHandler, predicate,
};
use kopf_tests::{TestResult, eventually};
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::fixture::{ReviewRecorder, WebhookFixture, rejection};

#[tokio::test]
async fn a_denial_reaches_the_client_with_its_code() -> TestResult {
    let fixture = WebhookFixture::new("denial").await?;
    let operator = fixture
        .start_and_wait(
            fixture.with_check(WebhookHandler::new("check")),
            fixture.local_server(),
        )
        .await?;

    let status = rejection(
        fixture
            .widgets
            .create("one", json!({"spec": {"deny": "too small"}}))
            .await,
    );
    assert_eq!(status.code, 403);
    let webhook = format!("check.{}", fixture.configuration_name());
    assert_eq!(
        status.message,
        format!("admission webhook \"{webhook}\" denied the request: too small")
    );
    let body = json!({"spec": {"deny": "out of range", "code": 499}});
    assert_eq!(
        rejection(fixture.widgets.create("one", body).await).code,
        499
    );

    for failure in ["fail", "panic"] {
        let status = rejection(
            fixture
                .widgets
                .create("one", json!({"spec": {failure: true}}))
                .await,
        );
        assert_eq!(status.code, 500);
        assert!(
            status.message.contains("webhook `check` failed"),
            "{status:?}"
        );
    }
    fixture
        .widgets
        .create("one", json!({"spec": {"size": 1}}))
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn warnings_are_returned_with_allowed_and_denied_requests() -> TestResult {
    let fixture = WebhookFixture::new("warnings").await?;
    let operator = fixture
        .start_and_wait(
            fixture.with_check(WebhookHandler::new("check")),
            fixture.local_server(),
        )
        .await?;
    for (spec, expected) in [
        (json!({"warn": "worth changing"}), 201),
        (
            json!({"warn": "worth changing", "deny": "no", "code": 400}),
            400,
        ),
    ] {
        let resource = fixture.widgets.resource();
        let uri = format!(
            "/apis/{}/v1/namespaces/{}/widgets",
            fixture.sandbox.group(),
            fixture.sandbox.namespace()
        );
        let body = json!({
            "apiVersion": resource.api_version, "kind": "Widget",
            "metadata": {"name": format!("w{expected}")}, "spec": spec,
        });
        let request = Request::post(uri)
            .header(header::CONTENT_TYPE, "application/json")
            .body(kube::client::Body::from(body.to_string().into_bytes()))?;
        let response = fixture.sandbox.client().send(request).await?;
        assert_eq!(response.status(), expected);
        let warning = response.headers()[header::WARNING].to_str()?;
        assert!(warning.contains("worth changing"), "{warning}");
    }
    operator.stop().await
}

#[tokio::test]
async fn webhooks_get_user_operation_old_and_new_state() -> TestResult {
    let fixture = WebhookFixture::new("facts").await?;
    let operator = fixture
        .start_and_wait(
            fixture.with_check(WebhookHandler::new("check")),
            fixture.local_server(),
        )
        .await?;
    let user = fixture.sandbox.client_user().name().to_owned();

    fixture
        .widgets
        .create("one", json!({"spec": {"size": 1}}))
        .await?;
    fixture
        .widgets
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    let params = PatchParams {
        dry_run: true,
        ..PatchParams::default()
    };
    let edit = Patch::Merge(json!({"spec": {"size": 9}}));
    fixture.widgets.api().patch("one", &params, &edit).await?;
    fixture
        .widgets
        .merge_status("one", json!({"phase": "Ready"}))
        .await?;
    fixture
        .widgets
        .api()
        .delete("one", &DeleteParams::default())
        .await?;

    let seen = fixture.recorder.reviews_of("one");
    let facts: Vec<_> = seen
        .iter()
        .map(|review| {
            (
                review.operation,
                review.dry_run,
                review.old.clone(),
                review.new.clone(),
            )
        })
        .collect();
    let size = |size: u32| Some(json!({"size": size}));
    assert_eq!(
        facts,
        [
            (Operation::Create, false, None, size(1)),
            (Operation::Update, false, size(1), size(2)),
            (Operation::Update, true, size(2), size(9)),
            (Operation::Delete, false, size(2), None),
        ],
        "the webhook is not called for the status"
    );
    assert!(
        seen.iter()
            .all(|review| review.user == user && review.subresource.is_none())
    );
    assert_eq!(seen[1].changed, ["spec.size"]);
    operator.stop().await
}

#[tokio::test]
async fn webhooks_are_called_for_subresources_if_declared() -> TestResult {
    let fixture = WebhookFixture::new("subresources").await?;
    let resource = fixture
        .with_check(WebhookHandler::new("check"))
        .validate(
            WebhookHandler::new("status").subresource("status"),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("scale").subresource("scale"),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("all").all_subresources(),
            |recorder, cx| Box::pin(recorder.check(cx)),
        );
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    fixture
        .widgets
        .create("one", json!({"spec": {"size": 1}}))
        .await?;
    fixture
        .widgets
        .merge_status("one", json!({"phase": "Ready"}))
        .await?;
    let params = PatchParams::default();
    let scale = Patch::Merge(json!({"spec": {"replicas": 5}}));
    fixture
        .widgets
        .api()
        .patch_subresource("scale", "one", &params, &scale)
        .await?;

    let mut seen: Vec<_> = fixture
        .recorder
        .reviews_of("one")
        .into_iter()
        .map(|review| (review.webhook, review.subresource))
        .collect();
    seen.sort();
    let pair = |webhook: &str, subresource: Option<&str>| {
        (webhook.to_owned(), subresource.map(str::to_owned))
    };
    assert_eq!(
        seen,
        [
            pair("all", None),
            pair("all", Some("scale")),
            pair("all", Some("status")),
            pair("check", None),
            pair("scale", Some("scale")),
            pair("status", Some("status")),
        ]
    );
    operator.stop().await
}

#[tokio::test]
async fn a_mutation_is_applied_to_the_sent_object() -> TestResult {
    let fixture = WebhookFixture::new("mutation").await?;
    let resource = fixture
        .resource()
        .mutate(WebhookHandler::new("complete"), |recorder, cx| {
            Box::pin(recorder.complete(cx))
        })
        .validate(WebhookHandler::new("complete"), |recorder, cx| {
            Box::pin(recorder.check(cx))
        });
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    let body = json!({"spec": {"remove": 1, "keep": 1.5, "list": ["begin"]}});
    let made = fixture.widgets.create("one", body).await?;
    assert_eq!(
        made.data["spec"],
        json!({"keep": 1.5, "list": ["begin", "end"], "size": 3})
    );
    assert_eq!(made.metadata.labels.unwrap_or_default()["completed"], "yes");
    let seen = fixture.recorder.reviews_of("one");
    assert_eq!(seen.len(), 2, "each webhook is called once");
    assert_eq!(
        seen[1].new,
        Some(json!({"keep": 1.5, "list": ["begin", "end"], "size": 3}))
    );

    fixture
        .widgets
        .api()
        .delete("one", &DeleteParams::default())
        .await?;
    let deletions = fixture.recorder.reviews_of("one").split_off(2);
    assert_eq!(
        deletions.len(),
        1,
        "a mutating webhook is not called for deletions"
    );
    operator.stop().await
}

#[tokio::test]
async fn label_filters_apply_in_the_api_server_and_others_in_the_operator() -> TestResult {
    let fixture = WebhookFixture::new("filters").await?;
    let resource = fixture
        .with_check(WebhookHandler::new("check"))
        .validate(
            WebhookHandler::new("labelled").label("tier", TextTest::Equals("gold".to_owned())),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("valued").value("spec.size", ValueTest::Equals(json!(2))),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("large")
                .when(|subject| subject.body.body()["spec"]["size"].as_u64() > Some(5)),
            |recorder, cx| Box::pin(recorder.check(cx)),
        )
        .validate(
            WebhookHandler::new("created").operations([Operation::Create]),
            |recorder, cx| Box::pin(recorder.check(cx)),
        );
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    let gold = json!({"labels": {"tier": "gold"}});
    let body = |size: u32, metadata: Value| json!({"metadata": metadata, "spec": {"size": size}});
    for (name, body, expected) in [
        ("plain", body(1, json!({})), vec!["check", "created"]),
        ("gold", body(1, gold), vec!["check", "created", "labelled"]),
        (
            "two",
            body(2, json!({})),
            vec!["check", "created", "valued/spec.size"],
        ),
        (
            "large",
            body(6, json!({})),
            vec!["check", "created", "large"],
        ),
    ] {
        fixture.widgets.create(name, body).await?;
        let mut called: Vec<_> = fixture
            .recorder
            .reviews_of(name)
            .into_iter()
            .map(|it| it.webhook)
            .collect();
        called.sort();
        assert_eq!(called, expected, "{name}");
    }
    fixture
        .widgets
        .merge("two", json!({"spec": {"size": 3}}))
        .await?;
    let later: Vec<_> = fixture
        .recorder
        .reviews_of("two")
        .split_off(3)
        .into_iter()
        .map(|it| it.webhook)
        .collect();
    assert!(
        later.contains(&"valued/spec.size".to_owned()),
        "the old object had the value: {later:?}"
    );
    assert!(!later.contains(&"created".to_owned()));
    let configuration = fixture
        .configuration("ValidatingWebhookConfiguration")
        .await?;
    let webhooks = &configuration.expect("it is managed").data["webhooks"];
    assert_eq!(
        webhooks[1]["objectSelector"],
        json!({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]})
    );
    operator.stop().await
}

#[tokio::test]
async fn a_connect_request_to_a_pod_can_be_denied() -> TestResult {
    async fn refuse(_: &ReviewRecorder, cx: &mut ValidationContext<Value>) -> AdmissionResult {
        let (operation, kind) = (cx.operation(), &cx.object()["kind"]);
        let command = &cx.object()["command"];
        let message = format!("{operation} {kind} {command}");
        Err(AdmissionError::denied_with(418, message))
    }
    let fixture = WebhookFixture::new("connect").await?;
    let pods = ResourceSpec {
        group: "",
        version: "v1",
        kind: "Pod",
        plural: "pods",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let resource = Resource::<Value, ReviewRecorder>::new(pods, &fixture.recorder).validate(
        WebhookHandler::new("exec")
            .subresource("exec")
            .operations([Operation::Connect]),
        |recorder, cx| Box::pin(refuse(recorder, cx)),
    );
    let operator = fixture.start(resource, fixture.local_server());
    let namespace = fixture.sandbox.namespace();
    let uri = format!("/api/v1/namespaces/{namespace}/pods/one/exec?command=ls&stdout=true");
    let status = eventually(
        "the API server calls the webhook for the connection",
        async || {
            let request = Request::post(&uri).body(Vec::new()).ok()?;
            match fixture.sandbox.client().request_text(request).await {
                Err(kube::Error::Api(status)) if status.code == 418 => Some(status),
                _ => None,
            }
        },
    )
    .await?;
    assert!(
        status
            .message
            .ends_with("CONNECT \"PodExecOptions\" [\"ls\"]"),
        "{status:?}"
    );
    operator.stop().await
}

#[tokio::test]
async fn filters_of_webhooks_read_operation_and_user_of_the_request() -> TestResult {
    fn is_foreign_update(_: &ReviewRecorder, cx: &FilterContext<'_, Value>) -> bool {
        assert!(cx.headers().is_some_and(|it| it.contains_key("user-agent")));
        assert_eq!(cx.resource().kind, cx.object()["kind"]);
        assert_eq!((cx.subresource(), cx.event_type()), (None, None));
        let is_named = cx.user().is_some_and(|it| it.username.contains("stranger"));
        is_named && cx.operation() == Some(Operation::Update) && !cx.is_dry_run()
    }
    let fixture = WebhookFixture::new("filtered-requests").await?;
    let foreign = predicate::when(&fixture.recorder, is_foreign_update);
    let resource = fixture
        .with_check(WebhookHandler::new("all"))
        .validate(WebhookHandler::new("foreign").when(foreign), |it, cx| {
            Box::pin(it.check(cx))
        });
    let operator = fixture
        .start_and_wait(resource, fixture.local_server())
        .await?;
    let stranger = fixture.sandbox.administrator("stranger");
    let stranger = fixture.sandbox.control_plane().client(&stranger).await?;
    let resource = fixture.widgets.resource();
    let as_stranger: Api<DynamicObject> =
        Api::namespaced_with(stranger, fixture.sandbox.namespace(), resource);
    let mut one = DynamicObject::new("one", resource);
    one.data = json!({"spec": {"size": 1}});
    as_stranger.create(&PostParams::default(), &one).await?;
    let grow = |size: u32| Patch::Merge(json!({"spec": {"size": size}}));
    let params = PatchParams::default();
    fixture
        .widgets
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    let dry_run = params.clone().dry_run();
    as_stranger.patch("one", &dry_run, &grow(3)).await?;
    as_stranger.patch("one", &params, &grow(4)).await?;
    let reviews = fixture.recorder.reviews_of("one");
    let of = |webhook: &str| {
        let of_webhook = reviews.iter().filter(|it| it.webhook == webhook);
        of_webhook.map(|it| it.new.clone()).collect::<Vec<_>>()
    };
    let size = |size: u32| Some(json!({"size": size}));
    assert_eq!(of("all"), [size(1), size(2), size(3), size(4)]);
    assert_eq!(of("foreign"), [size(4)]);
    operator.stop().await
}
