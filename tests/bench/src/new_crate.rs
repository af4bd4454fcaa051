//! What users get: the crate that `kopf-gen new` writes, with its defaults, beside a typed
//! Controller for the same kind. The objects exist before the operators; a second start follows.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use kopf_tests::{ChildProcess, Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult};
use kopf_tests::{workspace, workspace::clear_cargo_variables};
use kube::api::DynamicObject;
use serde_json::json;

use crate::api_server::ApiServerProcess;
use crate::cold_start::median;
use crate::process::{Usage, usage_when_idle, while_running};
use crate::widgets;

/// The options of this benchmark.
#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// How many objects there are
    #[arg(long, default_value_t = 5000)]
    objects: usize,
    /// How often each operator is measured, in turn; medians are shown
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// The compared operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NewCratePeer {
    Controller,
    Ours,
}

/// The programs of the operators.
struct BuiltOperators {
    controller: PathBuf,
    ours: PathBuf,
}

/// The cost of one start.
#[derive(Clone, Copy, Debug)]
struct NewCrateCost {
    usage: Usage,
    server_cpu: f64,
    requests: usize,
}

/// Measures and prints a table.
pub(crate) async fn run(options: &Options) -> TestResult {
    let programs = BuiltOperators::build()?;
    let mut costs = Vec::new();
    for number in 1..=options.rounds {
        for peer in NewCratePeer::ALL {
            let (cold, again) = round(options, peer, &programs).await?;
            println!("round {number}, {peer}: {cold:?}, again {again:?}");
            costs.push((peer, cold, again));
        }
    }
    println!(
        "\n{} objects, medians of {}:\n\n\
         | | CPU s | API server: CPU s | peak MB | requests | again: CPU s | peak MB | requests |\n\
         |---|---|---|---|---|---|---|---|",
        options.objects, options.rounds
    );
    for peer in NewCratePeer::ALL {
        let of_peer = costs.iter().filter(|(it, ..)| *it == peer);
        let starts = of_peer.map(|(_, cold, again)| (*cold, *again));
        let (cold, again): (Vec<NewCrateCost>, Vec<NewCrateCost>) = starts.unzip();
        println!(
            "| {peer} | {:.2} | {:.2} | {:.1} | {} | {:.2} | {:.1} | {} |",
            median(&cold, |it| it.usage.cpu),
            median(&cold, |it| it.server_cpu),
            median(&cold, |it| it.usage.peak_megabytes),
            median(&cold, |it| it.requests as f64),
            median(&again, |it| it.usage.cpu),
            median(&again, |it| it.usage.peak_megabytes),
            median(&again, |it| it.requests as f64),
        );
    }
    Ok(())
}

async fn round(
    options: &Options,
    peer: NewCratePeer,
    programs: &BuiltOperators,
) -> Result<(NewCrateCost, NewCrateCost), TestFailure> {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "new-crate").await?;
    sandbox.apply(&fs::read_to_string(definition())?).await?;
    let objects = sandbox.objects("kopf.dev/v1", "KopfExample").await?;
    let spec = json!({
        "duration": "1m",
        "field": "a sentence that a user has written into the object. ".repeat(4),
        "items": ["one", "two", "three", "four", "five", "six", "seven", "eight"],
    });
    widgets::create(&objects, options.objects, &spec).await?;
    let cold = start(peer, programs, &sandbox, &objects, "cold").await?;
    let again = start(peer, programs, &sandbox, &objects, "again").await?;
    Ok((cold, again))
}

async fn start(
    peer: NewCratePeer,
    programs: &BuiltOperators,
    sandbox: &Sandbox,
    objects: &Objects,
    name: &str,
) -> Result<NewCrateCost, TestFailure> {
    let user = sandbox.administrator(name);
    let server = ApiServerProcess::find(sandbox)?;
    let server_before = server.cpu()?;
    let program = match peer {
        NewCratePeer::Controller => &programs.controller,
        NewCratePeer::Ours => &programs.ours,
    };
    let operator: ChildProcess = sandbox.operator(program, &user)?.start()?;
    // Looks at the objects are work for the API server, too: only an operator at rest is looked at.
    let (usage, server_cpu) = while_running(&operator, async {
        loop {
            let usage = usage_when_idle(&operator).await?;
            let server_cpu = server.cpu()? - server_before;
            if all_handled(peer, objects).await? {
                return Ok((usage, server_cpu));
            }
        }
    })
    .await?;
    operator.terminate().await?;
    let requests = sandbox.requests_of(&user).await?.len();
    Ok(NewCrateCost {
        usage,
        server_cpu,
        requests,
    })
}

async fn all_handled(peer: NewCratePeer, objects: &Objects) -> Result<bool, TestFailure> {
    let all = widgets::list(objects).await?;
    Ok(all.iter().all(|it| peer.is_handled(it)))
}

fn definition() -> PathBuf {
    workspace::root().join("examples/01-minimal/crds/kopfexamples.yaml")
}

// === impl NewCratePeer ===

impl NewCratePeer {
    const ALL: [Self; 2] = [Self::Controller, Self::Ours];

    fn is_handled(self, object: &DynamicObject) -> bool {
        match self {
            Self::Controller => object.data["status"]["created"] == true,
            Self::Ours => widgets::is_settled(object),
        }
    }
}

impl fmt::Display for NewCratePeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Controller => "typed Controller, concurrency 16",
            Self::Ours => "the crate of `kopf-gen new`",
        })
    }
}

// === impl BuiltOperators ===

impl BuiltOperators {
    /// Makes the crate of a new user, and builds both as users do.
    fn build() -> Result<Self, TestFailure> {
        let scratch = tempfile::tempdir()?;
        let generator = workspace::build_program("kopf-gen")?;
        let mut new = Command::new(&generator);
        new.args(["-q", "new", "ours", "--crd"])
            .arg(definition())
            .current_dir(scratch.path());
        finish(new, "kopf-gen new")?;
        let controller = Path::new(env!("CARGO_MANIFEST_DIR")).join("typed-controller");
        Ok(Self {
            controller: build(&controller, "typed-controller")?,
            ours: build(&scratch.path().join("ours"), "ours")?,
        })
    }
}

fn build(folder: &Path, name: &str) -> Result<PathBuf, TestFailure> {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/new-crate");
    let mut cargo = Command::new("cargo");
    clear_cargo_variables(&mut cargo);
    cargo
        .args(["build", "--release", "--quiet", "--target-dir"])
        .arg(&target)
        .current_dir(folder);
    finish(cargo, name)?;
    Ok(target.join("release").join(name))
}

fn finish(mut command: Command, name: &str) -> TestResult {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(TestFailure::new(format!("{name} failed: {status}")))
    }
}
