//! Tests of daemons and timers on a paused clock, without an API server.

use std::sync::atomic::AtomicUsize;

use kube::{Client, Config};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::*;
use crate::children::Children;
use crate::client::resource::{ResourceSpec, ResourceTarget, Scope, StatusSubresource};
use crate::context::daemon::DaemonContext;
use crate::context::timer::TimerContext;
use crate::coordination::pause::PauseGate;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::handler::{DaemonHandler, TimerHandler};
use crate::health::metrics::KindMetrics;
use crate::index::Indices;
use crate::page::journal::PageJournal;
use crate::process::HandledKind;
use crate::process::execute::applied_uids::AppliedUids;
use crate::process::kind::KindServices;
use crate::registration::Resource;
use crate::watch::KindIndex;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// The state of the test operator: a log that the handlers write.
struct HandlerLog {
    begin: Instant,
    lines: Mutex<Vec<String>>,
    running: AtomicUsize,
}

/// A running scheduler, and one object.
struct BackgroundTest {
    log: Arc<HandlerLog>,
    background: Arc<Background>,
    requeues: mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    scheduler: JoinHandle<()>,
    quit: CancellationToken,
    handlers: Vec<Arc<BackgroundHandler>>,
    key: Arc<ObjectKey>,
    /// The number of tasks before the scheduler: those of the client.
    tasks: usize,
}

