//! Broken lists, watches and writes: no change is lost, and no handler is called twice.

use http::{Method, StatusCode};
use kopf_runtime::{
    ChangeHandler, EventHandler, On, Operator, Resource, ResourceSpec, Settings, TextTest,
    ValueTest,
};
use kopf_tests::{Component, eventually};
use kopf_tests::{
    Fault, FaultProxy, PrivateControlPlane, RequestMatch, TestResult, try_eventually,
};
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts};

fn spy(fixture: &HandlerFixture) -> kopf_runtime::ResourceHandlers {
    fixture
        .resource()
        .event(EventHandler::new("spy"), |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build()
}

fn watches() -> RequestMatch {
    RequestMatch::any().path("widgets").watches()
}

fn patches() -> RequestMatch {
    RequestMatch::any().path("widgets").method(Method::PATCH)
}

#[tokio::test]
async fn a_long_list_is_read_in_pages() -> TestResult {
    let mut fixture = HandlerFixture::new("pages").await?;
    for size in 1..=5 {
        fixture.create(&format!("w{size}"), size).await?;
    }
    let mut settings = Settings::default();
    settings.watching.page_size = 2;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start_with(handlers, settings).await?;
    for size in 1..=5 {
        fixture
            .wait_until_handled(&format!("w{size}"), size)
            .await?;
    }
    let requests = fixture.sandbox.count_requests_of(&operator.user).await?;
    assert_eq!(requests.of("widgets", "list"), 3);
    assert_eq!(fixture.calls_so_far().len(), 5);
    operator.stop().await
}

#[tokio::test]
async fn a_list_restarts_when_the_continue_token_has_expired() -> TestResult {
    let mut fixture = HandlerFixture::new("expired-page").await?;
    for size in 1..=5 {
        fixture.create(&format!("w{size}"), size).await?;
    }
    let mut settings = Settings::default();
    settings.watching.page_size = 2;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("fixture")
        .resource(handlers)
        .settings(settings);
    let identity = fixture.new_user();
    let proxy = FaultProxy::start(fixture.sandbox.control_plane(), &identity).await?;
    let second_page = RequestMatch::any().path("widgets").parameter("continue");
    proxy.once(second_page, Fault::Answer(StatusCode::GONE));
    let operator = fixture.run(operator, proxy.client().await?, identity);
    for size in 1..=5 {
        fixture
            .wait_until_handled(&format!("w{size}"), size)
            .await?;
    }
    let lists = proxy.requests().into_iter();
    let lists: Vec<(Option<StatusCode>, bool)> = lists
        .filter(|request| request.uri.contains("limit=2"))
        .map(|request| (request.status, request.uri.contains("continue=")))
        .collect();
    let (ok, gone) = (Some(StatusCode::OK), Some(StatusCode::GONE));
    let again = [(gone, true), (ok, false), (ok, true), (ok, true)];
    assert!(
        lists.windows(4).any(|pages| pages == again),
        "from the first page again: {lists:?}"
    );
    assert_eq!(fixture.calls_so_far().len(), 5);
    operator.stop().await
}

#[tokio::test]
async fn the_operator_waits_for_a_kind_that_is_not_served_yet() -> TestResult {
    let mut fixture = HandlerFixture::new("not-yet").await?;
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..fixture.spec()
    };
    let handler = ChangeHandler::new("create_fn", On::create());
    let resource = Resource::<Value, HandlerScripts>::new(spec, &fixture.scripts)
        .change(handler, |scripts, cx| Box::pin(scripts.run(cx)))
        .build();
    let operator = fixture.start(resource).await?;
    try_eventually("the operator has got a 404", async || {
        let requests = fixture.sandbox.requests_of(&operator.user).await?;
        Ok(requests.into_iter().find(|request| request.code == 404))
    })
    .await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("one", json!({"spec": {"size": 1}})).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    operator.stop().await
}

#[tokio::test]
async fn objects_that_exceed_the_queue_memory_are_fetched_later() -> TestResult {
    let mut fixture = HandlerFixture::new("no-room").await?;
    for size in 1..=3 {
        fixture.create(&format!("w{size}"), size).await?;
    }
    let mut settings = Settings::default();
    settings.queueing.waiting_bytes = 0;
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ]);
    let operator = fixture.start_with(handlers, settings).await?;
    for size in 1..=3 {
        fixture
            .wait_until_handled(&format!("w{size}"), size)
            .await?;
    }
    fixture
        .objects
        .merge("w1", json!({"spec": {"size": 9}}))
        .await?;
    fixture.wait_until_handled("w1", 9).await?;
    assert_eq!(fixture.calls_so_far().len(), 4);
    operator.stop().await
}

