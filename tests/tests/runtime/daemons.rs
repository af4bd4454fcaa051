//! Daemons on real objects: start, stop, errors, and the finalizer that delays deletion.

use std::time::Duration;

use http::StatusCode;
use kopf_runtime::{
    ChangeHandler, DaemonContext, DaemonHandler, HandlerError, HandlerResult, On, Resource,
    ResourceHandlers, Settings, TextTest, TimerHandler,
};
use kopf_tests::{Fault, PeeringObject, RequestMatch, TestResult, try_eventually};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use tokio::runtime::Handle;

use crate::fixture::{HandlerFixture, HandlerScripts};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// Reports its start, waits for the stop signal, and reports the reasons of the stop.
async fn run_until_stopped(
    scripts: &HandlerScripts,
    cx: &mut DaemonContext<Value>,
) -> HandlerResult {
    scripts.report(format!("{} starts", cx.name()));
    cx.stop().wait().await;
    scripts.report(format!("{} stops: {}", cx.name(), cx.stop().reasons()));
    Ok(())
}

fn with_daemon(
    fixture: &HandlerFixture,
    handler: DaemonHandler,
) -> Resource<Value, HandlerScripts> {
    fixture.resource().daemon(handler, |scripts, cx| {
        Box::pin(run_until_stopped(scripts, cx))
    })
}

fn labelled(handler: DaemonHandler) -> DaemonHandler {
    handler.label("on", TextTest::Present)
}

#[tokio::test]
async fn a_daemon_runs_as_long_as_its_object_and_blocks_the_deletion_until_it_has_stopped()
-> TestResult {
    let mut fixture = HandlerFixture::new("daemon-life").await?;
    let resource = with_daemon(&fixture, DaemonHandler::new("watch")).build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one starts");
    let one = fixture.objects.get("one").await?;
    assert_eq!(one.finalizers(), [FINALIZER]);
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_report().await, "one stops: resource deleted");
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn daemons_start_and_stop_with_the_operator_and_leave_no_task() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-restart").await?;
    for name in ["one", "two"] {
        fixture.create(name, 1).await?;
    }
    let tasks = Handle::current().metrics().num_alive_tasks();
    for _ in 0..2 {
        let resource = with_daemon(&fixture, DaemonHandler::new("watch")).build();
        let operator = fixture.start(resource).await?;
        assert_eq!(
            next_two_reports(&mut fixture).await,
            ["one starts", "two starts"]
        );
        operator.stop().await?;
        let stops = ["one stops: operator exiting", "two stops: operator exiting"];
        assert_eq!(next_two_reports(&mut fixture).await, stops);
        try_eventually("no task is left", async || {
            let left = Handle::current().metrics().num_alive_tasks();
            Ok((left <= tasks).then_some(()))
        })
        .await?;
    }
    assert_eq!(fixture.objects.get("one").await?.finalizers(), [FINALIZER]);
    Ok(())
}

#[tokio::test]
async fn a_pause_stops_daemons_and_timers_and_resuming_starts_them_again() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-pause").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let resource = with_daemon(&fixture, DaemonHandler::new("watch"))
        .timer(
            TimerHandler::every("tick", Duration::from_secs(3600)),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report(format!("{} starts to tick", cx.name()));
                    Ok(())
                })
            },
        )
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    let started = ["one starts", "one starts to tick"];
    assert_eq!(next_two_reports(&mut fixture).await, started);
    for _ in 0..3 {
        let other = json!({
            "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
        });
        peering.write(json!({"other": other})).await?;
        assert_eq!(fixture.next_report().await, "one stops: operator pausing");
        peering.write(json!({"other": null})).await?;
        assert_eq!(next_two_reports(&mut fixture).await, started);
    }
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_report().await, "one stops: resource deleted");
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

async fn next_two_reports(fixture: &mut HandlerFixture) -> Vec<String> {
    let mut reports = vec![fixture.next_report().await, fixture.next_report().await];
    reports.sort();
    reports
}

