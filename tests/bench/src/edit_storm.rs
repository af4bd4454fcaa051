//! The edit storm: objects are edited at random times while one quick handler and one that needs a
//! retry handle them. An object is stale if its quick handler was never called with the final spec.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use fastrand::Rng;
use futures::future::join_all;
use kopf_tests::{
    ChildProcess, Component, Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult,
};
use kube::api::DynamicObject;
use serde_json::json;
use tokio::time::{Instant as Moment, sleep, sleep_until};

use crate::peer::{BenchPeer, Workload};
use crate::widgets::{self, StatusKind};

/// The interval of retries and polls.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, default_value_t = 200)]
    objects: usize,
    /// How often each is edited
    #[arg(long, default_value_t = 5)]
    edits: u64,
    /// Within how many seconds
    #[arg(long, default_value_t = 10.0)]
    window: f64,
    /// The storms: random numbers begin with these seeds
    #[arg(long, value_delimiter = ',', default_values_t = [1])]
    seeds: Vec<u64>,
    /// How often the operator is killed (-9) and started again during each storm
    #[arg(long, default_value_t = 0)]
    kills: usize,
    /// Kill and start the API server once during each storm
    #[arg(long)]
    restart_api_server: bool,
    /// How many seconds the operators may take to handle everything
    #[arg(long, default_value_t = 120)]
    patience: u64,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BenchPeer::Kopf, BenchPeer::Ours])]
    peers: Vec<BenchPeer>,
}

/// The times of all edits and faults of one storm, in seconds from its start.
struct EditSchedule {
    /// For each object its creation, then its edits.
    edits: Vec<Vec<f64>>,
    kills: Vec<f64>,
    restart: Option<f64>,
}

/// The result of one storm.
struct EditStormResult {
    stale: usize,
    unsettled: usize,
    calls: usize,
    calm_after: f64,
}

/// Runs all storms and prints a line for each.
pub(crate) async fn run(options: &Options) -> TestResult {
    println!(
        "edit storm: {} objects, {} edits each within {} s, {} kills, {}",
        options.objects,
        options.edits,
        options.window,
        options.kills,
        if options.restart_api_server {
            "API server restarted once"
        } else {
            "no restart of the API server"
        }
    );
    let plane = PrivateControlPlane::start().await?;
    for &peer in &options.peers {
        let (mut stale, mut unsettled) = (0, 0);
        for &seed in &options.seeds {
            let result = storm(options, &plane, peer, seed).await?;
            println!(
                "{peer:<6} seed {seed:>3}: {:>3} stale, {:>3} unsettled; {:>5} calls of the quick handler; calm {:.1} s after the storm",
                result.stale, result.unsettled, result.calls, result.calm_after
            );
            stale += result.stale;
            unsettled += result.unsettled;
        }
        println!(
            "{peer:<6} in all: {stale} stale and {unsettled} unsettled of {} objects in {} storms",
            options.objects * options.seeds.len(),
            options.seeds.len()
        );
    }
    Ok(())
}

