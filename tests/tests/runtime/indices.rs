//! Indices: complete before any handler runs, updated with the objects, readable in all handlers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http::StatusCode;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, ErrorMode, EventHandler, FilterContext, HandlerError, Index,
    IndexContext, IndexHandler, IndexResult, Indices, On, Operator, PeeringSettings,
    QueueingSettings, Resource, ResourceHandlers, ResourceSpec, Scope, Settings, StatusSubresource,
    SubHandler, TextTest, TimerHandler, predicate,
};
use kopf_tests::health_client::HealthClient;
use kopf_tests::peering::PeeringObject;
use kopf_tests::{
    Fault, Objects, PrivateControlPlane, RequestMatch, TestFailure, TestResult, eventually,
};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::fixture::HandlerFixture;

/// The names of ConfigMaps by their `widget`.
#[derive(Clone, Copy)]
pub(crate) struct ByWidget;

impl Index for ByWidget {
    type Key = String;
    type Value = String;
    const NAME: &'static str = "by_widget";
}

pub(crate) const CONFIG_MAP: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// The state of an operator whose index function takes some time.
struct SlowIndexFunction {
    pace: Duration,
    failures: AtomicU32,
}

impl SlowIndexFunction {
    fn new(pace: Duration) -> Self {
        Self {
            pace,
            failures: AtomicU32::new(0),
        }
    }

    /// Indexes a ConfigMap by its `widget`; `mood` selects an error.
    async fn by_widget(&self, cx: &mut IndexContext<ConfigMap>) -> IndexResult<ByWidget> {
        tokio::time::sleep(self.pace).await;
        let data = cx.object().data.clone().unwrap_or_default();
        match data.get("mood").map(String::as_str) {
            Some("arbitrary") => {
                self.failures.fetch_add(1, Ordering::Relaxed);
                return Err(std::io::Error::other("oops").into());
            }
            Some("temporary") if cx.retry() == 0 => {
                let soon = Duration::from_secs(1);
                return Err(HandlerError::temporary_after(soon, "later"));
            }
            Some("permanent") => return Err(HandlerError::permanent("never")),
            Some("panic") => panic!("as requested"),
            _ => {}
        }
        let name = cx.name().to_owned();
        let widget = data.get("widget").cloned();
        Ok(widget.map(|widget| (widget, name)).into_iter().collect())
    }
}

/// ConfigMaps with an index and no other handlers.
pub(crate) fn indexed(handler: IndexHandler, pace: Duration) -> ResourceHandlers {
    with_index(handler, &Arc::new(SlowIndexFunction::new(pace)))
}

fn with_index(handler: IndexHandler, function: &Arc<SlowIndexFunction>) -> ResourceHandlers {
    Resource::<ConfigMap, SlowIndexFunction>::new(CONFIG_MAP, function)
        .index(ByWidget, handler, |function, cx| {
            Box::pin(function.by_widget(cx))
        })
        .build()
}

/// An operator with that index, and the index.
fn indexing(handler: IndexHandler) -> (Operator, Indices) {
    let indices = Indices::default();
    let operator = Operator::new("indexing")
        .resource(indexed(handler, Duration::ZERO))
        .indices(indices.clone());
    (operator, indices)
}

fn widget(name: &str) -> Value {
    json!({"data": {"widget": name}})
}

async fn config_maps(fixture: &HandlerFixture) -> Result<Objects, TestFailure> {
    fixture.sandbox.objects("v1", "ConfigMap").await
}

/// Waits until these are the names under a key.
async fn found(indices: &Indices, key: &str, names: &[&str]) -> TestResult {
    eventually(&format!("{names:?} are under {key:?}"), async || {
        let mut found = indices.get(ByWidget).get(key);
        found.sort();
        (found == names).then_some(())
    })
    .await
}