impl HandlerLog {
    /// Adds a line with the time since the begin in seconds.
    fn note(&self, what: impl Into<String>) {
        let at = self.begin.elapsed().as_secs_f64();
        let line = format!("{at} {}", what.into());
        self.lines.lock().unwrap().push(line);
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

fn handler_log() -> Arc<HandlerLog> {
    Arc::new(HandlerLog {
        begin: Instant::now(),
        lines: Mutex::default(),
        running: AtomicUsize::new(0),
    })
}

fn resource(log: &Arc<HandlerLog>) -> Resource<Value, HandlerLog> {
    let spec = ResourceSpec {
        group: "kopf.dev",
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    Resource::new(spec, log)
}

impl BackgroundTest {
    fn new(
        declare: impl FnOnce(Resource<Value, HandlerLog>) -> Resource<Value, HandlerLog>,
    ) -> Self {
        let log = handler_log();
        let resource = declare(resource(&log)).build();
        let settings = Settings::default();
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let persistence = Arc::new(settings.persistence.clone());
        let tasks = Handle::current().metrics().num_alive_tasks();
        let services = Arc::new(OperatorServices {
            client: client.clone(),
            field_manager: "test".into(),
            poster: None,
            pause_gate: PauseGate::always(),
            indices: Indices::default(),
            applied: AppliedUids::default(),
            journal: PageJournal::default(),
        });
        let kind_services = KindServices {
            client,
            persistence,
            indices: Indices::default(),
            patience: settings.networking.request_timeout,
            metrics: KindMetrics::unobserved(),
            children: Children::new(services.client.clone(), "test".into(), []),
        };
        let ResourceTarget::Kind(spec) = resource.target else {
            panic!("the coverage is one kind");
        };
        let kind = HandledKind::new(spec.into(), &[&resource], kind_services).unwrap();
        let queueing = &settings.queueing;
        let limits = QueueLimits::new(queueing.worker_limit, queueing.worker_patience);
        let background_setup = BackgroundSetup::new(Arc::new(settings), services);
        let background = Arc::clone(&background_setup.background);
        let quit = CancellationToken::new();
        let (scheduler, requeues) =
            background_setup.scheduler(limits, Heartbeat::unobserved(), quit.clone());
        Self {
            log,
            background,
            requeues,
            scheduler: tokio::spawn(scheduler),
            quit,
            handlers: kind.background_handlers().to_vec(),
            key: Arc::new(ObjectKey {
                kind: KindIndex(0),
                uid: "uid".into(),
                namespace: Some("ns".into()),
                name: "one".into(),
            }),
            tasks,
        }
    }

    /// Reconciles a state of the object; returns whether it needs the finalizer.
    fn reconcile_as(&self, object: &Value, life: ObjectLife, listed: bool) -> bool {
        let version = ObjectView::new(object).resource_version();
        let text = serde_json::value::to_raw_value(object).unwrap();
        self.background
            .update_latest(&self.key, &text.into(), version.map(ResourceVersion::new));
        self.background.reconcile(&ObservedObject {
            key: &self.key,
            handlers: &self.handlers,
            object,
            essence: &object["spec"],
            life,
            listed,
        })
    }

    fn reconcile(&self, object: &Value) -> bool {
        self.reconcile_as(object, ObjectLife::Alive { held: true }, false)
    }

    fn delete(&self, object: &Value) -> bool {
        self.reconcile_as(object, ObjectLife::Deleting, false)
    }

    /// Reconciles that many other objects.
    fn reconcile_many(&self, size: usize, listed: bool) {
        let object = object(1, 1);
        for number in 0..size {
            let key = Arc::new(ObjectKey {
                kind: KindIndex(0),
                uid: number.to_string().into(),
                namespace: None,
                name: number.to_string().into(),
            });
            self.background.reconcile(&ObservedObject {
                key: &key,
                handlers: &self.handlers,
                object: &object,
                essence: &object["spec"],
                life: ObjectLife::Alive { held: true },
                listed,
            });
        }
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn requeued(&mut self) {
        let key = self.requeues.recv().await.unwrap();
        assert_eq!(key, self.key);
    }

    /// Ends the scheduler, and checks that none of its tasks is left.
    async fn close(self) {
        self.quit.cancel();
        self.scheduler.await.unwrap();
        let alive = || Handle::current().metrics().num_alive_tasks();
        // With several threads, tokio counts a task for a moment after its end.
        let deadline = std::time::Instant::now() + s(5);
        while alive() != self.tasks && std::time::Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        assert_eq!(alive(), self.tasks);
    }
}

fn object(version: u32, size: u32) -> Value {
    json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "Widget",
        "metadata": {"name": "one", "namespace": "ns", "uid": "uid",
            "resourceVersion": version.to_string(), "labels": {"on": "yes"}},
        "spec": {"size": size},
    })
}

fn unlabelled(version: u32) -> Value {
    let mut object = object(version, 1);
    object["metadata"]["labels"] = json!({});
    object
}

/// A daemon that stops when it is asked to.
async fn stops_when_asked(log: &HandlerLog, cx: &mut DaemonContext<Value>) -> HandlerResult {
    log.note("starts");
    cx.stop().wait().await;
    log.note(format!("stops: {}", cx.stop().reasons()));
    Ok(())
}

fn matching(handler: DaemonHandler) -> DaemonHandler {
    handler.label("on", kopf_core::handler::filter::TextTest::Present)
}

#[tokio::test(start_paused = true)]
async fn a_daemon_runs_while_its_object_matches_and_again_when_it_matches_again() {
    let mut test = BackgroundTest::new(|resource| {
        resource.daemon(matching(DaemonHandler::new("d")), |state, cx| {
            Box::pin(stops_when_asked(state, cx))
        })
    });
    assert!(test.reconcile_as(&object(1, 1), ObjectLife::Alive { held: false }, false));
    test.sleep(s(1)).await;
    assert!(
        test.log.notes().is_empty(),
        "nothing starts before the finalizer is there"
    );
    assert!(test.reconcile(&object(1, 1)));
    assert!(test.reconcile(&object(2, 1)));
    test.sleep(s(1)).await;
    assert!(test.reconcile(&unlabelled(3)), "held until it has stopped");
    test.requeued().await;
    assert!(!test.reconcile(&unlabelled(3)));
    assert!(test.reconcile(&object(4, 1)));
    test.sleep(s(1)).await;
    assert!(test.delete(&object(5, 1)));
    test.requeued().await;
    assert!(!test.delete(&object(5, 1)));
    assert_eq!(
        test.log.notes(),
        [
            "1 starts",
            "2 stops: filters mismatch",
            "2 starts",
            "3 stops: resource deleted"
        ]
    );
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_matches_again_while_it_stops_is_started_when_it_has_stopped() {
    let mut test = BackgroundTest::new(|resource| {
        resource.daemon(matching(DaemonHandler::new("d")), |state, cx| {
            Box::pin(async move {
                state.note("starts");
                cx.stop().wait().await;
                tokio::time::sleep(s(10)).await;
                state.note("stops");
                Ok(())
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.reconcile(&unlabelled(2));
    test.sleep(s(1)).await;
    assert!(test.reconcile(&object(3, 1)));
    test.requeued().await;
    assert!(test.reconcile(&object(3, 1)));
    test.sleep(s(1)).await;
    assert_eq!(test.log.notes(), ["0 starts", "11 stops", "11 starts"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_returns_is_not_started_again_and_needs_no_finalizer() {
    let mut test = BackgroundTest::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, _| {
            Box::pin(async move {
                state.note("returns");
                Ok(())
            })
        })
    });
    assert!(test.reconcile(&object(1, 1)));
    test.requeued().await;
    assert!(!test.reconcile(&object(2, 1)));
    test.sleep(s(100)).await;
    assert_eq!(test.log.notes(), ["0 returns"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn temporary_errors_restart_a_daemon_and_a_permanent_one_ends_it() {
    let mut test = BackgroundTest::new(|resource| {
        let handler = DaemonHandler::new("d").initial_delay(s(3)).backoff(s(5));
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                state.note(format!("attempt {}", cx.retry()));
                match cx.retry() {
                    0 => Err(HandlerError::temporary_after(s(10), "not yet")),
                    1 => Err(std::fmt::Error.into()),
                    2 => panic!("also an arbitrary error"),
                    _ => Err(HandlerError::permanent("never")),
                }
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.requeued().await;
    assert!(!test.reconcile(&object(2, 1)));
    assert_eq!(
        test.log.notes(),
        [
            "3 attempt 0",
            "13 attempt 1",
            "18 attempt 2",
            "23 attempt 3"
        ]
    );
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_computed_delay_depends_on_the_object() {
    let test = BackgroundTest::new(|resource| {
        let handler = DaemonHandler::new("d")
            .initial_delay_by(|object| s(object["spec"]["size"].as_u64().unwrap()));
        resource.daemon(handler, |state, cx| Box::pin(stops_when_asked(state, cx)))
    });
    test.reconcile(&object(1, 7));
    test.sleep(s(8)).await;
    assert_eq!(test.log.notes(), ["7 starts"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_sees_the_newest_state_and_never_an_older_one() {
    let test = BackgroundTest::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, cx| {
            Box::pin(async move {
                state.note(format!("size {}", cx.object()["spec"]["size"]));
                loop {
                    let object = cx.changed().await;
                    state.note(format!("size {}", object["spec"]["size"]));
                }
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.reconcile(&object(2, 2));
    test.sleep(s(1)).await;
    test.reconcile(&object(1, 9));
    test.sleep(s(1)).await;
    test.reconcile(&object(3, 3));
    test.sleep(s(1)).await;
    let notes = test.log.notes();
    assert_eq!(notes, ["0 size 1", "1 size 2", "3 size 3"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_event_that_arrives_before_the_first_daemon_starts_is_shown_when_it_is_handled() {
    let test = BackgroundTest::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, cx| {
            Box::pin(async move {
                state.note(format!("size {}", cx.object()["spec"]["size"]));
                let object = cx.changed().await;
                state.note(format!("size {}", object["spec"]["size"]));
                cx.stop().wait().await;
                Ok(())
            })
        })
    });
    // The second event is in the queue while the first one is handled.
    let text = serde_json::value::to_raw_value(&object(2, 2)).unwrap();
    let version = Some(ResourceVersion::new("2"));
    test.background
        .update_latest(&test.key, &text.into(), version);
    for handled in [object(1, 1), object(2, 2)] {
        test.background.reconcile(&ObservedObject {
            key: &test.key,
            handlers: &test.handlers,
            object: &handled,
            essence: &handled["spec"],
            life: ObjectLife::Alive { held: true },
            listed: false,
        });
        test.sleep(s(1)).await;
    }
    assert_eq!(test.log.notes(), ["0 size 1", "1 size 2"]);
    test.close().await;
}

/// A daemon that ignores the stop signal; it notes when it is dropped.
async fn never_stops(log: &HandlerLog) -> HandlerResult {
    struct Dropped<'a>(&'a HandlerLog);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.note("dropped");
        }
    }
    let _dropped = Dropped(log);
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_ignores_the_stop_signal_is_interrupted_after_its_backoff() {
    let mut test = BackgroundTest::new(|resource| {
        let handler = DaemonHandler::new("d")
            .cancellation_backoff(s(3))
            .cancellation_timeout(s(5));
        resource.daemon(handler, |state, _| Box::pin(never_stops(state)))
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.delete(&object(2, 1));
    test.requeued().await;
    assert!(!test.delete(&object(2, 1)));
    assert_eq!(test.log.notes(), ["4 dropped"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_ignores_the_stop_signal_without_a_timeout_is_waited_for_without_end() {
    let test = BackgroundTest::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, _| {
            Box::pin(never_stops(state))
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.delete(&object(2, 1));
    test.sleep(s(100_000)).await;
    assert!(test.delete(&object(2, 1)));
    assert!(test.log.notes().is_empty());
    test.close().await;
}

#[tokio::test]
async fn a_thread_that_does_not_stop_is_abandoned_and_the_object_is_released() {
    static RELEASE: ThreadRelease = ThreadRelease::new();
    let mut test = BackgroundTest::new(|resource| {
        let handler = DaemonHandler::new("d").cancellation_timeout(Duration::from_millis(50));
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                state.note("starts");
                cx.blocking(|_| RELEASE.wait()).await
            })
        })
    });
    test.reconcile(&object(1, 1));
    while test.log.notes().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(test.delete(&object(2, 1)));
    test.requeued().await;
    assert!(
        !test.delete(&object(2, 1)),
        "an abandoned daemon holds no object"
    );
    RELEASE.set();
    test.requeued().await;
    test.close().await;
}

/// Blocks a thread until the test releases it.
struct ThreadRelease(Mutex<bool>, std::sync::Condvar);

impl ThreadRelease {
    const fn new() -> Self {
        Self(Mutex::new(false), std::sync::Condvar::new())
    }

    fn set(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn wait(&self) {
        let mut released = self.0.lock().unwrap();
        while !*released {
            released = self.1.wait(released).unwrap();
        }
    }
}

#[tokio::test]
async fn blocking_work_sees_the_stop_signal_and_its_panics_are_errors() {
    let mut test = BackgroundTest::new(|resource| {
        let handler = DaemonHandler::new("d").backoff(Duration::ZERO);
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                if cx.retry() == 0 {
                    cx.blocking(|_| panic!("no")).await?;
                }
                state.note("blocks");
                let slept = cx.blocking(|stop| stop.sleep_blocking(s(600))).await?;
                state
                    .running
                    .fetch_add(usize::from(!slept), Ordering::Relaxed);
                Ok(())
            })
        })
    });
    test.reconcile(&object(1, 1));
    while test.log.notes().is_empty() {
        tokio::task::yield_now().await;
    }
    test.delete(&object(2, 1));
    test.requeued().await;
    assert_eq!(test.log.running.load(Ordering::Relaxed), 1);
    test.close().await;
}

async fn log_tick(log: &HandlerLog, cx: &mut TimerContext<Value>) -> HandlerResult {
    log.note(format!("tick {}", cx.object()["spec"]["size"]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timer_ticks_at_once_and_then_at_its_interval_with_the_newest_state() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(10)), |state, cx| {
            Box::pin(log_tick(state, cx))
        })
    });
    assert!(test.reconcile(&object(1, 1)));
    test.sleep(s(15)).await;
    test.reconcile(&object(2, 2));
    test.sleep(s(10)).await;
    assert!(
        !test.delete(&object(3, 3)),
        "a timer between ticks stops at once"
    );
    test.sleep(s(60)).await;
    let ticks = test.log.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["0 tick 1", "10 tick 1", "20 tick 2"]);
    test.close().await;
}

/// A log line with its time in whole seconds: the delay queue is late by some milliseconds.
fn rounded(note: &str) -> String {
    let (at, what) = note.split_once(' ').unwrap();
    let at: f64 = at.parse().unwrap();
    assert!(at.fract() < 0.5, "{note} is late");
    format!("{} {what}", at.trunc())
}

#[tokio::test(start_paused = true)]
async fn a_sharp_timer_does_not_drift_over_hours() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(60)).sharp(), |state, _| {
            Box::pin(async move {
                state.note("tick");
                tokio::time::sleep(Duration::from_millis(7_333)).await;
                Ok(())
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(10 * 3600 + 30)).await;
    let ticks = test.log.notes();
    assert_eq!(ticks.len(), 601);
    for (minute, note) in ticks.iter().enumerate() {
        assert_eq!(rounded(note), format!("{} tick", minute * 60));
        let at: f64 = note.split(' ').next().unwrap().parse().unwrap();
        assert!(at.fract() < 0.01, "{note} is late");
    }
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_never_overlaps_with_itself() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(1)).sharp(), |state, _| {
            Box::pin(async move {
                assert_eq!(state.running.fetch_add(1, Ordering::Relaxed), 0);
                state.note("tick");
                tokio::time::sleep(Duration::from_millis(2_500)).await;
                state.running.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(Duration::from_millis(8_900)).await;
    let ticks = test.log.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["0 tick", "3 tick", "6 tick"]);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn only_changes_of_the_essence_restart_the_idle_time() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::when_idle("t", s(10)), |state, cx| {
            Box::pin(log_tick(state, cx))
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(6)).await;
    test.reconcile(&object(2, 2));
    test.sleep(s(6)).await;
    test.reconcile(&object(3, 2));
    test.sleep(s(60)).await;
    test.reconcile(&object(4, 2));
    test.sleep(s(60)).await;
    test.reconcile(&object(5, 5));
    test.sleep(s(60)).await;
    let ticks = test.log.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["16 tick 2", "142 tick 5"]);
    assert!(!test.delete(&object(6, 5)), "an idle timer stops at once");
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn errors_replace_the_interval_and_a_permanent_one_stops_the_timer() {
    let mut test = BackgroundTest::new(|resource| {
        let handler = TimerHandler::every("t", s(10)).backoff(s(5));
        resource.timer(handler, |state, cx| {
            Box::pin(async move {
                state.note(format!("attempt {}", cx.retry()));
                let calls = state.running.fetch_add(1, Ordering::Relaxed);
                match calls {
                    0..3 => Err(std::fmt::Error.into()),
                    3 => Ok(()),
                    4 => Err(HandlerError::temporary_after(s(2), "not yet")),
                    _ => Err(HandlerError::permanent("never")),
                }
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.requeued().await;
    assert!(!test.reconcile(&object(2, 1)));
    test.sleep(s(100)).await;
    let notes = test.log.notes();
    let notes: Vec<_> = notes.iter().map(|note| rounded(note)).collect();
    assert_eq!(
        notes,
        [
            "0 attempt 0",
            "5 attempt 1",
            "10 attempt 2",
            "15 attempt 3",
            "25 attempt 0",
            "27 attempt 1",
        ]
    );
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_running_tick_keeps_the_finalizer_until_it_is_over() {
    let mut test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(10)), |state, cx| {
            Box::pin(async move {
                tokio::time::sleep(s(3)).await;
                state.note(format!("done: {}", cx.stop().reasons()));
                Ok(())
            })
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    assert!(test.delete(&object(2, 1)));
    test.requeued().await;
    assert!(!test.delete(&object(2, 1)));
    test.sleep(s(100)).await;
    let notes = test.log.notes();
    assert_eq!(rounded(&notes[0]), "3 done: resource deleted");
    assert_eq!(notes.len(), 1);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn pausing_stops_everything_and_resuming_starts_what_is_reconciled_again() {
    let test = BackgroundTest::new(|resource| {
        resource
            .daemon(DaemonHandler::new("d"), |state, cx| {
                Box::pin(stops_when_asked(state, cx))
            })
            .timer(TimerHandler::every("t", s(10)), |state, cx| {
                Box::pin(log_tick(state, cx))
            })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.background.pause(StopReason::OperatorPausing).await;
    test.reconcile(&object(1, 1));
    test.sleep(s(100)).await;
    let mut notes = test.log.notes();
    notes.sort();
    assert_eq!(
        notes.iter().map(|note| rounded(note)).collect::<Vec<_>>(),
        ["0 starts", "0 tick 1", "1 stops: operator pausing"]
    );
    test.background.resume();
    test.reconcile_as(&object(1, 1), ObjectLife::Alive { held: true }, true);
    test.sleep(s(1)).await;
    let mut notes = test.log.notes();
    notes.sort();
    assert_eq!(
        notes.iter().map(|note| rounded(note)).collect::<Vec<_>>(),
        ["101 starts", "101 tick 1"]
    );
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn at_the_exit_daemons_that_do_not_stop_are_named_and_no_task_is_left() {
    let test = BackgroundTest::new(|resource| {
        resource
            .daemon(DaemonHandler::new("good"), |state, cx| {
                Box::pin(stops_when_asked(state, cx))
            })
            .daemon(DaemonHandler::new("bad"), |state, _| {
                Box::pin(never_stops(state))
            })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    let unstopped = test.background.shut_down(s(25)).await;
    assert_eq!(unstopped, ["Daemon 'bad' of Widget ns/one"]);
    assert_eq!(
        test.log.notes(),
        ["0 starts", "1 stops: operator exiting", "26 dropped"]
    );
    test.reconcile(&object(2, 1));
    test.sleep(s(1)).await;
    assert!(test.log.notes().is_empty(), "nothing starts any more");
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_daemons_of_an_object_that_is_gone_are_stopped() {
    let mut test = BackgroundTest::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, cx| {
            Box::pin(stops_when_asked(state, cx))
        })
    });
    test.reconcile(&object(1, 1));
    test.sleep(s(1)).await;
    test.background.object_gone(&test.key);
    test.requeued().await;
    test.background.object_gone(&test.key);
    assert_eq!(test.log.notes(), ["0 starts", "1 stops: resource deleted"]);
    assert!(test.background.objects().is_empty());
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn timers_of_listed_objects_are_spread_over_time() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(60)), |state, _| {
            Box::pin(async move {
                state.note("tick");
                Ok(())
            })
        })
    });
    test.reconcile_many(10_000, true);
    test.sleep(s(60)).await;
    let mut per_second = [0_u32; 61];
    for note in test.log.notes() {
        let at: f64 = note.split(' ').next().unwrap().parse().unwrap();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 60"
        )]
        let second = at as usize;
        per_second[second] += 1;
    }
    let most = per_second.iter().max().unwrap();
    assert!(*most < 1_000, "{per_second:?}");
    assert!(per_second.iter().sum::<u32>() > 9_900);
    test.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_waits_does_not_delay_other_ticks() {
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(60)), |state, cx| {
            Box::pin(async move {
                let number: usize = cx.name().parse().unwrap();
                if number.is_multiple_of(2) {
                    tokio::time::sleep(s(30)).await;
                }
                state.note(number.is_multiple_of(2).to_string());
                Ok(())
            })
        })
    });
    test.reconcile_many(100, false);
    test.sleep(s(29)).await;
    let quick = test.log.notes();
    assert_eq!(quick.len(), 50);
    assert!(quick.iter().all(|note| note.ends_with("false")));
    test.sleep(s(20)).await;
    assert_eq!(test.log.notes().len(), 50);
    test.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tick_that_blocks_its_thread_does_not_delay_other_ticks() {
    static RELEASE: ThreadRelease = ThreadRelease::new();
    let test = BackgroundTest::new(|resource| {
        resource.timer(TimerHandler::every("t", s(600)), |state, cx| {
            Box::pin(async move {
                if cx.name() == "0" {
                    tokio::task::block_in_place(|| RELEASE.wait());
                }
                state.running.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
    });
    test.reconcile_many(100, false);
    while test.log.running.load(Ordering::Relaxed) < 99 {
        tokio::task::yield_now().await;
    }
    RELEASE.set();
    while test.log.running.load(Ordering::Relaxed) < 100 {
        tokio::task::yield_now().await;
    }
    test.close().await;
}
