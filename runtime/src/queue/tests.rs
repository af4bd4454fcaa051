//! The queue under paused time, with a processor that records and obeys.

use std::sync::Mutex;

use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::*;
use crate::coordination::pause::{PauseHandle, PauseReason, PauseSwitch};

/// News of an object: a number to record, how long the worker takes, and what it answers.
#[derive(Clone, Copy)]
struct Order {
    number: u32,
    takes: Duration,
    next: Next,
}

/// News with this number outlast a pause.
const LASTING: u32 = 99;

/// News with this number are known.
const KNOWN: u32 = 98;

/// Added to the memory of an object whose plans were shelved.
const SHELVED: u32 = 100;

#[derive(Debug, PartialEq, Eq)]
struct Call {
    key: &'static str,
    numbers: Vec<u32>,
    calls_before: u32,
    at: Duration,
}

struct Recorder {
    calls: UnboundedSender<Call>,
    running: Mutex<Running>,
    epoch: Instant,
}

#[derive(Default)]
struct Running {
    keys: Vec<&'static str>,
    most: usize,
}

impl Processor for Recorder {
    type Key = &'static str;
    type QueueItem = Order;
    type Batch = Vec<Order>;
    type Memory = u32;

    fn fold(&self, _: &Self::Key, batch: &mut Vec<Order>, news: Order) {
        batch.push(news);
    }

    fn outlasts_pause(&self, batch: &Vec<Order>) -> bool {
        batch.iter().any(|order| order.number == LASTING)
    }

    fn shelve(&self, memory: &mut u32) {
        *memory += SHELVED;
    }

    fn is_known(&self, _: &Self::Key, _: &u32, batch: &Vec<Order>) -> bool {
        batch.iter().all(|order| order.number == KNOWN)
    }

    async fn process(&self, key: &Self::Key, memory: &mut u32, batch: Vec<Order>) -> Next {
        {
            let mut running = self.running.lock().unwrap();
            assert!(!running.keys.contains(key), "two workers for {key}");
            running.keys.push(key);
            running.most = running.most.max(running.keys.len());
        }
        self.calls
            .send(Call {
                key,
                numbers: batch.iter().map(|order| order.number).collect(),
                calls_before: *memory,
                at: self.epoch.elapsed(),
            })
            .unwrap();
        *memory += 1;
        let last = batch.last().copied();
        tokio::time::sleep(last.map_or(Duration::ZERO, |order| order.takes)).await;
        self.running
            .lock()
            .unwrap()
            .keys
            .retain(|other| other != key);
        last.map_or(Next::Rest, |order| order.next)
    }
}

struct Bench {
    news: Sender<(&'static str, Order)>,
    calls: UnboundedReceiver<Call>,
    recorder: Arc<Recorder>,
    stop: CancellationToken,
    source: PauseHandle,
    gate: Gate,
}

impl Bench {
    fn new(busy: usize) -> (Self, impl Future<Output = ()>) {
        let (news, inbox): (_, Receiver<_>) = mpsc::channel(64);
        let (sender, calls) = mpsc::unbounded_channel();
        let recorder = Arc::new(Recorder {
            calls: sender,
            running: Mutex::default(),
            epoch: Instant::now(),
        });
        let limits = QueueLimits {
            busy,
            patience: Duration::from_secs(5),
        };
        let stop = CancellationToken::new();
        let (switch, pause_gate) = PauseSwitch::new();
        let source = switch.handle();
        source.resume();
        let gate = Gate::new();
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
            Halt {
                stop: stop.clone(),
                grace: Duration::from_secs(30),
            },
        );
        let bench = Self {
            news,
            calls,
            recorder,
            stop,
            source,
            gate,
        };
        (bench, queue)
    }

    async fn tell(&self, key: &'static str, number: u32, takes: u64, next: Next) {
        let takes = Duration::from_secs(takes);
        self.order(key, number, takes, next).await;
    }

    async fn order(&self, key: &'static str, number: u32, takes: Duration, next: Next) {
        let order = Order {
            number,
            takes,
            next,
        };
        self.news.send((key, order)).await.unwrap();
    }

    async fn call(&mut self) -> (&'static str, Vec<u32>, u32, u64) {
        let call = self.calls.recv().await.unwrap();
        (call.key, call.numbers, call.calls_before, call.at.as_secs())
    }
}

async fn check(busy: usize, script: impl AsyncFnOnce(&mut Bench)) {
    let (mut bench, queue) = Bench::new(busy);
    let stop = bench.stop.clone();
    let script = async {
        script(&mut bench).await;
        stop.cancel();
    };
    tokio::join!(queue, script);
}

