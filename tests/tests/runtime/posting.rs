//! Kubernetes events: which are posted, how they are aggregated, and with which permissions.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace};
use kopf_runtime::prelude::{debug, info, warn};
use kopf_runtime::{
    ChangeHandler, EventHandler, EventLayer, HandlerError, Index, IndexHandler, Namespaces, On,
    Operator, PostingLevel, ProgressPosting, Settings,
};
use kopf_tests::{TestFailure, TestResult, try_eventually};
use kube::Api;
use kube::api::{ListParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::fixture::HandlerFixture;

impl HandlerFixture {
    async fn events(&self) -> Result<Vec<Event>, TestFailure> {
        let events: Api<Event> = Api::namespaced(self.sandbox.client(), self.sandbox.namespace());
        Ok(events.list(&ListParams::default()).await?.items)
    }

    /// Waits until exactly these events exist: type, reason, count and message, sorted.
    async fn wait_for_events(&self, expected: &[&str]) -> TestResult {
        let line = |event: &Event| {
            let text = |it: &Option<String>| it.clone().unwrap_or_default();
            let count = event.count.unwrap_or_default();
            format!(
                "{} {} {}x {}",
                text(&event.type_),
                text(&event.reason),
                count,
                text(&event.message)
            )
        };
        let waited = try_eventually("the events are there", async || {
            let mut events: Vec<String> = self.events().await?.iter().map(line).collect();
            events.sort();
            Ok((events == expected).then_some(()))
        })
        .await;
        if waited.is_err() {
            let events: Vec<String> = self.events().await?.iter().map(line).collect();
            return Err(TestFailure::new(format!("{events:#?}")));
        }
        Ok(())
    }
}

fn created() -> ChangeHandler {
    ChangeHandler::new("create_fn", On::create())
}

#[tokio::test]
async fn handlers_post_events_of_all_types_on_their_object() -> TestResult {
    let mut fixture = HandlerFixture::new("posted").await?;
    fixture.script("create_fn", |cx| {
        cx.event("SomeType", "SomeReason", "Some message");
        cx.info("SomeReason", "Some message");
        cx.warn("SomeReason", "Some message");
        let error = "x".parse::<u8>().unwrap_err();
        cx.exception("SomeReason", "Some exception:", error);
        Ok(())
    });
    let mut settings = Settings::default();
    settings.posting.progress = ProgressPosting::Everything;
    settings.posting.reporting_component = "bench.kopf.dev".to_owned();
    settings.posting.event_name_prefix = "posted-".to_owned();
    let operator = fixture
        .start_with(fixture.handlers([created()]), settings)
        .await?;
    fixture.create("one", 1).await?;
    fixture
        .wait_for_events(&[
            "Error SomeReason 1x Some exception: invalid digit found in string",
            "Normal Finished 1x All handlers succeeded.",
            "Normal SomeReason 1x Some message",
            "Normal Success 1x Handler 'create_fn' succeeded.",
            "SomeType SomeReason 1x Some message",
            "Warning SomeReason 1x Some message",
        ])
        .await?;
    for event in fixture.events().await? {
        assert_eq!(event.involved_object.name.as_deref(), Some("one"));
        assert_eq!(event.reporting_component.as_deref(), Some("bench.kopf.dev"));
        assert!(
            event
                .metadata
                .name
                .unwrap_or_default()
                .starts_with("posted-")
        );
    }
    operator.stop().await
}

#[tokio::test]
async fn a_recorder_posts_in_a_task_that_outlives_the_handler() -> TestResult {
    let mut fixture = HandlerFixture::new("recorder").await?;
    let released = fixture.scripts.release_receiver();
    let released = std::sync::Mutex::new(Some(released));
    fixture.script("create_fn", move |cx| {
        let (recorder, released) = (cx.recorder(), released.lock().unwrap().take());
        tokio::spawn(async move {
            if let Some(released) = released {
                let _ = released.await;
            }
            recorder.info("Later", "after the handler");
        });
        Ok(())
    });
    let operator = fixture.start(fixture.handlers([created()])).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    fixture.scripts.release();
    fixture
        .wait_for_events(&["Normal Later 1x after the handler"])
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn the_posting_level_and_switch_suppress_events() -> TestResult {
    let mut fixture = HandlerFixture::new("level").await?;
    fixture.script("create_fn", |cx| {
        cx.info("Info", "not posted");
        cx.warn("Warn", "posted");
        cx.event("Normal", "Event", "posted at any level");
        Ok(())
    });
    let mut settings = Settings::default();
    settings.posting.level = PostingLevel::Warning;
    settings.posting.progress = ProgressPosting::Everything;
    let operator = fixture
        .start_with(fixture.handlers([created()]), settings)
        .await?;
    fixture.create("one", 1).await?;
    fixture
        .wait_for_events(&[
            "Normal Event 1x posted at any level",
            "Warning Warn 1x posted",
        ])
        .await?;
    operator.stop().await?;

    let mut settings = Settings::default();
    settings.posting.enabled = false;
    let operator = fixture
        .start_with(fixture.handlers([created()]), settings)
        .await?;
    fixture.create("two", 2).await?;
    fixture.wait_until_handled("two", 2).await?;
    let requests = fixture.sandbox.count_requests_of(&operator.user).await?;
    operator.stop().await?;
    assert_eq!(requests.of("events", "create"), 0);
    Ok(())
}

#[tokio::test]
async fn events_can_be_posted_on_other_objects_but_not_on_events() -> TestResult {
    let mut fixture = HandlerFixture::new("others").await?;
    fixture.script_async("create_fn", |cx| {
        let (reporter, maps) = (cx.recorder(), cx.api::<ConfigMap>());
        let events = cx.api::<Event>();
        async move {
            let mut map = ConfigMap::default();
            map.metadata.name = Some("other".to_owned());
            let map = maps.create(&PostParams::default(), &map).await?;
            reporter.on(&map)?.info("Made", "by one");
            let raw = serde_json::json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "raw", "namespace": map.metadata.namespace, "uid": "raw"},
            });
            reporter.on(&raw)?.warn("Raw", "by one");
            let event = events.list(&ListParams::default()).await?.items.pop();
            reporter
                .on(&event.unwrap_or_default())?
                .info("Never", "about an event");
            Ok(())
        }
    });
    let operator = fixture.start(fixture.handlers([created()])).await?;
    fixture.create("one", 1).await?;
    fixture
        .wait_for_events(&["Normal Made 1x by one", "Warning Raw 1x by one"])
        .await?;
    let kinds = fixture.events().await?.into_iter();
    let about: BTreeMap<_, _> = kinds
        .map(|event| (event.involved_object.name, event.involved_object.kind))
        .collect();
    let map = Some("ConfigMap".to_owned());
    assert_eq!(
        about,
        BTreeMap::from([
            (Some("other".to_owned()), map.clone()),
            (Some("raw".to_owned()), map)
        ])
    );
    operator.stop().await
}