#[tokio::test]
async fn a_cut_watch_continues_from_its_resource_version() -> TestResult {
    let mut fixture = HandlerFixture::new("cut").await?;
    let (proxy, operator) = fixture.start_through_proxy(spy(&fixture)).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    proxy.once(watches(), Fault::TruncateAfter(1));
    proxy.cut_all();
    for size in 2..=4 {
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        assert_eq!(fixture.next_report().await, format!("one MODIFIED {size}"));
    }
    let lists = proxy.requests().into_iter();
    let lists = lists.filter(|request| request.uri.contains("widgets?&limit"));
    assert_eq!(lists.count(), 1, "the list is not repeated");
    operator.stop().await
}

#[tokio::test]
async fn an_inactive_watch_is_reopened() -> TestResult {
    let mut fixture = HandlerFixture::new("silent").await?;
    let mut settings = Settings::default();
    settings.watching.inactivity_timeout = std::time::Duration::from_secs(2);
    let operator = fixture.start_with(spy(&fixture), settings).await?;
    let (lists, _) = try_eventually("the third watch is open", async || {
        let requests = fixture.sandbox.count_requests_of(&operator.user).await?;
        let count = |verb: &str| requests.of("widgets", verb);
        let (lists, watches) = (count("list"), count("watch"));
        Ok((watches >= 3).then_some((lists, watches)))
    })
    .await?;
    assert_eq!(lists, 1);
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    operator.stop().await
}

#[tokio::test]
async fn the_api_server_is_asked_to_end_watches_after_the_server_timeout() -> TestResult {
    let mut fixture = HandlerFixture::new("ending").await?;
    let mut settings = Settings::default();
    settings.watching.server_timeout = std::time::Duration::from_secs(2);
    let operator = Operator::new("fixture")
        .resource(spy(&fixture))
        .settings(settings);
    let (proxy, operator) = fixture.start_operator_through_proxy(operator).await?;
    let watches = eventually("the second watch is open", async || {
        let requests = proxy.requests().into_iter().map(|it| it.uri);
        let watches: Vec<String> = requests
            .filter(|uri| uri.contains("/widgets?") && uri.contains("watch=true"))
            .collect();
        (watches.len() >= 2).then_some(watches)
    })
    .await?;
    for uri in watches {
        let seconds = uri.split("timeoutSeconds=").nth(1);
        let seconds = seconds.and_then(|it| it.split('&').next());
        let seconds: u32 = seconds.unwrap_or_default().parse()?;
        assert!((2..=4).contains(&seconds), "{uri}");
    }
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    operator.stop().await
}

