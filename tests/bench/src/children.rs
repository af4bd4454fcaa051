//! One child for each of many objects: a cold start, an edit of each, a rest, children that others
//! delete, and a start over healthy children.

mod phase;
mod wire;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kopf_tests::{ChildProcess, Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult};
use serde_json::json;
use tokio::time::sleep;

use self::phase::{ChildrenPhase, Measurement, PhaseCost, WatchedChildren};
use self::wire::CountingWire;
use crate::api_server::ApiServerProcess;
use crate::process::{usage_when_idle, while_running};
use crate::widgets::{self, StatusKind};

/// The requests of the benchmark itself at once.
const CONCURRENCY: usize = 16;

/// The size of all objects at first, and after the edit.
const SIZES: [&str; 2] = ["1", "2"];

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects have a child
    #[arg(long, default_value_t = 5000)]
    owners: usize,
    /// How many children are deleted
    #[arg(long, default_value_t = 1000)]
    deleted: usize,
    /// How long the operators rest, in seconds
    #[arg(long, default_value_t = 60)]
    rest: u64,
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [ChildrenPeer::ControllerOwns, ChildrenPeer::ControllerStore, ChildrenPeer::ControllerRuntime, ChildrenPeer::Ours])]
    peers: Vec<ChildrenPeer>,
}

/// The implementation of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ChildrenPeer {
    /// kube's `Controller::owns` with a concurrency of 16, which applies the child in each call
    ControllerOwns,
    /// The same with a store of children, which applies only what differs
    ControllerStore,
    /// controller-runtime, in Go
    ControllerRuntime,
    /// Our runtime
    Ours,
}

/// One operator and what it is measured by.
struct Round<'a> {
    options: &'a Options,
    peer: ChildrenPeer,
    sandbox: &'a Sandbox,
    api_server: ApiServerProcess,
    children: WatchedChildren,
}

/// Measures and prints tables.
pub(crate) async fn run(options: &Options) -> TestResult {
    let mut costs = Vec::new();
    for &peer in &options.peers {
        for (phase, cost) in measure(options, peer).await? {
            println!("{phase} of {}: {cost:?}", peer.name());
            costs.push((phase, peer, cost));
        }
    }
    for phase in ChildrenPhase::ALL {
        let (owners, name) = (options.owners, phase.to_string());
        println!("\n{owners} owners, {name}:\n\n{}", PhaseCost::HEADER);
        for (_, peer, cost) in costs.iter().filter(|(of, ..)| *of == phase) {
            println!("| {} {cost}", peer.name());
        }
    }
    Ok(())
}

async fn measure(
    options: &Options,
    peer: ChildrenPeer,
) -> Result<Vec<(ChildrenPhase, PhaseCost)>, TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "children").await?;
    let owners = widgets::define(&sandbox, StatusKind::Field).await?;
    widgets::create(&owners, options.owners, &json!({"size": 1})).await?;
    let maps = sandbox.objects("v1", "ConfigMap").await?;
    let round = Round {
        options,
        peer,
        sandbox: &sandbox,
        api_server: ApiServerProcess::find(&sandbox)?,
        children: WatchedChildren::watch(&maps),
    };
    let mut costs = round.first_start(&owners, &maps).await?;
    costs.push((ChildrenPhase::Restart, round.restart().await?));
    Ok(costs)
}

// === impl Round ===