#[tokio::test]
async fn log_lines_of_handlers_become_events_if_enabled() -> TestResult {
    let mut fixture = HandlerFixture::new("lines").await?;
    fixture.script("create_fn", |cx| {
        let subscriber = tracing_subscriber::registry().with(EventLayer);
        let _guard = subscriber.set_default();
        info!(size = 3, "made {}", cx.name());
        warn!("almost full");
        debug!("of no interest");
        Err(HandlerError::permanent("no"))
    });
    let mut settings = Settings::default();
    settings.posting.loggers = true;
    let operator = fixture
        .start_with(fixture.handlers([created()]), settings)
        .await?;
    fixture.create("one", 1).await?;
    fixture
        .wait_for_events(&[
            "Error Logging 1x Handler 'create_fn' failed permanently: no",
            "Normal Finished 1x Creation is processed: 0 succeeded; 1 failed.",
            "Normal Logging 1x made one size=3",
            "Warning Logging 1x almost full",
        ])
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn a_flood_of_events_costs_a_few_requests() -> TestResult {
    let mut fixture = HandlerFixture::new("flood").await?;
    fixture.script("create_fn", |cx| {
        for number in 0..10_000 {
            cx.info("Said", "the same again");
            cx.warn("Counted", format!("number {number}"));
        }
        Ok(())
    });
    let operator = fixture.start(fixture.handlers([created()])).await?;
    fixture.create("one", 1).await?;
    try_eventually("everything is counted", async || {
        let events = fixture.events().await?;
        let total: i32 = events.iter().filter_map(|event| event.count).sum();
        Ok((total == 20_000).then_some(()))
    })
    .await?;
    let identity = operator.user.clone();
    operator.stop().await?;
    let requests = fixture.sandbox.count_requests_of(&identity).await?;
    let (created, patched) = (
        requests.of("events", "create"),
        requests.of("events", "patch"),
    );
    assert!(
        created <= 12 && created + patched <= 25,
        "{created} + {patched}"
    );
    let events = fixture.events().await?;
    let combined = events.iter().filter_map(|event| event.message.as_deref());
    let combined = combined.filter(|it| it.starts_with("(combined from similar events): "));
    assert_eq!(combined.count(), 1);
    Ok(())
}

#[tokio::test]
async fn events_are_posted_with_permission_to_create_and_patch_events_only() -> TestResult {
    let fixture = HandlerFixture::new("rights").await?;
    fixture.script("create_fn", |cx| {
        cx.info("Said", "twice");
        cx.info("Said", "twice");
        Ok(())
    });
    let user = fixture.sandbox.user("poster");
    fixture
        .sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: poster}}