#[tokio::test]
async fn label_filters_become_a_label_selector_and_leaving_it_is_no_deletion() -> TestResult {
    let mut fixture = HandlerFixture::new("selector").await?;
    let label = |value: &str| json!({"metadata": {"labels": {"tier": value}}, "spec": {"size": 1}});
    fixture.objects.create("gold", label("gold")).await?;
    fixture.objects.create("lead", label("lead")).await?;
    let gold = EventHandler::new("spy").label("tier", TextTest::Equals("gold".to_owned()));
    let resource = fixture
        .resource()
        .event(gold, |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    assert_eq!(fixture.next_report().await, "gold LISTED 1");
    fixture.objects.merge("gold", label("lead")).await?;
    fixture.objects.merge("lead", label("gold")).await?;
    assert_eq!(fixture.next_report().await, "lead ADDED 1");
    fixture.objects.delete("lead").await?;
    assert_eq!(fixture.next_report().await, "lead DELETED 1");
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let selective = |verb: &str| {
        let requests = requests.iter().filter(|request| request.verb == verb);
        let mut widgets = requests.filter(|it| it.resource.as_deref() == Some("widgets"));
        widgets.all(|request| request.uri.contains("labelSelector=tier%3Dgold"))
    };
    assert!(selective("list") && selective("watch"), "{requests:#?}");
    operator.stop().await
}

#[tokio::test]
async fn a_name_filter_becomes_a_field_selector_and_finalizers_of_others_are_removed() -> TestResult
{
    let mut fixture = HandlerFixture::new("by-name").await?;
    let held = json!({
        "metadata": {"finalizers": ["kopf.zalando.org/KopfFinalizerMarker"]},
        "spec": {"size": 1},
    });
    fixture.objects.create("other", held).await?;
    fixture.create("wanted", 2).await?;
    let name = ValueTest::Equals(json!("wanted"));
    let named = ChangeHandler::new("create_fn", On::create()).value("metadata.name", name);
    let operator = fixture.start(fixture.handlers([named])).await?;
    assert_eq!(fixture.next_call().await.object, "wanted");
    fixture
        .objects
        .wait_until("other", "the finalizer is removed", |it| {
            it.finalizers().is_empty()
        })
        .await?;
    fixture.wait_until_handled("wanted", 2).await?;
    assert_eq!(fixture.calls_so_far(), []);
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let watched = requests.iter().filter(|request| request.verb == "watch");
    let mut watched = watched.filter(|it| it.resource.as_deref() == Some("widgets"));
    assert!(
        watched.all(|request| request.uri.contains("fieldSelector=metadata.name%3Dwanted")),
        "{requests:#?}"
    );
    operator.stop().await
}

#[tokio::test]
async fn finalizers_of_objects_outside_of_the_selector_are_removed() -> TestResult {
    let mut fixture = HandlerFixture::new("leftovers").await?;
    let held = |tier: &str| {
        json!({
            "metadata": {
                "labels": {"tier": tier},
                "finalizers": ["example.com/foreign", "kopf.zalando.org/KopfFinalizerMarker"],
            },
            "spec": {"size": 1},
        })
    };
    fixture.objects.create("lead", held("lead")).await?;
    fixture.objects.create("deleted", held("lead")).await?;
    fixture.objects.delete("deleted").await?;
    let gold = ChangeHandler::new("create_fn", On::create())
        .label("tier", TextTest::Equals("gold".to_owned()));
    let operator = fixture.start(fixture.handlers([gold])).await?;
    for name in ["lead", "deleted"] {
        fixture
            .objects
            .wait_until(name, "only the foreign finalizer is left", |it| {
                it.finalizers() == ["example.com/foreign"]
            })
            .await?;
    }
    assert!(fixture.calls_so_far().is_empty());
    operator.stop().await
}

#[tokio::test]
async fn a_deletion_between_watches_is_reported() -> TestResult {
    let mut fixture = HandlerFixture::new("gap").await?;
    let (proxy, operator) = fixture.start_through_proxy(spy(&fixture)).await?;
    for (name, size) in [("goes", 1), ("stays", 2)] {
        fixture.create(name, size).await?;
        assert_eq!(fixture.next_report().await, format!("{name} ADDED {size}"));
    }
    proxy.always(watches(), Fault::CutBefore);
    proxy.cut_all();
    fixture.objects.delete("goes").await?;
    fixture.objects.wait_gone("goes").await?;
    proxy.clear_faults();
    proxy.once(watches(), Fault::Answer(StatusCode::GONE));
    let seen = [fixture.next_report().await, fixture.next_report().await];
    assert_eq!(seen, ["stays LISTED 2", "goes DELETED 1"]);
    operator.stop().await
}

#[tokio::test]
async fn an_expired_resource_version_leads_to_a_new_list() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let mut fixture = HandlerFixture::new_on(plane.handle(), "expired").await?;
    let operator = fixture.start(spy(&fixture)).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one ADDED 1");
    plane.expire_resource_versions().await?;
    fixture.create("two", 2).await?;
    while !fixture.next_report().await.starts_with("two ") {}
    operator.stop().await
}

#[tokio::test]
async fn the_operator_continues_after_a_restart_of_the_api_server() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let mut fixture = HandlerFixture::new_on(plane.handle(), "restart").await?;
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    plane.restart(Component::ApiServer).await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    fixture.wait_until_handled("one", 2).await?;
    let calls = fixture.calls_so_far().into_iter();
    let calls: Vec<String> = calls.map(|call| call.handler).collect();
    assert_eq!(calls, ["create_fn", "update_fn"]);
    operator.stop().await
}

#[tokio::test]
async fn a_failed_write_is_retried_without_calling_the_handler_again() -> TestResult {
    let mut fixture = HandlerFixture::new("lands").await?;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    proxy.times(
        2,
        patches(),
        Fault::Answer(StatusCode::INTERNAL_SERVER_ERROR),
    );
    proxy.once(patches(), Fault::CutBefore);
    proxy.once(patches(), Fault::CutAfter);
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(fixture.calls_so_far().len(), 1);
    operator.stop().await
}

#[tokio::test]
async fn the_finalizer_is_added_without_losing_a_concurrent_one() -> TestResult {
    let mut fixture = HandlerFixture::new("conflict").await?;
    let handlers = fixture.handlers([ChangeHandler::new("delete_fn", On::delete())]);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    proxy.once(patches(), Fault::Delay(std::time::Duration::from_secs(1)));
    fixture.create("one", 1).await?;
    let foreign = json!({"metadata": {"finalizers": ["test.dev/foreign"]}});
    fixture.objects.merge("one", foreign).await?;
    let one = fixture
        .objects
        .wait_until("one", "both finalizers are there", |it| {
            it.metadata
                .finalizers
                .as_ref()
                .is_some_and(|it| it.len() == 2)
        })
        .await?;
    assert_eq!(
        one.metadata.finalizers.unwrap_or_default(),
        ["test.dev/foreign", "kopf.zalando.org/KopfFinalizerMarker"]
    );
    let release = json!({"metadata": {"finalizers": null}});
    fixture.objects.merge("one", release).await?;
    operator.stop().await
}
