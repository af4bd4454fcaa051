//! Effects of settings.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use kopf_runtime::{
    ChangeHandler, DiffBaseStore, EventHandler, HandlerError, NetworkingSettings, On, Operator,
    PersistenceSettings, ProgressStore, Settings,
};
use kopf_tests::fault_proxy::{Fault, RequestMatch};
use kopf_tests::{TestResult, eventually};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fixture::HandlerFixture;
use crate::health::HealthFixture;

/// Much shorter than without the settings, and much longer than with them.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn progress_and_diffbase_are_stored_where_the_settings_say() -> TestResult {
    let mut fixture = HandlerFixture::new("kept").await?;
    let finalizer = "kept.example.com/finalizer";
    let settings = Settings {
        persistence: PersistenceSettings {
            finalizer: finalizer.to_owned(),
            prefix: "kept.example.com".to_owned(),
            progress: ProgressStore::Status,
            diffbase: DiffBaseStore::Status,
            status_field: "mine".to_owned(),
            ignored: vec!["spec.noise".to_owned()],
        }
        .into(),
        ..Settings::default()
    };
    fixture.script("make", |cx| match cx.retry() {
        0 => Err(HandlerError::temporary_after(
            Duration::from_millis(500),
            "not yet",
        )),
        _ => Ok(()),
    });
    let handlers = [
        ChangeHandler::new("make", On::create()),
        ChangeHandler::new("change", On::update()),
        ChangeHandler::new("release", On::delete()),
    ];
    let resource = handlers
        .into_iter()
        .fold(fixture.resource(), |resource, handler| {
            resource.change(handler, |scripts, cx| Box::pin(scripts.run(cx)))
        })
        .event(EventHandler::new("spy"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(cx.raw()["spec"].to_string());
                Ok(())
            })
        });
    let operator = fixture.start_with(resource.build(), settings).await?;
    fixture.create("one", 1).await?;
    fixture
        .objects
        .wait_until("one", "the progress is in the status", |it| {
            it.data["status"]["mine"]["progress"]["make"]["retries"] == 1
        })
        .await?;
    let kept = "last-handled-configuration";
    let handled = fixture
        .objects
        .wait_until("one", "the state is in the status", |it| {
            it.data["status"]["mine"][kept].is_string()
        })
        .await?;
    assert_eq!(handled.finalizers(), [finalizer]);
    assert_eq!(
        handled.annotations().len(),
        0,
        "{:?}",
        handled.annotations()
    );
    assert_eq!(
        [
            fixture.next_call().await.retry,
            fixture.next_call().await.retry
        ],
        [0, 1]
    );

    let noise = json!({"spec": {"noise": "loud"}});
    fixture.objects.merge("one", noise).await?;
    let loud = json!({"size": 1, "noise": "loud"});
    while fixture.next_report().await.parse::<Value>()? != loud {}
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    let call = fixture.next_call().await;
    let size = call.spec["size"].as_u64();
    assert_eq!((call.handler.as_str(), size), ("change", Some(2)));
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_call().await.handler, "release");
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn annotations_have_the_prefix_of_the_settings() -> TestResult {
    let mut fixture = HandlerFixture::new("prefix").await?;
    let settings = Settings {
        persistence: PersistenceSettings {
            prefix: "kept.example.com".to_owned(),
            ..PersistenceSettings::default()
        }
        .into(),
        ..Settings::default()
    };
    let resource = fixture.handlers([ChangeHandler::new("make", On::create())]);
    let operator = fixture.start_with(resource, settings).await?;
    fixture.create("one", 1).await?;
    let own = "kept.example.com/last-handled-configuration";
    let handled = fixture
        .objects
        .wait_until("one", "it is handled", |it| {
            it.annotations().contains_key(own)
        })
        .await?;
    let others = handled.annotations().keys();
    let mut others = others.filter(|key| !key.starts_with("kept.example.com/"));
    assert_eq!(others.next(), None);
    operator.stop().await
}

