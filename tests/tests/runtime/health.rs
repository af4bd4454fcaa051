//! Health endpoints of operators in processes of their own: liveness, readiness, probes, pauses.

use std::time::{Duration, Instant};

use kopf_tests::child_process::{ChildProcess, ChildProcessBuilder, Ending};
use kopf_tests::health_client::{HealthClient, HttpResponse};
use kopf_tests::{
    Component, Objects, PeeringObject, PrivateControlPlane, Sandbox, TestFailure, TestResult, User,
    eventually,
};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::metrics::{metrics, until};

const LIVENESS: &str = "/healthz";
const READINESS: &str = "/readyz";

/// Longer than a busy machine keeps a process waiting.
const STUCK_AFTER: Duration = Duration::from_secs(4);

/// A sandbox with widgets and an operator for them.
pub(crate) struct HealthFixture {
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
}

/// An operator with its endpoint.
pub(crate) struct HealthOperator {
    pub(crate) process: ChildProcess,
    pub(crate) endpoint: HealthClient,
}

impl HealthFixture {
    pub(crate) async fn open(name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    async fn in_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            sandbox,
        })
    }

    pub(crate) async fn start(
        &self,
        variables: &[(&str, &str)],
    ) -> Result<HealthOperator, TestFailure> {
        let account = self.sandbox.administrator("operator");
        self.start_as(&account, &[], variables).await
    }

    pub(crate) async fn start_as(
        &self,
        account: &User,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<HealthOperator, TestFailure> {
        let mut builder = self.prepare(account)?.args(arguments);
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        HealthOperator::start(builder).await
    }

    /// Prepares to start the operator.
    fn prepare(&self, account: &User) -> Result<ChildProcessBuilder, TestFailure> {
        let builder = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_health-operator"), account)?
            .env("HEALTH_GROUP", self.sandbox.group())
            .args(["run", "--verbose", "--log-format", "plain"])
            .args(["--namespace", self.sandbox.namespace()])
            .args(["--liveness", "http://127.0.0.1:0/healthz"]);
        Ok(builder)
    }
}