#[tokio::test]
async fn filters_start_and_stop_a_daemon_and_add_and_remove_the_finalizer() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-filters").await?;
    let resource = with_daemon(&fixture, labelled(DaemonHandler::new("watch"))).build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    for _ in 0..2 {
        let labels = json!({"metadata": {"labels": {"on": "yes"}}});
        fixture.objects.merge("one", labels).await?;
        assert_eq!(fixture.next_report().await, "one starts");
        let labels = json!({"metadata": {"labels": {"on": null}}});
        fixture.objects.merge("one", labels).await?;
        assert_eq!(fixture.next_report().await, "one stops: filters mismatch");
        fixture
            .objects
            .wait_until("one", "the finalizer is removed", |it| {
                it.finalizers().is_empty()
            })
            .await?;
    }
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_daemon_reads_the_current_object_and_writes_while_it_runs() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-live").await?;
    let resource = fixture
        .resource()
        .daemon(DaemonHandler::new("mirror"), |scripts, cx| {
            Box::pin(async move {
                let mut size = cx.object()["spec"]["size"].clone();
                while size != 3 {
                    scripts.report(format!("size {size}"));
                    cx.patch().status(json!({"seen": size}));
                    cx.write().await?;
                    while cx.object()["spec"]["size"] == size {
                        cx.changed().await;
                    }
                    size = cx.object()["spec"]["size"].clone();
                }
                cx.set_result(&json!({"last": size}))?;
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "size 1");
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(fixture.next_report().await, "size 2");
    fixture
        .objects
        .wait_until("one", "the size is mirrored", |it| {
            it.data["status"]["seen"] == 2
        })
        .await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 3}}))
        .await?;
    fixture
        .objects
        .wait_until(
            "one",
            "the result is written and the finalizer removed",
            |it| it.data["status"]["mirror"]["last"] == 3 && it.finalizers().is_empty(),
        )
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn errors_restart_a_daemon_and_its_patches_are_written() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-errors").await?;
    let handler = DaemonHandler::new("shaky").backoff(Duration::from_millis(10));
    let resource = fixture
        .resource()
        .daemon(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("attempt {}", cx.retry()));
                cx.patch().status(json!({"attempts": cx.retry() + 1}));
                match cx.retry() {
                    0 => Err(HandlerError::temporary_after(
                        Duration::from_millis(10),
                        "not yet",
                    )),
                    1 => Err(std::fmt::Error.into()),
                    _ => Err(HandlerError::permanent("never")),
                }
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    for attempt in ["attempt 0", "attempt 1", "attempt 2"] {
        assert_eq!(fixture.next_report().await, attempt);
    }
    fixture
        .objects
        .wait_until(
            "one",
            "the last attempt is written, and the finalizer removed",
            |it| it.data["status"]["attempts"] == 3 && it.finalizers().is_empty(),
        )
        .await?;
    operator.stop().await
}

fn slow(fixture: &HandlerFixture) -> ResourceHandlers {
    let handler = DaemonHandler::new("slow");
    fixture
        .resource()
        .daemon(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report("slow starts".to_owned());
                cx.stop().wait().await;
                scripts.wait_for_release().await;
                Ok(())
            })
        })
        .change(
            ChangeHandler::new("release", On::delete()),
            |scripts, cx| Box::pin(scripts.run(cx)),
        )
        .build()
}

#[tokio::test]
async fn delete_handlers_run_once_while_a_slow_daemon_blocks_the_deletion() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-slow").await?;
    let operator = fixture.start(slow(&fixture)).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "slow starts");
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_call().await.handler, "release");
    fixture
        .objects
        .wait_until("one", "the success of the delete handler is kept", |it| {
            crate::fixture::records(it)
                .get("release")
                .is_some_and(|record| record["success"] == true)
        })
        .await?;
    // Any watch event processes the object again, which must not call the handler again.
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    fixture.scripts.release();
    fixture.objects.wait_gone("one").await?;
    assert_eq!(fixture.calls_so_far(), []);
    operator.stop().await
}

