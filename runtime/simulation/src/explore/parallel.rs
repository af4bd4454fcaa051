//! Many histories on all processors: each history is played by one thread.

use std::num::NonZero;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

use super::{FailingSeed, explore};
use crate::world::Scenario;

/// The histories that a thread plays before it reports.
const BATCH: u64 = 250;

/// Some histories that one thread has played.
#[derive(Debug, Default)]
pub struct PlayedBatch {
    /// The number of histories.
    pub histories: u64,
    /// The requests that the API server executed for operators.
    pub requests: u64,
    /// The steps of all histories.
    pub steps: u64,
    /// The histories that fail.
    pub failures: Vec<FailingSeed>,
}

/// Plays the histories of seeds, whether they fail or not, until `report` has enough.
pub fn survey<S: Scenario>(
    scenario: impl Fn() -> S + Sync,
    seeds: Range<u64>,
    threads: NonZero<usize>,
    mut report: impl FnMut(PlayedBatch) -> ControlFlow<()>,
) {
    let (next, enough) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..threads.get() {
            let (sender, scenario, next, enough) = (sender.clone(), &scenario, &next, &enough);
            scope.spawn(move || {
                while !enough.load(Ordering::Relaxed) {
                    let first = next.fetch_add(BATCH, Ordering::Relaxed);
                    if first >= seeds.end {
                        return;
                    }
                    let batch = play_batch(scenario, first..seeds.end.min(first + BATCH));
                    if sender.send(batch).is_err() {
                        return;
                    }
                }
            });
        }
        drop(sender);
        for batch in receiver {
            if report(batch).is_break() {
                enough.store(true, Ordering::Relaxed);
                return;
            }
        }
    });
}

fn play_batch<S: Scenario>(scenario: impl Fn() -> S, seeds: Range<u64>) -> PlayedBatch {
    let mut batch = PlayedBatch::default();
    for seed in seeds {
        let explored = explore(&scenario, [seed]);
        batch.histories += explored.histories;
        batch.requests += explored.requests;
        batch.steps += explored.steps;
        batch.failures.extend(explored.failure);
    }
    batch
}
