//! Timers: the cost of an empty timer on each of many objects, beyond an operator without objects.

use std::time::Duration;

use clap::Args;
use kopf_tests::{ChildProcess, Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult};
use kube::api::DynamicObject;
use serde_json::json;
use tokio::time::sleep;

use crate::peer::{BenchPeer, Workload};
use crate::process::{Usage, usage, usage_when_idle};
use crate::widgets::{self, StatusKind};

/// The interval of polls.
const POLL_INTERVAL: Duration = Duration::from_secs(2);

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are for our operator
    #[arg(long, default_value_t = 50_000)]
    objects: usize,
    /// How many objects there are for Kopf
    #[arg(long, default_value_t = 5_000)]
    kopf_objects: usize,
    /// The interval of the timers, in seconds
    #[arg(long, default_value_t = 60)]
    interval: u64,
    /// How many intervals are measured, after one to settle down
    #[arg(long, default_value_t = 2)]
    intervals: u32,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchPeer::Kopf, BenchPeer::Ours])]
    peers: Vec<BenchPeer>,
}

/// The cost of timers.
#[derive(Clone, Copy, Debug)]
struct TimerCost {
    /// The share of one core, while only the timers ran.
    cpu_share: f64,
    empty: Usage,
    full: Usage,
    /// The mean size of an object as JSON, in bytes.
    body: f64,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    println!(
        "one timer of {} s per object, CPU over {} intervals",
        options.interval, options.intervals
    );
    println!(
        "{:<6} {:>8} {:>10} {:>9} {:>8} {:>14} {:>12} {:>14}",
        "peer",
        "timers",
        "% of core",
        "empty MB",
        "full MB",
        "bytes/timer",
        "body bytes",
        "beyond body"
    );
    for &peer in &options.peers {
        let count = match peer {
            BenchPeer::Kopf => options.kopf_objects,
            BenchPeer::Controller | BenchPeer::TunedController | BenchPeer::Ours => options.objects,
        };
        let cost = round(options, peer, count).await?;
        let megabytes = cost.full.resident_megabytes - cost.empty.resident_megabytes;
        let each = megabytes * 1024.0 * 1024.0 / count as f64;
        println!(
            "{peer:<6} {count:>8} {:>10.2} {:>9.1} {:>8.1} {each:>14.0} {:>12.0} {:>14.0}",
            cost.cpu_share * 100.0,
            cost.empty.resident_megabytes,
            cost.full.resident_megabytes,
            cost.body,
            each - cost.body,
        );
    }
    Ok(())
}

async fn round(options: &Options, peer: BenchPeer, count: usize) -> Result<TimerCost, TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "timers").await?;
    let objects = widgets::define(&sandbox, StatusKind::Field).await?;
    let start = async |name: &str| -> Result<ChildProcess, TestFailure> {
        let workload = Workload::Timers {
            interval: options.interval,
        };
        let identity = sandbox.administrator(name);
        peer.start(workload, StatusKind::Field, &sandbox, &identity)
            .await
    };
    let operator = start("empty").await?;
    let empty = usage_when_idle(&operator).await?;
    operator.terminate().await?;

    widgets::create(&objects, count, &json!({"size": 1})).await?;
    // The first start adds finalizers to all objects; the second is the measured one.
    let operator = start("first").await?;
    let all = wait_for_finalizers(&objects, count).await?;
    operator.terminate().await?;
    let operator = start("second").await?;
    let interval = Duration::from_secs(options.interval);
    sleep(interval).await;
    let before = usage_when_steady(&operator, interval).await?;
    let window = interval * options.intervals;
    sleep(window).await;
    let full = usage(&operator)?;
    operator.terminate().await?;
    Ok(TimerCost {
        cpu_share: (full.cpu - before.cpu) / window.as_secs_f64(),
        empty,
        full,
        body: mean_size(&all),
    })
}

async fn wait_for_finalizers(
    objects: &Objects,
    count: usize,
) -> Result<Vec<DynamicObject>, TestFailure> {
    loop {
        let all = widgets::list(objects).await?;
        let is_held = |it: &&DynamicObject| it.metadata.finalizers.is_some();
        if all.iter().filter(is_held).count() == count {
            return Ok(all);
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Waits until a tenth of an interval costs about as much as the one before: the start is over.
async fn usage_when_steady(
    operator: &ChildProcess,
    interval: Duration,
) -> Result<Usage, TestFailure> {
    let mut last = usage(operator)?;
    let mut cost = f64::INFINITY;
    loop {
        sleep(interval / 10).await;
        let now = usage(operator)?;
        let next = now.cpu - last.cpu;
        if next <= cost * 1.5 + 0.05 && cost <= next * 1.5 + 0.05 {
            return Ok(now);
        }
        (last, cost) = (now, next);
    }
}

fn mean_size(objects: &[DynamicObject]) -> f64 {
    let sizes = objects.iter().filter_map(|it| serde_json::to_vec(it).ok());
    sizes.map(|text| text.len() as f64).sum::<f64>() / objects.len() as f64
}
