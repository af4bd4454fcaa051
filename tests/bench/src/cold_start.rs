//! Cold start: objects are there before the operator, one handler of creations writes one result
//! each; then a second start over the handled objects.

use std::time::{Duration, Instant};

use clap::Args;
use kopf_tests::{TestFailure, User, Objects, PrivateControlPlane, Sandbox, TestResult};
use serde_json::json;
use tokio::time::sleep;

use crate::peer::{Peer, Work};
use crate::process::{Usage, usage_when_idle, while_running};
use crate::widgets::{self, Status};

/// How often the objects are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// What is measured.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, default_value_t = 5000)]
    objects: usize,
    /// How often everything is repeated; medians are shown
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Whether the status has an endpoint of its own
    #[arg(long, value_enum, default_value_t = Status::Field)]
    status: Status,
    /// Who takes part
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Peer::Kopf, Peer::Controller, Peer::TunedController, Peer::Ours])]
    peers: Vec<Peer>,
}

/// What one start has cost.
#[derive(Clone, Copy, Debug)]
struct Cost {
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

async fn round(options: &Options, peer: Peer) -> Result<(Cost, Cost), TestFailure> {
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
    peer: Peer,
    sandbox: &Sandbox,
    objects: &Objects,
    name: &str,
) -> Result<Cost, TestFailure> {
    let identity = sandbox.administrator(name);
    let begun = Instant::now();
    let operator = peer
        .start(Work::ColdStart, options.status, sandbox, &identity)
        .await?;
    while_running(&operator, async {
        loop {
            let all = widgets::list(objects).await?;
            if all.iter().all(|it| is_handled(peer, it)) {
                return Ok(());
            }
            sleep(LOOK_EVERY).await;
        }
    })
    .await?;
    let seconds = begun.elapsed().as_secs_f64();
    let usage = usage_when_idle(&operator).await?;
    operator.terminate().await?;
    let writes = writes_of(sandbox, &identity).await?;
    Ok(Cost {
        usage,
        seconds,
        writes,
    })
}

fn is_handled(peer: Peer, object: &kube::api::DynamicObject) -> bool {
    let has_result = !object.data["status"]["create_fn"].is_null();
    match peer {
        Peer::Kopf | Peer::Ours => has_result && widgets::is_settled(object),
        Peer::Controller | Peer::TunedController => has_result,
    }
}

/// How often `identity` has written to widgets.
pub(crate) async fn writes_of(sandbox: &Sandbox, identity: &User) -> Result<usize, TestFailure> {
    let requests = sandbox.requests_of(identity).await?;
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

fn median<T>(values: &[T], figure: impl Fn(&T) -> f64) -> f64 {
    let mut figures: Vec<f64> = values.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