#[tokio::test(start_paused = true)]
async fn news_that_come_while_a_worker_runs_wait_and_are_folded() {
    check(4, async |bench| {
        bench.tell("a", 1, 10, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        bench.tell("a", 2, 0, Next::Rest).await;
        bench.tell("a", 3, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![2, 3], 1, 10));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn news_that_are_known_call_nobody() {
    check(4, async |bench| {
        bench.tell("a", 1, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        bench.tell("a", KNOWN, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.tell("a", 2, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![2], 1, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_wakes_in_time_or_with_the_news() {
    check(4, async |bench| {
        bench
            .tell("a", 1, 0, Next::Wake(Duration::from_secs(60)))
            .await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        assert_eq!(bench.call().await, ("a", vec![], 1, 60));
        bench
            .tell("a", 2, 0, Next::Wake(Duration::from_secs(60)))
            .await;
        assert_eq!(bench.call().await, ("a", vec![2], 2, 60));
        bench.tell("a", 3, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![3], 3, 60));
        bench.tell("b", 4, 600, Next::Rest).await;
        assert_eq!(bench.call().await, ("b", vec![4], 0, 60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_on_hold_is_left_alone_whatever_happens() {
    check(4, async |bench| {
        bench
            .tell("a", 1, 0, Next::Hold(Duration::from_secs(30)))
            .await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        bench.tell("a", 2, 0, Next::Rest).await;
        bench.tell("a", 3, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![2, 3], 1, 30));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_object_starts_over() {
    check(4, async |bench| {
        bench.tell("a", 1, 0, Next::Forget).await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.tell("a", 2, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![2], 0, 1));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn workers_are_bounded_but_long_waits_do_not_block_the_others() {
    check(2, async |bench| {
        for key in ["a", "b", "c", "d"] {
            bench.tell(key, 1, 60, Next::Rest).await;
        }
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        assert_eq!(bench.call().await, ("b", vec![1], 0, 0));
        assert_eq!(bench.call().await, ("c", vec![1], 0, 5));
        assert_eq!(bench.call().await, ("d", vec![1], 0, 5));
        assert_eq!(bench.recorder.running.lock().unwrap().most, 4);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_that_wait_are_begun_in_groups_but_do_not_wait_long_for_each_other() {
    check(8, async |bench| {
        let first = [1000, 1005, 1007, 1100, 1110, 2000, 2000, 2000];
        let keys = ["a", "b", "c", "d", "e", "f", "g", "h"];
        for (key, takes) in keys.into_iter().zip(first) {
            let takes = Duration::from_millis(takes);
            bench.order(key, 1, takes, Next::Rest).await;
        }
        for key in ["i", "j", "k", "l", "m", "n", "o", "p", "q", "r"] {
            bench.tell(key, 2, 4, Next::Rest).await;
        }
        let mut begun = Vec::new();
        while begun.len() < 13 {
            let call = bench.calls.recv().await.unwrap();
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
    let (mut bench, queue) = Bench::new(2);
    let started = Instant::now();
    let script = async {
        bench.tell("quick", 1, 10, Next::Rest).await;
        bench.tell("endless", 1, 3600, Next::Rest).await;
        bench.call().await;
        bench.call().await;
        bench.stop.cancel();
    };
    tokio::join!(queue, script);
    assert_eq!(started.elapsed(), Duration::from_secs(30));
    assert_eq!(bench.recorder.running.lock().unwrap().keys, ["endless"]);
}

#[tokio::test(start_paused = true)]
async fn a_pause_lets_workers_finish_and_drops_what_has_not_begun() {
    check(1, async |bench| {
        let later = Next::Wake(Duration::from_secs(5));
        bench.tell("sleeps", 1, 0, later).await;
        assert_eq!(bench.call().await, ("sleeps", vec![1], 0, 0));
        bench.tell("works", 2, 3, later).await;
        assert_eq!(bench.call().await, ("works", vec![2], 0, 0));
        bench.tell("waits", 3, 0, Next::Rest).await;
        bench.tell("lasts", LASTING, 0, Next::Rest).await;
        bench.tell("works", 4, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(1)).await;

        bench.source.pause(PauseReason::LeaseLost);
        tokio::time::sleep(Duration::from_secs(20)).await;
        bench.tell("waits", 5, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert!(bench.calls.try_recv().is_err(), "nothing starts");

        bench.source.resume();
        assert_eq!(bench.call().await, ("lasts", vec![LASTING], SHELVED, 41));
        for (key, before) in [("sleeps", 1), ("works", 1), ("waits", 0)] {
            bench.tell(key, 6, 0, Next::Rest).await;
            assert_eq!(bench.call().await, (key, vec![6], before + SHELVED, 41));
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_over_at_once_drops_what_has_not_begun_all_the_same() {
    check(1, async |bench| {
        bench.tell("works", 1, 3, Next::Rest).await;
        assert_eq!(bench.call().await, ("works", vec![1], 0, 0));
        bench.tell("waits", 2, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        bench.source.pause(PauseReason::LeaseLost);
        bench.source.resume();
        bench.tell("waits", 3, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("waits", vec![3], SHELVED, 3));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn nothing_is_begun_before_the_gate_is_open() {
    check(1, async |bench| {
        let ticket = bench.gate.ticket("pods".to_owned());
        for key in ["a", "b", "c"] {
            bench.tell(key, 1, 0, Next::Rest).await;
        }
        bench.tell("a", 2, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(bench.calls.is_empty());
        ticket.listed(0);
        assert_eq!(bench.call().await, ("a", vec![1, 2], 0, 60));
        assert_eq!(bench.call().await, ("b", vec![1], 0, 60));
        assert_eq!(bench.call().await, ("c", vec![1], 0, 60));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pause_closes_the_gate_until_all_is_listed_again() {
    check(1, async |bench| {
        let ticket = bench.gate.ticket("pods".to_owned());
        ticket.listed(0);
        bench.tell("a", 1, 0, Next::Rest).await;
        assert_eq!(bench.call().await, ("a", vec![1], 0, 0));
        bench.source.pause(PauseReason::LeaseLost);
        bench.source.resume();
        bench.tell("a", 2, 0, Next::Rest).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(bench.calls.is_empty());
        ticket.listed(1);
        let (key, numbers, _, at) = bench.call().await;
        assert_eq!((key, numbers, at), ("a", vec![2], 60));
    })
    .await;
}