#[tokio::test]
async fn delete_handlers_run_once_when_a_daemon_ends_beside_them() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-beside").await?;
    // The write to the status comes before the one that removes the finalizer. The daemon ends
    // meanwhile, and brings the object into the queue once more.
    fixture.script_async("release", |cx| {
        cx.patch().status(json!({"released": true}));
        async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok(())
        }
    });
    let operator = fixture.start(slow(&fixture)).await?;
    fixture.scripts.release();
    for number in 0..10 {
        let name = format!("w{number}");
        fixture.create(&name, 1).await?;
        assert_eq!(fixture.next_report().await, "slow starts");
        fixture.objects.delete(&name).await?;
        fixture.objects.wait_gone(&name).await?;
    }
    fixture.create("last", 1).await?;
    assert_eq!(fixture.next_report().await, "slow starts");
    let calls = fixture.calls_so_far();
    let released = calls.iter().filter(|call| call.handler == "release");
    assert_eq!(released.count(), 10, "{calls:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_daemon_that_ignores_the_stop_signal_is_cancelled_and_the_finalizer_removed() -> TestResult
{
    let mut fixture = HandlerFixture::new("daemon-deaf").await?;
    let handler = DaemonHandler::new("deaf")
        .cancellation_backoff(Duration::from_millis(20))
        .cancellation_timeout(Duration::from_secs(5));
    let resource = fixture
        .resource()
        .daemon(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report("deaf starts".to_owned());
                cx.patch().annotate("note", "survives the interruption");
                std::future::pending().await
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "deaf starts");
    let holder = json!({"metadata": {"finalizers": [FINALIZER, "kopf.dev/test"]}});
    fixture.objects.merge("one", holder).await?;
    fixture.objects.delete("one").await?;
    fixture
        .objects
        .wait_until("one", "the finalizer is removed", |it| {
            it.finalizers() == ["kopf.dev/test"]
        })
        .await?;
    let one = fixture.objects.get("one").await?;
    assert_eq!(one.annotations()["note"], "survives the interruption");
    let no_finalizers = json!({"metadata": {"finalizers": null}});
    fixture.objects.merge("one", no_finalizers).await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn a_thread_that_ignores_the_stop_signal_is_abandoned_and_the_finalizer_removed() -> TestResult
{
    let mut fixture = HandlerFixture::new("daemon-thread").await?;
    let handler = DaemonHandler::new("stuck").cancellation_timeout(Duration::from_millis(50));
    let resource = fixture
        .resource()
        .daemon(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report("stuck starts".to_owned());
                let gate = scripts.release_receiver();
                cx.blocking(move |_| gate.blocking_recv()).await??;
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "stuck starts");
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    fixture.scripts.release();
    operator.stop().await
}

#[tokio::test]
async fn the_operator_waits_for_daemons_no_longer_than_the_shutdown_grace() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-exit").await?;
    let resource = fixture
        .resource()
        .daemon(DaemonHandler::new("deaf"), |scripts, _| {
            Box::pin(async move {
                scripts.report("deaf starts".to_owned());
                std::future::pending().await
            })
        })
        .build();
    let mut settings = Settings::default();
    settings.shutdown.grace = Duration::from_millis(100);
    let tasks = Handle::current().metrics().num_alive_tasks();
    let operator = fixture.start_with(resource, settings).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "deaf starts");
    operator.stop().await?;
    try_eventually("no task is left", async || {
        let left = Handle::current().metrics().num_alive_tasks();
        Ok((left <= tasks).then_some(()))
    })
    .await
}

#[tokio::test]
async fn the_daemon_of_an_object_deleted_between_watches_is_stopped() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-vanish").await?;
    let resource = with_daemon(&fixture, DaemonHandler::new("watch")).build();
    let (proxy, operator) = fixture.start_through_proxy(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "one starts");
    let watches = RequestMatch::any().path("widgets").watches();
    proxy.always(watches.clone(), Fault::CutBefore);
    proxy.cut_all();
    let no_finalizers = json!({"metadata": {"finalizers": null}});
    fixture.objects.merge("one", no_finalizers).await?;
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    proxy.clear_faults();
    proxy.once(watches, Fault::Answer(StatusCode::GONE));
    assert_eq!(fixture.next_report().await, "one stops: resource deleted");
    operator.stop().await
}

#[tokio::test]
async fn an_edit_that_panics_fails_the_attempt_of_a_daemon() -> TestResult {
    let mut fixture = HandlerFixture::new("daemon-panicking-edit").await?;
    let handler = DaemonHandler::new("watch")
        .retries(2)
        .backoff(Duration::from_millis(100));
    let resource = fixture
        .resource()
        .daemon(handler, |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("attempt {}", cx.retry()));
                cx.patch().edit(|_| panic!("as requested"));
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "attempt 0");
    assert_eq!(fixture.next_report().await, "attempt 1");
    // The daemon has failed for good, and does not hold the object any more.
    fixture
        .objects
        .wait_until("one", "the finalizer is removed", |it| {
            it.finalizers().is_empty()
        })
        .await?;
    operator.stop().await
}