#[tokio::test]
async fn indices_are_complete_before_any_handler_runs_even_with_one_worker() -> TestResult {
    let mut fixture = HandlerFixture::new("index-first").await?;
    let maps = config_maps(&fixture).await?;
    for number in 0..40 {
        maps.create(&format!("map-{number}"), widget("one")).await?;
    }
    for name in ["one", "two", "three"] {
        fixture.create(name, 1).await?;
    }
    fixture.script("create_fn", |cx| {
        cx.patch()
            .set("status.found", cx.index(ByWidget).get("one").len());
        Ok(())
    });
    let widgets = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let settings = Settings {
        queueing: QueueingSettings {
            worker_limit: Some(1),
            ..QueueingSettings::default()
        },
        ..Settings::default()
    };
    let operator = Operator::new("first")
        .resource(widgets)
        .resource(indexed(IndexHandler::new(), Duration::from_millis(20)))
        .settings(settings);
    let operator = fixture.start_operator(operator).await?;
    for name in ["one", "two", "three"] {
        let handled = fixture.wait_until_handled(name, 1).await?;
        assert_eq!(handled.data["status"]["found"], json!(40), "{name}");
    }
    let requests = fixture.sandbox.count_requests_of(&operator.user).await?;
    assert_eq!(requests.of("configmaps", "get"), 0);
    operator.stop().await
}

#[tokio::test]
async fn an_index_follows_changes_of_objects_and_filters() -> TestResult {
    let mut fixture = HandlerFixture::new("index-follows").await?;
    let handler = IndexHandler::new()
        .label("hidden", TextTest::Absent)
        .when(|subject| subject.body.name() != Some("kube-root-ca.crt"));
    let (operator, indices) = indexing(handler);
    let maps = config_maps(&fixture).await?;
    maps.create("before", widget("one")).await?;
    let operator = fixture.start_operator(operator).await?;
    found(&indices, "one", &["before"]).await?;
    maps.create("after", widget("one")).await?;
    found(&indices, "one", &["after", "before"]).await?;
    maps.merge("before", widget("two")).await?;
    found(&indices, "one", &["after"]).await?;
    found(&indices, "two", &["before"]).await?;
    let hide = |hidden: Value| json!({"metadata": {"labels": {"hidden": hidden}}});
    maps.merge("after", hide(json!("yes"))).await?;
    found(&indices, "one", &[]).await?;
    maps.merge("after", hide(Value::Null)).await?;
    found(&indices, "one", &["after"]).await?;
    maps.delete("after").await?;
    maps.merge("before", json!({"data": null})).await?;
    eventually("the index is empty", async || {
        indices.get(ByWidget).is_empty().then_some(())
    })
    .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_permanent_error_discards_index_entries_and_an_arbitrary_one_keeps_them() -> TestResult {
    let mut fixture = HandlerFixture::new("index-errors").await?;
    let (operator, indices) = indexing(IndexHandler::new());
    let maps = config_maps(&fixture).await?;
    for name in ["stale", "panics", "returns", "excluded"] {
        maps.create(name, widget(name)).await?;
    }
    let operator = fixture.start_operator(operator).await?;
    for name in ["stale", "panics", "returns", "excluded"] {
        found(&indices, name, &[name]).await?;
    }
    let moody = |mood: &str, widget: &str| json!({"data": {"mood": mood, "widget": widget}});
    maps.merge("excluded", moody("permanent", "new")).await?;
    found(&indices, "excluded", &[]).await?;
    maps.merge("excluded", moody("good", "new")).await?;
    maps.merge("stale", moody("arbitrary", "new")).await?;
    maps.merge("panics", moody("panic", "new")).await?;
    maps.merge("returns", moody("temporary", "back")).await?;
    found(&indices, "returns", &[]).await?;
    found(&indices, "back", &["returns"]).await?;
    found(&indices, "stale", &["stale"]).await?;
    found(&indices, "panics", &["panics"]).await?;
    found(&indices, "new", &[]).await?;
    maps.merge("stale", moody("good", "new")).await?;
    found(&indices, "new", &["stale"]).await?;
    maps.delete("excluded").await?;
    maps.create("excluded", widget("new")).await?;
    found(&indices, "new", &["excluded", "stale"]).await?;
    operator.stop().await
}

#[tokio::test]
async fn an_index_function_is_not_called_after_its_retries_are_used_up() -> TestResult {
    let mut fixture = HandlerFixture::new("index-retries").await?;
    let handler = IndexHandler::new()
        .errors(ErrorMode::Temporary)
        .retries(2)
        .backoff(Duration::from_millis(100));
    let function = Arc::new(SlowIndexFunction::new(Duration::ZERO));
    let indices = Indices::default();
    let operator = Operator::new("retrying")
        .resource(with_index(handler, &function))
        .indices(indices.clone());
    let maps = config_maps(&fixture).await?;
    let bad = json!({"data": {"mood": "arbitrary", "widget": "one"}});
    maps.create("bad", bad).await?;
    maps.create("good", widget("one")).await?;
    let operator = fixture.start_operator(operator).await?;
    found(&indices, "one", &["good"]).await?;
    eventually("all attempts were made", async || {
        (function.failures.load(Ordering::Relaxed) == 2).then_some(())
    })
    .await?;
    maps.merge("bad", json!({"data": {"mood": "good"}})).await?;
    maps.create("later", widget("one")).await?;
    found(&indices, "one", &["good", "later"]).await?;
    assert_eq!(function.failures.load(Ordering::Relaxed), 2);
    operator.stop().await
}

#[tokio::test]
async fn entries_of_objects_deleted_between_watches_are_removed() -> TestResult {
    let mut fixture = HandlerFixture::new("index-gap").await?;
    let (operator, indices) = indexing(IndexHandler::new());
    let maps = config_maps(&fixture).await?;
    maps.create("goes", widget("one")).await?;
    maps.create("stays", widget("one")).await?;
    let (proxy, operator) = fixture.start_operator_through_proxy(operator).await?;
    found(&indices, "one", &["goes", "stays"]).await?;
    let watches = || RequestMatch::any().path("configmaps").watches();
    proxy.always(watches(), Fault::CutBefore);
    proxy.cut_all();
    maps.delete("goes").await?;
    maps.wait_gone("goes").await?;
    proxy.clear_faults();
    proxy.once(watches(), Fault::Answer(StatusCode::GONE));
    found(&indices, "one", &["stays"]).await?;
    operator.stop().await
}

#[tokio::test]
async fn handlers_do_not_wait_for_the_index_of_a_kind_that_is_not_served_yet() -> TestResult {
    let mut fixture = HandlerFixture::new("index-later").await?;
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..fixture.spec()
    };
    let gizmos = Resource::<Value, ()>::new(spec, &Arc::new(()))
        .index(ByWidget, IndexHandler::new(), |(), cx| {
            Box::pin(async { Ok(vec![("gizmo".to_owned(), cx.name().to_owned())]) })
        })
        .build();
    let indices = Indices::default();
    let operator = Operator::new("later")
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .resource(gizmos)
        .indices(indices.clone());
    fixture.create("one", 1).await?;
    let operator = fixture.start_operator(operator).await?;
    fixture.wait_until_handled("one", 1).await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    gizmos.create("late", json!({"spec": {}})).await?;
    found(&indices, "gizmo", &["late"]).await?;
    operator.stop().await
}