#[tokio::test]
async fn a_request_is_retried_after_the_request_timeout() -> TestResult {
    let mut fixture = HandlerFixture::new("unanswered").await?;
    let settings = Settings {
        networking: NetworkingSettings {
            request_timeout: Duration::from_secs(1),
            ..NetworkingSettings::default()
        },
        ..Settings::default()
    };
    let resource = fixture.handlers([ChangeHandler::new("make", On::create())]);
    let operator = Operator::new("fixture")
        .resource(resource)
        .settings(settings);
    let (proxy, operator) = fixture.start_operator_through_proxy(operator).await?;
    let writes = RequestMatch::any().method(http::Method::PATCH);
    proxy.once(writes.path("/widgets/"), Fault::Delay(SOON * 4));
    let begun = Instant::now();
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    operator.stop().await
}

#[tokio::test]
async fn a_connection_attempt_ends_at_the_connect_timeout() -> TestResult {
    let fixture = HealthFixture::open("unconnected").await?;
    // The kernel accepts connections, and no program answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "silent",
        "clusters": [{"name": "silent", "cluster": {
            "server": format!("https://{}", silent.local_addr()?),
            "insecure-skip-tls-verify": true,
        }}],
        "users": [{"name": "silent", "user": {}}],
        "contexts": [{"name": "silent", "context": {"cluster": "silent", "user": "silent"}}],
    });
    std::fs::write(&kubeconfig, config.to_string())?;
    let kubeconfig = kubeconfig.to_string_lossy();
    let begun = Instant::now();
    let account = fixture.sandbox.administrator("operator");
    let variables = [("HEALTH_CONNECT_TIMEOUT", "1"), ("KUBECONFIG", &kubeconfig)];
    let target = fixture
        .start_as(&account, &["--standalone"], &variables)
        .await?;
    eventually("the request has failed", async || {
        let answer = target.get("/readyz").await.ok()?;
        answer.body.contains("request failed").then_some(())
    })
    .await?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn probe_results_are_cached_as_long_as_the_settings_say() -> TestResult {
    let fixture = HealthFixture::open("probe-cache").await?;
    let target = fixture.start(&[("HEALTH_PROBE_CACHE", "0")]).await?;
    target.until("/readyz", 200).await?;
    let count = async || -> Result<Option<u64>, kopf_tests::TestFailure> {
        Ok(target.get("/healthz").await?.json()["count"].as_u64())
    };
    let first = count().await?;
    assert!(
        count().await? > first,
        "the probe handler is called again at once"
    );
    Ok(())
}

#[tokio::test]
async fn without_error_delays_a_failed_write_is_retried_at_once() -> TestResult {
    let mut fixture = HandlerFixture::new("unthrottled").await?;
    let mut settings = Settings::default();
    settings.queueing.error_delays = Vec::new();
    let resource = fixture.handlers([ChangeHandler::new("make", On::create())]);
    let operator = Operator::new("fixture")
        .resource(resource)
        .settings(settings);
    let (proxy, operator) = fixture.start_operator_through_proxy(operator).await?;
    let writes = RequestMatch::any().method(http::Method::PATCH);
    // With the default delays, the eighth attempt comes after 33 seconds.
    proxy.times(
        7,
        writes.path("/widgets/"),
        Fault::Answer(http::StatusCode::FORBIDDEN),
    );
    let begun = Instant::now();
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    operator.stop().await
}

#[tokio::test]
async fn arbitrary_errors_are_retried_after_the_default_backoff_since_the_first_attempt()
-> TestResult {
    let mut fixture = HandlerFixture::new("backoff").await?;
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&attempts);
    fixture.script("make", move |cx| {
        noted.lock().unwrap().push((cx.started(), cx.runtime()));
        match cx.retry() {
            0 | 1 => Err("an arbitrary error".into()),
            _ => Ok(()),
        }
    });
    let mut settings = Settings::default();
    settings.execution.default_backoff = Duration::from_millis(100);
    let resource = fixture.handlers([ChangeHandler::new("make", On::create())]);
    let operator = fixture.start_with(resource, settings).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let attempts = attempts.lock().unwrap().clone();
    let [first, second, third] = attempts[..] else {
        panic!("three attempts: {attempts:?}");
    };
    assert_eq!((first.0, first.0), (second.0, third.0), "{attempts:?}");
    let pause = Duration::from_millis(100);
    assert!(second.1 >= first.1 + pause, "{attempts:?}");
    assert!(third.1 >= second.1 + pause, "{attempts:?}");
    operator.stop().await
}
