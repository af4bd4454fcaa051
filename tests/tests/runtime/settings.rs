//! Settings reach what they are about.

use std::time::{Duration, Instant};

use kopf_runtime::{
    ChangeHandler, DiffBasePlace, EventHandler, HandlerError, NetworkingSettings, On, Operator,
    PersistenceSettings, ProgressPlace, Settings,
};
use kopf_tests::fault_proxy::{Fault, RequestMatch};
use kopf_tests::{TestResult, eventually};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::bench::Bench;
use crate::health::Ward;

/// Much less than it would take without the settings, and much more than with them.
const SOON: Duration = Duration::from_secs(15);

#[tokio::test]
async fn facts_are_kept_where_the_settings_say() -> TestResult {
    let mut bench = Bench::new("kept").await?;
    let finalizer = "kept.example.com/finalizer";
    let settings = Settings {
        persistence: PersistenceSettings {
            finalizer: finalizer.to_owned(),
            prefix: "kept.example.com".to_owned(),
            progress: ProgressPlace::Status,
            diffbase: DiffBasePlace::Status,
            status_field: "mine".to_owned(),
            ignored: vec!["spec.noise".to_owned()],
        }
        .into(),
        ..Settings::default()
    };
    bench.script("make", |cx| match cx.retry() {
        0 => Err(HandlerError::temporary("not yet").after(Duration::from_millis(500))),
        _ => Ok(()),
    });
    let handlers = [
        ChangeHandler::new("make", On::create()),
        ChangeHandler::new("change", On::update()),
        ChangeHandler::new("release", On::delete()),
    ];
    let resource = handlers
        .into_iter()
        .fold(bench.resource(), |resource, handler| {
            resource.change(handler, |stage, cx| Box::pin(stage.act(cx)))
        })
        .event(EventHandler::new("spy"), |stage, cx| {
            Box::pin(async move {
                stage.tell(cx.raw()["spec"].to_string());
                Ok(())
            })
        });
    let operator = bench.start_with(resource.build(), settings).await?;
    bench.create("one", 1).await?;
    bench
        .objects
        .wait_until("one", "the progress is in the status", |it| {
            it.data["status"]["mine"]["progress"]["make"]["retries"] == 1
        })
        .await?;
    let kept = "last-handled-configuration";
    let handled = bench
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
    assert_eq!([bench.call().await.retry, bench.call().await.retry], [0, 1]);

    let noise = json!({"spec": {"noise": "loud"}});
    bench.objects.merge("one", noise).await?;
    let loud = json!({"size": 1, "noise": "loud"});
    while bench.seen().await.parse::<Value>()? != loud {}
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    let call = bench.call().await;
    let size = call.spec["size"].as_u64();
    assert_eq!((call.handler.as_str(), size), ("change", Some(2)));
    bench.objects.delete("one").await?;
    assert_eq!(bench.call().await.handler, "release");
    bench.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn annotations_begin_as_the_settings_say() -> TestResult {
    let mut bench = Bench::new("prefix").await?;
    let settings = Settings {
        persistence: PersistenceSettings {
            prefix: "kept.example.com".to_owned(),
            ..PersistenceSettings::default()
        }
        .into(),
        ..Settings::default()
    };
    let resource = bench.handlers([ChangeHandler::new("make", On::create())]);
    let operator = bench.start_with(resource, settings).await?;
    bench.create("one", 1).await?;
    let own = "kept.example.com/last-handled-configuration";
    let handled = bench
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
async fn a_request_is_made_again_when_the_time_for_its_answer_is_over() -> TestResult {
    let mut bench = Bench::new("unanswered").await?;
    let settings = Settings {
        networking: NetworkingSettings {
            request_timeout: Duration::from_secs(1),
            ..NetworkingSettings::default()
        },
        ..Settings::default()
    };
    let resource = bench.handlers([ChangeHandler::new("make", On::create())]);
    let operator = Operator::new("bench").resource(resource).settings(settings);
    let (proxy, operator) = bench.start_operator_through_proxy(operator).await?;
    let writes = RequestMatch::any().method(http::Method::PATCH);
    proxy.once(writes.path("/widgets/"), Fault::Delay(SOON * 4));
    let begun = Instant::now();
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    operator.stop().await
}

#[tokio::test]
async fn a_connection_is_given_up_when_the_time_for_it_is_over() -> TestResult {
    let ward = Ward::open("unconnected").await?;
    // It takes connections, and says nothing.
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
    let account = ward.sandbox.administrator("patient");
    let variables = [("HEALTH_CONNECT_TIMEOUT", "1"), ("KUBECONFIG", &kubeconfig)];
    let patient = ward
        .admit_as(&account, &["--standalone"], &variables)
        .await?;
    eventually("the request has failed", async || {
        let answer = patient.get("/readyz").await.ok()?;
        answer.body.contains("request failed").then_some(())
    })
    .await?;
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    Ok(())
}

#[tokio::test]
async fn the_answer_of_probes_is_kept_as_long_as_the_settings_say() -> TestResult {
    let ward = Ward::open("probe-cache").await?;
    let patient = ward.admit(&[("HEALTH_PROBE_CACHE", "0")]).await?;
    patient.until("/readyz", 200).await?;
    let count = async || -> Result<Option<u64>, kopf_tests::TestFailure> {
        Ok(patient.get("/healthz").await?.json()["count"].as_u64())
    };
    let first = count().await?;
    assert!(count().await? > first, "it is asked again at once");
    Ok(())
}