#[tokio::test]
async fn handlers_wait_for_the_index_of_a_kind_that_cannot_be_listed() -> TestResult {
    let mut fixture = HandlerFixture::new("index-barred").await?;
    let operator = Operator::new("barred")
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .resource(indexed(IndexHandler::new(), Duration::ZERO));
    fixture.create("one", 1).await?;
    let maps = || RequestMatch::any().path("configmaps").not_watches();
    let (proxy, operator) = fixture.start_operator_through_proxy(operator).await?;
    proxy.always(maps(), Fault::Answer(StatusCode::FORBIDDEN));
    eventually("the list was rejected twice", async || {
        let requests = proxy.requests();
        let lists = requests.iter().filter(|it| it.uri.contains("configmaps"));
        (lists.count() >= 2).then_some(())
    })
    .await?;
    assert!(fixture.calls_so_far().is_empty());
    proxy.clear_faults();
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn all_kinds_of_handlers_can_read_an_index() -> TestResult {
    let mut fixture = HandlerFixture::new("index-everywhere").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("map", widget("one")).await?;
    let widgets = fixture
        .resource()
        .event(EventHandler::new("event"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("event {:?}", cx.index(ByWidget).get("one")));
                Ok(())
            })
        })
        .daemon(DaemonHandler::new("daemon"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("daemon {:?}", cx.index(ByWidget).first("one")));
                Ok(())
            })
        })
        .timer(
            TimerHandler::every("timer", Duration::from_secs(3600)),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report(format!("timer {:?}", cx.index(ByWidget).keys()));
                    Ok(())
                })
            },
        )
        .change(ChangeHandler::new("create_fn", On::create()), |_, cx| {
            Box::pin(async move {
                cx.sub(SubHandler::new("sub"), |cx| {
                    Box::pin(async move {
                        let index = cx.index(ByWidget);
                        let all = index.read();
                        let found: Vec<&String> = all.get("one").collect();
                        cx.patch().set("status.sub", json!(found));
                        Ok(())
                    })
                });
                Ok(())
            })
        })
        .build();
    let operator = Operator::new("everywhere")
        .resource(widgets)
        .resource(indexed(IndexHandler::new(), Duration::ZERO));
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 1).await?;
    fixture
        .objects
        .wait_until("one", "the sub-handler has found it", |it| {
            it.data["status"]["sub"] == json!(["map"])
        })
        .await?;
    let mut reports = Vec::new();
    while reports.len() < 3 {
        let report = fixture.next_report().await;
        if !reports.contains(&report) {
            reports.push(report);
        }
    }
    reports.sort();
    assert_eq!(
        reports,
        ["daemon Some(\"map\")", "event [\"map\"]", "timer [\"one\"]"]
    );
    operator.stop().await
}

