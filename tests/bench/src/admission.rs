//! Reviews per second of webhook servers, all with the same check and the same certificates.

mod load;

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::{Args, ValueEnum};
use kopf_tests::pki::Authority;
use kopf_tests::sandbox::eventually;
use kopf_tests::{ChildProcess, PythonKopf, Sandbox, TestFailure};
use serde_json::json;

use self::load::{Load, WebhookTarget};
use crate::process::{resident_megabytes, usage};

/// The options of this benchmark.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The operators to measure
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [WebhookPeer::Kopf, WebhookPeer::ControllerRuntime, WebhookPeer::Ours])]
    peers: Vec<WebhookPeer>,
    /// Connections at the same time
    #[arg(long, default_value_t = 16)]
    connections: u32,
    /// How long each measurement takes, in seconds
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// How often all peers are measured, one after another
    #[arg(long, default_value_t = 1)]
    rounds: u32,
    /// Then this many reviews by ours, to measure the growth of its memory
    #[arg(long, default_value_t = 0)]
    reviews: u64,
}

/// The webhook server to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WebhookPeer {
    /// Python Kopf
    Kopf,
    /// controller-runtime, in Go
    ControllerRuntime,
    /// Our runtime
    Ours,
}

/// The sandbox and the certificates for all servers.
struct WebhookSetup {
    sandbox: Sandbox,
    certificates: tempfile::TempDir,
    authority: String,
}

/// Runs the benchmark.
pub(crate) async fn run(options: &Options) -> Result<(), TestFailure> {
    let setup = WebhookSetup::prepare().await?;
    println!("| | reviews/s | CPU ms per review | p50 ms at half | p99 ms at half | peak MB |");
    println!("|---|---|---|---|---|---|");
    for _ in 0..options.rounds {
        for peer in &options.peers {
            let (operator, target) = setup.start(*peer).await?;
            setup.wait_until_ready(&target).await?;
            let duration = Duration::from_secs(options.seconds);
            let load = Load::new(&target, options.connections)?;
            load.peak(Duration::from_secs(3)).await?;
            let before = usage(&operator)?;
            let peak = load.peak(duration).await?;
            let after = usage(&operator)?;
            let paced = load.paced(peak.rate() / 2.0, duration).await?;
            let per_review = 1000.0 * (after.cpu - before.cpu) / peak.reviews as f64;
            println!(
                "| {peer:?} | {:.0} | {per_review:.3} | {:.2} | {:.2} | {:.1} |",
                peak.rate(),
                paced.percentile(50.0),
                paced.percentile(99.0),
                usage(&operator)?.peak_megabytes,
            );
            operator.kill().await?;
        }
    }
    if options.reviews > 0 {
        let (operator, target) = setup.start(WebhookPeer::Ours).await?;
        setup.wait_until_ready(&target).await?;
        let load = Load::new(&target, options.connections)?;
        println!("\n| reviews | resident MB |\n|---|---|");
        let part = options.reviews / 10;
        for done in 1..=10 {
            load.count(part).await?;
            println!(
                "| {} | {:.1} |",
                done * part,
                resident_megabytes(&operator)?
            );
        }
        operator.kill().await?;
    }
    Ok(())
}

impl WebhookSetup {
    async fn prepare() -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open("admission").await?;
        sandbox.define("Widget").await?;
        let authority = Authority::fresh()?;
        let pair = authority.loopback_server()?;
        let certificates = tempfile::tempdir()?;
        std::fs::write(certificates.path().join("tls.crt"), pair.certificate)?;
        std::fs::write(certificates.path().join("tls.key"), pair.key)?;
        Ok(Self {
            sandbox,
            certificates,
            authority: authority.certificate().to_owned(),
        })
    }

    async fn start(&self, peer: WebhookPeer) -> Result<(ChildProcess, WebhookTarget), TestFailure> {
        let identity = self.sandbox.administrator("operator");
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?
            .local_addr()?
            .port();
        let group = self.sandbox.group();
        let (builder, path) = match peer {
            WebhookPeer::Kopf => {
                let script = bench_folder().join("scripts/admission.py");
                let kopf = PythonKopf::obtain().await?;
                let builder = kopf.operator(&self.sandbox, &identity, &script)?;
                (builder.arg("--quiet"), "/check".to_owned())
            }
            WebhookPeer::ControllerRuntime => {
                let builder = self.sandbox.operator(controller_runtime()?, &identity)?;
                (builder, "/validate".to_owned())
            }
            WebhookPeer::Ours => {
                let program = env::current_exe()?.with_file_name("bench-operator");
                let builder = self.sandbox.operator(program, &identity)?;
                let builder = builder.env("WORK", "admission").env("PEER", "ours").args([
                    "run",
                    "--quiet",
                    "--namespace",
                    self.sandbox.namespace(),
                ]);
                (builder, format!("/validate/{group}/widgets/check"))
            }
        };
        let operator = builder
            .env("GROUP", group)
            .env("PORT", port.to_string())
            .env("CERTS", self.certificates.path())
            .start()?;
        let target = WebhookTarget {
            port,
            path,
            authority: self.authority.clone(),
            body: self.review(),
        };
        Ok((operator, target))
    }

    async fn wait_until_ready(&self, target: &WebhookTarget) -> Result<(), TestFailure> {
        eventually("the server answers", async || {
            Load::new(target, 1).ok()?.count(1).await.ok().map(drop)
        })
        .await
    }

    /// A review of a new object with about 4 KB.
    fn review(&self) -> String {
        let group = self.sandbox.group();
        let items: Vec<String> = (0..80)
            .map(|number| format!("item-{number:04}-{}", "x".repeat(34)))
            .collect();
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1ca13837-ad60-4c9e-abb8-86f29d6c0e84",
                "kind": {"group": group, "version": "v1", "kind": "Widget"},
                "resource": {"group": group, "version": "v1", "resource": "widgets"},
                "requestKind": {"group": group, "version": "v1", "kind": "Widget"},
                "requestResource": {"group": group, "version": "v1", "resource": "widgets"},
                "name": "one", "namespace": self.sandbox.namespace(), "operation": "CREATE",
                "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
                "object": {
                    "apiVersion": format!("{group}/v1"), "kind": "Widget",
                    "metadata": {"name": "one", "namespace": self.sandbox.namespace()},
                    "spec": {"size": 5, "items": items},
                },
                "oldObject": null, "dryRun": false, "options": null,
            },
        })
        .to_string()
    }
}

fn bench_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds the webhook of controller-runtime; Go caches the build.
fn controller_runtime() -> Result<PathBuf, TestFailure> {
    let program = env::current_exe()?.with_file_name("controller-runtime-webhook");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(bench_folder().join("controller-runtime"))
        .status()?;
    if built.success() {
        Ok(program)
    } else {
        Err(TestFailure::new(
            "`go build` of the controller-runtime webhook failed",
        ))
    }
}
