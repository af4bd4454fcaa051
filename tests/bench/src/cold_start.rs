//! Cold start: the objects exist before the operator, and a create handler writes one result each;
//! then a second start over the handled objects.

use std::time::{Duration, Instant};

use clap::Args;
use kopf_tests::{Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult, User};
use serde_json::json;
use tokio::time::sleep;

use crate::peer::{BenchPeer, Workload};
use crate::process::{Usage, usage_when_idle, while_running};
use crate::widgets::{self, StatusKind};

/// The interval of polls.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, default_value_t = 5000)]
    objects: usize,
    /// How often everything is repeated; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Whether the kind has a status subresource
    #[arg(long, value_enum, default_value_t = StatusKind::Field)]
    status: StatusKind,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchPeer::Kopf, BenchPeer::Controller, BenchPeer::TunedController, BenchPeer::Ours])]
    peers: Vec<BenchPeer>,
}

/// The cost of one start.
#[derive(Clone, Copy, Debug)]
struct StartCost {
    usage: Usage,
    seconds: f64,
    writes: usize,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    println!(
        "cold start over {} objects, status as {}, medians of {}",
        options.objects,
        options.status.name(),
        options.rounds
    );
    println!(
        "{:<18} {:>8} {:>9} {:>9} {:>13} | {:>11} {:>9} {:>14}",
        "peer", "CPU s", "peak MB", "seconds", "writes/object", "again CPU s", "peak MB", "writes"
    );
    for &peer in &options.peers {
        let (mut cold, mut again) = (Vec::new(), Vec::new());
        for _ in 0..options.rounds {
            let (first, second) = round(options, peer).await?;
            cold.push(first);
            again.push(second);
        }
        println!(
            "{:<18} {:>8.2} {:>9.1} {:>9.1} {:>13.3} | {:>11.2} {:>9.1} {:>14}",
            peer,
            median(&cold, |it| it.usage.cpu),
            median(&cold, |it| it.usage.peak_megabytes),
            median(&cold, |it| it.seconds),
            median(&cold, |it| it.writes as f64) / options.objects as f64,
            median(&again, |it| it.usage.cpu),
            median(&again, |it| it.usage.peak_megabytes),
            median(&again, |it| it.writes as f64),
        );
    }
    Ok(())
}

async fn round(options: &Options, peer: BenchPeer) -> Result<(StartCost, StartCost), TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "cold").await?;
    let objects = widgets::define(&sandbox, options.status).await?;
    widgets::create(&objects, options.objects, &json!({"size": 1})).await?;
    let cold = start(options, peer, &sandbox, &objects, "cold").await?;
    let again = start(options, peer, &sandbox, &objects, "again").await?;
    Ok((cold, again))
}

async fn start(
    options: &Options,
    peer: BenchPeer,
    sandbox: &Sandbox,
    objects: &Objects,
    name: &str,
) -> Result<StartCost, TestFailure> {
    let identity = sandbox.administrator(name);
    let begun = Instant::now();
    let operator = peer
        .start(Workload::ColdStart, options.status, sandbox, &identity)
        .await?;
    while_running(&operator, async {
        loop {
            let all = widgets::list(objects).await?;
            if all.iter().all(|it| is_handled(peer, it)) {
                return Ok(());
            }
            sleep(POLL_INTERVAL).await;
        }
    })
    .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let usage = usage_when_idle(&operator).await?;
    operator.terminate().await?;
    let writes = writes_of(sandbox, &identity).await?;
    Ok(StartCost {
        usage,
        seconds,
        writes,
    })
}

fn is_handled(peer: BenchPeer, object: &kube::api::DynamicObject) -> bool {
    let has_result = !object.data["status"]["create_fn"].is_null();
    match peer {
        BenchPeer::Kopf | BenchPeer::Ours => has_result && widgets::is_settled(object),
        BenchPeer::Controller | BenchPeer::TunedController => has_result,
    }
}

/// The number of writes of `user` to widgets.
pub(crate) async fn writes_of(sandbox: &Sandbox, user: &User) -> Result<usize, TestFailure> {
    let requests = sandbox.requests_of(user).await?;
    let is_write = |verb: &str| matches!(verb, "create" | "update" | "patch" | "delete");
    Ok(requests
        .iter()
        .filter(|it| is_write(&it.verb))
        .filter(|it| {
            it.resource
                .as_deref()
                .is_some_and(|it| it.starts_with("widgets"))
        })
        .count())
}

/// The median of a figure.
pub(crate) fn median<T>(values: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut figures: Vec<f64> = values.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
