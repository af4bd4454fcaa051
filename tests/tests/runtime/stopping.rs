//! Stopping: signals and grace periods; and the `crd` command.

use std::time::Duration;

use kopf_runtime::{ChangeHandler, On, Operator, Settings};
use kopf_tests::child_process::{ChildProcess, Ending, Signal};
use kopf_tests::{Sandbox, TestResult};
use serde_json::json;
use tokio::sync::watch;

use crate::fixture::{HandlerFixture, records};

#[tokio::test]
async fn on_exit_a_running_handler_finishes_and_the_next_one_waits_for_the_next_start() -> TestResult
{
    let mut fixture = HandlerFixture::new("graceful").await?;
    let (release, released) = watch::channel(false);
    fixture.script_async("first", move |_| {
        let mut released = released.clone();
        async move {
            released.wait_for(|released| *released).await?;
            Ok(())
        }
    });
    let handlers = || ["first", "second"].map(|name| ChangeHandler::new(name, On::create()));
    let operator = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.handler, "first");
    let stopping = operator.stop();
    let releasing = async {
        tokio::task::yield_now().await;
        release.send_replace(true);
    };
    let (stopped, ()) = futures::future::join(stopping, releasing).await;
    stopped?;
    let one = fixture.objects.get("one").await?;
    assert_eq!(records(&one)["first"]["success"], true);
    assert_eq!(fixture.calls_so_far(), []);

    let operator = fixture.start(fixture.handlers(handlers())).await?;
    assert_eq!(fixture.next_call().await.handler, "second");
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn a_handler_that_exceeds_the_shutdown_grace_is_cancelled_without_progress() -> TestResult {
    let mut fixture = HandlerFixture::new("impatient").await?;
    fixture.script_async("endless", |_| std::future::pending());
    let mut settings = Settings::default();
    settings.shutdown.grace = Duration::from_millis(100);
    let handlers = fixture.handlers([ChangeHandler::new("endless", On::create())]);
    let operator = fixture.start_with(handlers, settings).await?;
    fixture.create("one", 1).await?;
    fixture.next_call().await;
    operator.stop().await?;
    let one = fixture.objects.get("one").await?;
    assert_eq!(one.metadata.annotations, None);
    Ok(())
}

#[tokio::test]
async fn one_kind_cannot_be_declared_twice() -> TestResult {
    let fixture = HandlerFixture::new("twice").await?;
    let declare = || fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("twice")
        .resource(declare())
        .resource(declare());
    let client = fixture.sandbox.client();
    let error = operator.run(client, std::future::pending()).await;
    let error = error.expect_err("the declarations contradict").to_string();
    assert!(error.contains("Widget is declared twice"), "{error}");
    Ok(())
}

#[tokio::test]
async fn the_first_signal_stops_gracefully_and_the_second_at_once() -> TestResult {
    let sandbox = Sandbox::open("signals").await?;
    let objects = sandbox.define("Widget").await?;
    let identity = sandbox.administrator("operator");
    let process: ChildProcess = sandbox
        .operator(env!("CARGO_BIN_EXE_flaky-operator"), &identity)?
        .env("FLAKY_GROUP", sandbox.group())
        .env("FLAKY_ENDLESS", "yes")
        .env("KOPF_RUN_NAMESPACE", sandbox.namespace())
        .start()?;
    objects.create("one", json!({"spec": {"size": 1}})).await?;
    process.wait_for_log("the quick handler never ends").await?;
    process.signal(Signal::TERM)?;
    process
        .wait_for_log("another signal ends the process at once")
        .await?;
    process.signal(Signal::TERM)?;
    assert_eq!(process.wait().await?, Ending::Exit(143));
    process.wait_for_log("handlers were interrupted").await?;
    Ok(())
}

#[tokio::test]
async fn the_crd_command_prints_the_definitions() -> TestResult {
    let process = ChildProcess::command(env!("CARGO_BIN_EXE_flaky-operator"))
        .arg("crd")
        .start()?;
    assert_eq!(process.wait().await?, Ending::Exit(0));
    let printed = process.log();
    assert!(
        printed.starts_with("---\napiVersion: apiextensions.k8s.io/v1\n"),
        "{printed}"
    );
    assert!(
        printed.contains("name: samples.flaky.kopf.test"),
        "{printed}"
    );
    Ok(())
}

#[tokio::test]
async fn an_operator_with_endless_patience_stops() -> TestResult {
    let mut fixture = HandlerFixture::new("endless").await?;
    let mut settings = Settings::default();
    settings.shutdown.grace = Duration::MAX;
    settings.shutdown.posting_grace = Duration::MAX;
    settings.shutdown.deadline = Duration::MAX;
    settings.watching.server_timeout = Duration::MAX;
    settings.posting.refill = Duration::MAX;
    settings.posting.burst = 1;
    fixture.script("create_fn", |cx| {
        cx.info("First", "the budget is for one event");
        cx.info("Second", "this one waits for its budget");
        Ok(())
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start_with(handlers, settings).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}
