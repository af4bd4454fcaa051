//! Tests of the queue on a paused clock, with a processor that records its calls.

use std::io::Read as _;
use std::sync::Mutex;

use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::worker_limit::PermitHold;
use super::*;
use crate::coordination::pause::{PauseHandle, PauseReason, PauseSwitch};

/// An item: a number to record, the time its worker takes, and the call it plans.
#[derive(Clone, Copy)]
struct TestItem {
    number: u32,
    takes: Duration,
    next: NextCall,
}

/// Items with this number survive a pause.
const SURVIVING: u32 = 99;

/// Items with this number need no worker.
const REDUNDANT: u32 = 98;

/// The item after which an object is gone.
const GONE: u32 = 1000;

/// Added to the memory of an object whose plan was dropped.
const PLAN_DROPPED: u32 = 100;

#[derive(Debug, PartialEq, Eq)]
struct RecordedCall {
    key: &'static str,
    numbers: Vec<u32>,
    calls_before: u32,
    at: Duration,
}

struct Recorder {
    calls: UnboundedSender<RecordedCall>,
    running: Mutex<RunningKeys>,
    epoch: Instant,
}

#[derive(Default)]
struct RunningKeys {
    keys: Vec<&'static str>,
    most: usize,
}

impl QueueRules for Recorder {
    type Key = &'static str;
    type Batch = Vec<TestItem>;
    type Memory = u32;

    fn survives_pause(&self, batch: &Vec<TestItem>) -> bool {
        batch.iter().any(|item| item.number == SURVIVING)
    }

    fn drop_plan(&self, memory: &mut u32) {
        *memory += PLAN_DROPPED;
    }

    fn is_gone(&self, memory: &u32) -> bool {
        *memory >= GONE
    }

    fn is_redundant(&self, _: &Self::Key, _: &u32, batch: &Vec<TestItem>) -> bool {
        batch.iter().all(|item| item.number == REDUNDANT)
    }
}

impl Processor for Recorder {
    type QueueItem = TestItem;

    fn fold(&self, _: &Self::Key, batch: &mut Vec<TestItem>, item: TestItem) {
        batch.push(item);
    }

    async fn process(&self, key: &Self::Key, memory: &mut u32, batch: Vec<TestItem>) -> NextCall {
        {
            let mut running = self.running.lock().unwrap();
            assert!(!running.keys.contains(key), "two workers for {key}");
            running.keys.push(key);
            running.most = running.most.max(running.keys.len());
        }
        self.calls
            .send(RecordedCall {
                key,
                numbers: batch.iter().map(|item| item.number).collect(),
                calls_before: *memory,
                at: self.epoch.elapsed(),
            })
            .unwrap();
        *memory += if batch.iter().any(|item| item.number == GONE) {
            GONE
        } else {
            1
        };
        let last = batch.last().copied();
        tokio::time::sleep(last.map_or(Duration::ZERO, |item| item.takes)).await;
        self.running
            .lock()
            .unwrap()
            .keys
            .retain(|other| other != key);
        last.map_or(NextCall::AwaitChange, |item| item.next)
    }
}

struct QueueTest {
    items: Sender<(&'static str, TestItem)>,
    calls: UnboundedReceiver<RecordedCall>,
    recorder: Arc<Recorder>,
    stop: CancellationToken,
    source: PauseHandle,
    gate: ListGate,
}

impl QueueTest {
    fn new(busy: usize, hold: PermitHold) -> (Self, impl Future<Output = ()>) {
        let (items, inbox): (_, Receiver<_>) = mpsc::channel(64);
        let (sender, calls) = mpsc::unbounded_channel();
        let recorder = Arc::new(Recorder {
            calls: sender,
            running: Mutex::default(),
            epoch: Instant::now(),
        });
        let limits = QueueLimits {
            permits: busy,
            hold,
        };
        let stop = CancellationToken::new();
        let (switch, pause_gate) = PauseSwitch::new();
        let source = switch.handle();
        source.resume();
        let gate = ListGate::new();
        let queue = run(
            Arc::clone(&recorder),
            inbox,
            limits,
            pause_gate,
            gate.clone(),
            QueueHealth {
                heartbeat: Heartbeat::unobserved(),
                metrics: Arc::default(),
            },
            QueueShutdown {
                stop: stop.clone(),
                grace: Duration::from_secs(30),
            },
        );
        let queue_test = Self {
            items,
            calls,
            recorder,
            stop,
            source,
            gate,
        };
        (queue_test, queue)
    }

    async fn push(&self, key: &'static str, number: u32, takes: u64, next: NextCall) {
        let takes = Duration::from_secs(takes);
        self.push_item(key, number, takes, next).await;
    }

    async fn push_item(&self, key: &'static str, number: u32, takes: Duration, next: NextCall) {
        let item = TestItem {
            number,
            takes,
            next,
        };
        self.items.send((key, item)).await.unwrap();
    }