#[tokio::test]
async fn a_predicate_can_read_the_indices_of_its_operator() -> TestResult {
    struct Chooser;
    impl Chooser {
        fn is_wanted(&self, cx: &FilterContext<'_, Value>) -> bool {
            let wanted = cx.index(ByWidget);
            cx.name().is_some_and(|name| wanted.contains_key(name))
        }
    }
    let mut fixture = HandlerFixture::new("index-predicate").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("map", widget("wanted")).await?;
    fixture.create("wanted", 1).await?;
    fixture.create("unwanted", 2).await?;
    let state = Arc::new(Chooser);
    let handler = ChangeHandler::new("create_fn", On::create())
        .when(predicate::when(&state, Chooser::is_wanted));
    let operator = Operator::new("chooser")
        .resource(fixture.handlers([handler]))
        .resource(indexed(IndexHandler::new(), Duration::from_millis(200)));
    let operator = fixture.start_operator(operator).await?;
    fixture.wait_until_handled("wanted", 1).await?;
    assert_eq!(fixture.next_call().await.object, "wanted");
    assert!(fixture.calls_so_far().is_empty());
    operator.stop().await
}

#[tokio::test]
async fn after_a_pause_indices_are_complete_before_any_handler_runs() -> TestResult {
    let mut fixture = HandlerFixture::new("index-pause").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "ours").await?;
    let maps = config_maps(&fixture).await?;
    maps.create("goes", widget("one")).await?;
    fixture.script("create_fn", |cx| {
        cx.patch()
            .set("status.found", cx.index(ByWidget).get("one"));
        Ok(())
    });
    let operator = Operator::new("pausing")
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .resource(indexed(IndexHandler::new(), Duration::from_millis(300)))
        .peering(PeeringSettings::named("ours"));
    let health = HealthClient::on_free_port().await?;
    let operator = operator.liveness(format!("http://{}/healthz", health.address()).parse()?);
    let operator = fixture.start_operator(operator).await?;
    fixture.create("before", 1).await?;
    let before = fixture.wait_until_handled("before", 1).await?;
    assert_eq!(before.data["status"]["found"], json!(["goes"]));

    let other = json!({"priority": 100, "lifetime": 600, "lastseen": "2100-01-01T00:00:00+00:00"});
    peering.write(json!({"other": other})).await?;
    eventually("the operator has paused", async || {
        let report = health.get("/readyz").await.ok()?.json();
        (report["paused"]["reason"] == "peers").then_some(())
    })
    .await?;
    maps.delete("goes").await?;
    maps.wait_gone("goes").await?;
    maps.create("comes", widget("one")).await?;
    fixture.create("after", 2).await?;
    peering.write(json!({"other": null})).await?;
    let after = fixture.wait_until_handled("after", 2).await?;
    assert_eq!(after.data["status"]["found"], json!(["comes"]));
    let requests = fixture.sandbox.count_requests_of(&operator.user).await?;
    assert_eq!(requests.of("configmaps", "list"), 2, "it has paused once");
    operator.stop().await
}