rules:
  - {{apiGroups: [$GROUP], resources: [widgets, widgets/status], verbs: [list, watch, get, patch]}}
  - {{apiGroups: [\"\"], resources: [events], verbs: [create, patch]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: poster}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: poster}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;
    let own = fixture.sandbox.namespace().to_owned();
    let operator = Operator::new("fixture")
        .resource(fixture.handlers([created()]))
        .namespaces(Namespaces::Only(vec![own]));
    let operator = fixture.start_as(user, operator).await?;
    fixture.create("one", 1).await?;
    fixture.wait_for_events(&["Normal Said 2x twice"]).await?;
    operator.stop().await
}

#[tokio::test]
async fn long_events_are_shortened_to_what_the_api_server_accepts() -> TestResult {
    let mut fixture = HandlerFixture::new("long-events").await?;
    fixture.script("create_fn", |cx| {
        cx.info("Long", "ж".repeat(1024));
        cx.info(&"r".repeat(200), "a long reason");
        Ok(())
    });
    let handlers = fixture.handlers([created()]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let events = try_eventually("both events are there", async || {
        let events = fixture.events().await?;
        Ok((events.len() == 2).then_some(events))
    })
    .await?;
    for event in events {
        let message = event.message.unwrap_or_default();
        assert!(
            message.len() > 1000 || message == "a long reason",
            "{message}"
        );
        assert!(event.reason.unwrap_or_default().len() <= 128);
    }
    operator.stop().await
}

#[tokio::test]
async fn one_event_is_posted_on_several_objects() -> TestResult {
    let mut fixture = HandlerFixture::new("on-both").await?;
    fixture.script_async("create_fn", |cx| {
        let (recorder, maps) = (cx.recorder(), cx.api::<ConfigMap>());
        async move {
            let mut map = ConfigMap::default();
            map.metadata.name = Some("other".to_owned());
            let map = maps.create(&PostParams::default(), &map).await?;
            recorder.and_on(&map)?.info("Paired", "both of them");
            Ok(())
        }
    });
    let operator = fixture.start(fixture.handlers([created()])).await?;
    fixture.create("one", 1).await?;
    let both = "Normal Paired 1x both of them";
    fixture.wait_for_events(&[both, both]).await?;
    let events = fixture.events().await?.into_iter();
    let mut about: Vec<_> = events.filter_map(|it| it.involved_object.name).collect();
    about.sort();
    assert_eq!(about, ["one", "other"]);
    operator.stop().await
}

#[tokio::test]
async fn events_about_cluster_scoped_objects_are_in_the_namespace_of_the_operator() -> TestResult {
    let mut fixture = HandlerFixture::new("cluster-scoped").await?;
    let own = fixture.sandbox.namespace().to_owned();
    let name = own.clone();
    fixture.script_async("create_fn", move |cx| {
        let (recorder, name) = (cx.recorder(), name.clone());
        let namespaces: Api<Namespace> = Api::all(cx.client().clone());
        async move {
            let namespace = namespaces.get(&name).await?;
            recorder.on(&namespace)?.info("Served", "as a whole");
            Ok(())
        }
    });
    let user = fixture.new_user();
    let kubeconfig = fixture.sandbox.control_plane().kubeconfig(&user)?;
    let kubeconfig = Kubeconfig::read_from(kubeconfig)?;
    let options = KubeConfigOptions::default();
    let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    config.default_namespace.clone_from(&own);
    let operator = Operator::new("fixture").resource(fixture.handlers([created()]));
    let operator = fixture.run(operator, kube::Client::try_from(config)?, user);
    fixture.create("one", 1).await?;
    fixture
        .wait_for_events(&["Normal Served 1x as a whole"])
        .await?;
    let event = fixture.events().await?.remove(0);
    assert_eq!(event.involved_object.kind.as_deref(), Some("Namespace"));
    assert_eq!(event.involved_object.name.as_ref(), Some(&own));
    // Kopf writes it, too: the API server wants it to be that of the event.
    assert_eq!(event.involved_object.namespace, Some(own));
    operator.stop().await
}

#[tokio::test]
async fn log_lines_of_event_handlers_do_not_become_events() -> TestResult {
    let mut fixture = HandlerFixture::new("silent-lines").await?;
    let resource = fixture
        .resource()
        .event(EventHandler::new("spy"), |_, cx| {
            Box::pin(async {
                let subscriber = tracing_subscriber::registry().with(EventLayer);
                let _guard = subscriber.set_default();
                warn!("seen {}", cx.name());
                cx.info("Seen", "on purpose");
                Err(HandlerError::permanent("of no interest"))
            })
        })
        .build();
    let mut settings = Settings::default();
    settings.posting.loggers = true;
    settings.posting.progress = ProgressPosting::Everything;
    let operator = fixture.start_with(resource, settings).await?;
    fixture.create("one", 1).await?;
    // The operator posts in the order of the calls: a line would have been first.
    fixture
        .wait_for_events(&["Normal Seen 1x on purpose"])
        .await?;
    operator.stop().await?;
    fixture
        .wait_for_events(&["Normal Seen 1x on purpose"])
        .await
}

#[tokio::test]
async fn index_functions_post_events_but_their_failures_do_not() -> TestResult {
    #[derive(Clone, Copy)]
    struct BySize;
    impl Index for BySize {
        type Key = String;
        type Value = ();
        const NAME: &'static str = "by_size";
    }
    let mut fixture = HandlerFixture::new("indexed-events").await?;
    let resource = fixture
        .resource()
        .index(BySize, IndexHandler::new(), |_, cx| {
            Box::pin(async {
                let size = cx.raw()["spec"]["size"].to_string();
                cx.warn("Indexed", format!("by {size}"));
                if size == "2" {
                    return Err(HandlerError::permanent("no such size"));
                }
                Ok(vec![(size, ())])
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    fixture.create("two", 2).await?;
    let both = ["Warning Indexed 1x by 1", "Warning Indexed 1x by 2"];
    fixture.wait_for_events(&both).await?;
    operator.stop().await?;
    fixture.wait_for_events(&both).await
}
