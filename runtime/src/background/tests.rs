//! Daemons and timers on a paused clock, without a server: who runs when, and how it ends.

use std::sync::atomic::AtomicUsize;

use kube::{Client, Config};
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::*;
use crate::client::resource::{ResourceSpec, ResourceTarget, Scope, StatusSubresource};
use crate::context::daemon::DaemonContext;
use crate::context::timer::TimerContext;
use crate::coordination::pause::PauseGate;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::handler::{DaemonHandler, TimerHandler};
use crate::health::metrics::KindMetrics;
use crate::index::Indices;
use crate::process::Kind;
use crate::process::kind::Supplies;
use crate::registration::Resource;
use crate::watch::KindIndex;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// What handlers do, and what they have done.
struct Theatre {
    begin: Instant,
    lines: Mutex<Vec<String>>,
    at_work: AtomicUsize,
}

/// A crew at work, and one object.
struct Stage {
    theatre: Arc<Theatre>,
    background: Arc<Background>,
    nudges: mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    crew: JoinHandle<()>,
    quit: CancellationToken,
    duties: Vec<Arc<Duty>>,
    key: Arc<ObjectKey>,
    /// Tasks before the crew, which are the client's.
    tasks: usize,
}

impl Theatre {
    /// Notes what happened, with the time since the begin in seconds.
    fn note(&self, what: impl Into<String>) {
        let at = self.begin.elapsed().as_secs_f64();
        let line = format!("{at} {}", what.into());
        self.lines.lock().unwrap().push(line);
    }

    fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

fn theatre() -> Arc<Theatre> {
    Arc::new(Theatre {
        begin: Instant::now(),
        lines: Mutex::default(),
        at_work: AtomicUsize::new(0),
    })
}

fn resource(theatre: &Arc<Theatre>) -> Resource<Value, Theatre> {
    let spec = ResourceSpec {
        group: "kopf.dev",
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    Resource::new(spec, theatre)
}

impl Stage {
    fn new(declare: impl FnOnce(Resource<Value, Theatre>) -> Resource<Value, Theatre>) -> Self {
        let theatre = theatre();
        let resource = declare(resource(&theatre)).build();
        let settings = Settings::default();
        let client = Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap();
        let persistence = Arc::new(settings.persistence.clone());
        let tasks = Handle::current().metrics().num_alive_tasks();
        let services = Arc::new(OperatorServices {
            client: client.clone(),
            poster: None,
            pause_gate: PauseGate::always(),
            indices: Indices::default(),
        });
        let supplies = Supplies {
            client,
            persistence,
            patience: settings.networking.request_timeout,
            metrics: KindMetrics::unobserved(),
        };
        let ResourceTarget::Kind(spec) = resource.target else {
            panic!("it is one kind");
        };
        let kind = Kind::new(spec.into(), &[&resource], supplies).unwrap();
        let limits = QueueLimits {
            busy: settings.queueing.worker_limit,
            patience: settings.queueing.worker_patience,
        };
        let staff = Staff::new(Arc::new(settings), services);
        let background = Arc::clone(&staff.background);
        let quit = CancellationToken::new();
        let (crew, nudges) = staff.crew(limits, Heartbeat::unobserved(), quit.clone());
        Self {
            theatre,
            background,
            nudges,
            crew: tokio::spawn(crew),
            quit,
            duties: kind.duties().to_vec(),
            key: Arc::new(ObjectKey {
                kind: KindIndex(0),
                uid: "uid".into(),
                namespace: Some("ns".into()),
                name: "one".into(),
            }),
            tasks,
        }
    }

    /// Shows a state of the object; tells whether it needs the finalizer.
    fn show_as(&self, object: &Value, life: ObjectLife, listed: bool) -> bool {
        let version = ObjectView::new(object).resource_version();
        let text = serde_json::value::to_raw_value(object).unwrap();
        self.background
            .saw(&self.key, &text.into(), version.map(ResourceVersion::new));
        self.background.tend(&Scene {
            key: &self.key,
            duties: &self.duties,
            object,
            essence: &object["spec"],
            life,
            listed,
        })
    }

    fn show(&self, object: &Value) -> bool {
        self.show_as(object, ObjectLife::Alive { held: true }, false)
    }

    fn delete(&self, object: &Value) -> bool {
        self.show_as(object, ObjectLife::Deleting, false)
    }

    /// Shows that many other objects.
    fn crowd(&self, size: usize, listed: bool) {
        let object = object(1, 1);
        for number in 0..size {
            let key = Arc::new(ObjectKey {
                kind: KindIndex(0),
                uid: number.to_string().into(),
                namespace: None,
                name: number.to_string().into(),
            });
            self.background.tend(&Scene {
                key: &key,
                duties: &self.duties,
                object: &object,
                essence: &object["spec"],
                life: ObjectLife::Alive { held: true },
                listed,
            });
        }
    }

    /// Lets time pass.
    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn nudged(&mut self) {
        let key = self.nudges.recv().await.unwrap();
        assert_eq!(key, self.key);
    }

    /// Ends the crew, and makes sure that nothing of it is left.
    async fn close(self) {
        self.quit.cancel();
        self.crew.await.unwrap();
        let alive = || Handle::current().metrics().num_alive_tasks();
        // With several threads, a task that is over is counted for a moment more.
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

/// A daemon that does as it is told.
async fn obedient(theatre: &Theatre, cx: &mut DaemonContext<Value>) -> HandlerResult {
    theatre.note("starts");
    cx.stop().wait().await;
    theatre.note(format!("stops: {}", cx.stop().reasons()));
    Ok(())
}

fn matching(handler: DaemonHandler) -> DaemonHandler {
    handler.label("on", kopf_core::handler::filter::TextTest::Present)
}

#[tokio::test(start_paused = true)]
async fn a_daemon_runs_while_its_object_matches_and_again_when_it_matches_again() {
    let mut stage = Stage::new(|resource| {
        resource.daemon(matching(DaemonHandler::new("d")), |state, cx| {
            Box::pin(obedient(state, cx))
        })
    });
    assert!(stage.show_as(&object(1, 1), ObjectLife::Alive { held: false }, false));
    stage.pass(s(1)).await;
    assert!(stage.theatre.notes().is_empty(), "nothing starts unheld");
    assert!(stage.show(&object(1, 1)));
    assert!(stage.show(&object(2, 1)));
    stage.pass(s(1)).await;
    assert!(stage.show(&unlabelled(3)), "held until it has stopped");
    stage.nudged().await;
    assert!(!stage.show(&unlabelled(3)));
    assert!(stage.show(&object(4, 1)));
    stage.pass(s(1)).await;
    assert!(stage.delete(&object(5, 1)));
    stage.nudged().await;
    assert!(!stage.delete(&object(5, 1)));
    assert_eq!(
        stage.theatre.notes(),
        [
            "1 starts",
            "2 stops: filters mismatch",
            "2 starts",
            "3 stops: resource deleted"
        ]
    );
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_matches_again_while_it_stops_is_started_when_it_has_stopped() {
    let mut stage = Stage::new(|resource| {
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
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.show(&unlabelled(2));
    stage.pass(s(1)).await;
    assert!(stage.show(&object(3, 1)));
    stage.nudged().await;
    assert!(stage.show(&object(3, 1)));
    stage.pass(s(1)).await;
    assert_eq!(stage.theatre.notes(), ["0 starts", "11 stops", "11 starts"]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_daemon_that_returns_is_not_started_again_and_holds_nothing() {
    let mut stage = Stage::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, _| {
            Box::pin(async move {
                state.note("returns");
                Ok(())
            })
        })
    });
    assert!(stage.show(&object(1, 1)));
    stage.nudged().await;
    assert!(!stage.show(&object(2, 1)));
    stage.pass(s(100)).await;
    assert_eq!(stage.theatre.notes(), ["0 returns"]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn temporary_errors_restart_a_daemon_and_a_permanent_one_ends_it() {
    let mut stage = Stage::new(|resource| {
        let handler = DaemonHandler::new("d").initial_delay(s(3)).backoff(s(5));
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                state.note(format!("attempt {}", cx.retry()));
                match cx.retry() {
                    0 => Err(HandlerError::temporary("not yet").after(s(10))),
                    1 => Err(std::fmt::Error.into()),
                    2 => panic!("also an arbitrary error"),
                    _ => Err(HandlerError::permanent("never")),
                }
            })
        })
    });
    stage.show(&object(1, 1));
    stage.nudged().await;
    assert!(!stage.show(&object(2, 1)));
    assert_eq!(
        stage.theatre.notes(),
        [
            "3 attempt 0",
            "13 attempt 1",
            "18 attempt 2",
            "23 attempt 3"
        ]
    );
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_computed_delay_depends_on_the_object() {
    let stage = Stage::new(|resource| {
        let handler = DaemonHandler::new("d")
            .initial_delay_by(|object| s(object["spec"]["size"].as_u64().unwrap()));
        resource.daemon(handler, |state, cx| Box::pin(obedient(state, cx)))
    });
    stage.show(&object(1, 7));
    stage.pass(s(8)).await;
    assert_eq!(stage.theatre.notes(), ["7 starts"]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn the_object_of_a_daemon_is_always_as_it_is_now() {
    let stage = Stage::new(|resource| {
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
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.show(&object(2, 2));
    stage.pass(s(1)).await;
    stage.show(&object(1, 9));
    stage.pass(s(1)).await;
    stage.show(&object(3, 3));
    stage.pass(s(1)).await;
    let notes = stage.theatre.notes();
    assert_eq!(notes, ["0 size 1", "1 size 2", "3 size 3"]);
    stage.close().await;
}

/// A daemon that does not care; it notes when it is dropped.
async fn deaf(theatre: &Theatre) -> HandlerResult {
    struct Dropped<'a>(&'a Theatre);
    impl Drop for Dropped<'_> {
        fn drop(&mut self) {
            self.0.note("dropped");
        }
    }
    let _dropped = Dropped(theatre);
    std::future::pending().await
}

#[tokio::test(start_paused = true)]
async fn a_deaf_daemon_is_interrupted_after_its_backoff() {
    let mut stage = Stage::new(|resource| {
        let handler = DaemonHandler::new("d")
            .cancellation_backoff(s(3))
            .cancellation_timeout(s(5));
        resource.daemon(handler, |state, _| Box::pin(deaf(state)))
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.delete(&object(2, 1));
    stage.nudged().await;
    assert!(!stage.delete(&object(2, 1)));
    assert_eq!(stage.theatre.notes(), ["4 dropped"]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_deaf_daemon_without_a_timeout_is_waited_for_without_end() {
    let stage = Stage::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, _| Box::pin(deaf(state)))
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.delete(&object(2, 1));
    stage.pass(s(100_000)).await;
    assert!(stage.delete(&object(2, 1)));
    assert!(stage.theatre.notes().is_empty());
    stage.close().await;
}

#[tokio::test]
async fn a_thread_that_does_not_stop_is_left_to_itself_and_the_object_is_let_go() {
    static RELEASE: CancellationFlag = CancellationFlag::new();
    let mut stage = Stage::new(|resource| {
        let handler = DaemonHandler::new("d").cancellation_timeout(Duration::from_millis(50));
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                state.note("starts");
                cx.blocking(|_| RELEASE.wait()).await
            })
        })
    });
    stage.show(&object(1, 1));
    while stage.theatre.notes().is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(stage.delete(&object(2, 1)));
    stage.nudged().await;
    assert!(!stage.delete(&object(2, 1)), "nobody waits for it any more");
    RELEASE.set();
    stage.nudged().await;
    stage.close().await;
}

/// Lets a thread wait for the test.
struct CancellationFlag(Mutex<bool>, std::sync::Condvar);

impl CancellationFlag {
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
async fn blocking_work_is_told_to_stop_and_its_panics_are_errors() {
    let mut stage = Stage::new(|resource| {
        let handler = DaemonHandler::new("d").backoff(Duration::ZERO);
        resource.daemon(handler, |state, cx| {
            Box::pin(async move {
                if cx.retry() == 0 {
                    cx.blocking(|_| panic!("no")).await?;
                }
                state.note("blocks");
                let slept = cx.blocking(|stop| stop.sleep_blocking(s(600))).await?;
                state
                    .at_work
                    .fetch_add(usize::from(!slept), Ordering::Relaxed);
                Ok(())
            })
        })
    });
    stage.show(&object(1, 1));
    while stage.theatre.notes().is_empty() {
        tokio::task::yield_now().await;
    }
    stage.delete(&object(2, 1));
    stage.nudged().await;
    assert_eq!(stage.theatre.at_work.load(Ordering::Relaxed), 1);
    stage.close().await;
}

/// A tick that is noted.
async fn noted(theatre: &Theatre, cx: &mut TimerContext<Value>) -> HandlerResult {
    theatre.note(format!("tick {}", cx.object()["spec"]["size"]));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_timer_ticks_at_once_and_then_at_its_interval_with_the_newest_state() {
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(10)), |state, cx| {
            Box::pin(noted(state, cx))
        })
    });
    assert!(stage.show(&object(1, 1)));
    stage.pass(s(15)).await;
    stage.show(&object(2, 2));
    stage.pass(s(10)).await;
    assert!(
        !stage.delete(&object(3, 3)),
        "a timer between ticks goes at once"
    );
    stage.pass(s(60)).await;
    let ticks = stage.theatre.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["0 tick 1", "10 tick 1", "20 tick 2"]);
    stage.close().await;
}

/// A note with its time in whole seconds: a wheel of milliseconds is late by some of them.
fn rounded(note: &str) -> String {
    let (at, what) = note.split_once(' ').unwrap();
    let at: f64 = at.parse().unwrap();
    assert!(at.fract() < 0.5, "{note} is late");
    format!("{} {what}", at.trunc())
}

#[tokio::test(start_paused = true)]
async fn a_sharp_timer_does_not_drift_over_hours() {
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(60)).sharp(), |state, _| {
            Box::pin(async move {
                state.note("tick");
                tokio::time::sleep(Duration::from_millis(7_333)).await;
                Ok(())
            })
        })
    });
    stage.show(&object(1, 1));
    stage.pass(s(10 * 3600 + 30)).await;
    let ticks = stage.theatre.notes();
    assert_eq!(ticks.len(), 601);
    for (minute, note) in ticks.iter().enumerate() {
        assert_eq!(rounded(note), format!("{} tick", minute * 60));
        let at: f64 = note.split(' ').next().unwrap().parse().unwrap();
        assert!(at.fract() < 0.01, "{note} is late");
    }
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_timer_never_overlaps_with_itself() {
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(1)).sharp(), |state, _| {
            Box::pin(async move {
                assert_eq!(state.at_work.fetch_add(1, Ordering::Relaxed), 0);
                state.note("tick");
                tokio::time::sleep(Duration::from_millis(2_500)).await;
                state.at_work.fetch_sub(1, Ordering::Relaxed);
                Ok(())
            })
        })
    });
    stage.show(&object(1, 1));
    stage.pass(Duration::from_millis(8_900)).await;
    let ticks = stage.theatre.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["0 tick", "3 tick", "6 tick"]);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn idling_is_reset_by_essential_changes_only() {
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::when_idle("t", s(10)), |state, cx| {
            Box::pin(noted(state, cx))
        })
    });
    stage.show(&object(1, 1));
    stage.pass(s(6)).await;
    stage.show(&object(2, 2));
    stage.pass(s(6)).await;
    stage.show(&object(3, 2));
    stage.pass(s(60)).await;
    stage.show(&object(4, 2));
    stage.pass(s(60)).await;
    stage.show(&object(5, 5));
    stage.pass(s(60)).await;
    let ticks = stage.theatre.notes();
    let ticks: Vec<_> = ticks.iter().map(|note| rounded(note)).collect();
    assert_eq!(ticks, ["16 tick 2", "142 tick 5"]);
    assert!(
        !stage.delete(&object(6, 5)),
        "an idling timer goes when told"
    );
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn errors_replace_the_interval_and_a_permanent_one_stops_the_timer() {
    let mut stage = Stage::new(|resource| {
        let handler = TimerHandler::every("t", s(10)).backoff(s(5));
        resource.timer(handler, |state, cx| {
            Box::pin(async move {
                state.note(format!("attempt {}", cx.retry()));
                let calls = state.at_work.fetch_add(1, Ordering::Relaxed);
                match calls {
                    0..3 => Err(std::fmt::Error.into()),
                    3 => Ok(()),
                    4 => Err(HandlerError::temporary("not yet").after(s(2))),
                    _ => Err(HandlerError::permanent("never")),
                }
            })
        })
    });
    stage.show(&object(1, 1));
    stage.nudged().await;
    assert!(!stage.show(&object(2, 1)));
    stage.pass(s(100)).await;
    let notes = stage.theatre.notes();
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
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_tick_that_runs_holds_the_object_until_it_is_over() {
    let mut stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(10)), |state, cx| {
            Box::pin(async move {
                tokio::time::sleep(s(3)).await;
                state.note(format!("done: {}", cx.stop().reasons()));
                Ok(())
            })
        })
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    assert!(stage.delete(&object(2, 1)));
    stage.nudged().await;
    assert!(!stage.delete(&object(2, 1)));
    stage.pass(s(100)).await;
    let notes = stage.theatre.notes();
    assert_eq!(rounded(&notes[0]), "3 done: resource deleted");
    assert_eq!(notes.len(), 1);
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn pausing_stops_everything_and_resuming_starts_what_is_seen_again() {
    let stage = Stage::new(|resource| {
        resource
            .daemon(DaemonHandler::new("d"), |state, cx| {
                Box::pin(obedient(state, cx))
            })
            .timer(TimerHandler::every("t", s(10)), |state, cx| {
                Box::pin(noted(state, cx))
            })
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.background.pause(StopReason::OperatorPausing).await;
    stage.show(&object(1, 1));
    stage.pass(s(100)).await;
    let mut notes = stage.theatre.notes();
    notes.sort();
    assert_eq!(
        notes.iter().map(|note| rounded(note)).collect::<Vec<_>>(),
        ["0 starts", "0 tick 1", "1 stops: operator pausing"]
    );
    stage.background.resume();
    stage.show_as(&object(1, 1), ObjectLife::Alive { held: true }, true);
    stage.pass(s(1)).await;
    let mut notes = stage.theatre.notes();
    notes.sort();
    assert_eq!(
        notes.iter().map(|note| rounded(note)).collect::<Vec<_>>(),
        ["101 starts", "101 tick 1"]
    );
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn at_the_exit_those_who_disobey_are_named_and_nothing_is_left() {
    let stage = Stage::new(|resource| {
        resource
            .daemon(DaemonHandler::new("good"), |state, cx| {
                Box::pin(obedient(state, cx))
            })
            .daemon(DaemonHandler::new("bad"), |state, _| Box::pin(deaf(state)))
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    let disobedient = stage.background.shut_down(s(25)).await;
    assert_eq!(disobedient, ["Daemon 'bad' of Widget ns/one"]);
    assert_eq!(
        stage.theatre.notes(),
        ["0 starts", "1 stops: operator exiting", "26 dropped"]
    );
    stage.show(&object(2, 1));
    stage.pass(s(1)).await;
    assert!(stage.theatre.notes().is_empty(), "nothing starts any more");
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_vanishes_takes_its_daemons_with_it() {
    let mut stage = Stage::new(|resource| {
        resource.daemon(DaemonHandler::new("d"), |state, cx| {
            Box::pin(obedient(state, cx))
        })
    });
    stage.show(&object(1, 1));
    stage.pass(s(1)).await;
    stage.background.gone(&stage.key);
    stage.nudged().await;
    stage.background.gone(&stage.key);
    assert_eq!(
        stage.theatre.notes(),
        ["0 starts", "1 stops: resource deleted"]
    );
    assert!(stage.background.posts().is_empty());
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn many_timers_that_start_together_are_spread() {
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(60)), |state, _| {
            Box::pin(async move {
                state.note("tick");
                Ok(())
            })
        })
    });
    stage.crowd(10_000, true);
    stage.pass(s(60)).await;
    let mut per_second = [0_u32; 61];
    for note in stage.theatre.notes() {
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
    stage.close().await;
}

#[tokio::test(start_paused = true)]
async fn ticks_that_wait_keep_no_others_from_being_called() {
    let stage = Stage::new(|resource| {
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
    stage.crowd(100, false);
    stage.pass(s(29)).await;
    let quick = stage.theatre.notes();
    assert_eq!(quick.len(), 50);
    assert!(quick.iter().all(|note| note.ends_with("false")));
    stage.pass(s(20)).await;
    assert_eq!(stage.theatre.notes().len(), 50);
    stage.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_tick_that_blocks_its_thread_keeps_no_others_from_being_called() {
    static RELEASE: CancellationFlag = CancellationFlag::new();
    let stage = Stage::new(|resource| {
        resource.timer(TimerHandler::every("t", s(600)), |state, cx| {
            Box::pin(async move {
                if cx.name() == "0" {
                    tokio::task::block_in_place(|| RELEASE.wait());
                }
                state.at_work.fetch_add(1, Ordering::Relaxed);
                Ok(())
            })
        })
    });
    stage.crowd(100, false);
    while stage.theatre.at_work.load(Ordering::Relaxed) < 99 {
        tokio::task::yield_now().await;
    }
    RELEASE.set();
    while stage.theatre.at_work.load(Ordering::Relaxed) < 100 {
        tokio::task::yield_now().await;
    }
    stage.close().await;
}