    async fn call(&mut self) -> (&'static str, Vec<u32>, u32, u64) {
        let call = self.calls.recv().await.unwrap();
        (call.key, call.numbers, call.calls_before, call.at.as_secs())
    }
}

/// The time for which workers hold their permits, in most tests.
const HOLD: PermitHold = PermitHold::AtMost(Duration::from_secs(5));

async fn check(busy: usize, script: impl AsyncFnOnce(&mut QueueTest)) {
    check_holding(busy, HOLD, script).await;
}

async fn check_holding(busy: usize, hold: PermitHold, script: impl AsyncFnOnce(&mut QueueTest)) {
    let (mut queue_test, queue) = QueueTest::new(busy, hold);
    let stop = queue_test.stop.clone();
    let script = async {
        script(&mut queue_test).await;
        stop.cancel();
    };
    tokio::join!(queue, script);
}

#[tokio::test(start_paused = true)]
async fn items_that_arrive_while_a_worker_runs_are_folded_into_one_batch() {
    check(4, async |queue_test| {
        queue_test.push("a", 1, 10, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        queue_test.push("a", 3, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![2, 3], 1, 10));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn redundant_items_start_no_worker() {
    check(4, async |queue_test| {
        queue_test.push("a", 1, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        queue_test
            .push("a", REDUNDANT, 0, NextCall::AwaitChange)
            .await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![2], 1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_planned_call_comes_in_time_or_with_the_next_item() {
    check(4, async |queue_test| {
        queue_test
            .push("a", 1, 0, NextCall::After(Duration::from_secs(60)))
            .await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("a", vec![], 1, 60));
        queue_test
            .push("a", 2, 0, NextCall::After(Duration::from_secs(60)))
            .await;
        assert_eq!(queue_test.call().await, ("a", vec![2], 2, 60));
        queue_test.push("a", 3, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![3], 3, 60));
        queue_test.push("b", 4, 600, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("b", vec![4], 0, 60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_planned_not_before_a_time_ignores_items_until_then() {
    check(4, async |queue_test| {
        queue_test
            .push("a", 1, 0, NextCall::NotBefore(Duration::from_secs(30)))
            .await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        queue_test.push("a", 3, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![2, 3], 1, 30));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_object_starts_with_empty_memory() {
    check(4, async |queue_test| {
        queue_test.push("a", 1, 0, NextCall::Forget).await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![2], 0, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn busy_workers_are_limited_but_long_waits_do_not_count() {
    check(2, async |queue_test| {
        for key in ["a", "b", "c", "d"] {
            queue_test.push(key, 1, 60, NextCall::AwaitChange).await;
        }
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("b", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("c", vec![1], 0, 5));
        assert_eq!(queue_test.call().await, ("d", vec![1], 0, 5));
        assert_eq!(queue_test.recorder.running.lock().unwrap().most, 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_workers_holds_for_as_long_as_they_work() {
    check_holding(2, PermitHold::WhileWorking, async |queue_test| {
        let later = NextCall::After(Duration::from_secs(3600));
        for key in ["a", "b", "c", "d", "e"] {
            queue_test.push(key, 1, 60, later).await;
        }
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("b", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("c", vec![1], 0, 60));
        assert_eq!(queue_test.call().await, ("d", vec![1], 0, 60));
        assert_eq!(queue_test.call().await, ("e", vec![1], 0, 120));
        assert_eq!(queue_test.recorder.running.lock().unwrap().most, 2);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_ready_objects_start_in_groups_but_wait_briefly_for_each_other() {
    check(8, async |queue_test| {
        let first = [1000, 1005, 1007, 1100, 1110, 2000, 2000, 2000];
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for (key, takes) in keys.into_iter().zip(first) {
            let takes = Duration::from_millis(takes);
            queue_test
                .push_item(key, 1, takes, NextCall::AwaitChange)
                .await;
        }
        for key in ["i", "j", "k", "l", "m", "n", "o", "p", "q", "r"] {
            queue_test.push(key, 2, 4, NextCall::AwaitChange).await;
        }
        let mut begun = Vec::new();
        while begun.len() < 13 {
            let call = queue_test.calls.recv().await.unwrap();
            begun.push((call.key, call.at.as_millis()));
        }
        let last = [
            ("i", 1000),
            ("j", 1007),
            ("k", 1007),
            ("l", 1100),
            ("m", 1120),
        ];
        assert_eq!(begun[8..], last);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn stopping_lets_workers_finish_within_the_grace() {
    let (mut queue_test, queue) = QueueTest::new(2, HOLD);
    let started = Instant::now();
    let script = async {
        queue_test.push("quick", 1, 10, NextCall::AwaitChange).await;
        queue_test
            .push("endless", 1, 3600, NextCall::AwaitChange)
            .await;
        queue_test.call().await;
        queue_test.call().await;
        queue_test.stop.cancel();
    };
    tokio::join!(queue, script);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!(
        queue_test.recorder.running.lock().unwrap().keys,
        ["endless"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_workers_finish_and_drops_waiting_batches() {
    check(1, async |queue_test| {
        let later = NextCall::After(Duration::from_secs(5));
        queue_test.push("sleeps", 1, 0, later).await;
        assert_eq!(queue_test.call().await, ("sleeps", vec![1], 0, 0));
        queue_test.push("works", 2, 3, later).await;
        assert_eq!(queue_test.call().await, ("works", vec![2], 0, 0));
        queue_test.push("waits", 3, 0, NextCall::AwaitChange).await;
        queue_test
            .push("lasts", SURVIVING, 0, NextCall::AwaitChange)
            .await;
        queue_test.push("works", 4, 0, NextCall::AwaitChange).await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        queue_test.source.pause(PauseReason::LeaseLost);
        tokio::time::sleep(Duration::from_secs(20)).await;
        queue_test.push("waits", 5, 0, NextCall::AwaitChange).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(queue_test.calls.try_recv().is_err(), "nothing starts");

        queue_test.source.resume();
        assert_eq!(
            queue_test.call().await,
            ("lasts", vec![SURVIVING], PLAN_DROPPED, 41)
        );
        for (key, before) in [("sleeps", 1), ("works", 1), ("waits", 0)] {
            queue_test.push(key, 6, 0, NextCall::AwaitChange).await;
            assert_eq!(
                queue_test.call().await,
                (key, vec![6], before + PLAN_DROPPED, 41)
            );
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_forgets_objects_that_are_gone_with_their_planned_calls() {
    check(1, async |queue_test| {
        let later = NextCall::After(Duration::from_secs(30));
        queue_test.push("gone", GONE, 0, later).await;
        assert_eq!(queue_test.call().await, ("gone", vec![GONE], 0, 0));
        queue_test.push("works", GONE, 3, later).await;
        assert_eq!(queue_test.call().await, ("works", vec![GONE], 0, 0));
        queue_test.source.pause(PauseReason::LeaseLost);
        tokio::time::sleep(Duration::from_secs(5)).await;
        queue_test.source.resume();
        for key in ["gone", "works"] {
            queue_test.push(key, 1, 0, NextCall::AwaitChange).await;
            assert_eq!(queue_test.call().await, (key, vec![1], 0, 5));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_over_at_once_drops_waiting_batches_too() {
    check(1, async |queue_test| {
        queue_test.push("works", 1, 3, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("works", vec![1], 0, 0));
        queue_test.push("waits", 2, 0, NextCall::AwaitChange).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        queue_test.source.pause(PauseReason::LeaseLost);
        queue_test.source.resume();
        queue_test.push("waits", 3, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("waits", vec![3], PLAN_DROPPED, 3));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn no_worker_starts_before_the_list_gate_is_open() {
    check(1, async |queue_test| {
        let list = queue_test.gate.expect_list("pods".to_owned());
        for key in ["a", "b", "c"] {
            queue_test.push(key, 1, 0, NextCall::AwaitChange).await;
        }
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(queue_test.calls.is_empty());
        list.listed(0);
        assert_eq!(queue_test.call().await, ("a", vec![1, 2], 0, 60));
        assert_eq!(queue_test.call().await, ("b", vec![1], 0, 60));
        assert_eq!(queue_test.call().await, ("c", vec![1], 0, 60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_closes_the_list_gate_until_everything_is_listed_again() {
    check(1, async |queue_test| {
        let list = queue_test.gate.expect_list("pods".to_owned());
        list.listed(0);
        queue_test.push("a", 1, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("a", vec![1], 0, 0));
        queue_test.source.pause(PauseReason::LeaseLost);
        queue_test.source.resume();
        queue_test.push("a", 2, 0, NextCall::AwaitChange).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(queue_test.calls.is_empty());
        list.listed(1);
        let (key, numbers, _, at) = queue_test.call().await;
        assert_eq!((key, numbers, at), ("a", vec![2], 60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn objects_that_wait_while_none_begins_are_reported_once_a_minute() {
    let (mut log, writer) = std::io::pipe().unwrap();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.try_clone().unwrap())
        .finish();
    let logging = tracing::subscriber::set_default(subscriber);
    check_holding(1, PermitHold::WhileWorking, async |queue_test| {
        queue_test.push("slow", 1, 130, NextCall::AwaitChange).await;
        queue_test.push("waits", 2, 0, NextCall::AwaitChange).await;
        assert_eq!(queue_test.call().await, ("slow", vec![1], 0, 0));
        assert_eq!(queue_test.call().await, ("waits", vec![2], 0, 130));
    })
    .await;
    drop(logging);
    let mut text = String::new();
    log.read_to_string(&mut text).unwrap();
    let report = "objects that wait: 1, objects that are handled: 1";
    assert_eq!(text.matches(report).count(), 2, "{text}");
}