async fn storm(
    options: &Options,
    plane: &PrivateControlPlane,
    peer: BenchPeer,
    seed: u64,
) -> Result<EditStormResult, TestFailure> {
    let schedule = EditSchedule::new(options, seed);
    let sandbox = Sandbox::open_on(plane.handle(), "storm").await?;
    let objects = widgets::define(&sandbox, StatusKind::Subresource).await?;
    let mut operators = vec![start(peer, &sandbox, 0).await?];
    wait_for_watch(&sandbox).await?;

    let begin = Moment::now();
    let editing = join_all(schedule.edits.iter().enumerate().map(|(number, moments)| {
        let name = format!("w{number}");
        let objects = &objects;
        async move {
            for (value, moment) in moments.iter().enumerate() {
                sleep_until(begin + Duration::from_secs_f64(*moment)).await;
                write(objects, &name, value).await;
            }
        }
    }));
    let killing = async {
        for (count, moment) in schedule.kills.iter().enumerate() {
            sleep_until(begin + Duration::from_secs_f64(*moment)).await;
            if let Some(operator) = operators.last() {
                operator.kill().await?;
            }
            operators.push(start(peer, &sandbox, count + 1).await?);
        }
        Ok::<_, TestFailure>(())
    };
    let restarting = async {
        if let Some(moment) = schedule.restart {
            sleep_until(begin + Duration::from_secs_f64(moment)).await;
            plane.restart(Component::ApiServer).await?;
        }
        Ok::<_, TestFailure>(())
    };
    let (_, killed, restarted) = tokio::join!(editing, killing, restarting);
    killed?;
    restarted?;

    let ended = Instant::now();
    let last = wait_until_settled(options, &objects).await?;
    let calm_after = ended.elapsed().as_secs_f64();
    let mut handled = BTreeSet::new();
    let mut calls = 0;
    for operator in &operators {
        for line in operator
            .log()
            .lines()
            .filter_map(|it| it.strip_prefix("SAW "))
        {
            handled.insert(line.to_owned());
            calls += 1;
        }
    }
    let is_stale = |object: &&DynamicObject| {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        !handled.contains(&format!("{name} {}", object.data["spec"]["value"]))
    };
    if let Some(operator) = operators.last() {
        operator.terminate().await?;
    }
    Ok(EditStormResult {
        stale: last.iter().filter(is_stale).count(),
        unsettled: last.iter().filter(|it| !widgets::is_settled(it)).count(),
        calls,
        calm_after,
    })
}

async fn start(
    peer: BenchPeer,
    sandbox: &Sandbox,
    number: usize,
) -> Result<ChildProcess, TestFailure> {
    let identity = sandbox.administrator(&format!("operator-{number}"));
    peer.start(
        Workload::EditStorm,
        StatusKind::Subresource,
        sandbox,
        &identity,
    )
    .await
}

async fn wait_for_watch(sandbox: &Sandbox) -> TestResult {
    let identity = sandbox.administrator("operator-0");
    kopf_tests::eventually("the operator watches", async || {
        let requests = sandbox.count_requests_of(&identity).await.ok()?;
        (requests.of("widgets", "watch") > 0).then_some(())
    })
    .await
}

/// Creates or edits an object, and retries until it succeeds.
async fn write(objects: &Objects, name: &str, value: usize) {
    let spec = json!({"spec": {"value": value}});
    loop {
        let written = if value == 0 {
            objects.create(name, spec.clone()).await
        } else {
            objects.merge(name, spec.clone()).await
        };
        match written {
            Ok(_) => return,
            // The response to an earlier attempt was lost.
            Err(kube::Error::Api(status)) if status.is_already_exists() => return,
            Err(_) => sleep(RETRY_INTERVAL).await,
        }
    }
}

/// Waits until every object is settled, at most for the given time, and returns all objects.
async fn wait_until_settled(
    options: &Options,
    objects: &Objects,
) -> Result<Vec<DynamicObject>, TestFailure> {
    let deadline = Instant::now() + Duration::from_secs(options.patience);
    loop {
        let all = widgets::list(objects).await?;
        if all.iter().all(widgets::is_settled) || Instant::now() > deadline {
            return Ok(all);
        }
        sleep(RETRY_INTERVAL).await;
    }
}

// === impl EditSchedule ===

impl EditSchedule {
    fn new(options: &Options, seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let mut moments = |count: usize| {
            let mut moments: Vec<f64> = (0..count).map(|_| random.f64() * options.window).collect();
            moments.sort_by(f64::total_cmp);
            moments
        };
        let edits = usize::try_from(options.edits).unwrap_or(usize::MAX);
        Self {
            edits: (0..options.objects).map(|_| moments(edits + 1)).collect(),
            kills: moments(options.kills),
            restart: options.restart_api_server.then(|| options.window / 2.0),
        }
    }
}
