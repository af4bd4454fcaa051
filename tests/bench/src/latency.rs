//! Latency: creates objects at a steady rate, and measures the time to their persisted results.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use clap::Args;
use futures::{StreamExt as _, TryStreamExt as _};
use kopf_tests::{Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult};
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval};

use crate::peer::{BenchPeer, Workload};
use crate::process::{usage_when_idle, while_running};
use crate::widgets::{self, StatusKind};

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Objects created per second
    #[arg(long, default_value_t = 40)]
    rate: u32,
    /// How many objects are created in all
    #[arg(long, default_value_t = 1200)]
    objects: usize,
    /// Whether the kind has a status subresource
    #[arg(long, value_enum, default_value_t = StatusKind::Field)]
    status: StatusKind,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchPeer::Kopf, BenchPeer::Controller, BenchPeer::TunedController, BenchPeer::Ours])]
    peers: Vec<BenchPeer>,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    println!(
        "latency from creation to result, {} objects at {} a second, status as {}",
        options.objects,
        options.rate,
        options.status.name()
    );
    println!(
        "{:<18} {:>9} {:>9} {:>9}",
        "peer", "p50 ms", "p99 ms", "max ms"
    );
    for &peer in &options.peers {
        let mut times = measure(options, peer).await?;
        times.sort();
        let at = |part: f64| {
            let position = (part * (times.len() - 1) as f64).round() as usize;
            times[position].as_secs_f64() * 1000.0
        };
        println!(
            "{peer:<18} {:>9.1} {:>9.1} {:>9.1}",
            at(0.5),
            at(0.99),
            at(1.0)
        );
    }
    Ok(())
}

async fn measure(options: &Options, peer: BenchPeer) -> Result<Vec<Duration>, TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "latency").await?;
    let objects = widgets::define(&sandbox, options.status).await?;
    let identity = sandbox.administrator("operator");
    let operator = peer
        .start(Workload::ColdStart, options.status, &sandbox, &identity)
        .await?;
    kopf_tests::eventually("the operator watches", async || {
        let requests = sandbox.count_requests_of(&identity).await.ok()?;
        (requests.of("widgets", "watch") > 0).then_some(())
    })
    .await?;
    usage_when_idle(&operator).await?;
    let (created, finished) = while_running(&operator, async {
        tokio::try_join!(create(options, &objects), watch(options, &objects))
    })
    .await?;
    operator.terminate().await?;
    Ok(created
        .into_iter()
        .filter_map(|(name, begun)| Some(finished.get(&name)?.duration_since(begun)))
        .collect())
}

async fn create(
    options: &Options,
    objects: &Objects,
) -> Result<BTreeMap<String, Instant>, TestFailure> {
    let mut clock = interval(Duration::from_secs(1) / options.rate);
    clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let mut begun = BTreeMap::new();
    for number in 0..options.objects {
        clock.tick().await;
        let name = format!("w{number}");
        begun.insert(name.clone(), Instant::now());
        objects
            .create(&name, json!({"spec": {"size": number}}))
            .await?;
    }
    Ok(begun)
}

async fn watch(
    options: &Options,
    objects: &Objects,
) -> Result<BTreeMap<String, Instant>, TestFailure> {
    let list = objects.api().list(&ListParams::default().limit(1)).await?;
    let version = list.metadata.resource_version.unwrap_or_default();
    let params = WatchParams::default().timeout(290);
    let mut events = objects.api().watch(&params, &version).await?.boxed();
    let mut finished = BTreeMap::new();
    while let Some(event) = events.try_next().await? {
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
            && !object.data["status"]["create_fn"].is_null()
        {
            let name = object.metadata.name.unwrap_or_default();
            finished.entry(name).or_insert_with(Instant::now);
        }
        if finished.len() == options.objects {
            return Ok(finished);
        }
    }
    Err(TestFailure::new(
        "the watch ended before all objects had their results",
    ))
}