impl HealthOperator {
    async fn start(builder: ChildProcessBuilder) -> Result<Self, TestFailure> {
        let process = builder.start()?;
        let endpoint = HealthClient::of(&process).await?;
        Ok(Self { process, endpoint })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<HttpResponse, TestFailure> {
        self.endpoint.get(path).await
    }

    /// Waits until a path is answered with this status, and returns the body.
    pub(crate) async fn until(&self, path: &str, status: u16) -> Result<Value, TestFailure> {
        eventually(&format!("{path} answers {status}"), async || {
            let answer = self.get(path).await.ok()?;
            (answer.status == status).then(|| answer.json())
        })
        .await
    }
}

/// The page with the answers that clients get.
const DOCUMENTED: &str = include_str!("../../../docs/observability.md");

/// The answer of the page that has this key.
fn documented(key: &str) -> Value {
    let blocks = DOCUMENTED.split("```json\n").skip(1);
    let texts = blocks.filter_map(|it| it.split("```").next());
    let mut answers = texts.filter_map(|it| serde_json::from_str::<Value>(it).ok());
    let found = answers.find(|it| it.get(key).is_some());
    found.unwrap_or_else(|| panic!("no answer of the page has {key}"))
}

fn problems(answer: &Value) -> String {
    answer["problems"].to_string()
}

#[tokio::test]
async fn an_operator_is_ready_when_it_has_listed_all_objects() -> TestResult {
    let fixture = HealthFixture::open("ready").await?;
    let target = fixture.start(&[]).await?;
    let ready = target.until(READINESS, 200).await?;
    assert_eq!(ready, json!({"ready": true, "problems": []}));
    fixture.widgets.create("one", json!({})).await?;
    fixture
        .widgets
        .wait_until("one", "handled", |it| it.data["status"]["done"] == true)
        .await?;
    assert_eq!(target.get(LIVENESS).await?.status, 200);
    assert_eq!(target.process.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn liveness_fails_for_blocked_threads_and_not_for_a_handler_that_never_ends() -> TestResult {
    let fixture = HealthFixture::open("stuck").await?;
    let target = fixture
        .start(&[("HEALTH_STUCK_AFTER", "4"), ("TOKIO_WORKER_THREADS", "2")])
        .await?;
    target.until(READINESS, 200).await?;
    fixture
        .widgets
        .create("waits", json!({"spec": {"do": "wait"}}))
        .await?;
    target.process.wait_for_log("waiting for ever").await?;
    // Longer than `stuck_after`.
    let begun = Instant::now();
    while begun.elapsed() < 2 * STUCK_AFTER {
        assert_eq!(target.get(LIVENESS).await?.status, 200);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }

    let block = json!({"spec": {"do": "block", "seconds": 20}});
    fixture.widgets.create("blocks", block).await?;
    let stuck = target.until(LIVENESS, 503).await?;
    assert!(problems(&stuck).contains("the runtime is stuck"), "{stuck}");
    let digits = |it: &Value| problems(it).replace(|letter: char| letter.is_ascii_digit(), "");
    let shown = digits(&documented("problems"));
    let shown = shown.trim_matches(['[', ']']);
    assert!(digits(&stuck).contains(shown), "{stuck} is not {shown}");
    let unready = target.get(READINESS).await?;
    assert_eq!(unready.status, 503);
    assert!(problems(&unready.json()).contains("the runtime is stuck"));
    Ok(())
}

#[tokio::test]
async fn without_the_api_server_liveness_passes_and_readiness_reports_the_problem() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "away").await?;
    let fixture = HealthFixture::in_sandbox(sandbox).await?;
    let target = fixture.start(&[("HEALTH_STUCK_AFTER", "4")]).await?;
    target.until(READINESS, 200).await?;
    plane.kill(Component::ApiServer).await?;
    let unready = target.until(READINESS, 503).await?;
    assert!(problems(&unready).contains("request failed"), "{unready}");
    let begun = Instant::now();
    while begun.elapsed() < STUCK_AFTER + Duration::from_secs(1) {
        assert_eq!(target.get(LIVENESS).await?.status, 200);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    plane.revive(Component::ApiServer).await?;
    target.until(READINESS, 200).await?;
    Ok(())
}

#[tokio::test]
async fn readiness_names_a_missing_permission() -> TestResult {
    let fixture = HealthFixture::open("no-leave").await?;
    let account = fixture.sandbox.user("unprivileged");
    let target = fixture.start_as(&account, &["--standalone"], &[]).await?;
    let unready = eventually("the missing permission is reported", async || {
        let unready = target.until(READINESS, 503).await.ok()?;
        problems(&unready)
            .contains("is forbidden")
            .then_some(unready)
    })
    .await?;
    let reported = problems(&unready);
    let missing = format!(
        r#"User \"{}\" cannot list resource \"widgets\" in API group \"{}\" in the namespace"#,
        account.name(),
        fixture.sandbox.group()
    );
    assert!(reported.contains(&missing), "{reported} lacks {missing}");
    let shown = documented("ready");
    assert_eq!(shown["ready"], unready["ready"]);
    // The names are other ones: the words between them, up to the scope, are compared.
    let names = [
        "kopfexamples.kopf.dev",
        "system:serviceaccount:ns:op",
        "kopfexamples",
        "kopf.dev",
    ];
    let shown = names
        .iter()
        .fold(problems(&shown), |text, name| text.replace(name, "..."));
    let mut rest = &*reported;
    for words in shown.split("...").take_while(|it| !it.contains("scope")) {
        let words = words.trim_start_matches("[\"").trim();
        let found = rest.split_once(words);
        rest = found
            .unwrap_or_else(|| panic!("{reported} lacks {words}"))
            .1;
    }
    assert_eq!(target.get(LIVENESS).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn the_results_of_probe_handlers_are_cached_for_ten_seconds() -> TestResult {
    let fixture = HealthFixture::open("probes").await?;
    let folder = tempfile::tempdir()?;
    let failure_file = folder.path().join("failure");
    let file = failure_file.to_string_lossy();
    let target = fixture.start(&[("HEALTH_FAILURE_FILE", &file)]).await?;
    // The operator may not have called the probe handlers yet, or once.
    let starting = target.until(LIVENESS, 200).await?;
    assert!(
        [Value::Null, json!(0)].contains(&starting["count"]),
        "{starting}"
    );
    assert!(starting["problems"].is_null(), "{starting}");
    target.until(READINESS, 200).await?;
    // The readiness checks have filled the cache: a new count is a fresh result.
    let first = eventually("the probe handlers are called again", async || {
        let answer = target.get(LIVENESS).await.ok()?.json();
        (answer["count"].as_u64() >= Some(1)).then_some(answer)
    })
    .await?;
    assert_eq!(first, json!({"count": first["count"]}));
    std::fs::write(&failure_file, "")?;
    assert_eq!(target.get(LIVENESS).await?.json(), first, "cached");
    let failed = target.until(LIVENESS, 500).await?;
    let problem = "Probe 'file_check' failed: the failure file exists";
    assert_eq!(failed, json!({"problems": [problem]}));
    target.process.wait_for_log(problem).await?;
    assert_eq!(target.get(READINESS).await?.status, 200);
    std::fs::remove_file(&failure_file)?;
    let recovered = target.until(LIVENESS, 200).await?;
    assert!(
        recovered["count"].as_u64() >= first["count"].as_u64().map(|it| it + 2),
        "{recovered}"
    );
    Ok(())
}

#[tokio::test]
async fn slow_and_malformed_requests_do_not_block_the_health_endpoint() -> TestResult {
    let fixture = HealthFixture::open("strangers").await?;
    let target = fixture.start(&[]).await?;
    target.until(READINESS, 200).await?;
    let mut slow = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(target.endpoint.address()).await?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHost:").await?;
        slow.push(stream);
    }
    assert_eq!(target.get(LIVENESS).await?.status, 200);
    let long = "x".repeat(1024 * 1024);
    for (request, status) in [
        (
            "POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
            405,
        ),
        ("GET /else HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        ("GET /healthz/ HTTP/1.1\r\nHost: a\r\n\r\n", 404),
        ("HEAD /readyz HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /readyz HTTP/1.0\r\n\r\n", 200),
        ("\0\x01\x02 nonsense\r\n\r\n", 400),
    ] {
        let answer = target.endpoint.send(request).await?;
        assert_eq!(answer.status, status, "{request:?}: {answer:?}");
        assert!(!request.starts_with("HEAD") || answer.body.is_empty());
    }
    // The response can be lost if the server closes the connection while the client still writes.
    let endless = format!("GET /{long} HTTP/1.1\r\nX: {long}\r\n\r\n");
    if let Ok(refused) = target.endpoint.send(&endless).await {
        assert!([0, 400, 414, 431].contains(&refused.status), "{refused:?}");
    }
    assert_eq!(target.get(LIVENESS).await?.status, 200);
    Ok(())
}

#[tokio::test]
async fn the_operator_exits_with_an_error_if_the_health_address_is_in_use() -> TestResult {
    let fixture = HealthFixture::open("taken").await?;
    let target = fixture.start(&[]).await?;
    let address = format!("http://{}/x", target.endpoint.address());
    let account = fixture.sandbox.administrator("second");
    let second = fixture
        .prepare(&account)?
        .env("KOPF_RUN_LIVENESS", "unused");
    let second = second.args(["--liveness", &address]).start()?;
    assert_eq!(second.wait().await?, Ending::Exit(2), "given twice");
    let second = fixture
        .sandbox
        .operator(env!("CARGO_BIN_EXE_health-operator"), &account)?
        .env("KOPF_RUN_LIVENESS", &address)
        .start()?;
    assert_eq!(second.wait().await?, Ending::Exit(6));
    let reason = format!("cannot listen on {address} for health checks");
    second.wait_for_log(&reason).await?;
    Ok(())
}

#[tokio::test]
async fn webhooks_and_probes_are_served_during_a_pause_which_health_and_metrics_report()
-> TestResult {
    let fixture = HealthFixture::open("paused").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let target = fixture.start(&[("HEALTH_WEBHOOK", "yes")]).await?;
    target
        .process
        .wait_for_log("the webhooks are configured")
        .await?;
    target.until(READINESS, 200).await?;
    let refused = json!({"spec": {"do": "refuse"}});
    eventually("the webhook refuses", async || {
        fixture
            .widgets
            .create("refused", refused.clone())
            .await
            .err()
    })
    .await?;

    let peer = json!({"someone": {
        "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
    }});
    peering.write(peer).await?;
    target
        .process
        .wait_for_log("Pausing operations: in favour of someone (priority 100).")
        .await?;
    let paused = json!({"reason": "peers", "message": "in favour of someone (priority 100)"});
    let alive = target.until(LIVENESS, 200).await?;
    assert_eq!(alive["kopf-gen.dev/paused"], paused);
    let shown = documented("kopf-gen.dev/paused")["kopf-gen.dev/paused"].to_string();
    let shown = shown.replace("dev (priority 666)", "someone (priority 100)");
    assert_eq!(paused.to_string(), shown);
    assert!(
        alive["count"].is_u64(),
        "probe handlers are called: {alive}"
    );
    let ready = target.until(READINESS, 200).await?;
    assert_eq!(
        ready,
        json!({"ready": true, "problems": [], "paused": paused})
    );
    let values = metrics(&target).await?;
    assert_eq!(
        values.value("kopf_paused", &[("reason", "peers")]),
        Some(1.0)
    );
    assert_eq!(values.value("kopf_paused", &[("reason", "tie")]), Some(0.0));
    assert_eq!(values.value("kopf_peers", &[]), Some(1.0));

    let denied = fixture.widgets.create("refused", refused).await;
    assert!(denied.is_err(), "the webhook is served");
    fixture.widgets.create("waits", json!({})).await?;
    let reviews = [
        ("kind", &*format!("Widget.{}", fixture.sandbox.group())),
        ("webhook", "check"),
        ("verdict", "allowed"),
    ];
    until(&target, "kopf_webhook_reviews_total", &reviews, |it| {
        it >= 1.0
    })
    .await?;
    let waits = fixture.widgets.get("waits").await?;
    assert_eq!(waits.data["status"], Value::Null, "nothing is handled");

    peering.write(json!({"someone": null})).await?;
    fixture
        .widgets
        .wait_until("waits", "handled", |it| it.data["status"]["done"] == true)
        .await?;
    let alive = target.until(LIVENESS, 200).await?;
    assert_eq!(alive["kopf-gen.dev/paused"], Value::Null);
    until(&target, "kopf_paused", &[("reason", "peers")], |it| {
        it == 0.0
    })
    .await?;
    until(&target, "kopf_peers", &[], |it| it == 0.0).await?;
    assert_eq!(target.process.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_standby_replica_is_ready_and_reports_that_it_is_not_the_leader() -> TestResult {
    let fixture = HealthFixture::open("standby").await?;
    let account = fixture.sandbox.administrator("replicas");
    let lease = [("HEALTH_LEASE", "ours")];
    let namespace = ["--lease-namespace", fixture.sandbox.namespace()];
    let leader = fixture.start_as(&account, &namespace, &lease).await?;
    until(&leader, "kopf_leader", &[], |it| it == 1.0).await?;
    leader.until(READINESS, 200).await?;
    let other = fixture.start_as(&account, &namespace, &lease).await?;
    let ready = other.until(READINESS, 200).await?;
    assert_eq!(ready["paused"]["reason"], "standby");
    let values = metrics(&other).await?;
    assert_eq!(values.value("kopf_leader", &[]), Some(0.0));
    assert_eq!(
        values.value("kopf_paused", &[("reason", "standby")]),
        Some(1.0)
    );
    assert_eq!(leader.process.terminate().await?, Ending::Exit(0));
    until(&other, "kopf_leader", &[], |it| it == 1.0).await?;
    Ok(())
}

#[tokio::test]
async fn the_operator_identity_is_the_pod_or_user_host_and_time() -> TestResult {
    let fixture = HealthFixture::open("identity").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let account = fixture.sandbox.administrator("named");
    let bare = || -> Result<ChildProcessBuilder, TestFailure> {
        let names = ["POD_ID", "LOGNAME", "USER", "LNAME", "USERNAME"];
        let names = names.into_iter().chain(["HOSTNAME", "COMPUTERNAME"]);
        let prepared = fixture.prepare(&account)?;
        Ok(names.fold(prepared, ChildProcessBuilder::env_remove))
    };
    let pod = |builder: ChildProcessBuilder| builder.env("POD_ID", "pod-1").env("USER", "me");
    let person =
        |builder: ChildProcessBuilder| builder.env("USER", "me").env("HOSTNAME", "laptop.local");
    for (prepared, name) in [
        (pod(bare()?), "pod-1"),
        (person(bare()?).env("POD_ID", ""), "me@laptop/"),
        (bare()?, "user@"),
    ] {
        let target = HealthOperator::start(prepared).await?;
        let records = eventually("the operator is in the peering", async || {
            let records = peering.records().await.ok()?;
            (!records.is_empty()).then_some(records)
        })
        .await?;
        let identity = records.into_keys().next().unwrap_or_default();
        assert!(identity.starts_with(name), "{identity} is not {name}");
        if let Some((_, rest)) = identity.split_once('/') {
            let (time, random) = rest.split_once('/').unwrap_or_default();
            assert!(time.len() == 14 && time.bytes().all(|it| it.is_ascii_digit()));
            let letters = "abcdefhijklmnopqrstuvwxyz0123456789";
            assert!(random.len() == 3 && random.chars().all(|it| letters.contains(it)));
            let host = identity.split(['@', '/']).nth(1).unwrap_or_default();
            assert!(!host.is_empty(), "{identity}");
        } else {
            assert_eq!(identity, name);
        }
        assert_eq!(target.process.terminate().await?, Ending::Exit(0));
        peering.wait_for(&[]).await?;
    }
    Ok(())
}