#[tokio::test]
async fn a_filter_of_an_index_that_panics_fails_for_its_object_only() -> TestResult {
    struct PanickingFilter;
    impl PanickingFilter {
        fn accepts(&self, cx: &FilterContext<'_, Value>) -> bool {
            let mood = cx.object()["data"]["mood"].as_str();
            assert_ne!(mood, Some("panic"), "as requested");
            true
        }
    }
    let mut fixture = HandlerFixture::new("index-panicking-filter").await?;
    let maps = config_maps(&fixture).await?;
    let hostile = json!({"data": {"widget": "one", "mood": "panic"}});
    maps.create("hostile", hostile).await?;
    let filter = predicate::when(&Arc::new(PanickingFilter), PanickingFilter::accepts);
    let (operator, indices) = indexing(IndexHandler::new().when(filter));
    let operator = fixture.start_operator(operator).await?;
    maps.create("harmless", widget("one")).await?;
    found(&indices, "one", &["harmless"]).await?;
    operator.stop().await
}

/// An index function whose calls end when the test lets them.
struct GatedIndexFunction {
    ended: AtomicU32,
    ends: Semaphore,
}

impl GatedIndexFunction {
    async fn by_widget(&self, cx: &mut IndexContext<ConfigMap>) -> IndexResult<ByWidget> {
        let end = self.ends.acquire().await;
        end.expect("the test keeps it open").forget();
        self.ended.fetch_add(1, Ordering::SeqCst);
        Ok(vec![("one".to_owned(), cx.name().to_owned())])
    }
}

#[tokio::test]
async fn a_list_comes_to_an_end_even_if_indexing_takes_longer_than_its_pages_are_kept() -> TestResult
{
    const OBJECTS: u32 = 400;
    const CALLS_PER_TOKEN: u32 = 50;
    let plane = PrivateControlPlane::start().await?;
    // With a cache, the API server keeps pages until it compacts etcd itself, every five minutes.
    let uncached = ["--watch-cache-sizes=configmaps#0"];
    plane.restart_api_server_with(&uncached).await?;
    let mut fixture = HandlerFixture::new_on(plane.handle(), "index-slow").await?;
    let maps = config_maps(&fixture).await?;
    let maps = &maps;
    let creations = (0..OBJECTS).map(|number| async move {
        let name = format!("map-{number}");
        maps.create(&name, widget("one")).await
    });
    futures::future::try_join_all(creations).await?;
    fixture.create("waits", 1).await?;
    let function = Arc::new(GatedIndexFunction {
        ended: AtomicU32::new(0),
        ends: Semaphore::new(0),
    });
    let handler =
        IndexHandler::new().when(|subject| subject.body.name() != Some("kube-root-ca.crt"));
    let indexed = Resource::<ConfigMap, GatedIndexFunction>::new(CONFIG_MAP, &function)
        .index(ByWidget, handler, |function, cx| {
            Box::pin(function.by_widget(cx))
        })
        .build();
    fixture.script("create_fn", |cx| {
        cx.patch()
            .set("status.found", cx.index(ByWidget).get("one").len());
        Ok(())
    });
    let mut settings = Settings::default();
    settings.watching.page_size = 100;
    let operator = Operator::new("slow")
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .resource(indexed)
        .settings(settings);
    let operator = fixture.start_operator(operator).await?;
    let mut allowed = 0;
    let mut listed = false;
    while !listed {
        assert!(
            allowed < 4 * OBJECTS,
            "everything is indexed again and again"
        );
        function.ends.add_permits(CALLS_PER_TOKEN as usize);
        allowed += CALLS_PER_TOKEN;
        eventually(
            "the index functions are called, or all are done",
            async || {
                listed = !fixture.calls_so_far().is_empty();
                (listed || function.ended.load(Ordering::SeqCst) >= allowed).then_some(())
            },
        )
        .await?;
        // The next revision makes the ones before it compactable.
        fixture.create(&format!("touch-{allowed}"), 1).await?;
        plane.compact().await?;
    }
    let handled = fixture.wait_until_handled("waits", 1).await?;
    assert_eq!(handled.data["status"]["found"], json!(OBJECTS));
    assert_eq!(
        function.ended.load(Ordering::SeqCst),
        OBJECTS,
        "once for each"
    );
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let expired = requests.iter().filter(|request| request.code == 410);
    assert_ne!(expired.count(), 0, "pages have expired");
    operator.stop().await
}