impl Round<'_> {
    /// A cold start, an edit of each object, a rest, and deleted children.
    async fn first_start(
        &self,
        owners: &Objects,
        maps: &Objects,
    ) -> Result<Vec<(ChildrenPhase, PhaseCost)>, TestFailure> {
        let user = self.sandbox.administrator("first");
        let wire = self.wire().await?;
        let begun = Measurement::before(&self.api_server, &wire)?;
        let operator = self.start("first", &wire)?;
        let count = self.options.owners;
        let [first, edited] = SIZES;
        let measured = (&operator, &wire, self.sandbox, &user);
        while_running(&operator, self.children.wait_for(count, first)).await?;
        let cold = self.end(ChildrenPhase::ColdStart, begun, measured).await?;

        let begun = cold.1.clone();
        edit(owners, count, edited).await?;
        while_running(&operator, self.children.wait_for(count, edited)).await?;
        let edit = self.end(ChildrenPhase::Edit, begun, measured).await?;

        let begun = edit.1.clone();
        sleep(Duration::from_secs(self.options.rest)).await;
        let rest = self.end(ChildrenPhase::Rest, begun, measured).await?;

        let begun = rest.1.clone();
        let deleted = self.options.deleted.min(count);
        let before = self.children.uids();
        delete(maps, deleted).await?;
        while_running(&operator, async {
            self.children.wait_for_others(&before, deleted).await?;
            self.children.wait_for(count, edited).await
        })
        .await?;
        let repaired = self.end(ChildrenPhase::Deleted, begun, measured).await?;
        operator.terminate().await?;
        let ends = [cold.0, edit.0, rest.0, repaired.0];
        let phases = [
            ChildrenPhase::ColdStart,
            ChildrenPhase::Edit,
            ChildrenPhase::Rest,
            ChildrenPhase::Deleted,
        ];
        Ok(phases.into_iter().zip(ends).collect())
    }

    /// A start over healthy children.
    async fn restart(&self) -> Result<PhaseCost, TestFailure> {
        let user = self.sandbox.administrator("second");
        let wire = self.wire().await?;
        let begun = Measurement::before(&self.api_server, &wire)?;
        let operator = self.start("second", &wire)?;
        let watches = kopf_tests::eventually("the operator watches", async || {
            let requests = self.sandbox.count_requests_of(&user).await.ok()?;
            let watches = |plural: &str| requests.of(plural, "watch") > 0;
            (watches("configmaps") && watches("widgets")).then_some(())
        });
        while_running(&operator, watches).await?;
        let measured = (&operator, &wire, self.sandbox, &user);
        let (cost, _) = self.end(ChildrenPhase::Restart, begun, measured).await?;
        operator.terminate().await?;
        Ok(cost)
    }

    /// Ends a phase when the operator is idle.
    async fn end(
        &self,
        phase: ChildrenPhase,
        begun: Measurement,
        (operator, wire, sandbox, user): (
            &ChildProcess,
            &CountingWire,
            &Sandbox,
            &kopf_tests::User,
        ),
    ) -> Result<(PhaseCost, Measurement), TestFailure> {
        let seconds = begun.seconds();
        if phase != ChildrenPhase::Rest {
            usage_when_idle(operator).await?;
        }
        let mut ended = Measurement::now(operator, &self.api_server, wire)?;
        ended.requests = sandbox.requests_of(user).await?;
        let cost = PhaseCost::between(&begun, &ended, seconds);
        // Reading the audit log took time of its own.
        let mut next = Measurement::now(operator, &self.api_server, wire)?;
        next.requests = ended.requests;
        Ok((cost, next))
    }

    async fn wire(&self) -> Result<CountingWire, TestFailure> {
        Ok(CountingWire::start(self.api_server.address).await?)
    }

    /// Starts the operator as a user of this name.
    fn start(&self, user: &str, wire: &CountingWire) -> Result<ChildProcess, TestFailure> {
        let user = self.sandbox.administrator(user);
        let plane = self.sandbox.control_plane();
        let kubeconfig = fs::read_to_string(plane.kubeconfig(&user)?)?;
        let direct = self.api_server.address.to_string();
        let counted = kubeconfig.replace(&direct, &wire.address().to_string());
        let path = plane.scratch().join(format!("{}.counted", user.name()));
        fs::write(&path, counted)?;
        let builder = self.sandbox.operator(self.peer.program()?, &user)?;
        let builder = builder
            .env("KUBECONFIG", path)
            .env("PEER", self.peer.name())
            .env("GROUP", self.sandbox.group())
            .env("NAMESPACE", self.sandbox.namespace());
        let builder = match self.peer {
            ChildrenPeer::Ours => builder
                .arg("--quiet")
                .arg("--namespace")
                .arg(self.sandbox.namespace()),
            _ => builder,
        };
        Ok(builder.start()?)
    }
}

/// Changes the size of each object.
async fn edit(owners: &Objects, count: usize, size: &str) -> TestResult {
    let size: i64 = size.parse()?;
    stream::iter(0..count)
        .map(|number| async move {
            let patch = json!({"spec": {"size": size}});
            owners.merge(&format!("w{number}"), patch).await.map(drop)
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

/// Deletes children.
async fn delete(maps: &Objects, count: usize) -> TestResult {
    stream::iter(0..count)
        .map(|number| async move { maps.delete(&format!("w{number}")).await })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

// === impl ChildrenPeer ===

impl ChildrenPeer {
    fn name(self) -> &'static str {
        match self {
            Self::ControllerOwns => "controller-owns",
            Self::ControllerStore => "controller-store",
            Self::ControllerRuntime => "controller-runtime",
            Self::Ours => "ours",
        }
    }

    fn program(self) -> Result<PathBuf, TestFailure> {
        let beside = |name: &str| env::current_exe().map(|it| it.with_file_name(name));
        if self != Self::ControllerRuntime {
            return Ok(beside("bench-children")?);
        }
        let program = beside("controller-runtime-children")?;
        let built = Command::new("go")
            .args(["build", "-o"])
            .arg(&program)
            .arg("./children")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("controller-runtime"))
            .status()?;
        if built.success() {
            Ok(program)
        } else {
            Err(TestFailure::new(
                "`go build` of the controller with children failed",
            ))
        }
    }
}
