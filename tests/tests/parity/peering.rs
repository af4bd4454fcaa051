//! Peering of Kopf and our operator: each pauses for the other, and resumes after its end.

use std::path::Path;

use kopf_tests::child_process::{ChildProcess, ChildProcessBuilder, Signal};
use kopf_tests::{
    Objects, PeeringObject, PrivateControlPlane, PythonKopf, Sandbox, TestFailure, TestResult,
    eventually,
};
use serde_json::json;

use crate::scenario::Implementation;

/// The log text of both implementations when they resume.
const RESUMING: &str = "Resuming operations";

/// The lifetime of records, in seconds.
const LIFETIME: &str = "5";

/// A sandbox with a peering for operators of both implementations.
struct PeeringRun {
    sandbox: Sandbox,
    widgets: Objects,
    peering: PeeringObject,
    kopf: PythonKopf,
}

impl PeeringRun {
    async fn open(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        let peering = PeeringObject::create(&sandbox, "shared").await?;
        Self::with(sandbox, peering).await
    }

    async fn with(sandbox: Sandbox, peering: PeeringObject) -> Result<Self, TestFailure> {
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            kopf: PythonKopf::obtain().await?,
            sandbox,
            peering,
        })
    }

    fn start(
        &self,
        implementation: Implementation,
        arguments: &[&str],
    ) -> Result<ChildProcess, TestFailure> {
        let identity = self.sandbox.administrator(name(implementation));
        let builder: ChildProcessBuilder = match implementation {
            Implementation::Kopf => {
                let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/scripts");
                let script = folder.join("peering.py");
                self.kopf
                    .peer(&self.sandbox, &identity, &script)?
                    .env("POD_ID", "python")
                    .env("LIFETIME", LIFETIME)
            }
            Implementation::Ours => self
                .sandbox
                .operator(env!("CARGO_BIN_EXE_replica-operator"), &identity)?
                .env("REPLICA_GROUP", self.sandbox.group())
                .env("REPLICA_NAME", "ours")
                .env("REPLICA_LIFETIME", LIFETIME)
                .args(["run", "--namespace", self.sandbox.namespace()]),
        };
        let peering = ["--verbose", "--peering", self.peering.name()];
        Ok(builder.args(peering).args(arguments).start()?)
    }

    /// Creates an object and expects that this implementation handles it.
    async fn create_and_expect(&self, object: &str, implementation: Implementation) -> TestResult {
        self.create(object).await?;
        self.handled(object, implementation).await
    }

    async fn create(&self, object: &str) -> TestResult {
        self.widgets.create(object, json!({"spec": {}})).await?;
        Ok(())
    }

    async fn handled(&self, object: &str, implementation: Implementation) -> TestResult {
        let handled = self
            .widgets
            .wait_until(object, "an operator has handled it", |it| {
                it.data["status"]["by"].is_string()
            })
            .await?;
        assert_eq!(
            handled.data["status"]["by"],
            name(implementation),
            "the operator that handled {object}"
        );
        Ok(())
    }
}

fn name(implementation: Implementation) -> &'static str {
    match implementation {
        Implementation::Kopf => "python",
        Implementation::Ours => "ours",
    }
}

/// Waits until an operator is paused. Kopf also logs a pause at its start, before it finds its peering.
async fn wait_until_paused(implementation: Implementation, operator: &ChildProcess) -> TestResult {
    let (pausing, resuming) = match implementation {
        Implementation::Kopf => (
            "Pausing the watch-stream for widgets",
            "Resuming the watch-stream for widgets",
        ),
        Implementation::Ours => ("Pausing operations: ", "Resuming operations."),
    };
    eventually(&format!("{} is paused", name(implementation)), async || {
        let log = operator.log();
        (log.matches(pausing).count() > log.matches(resuming).count()).then_some(())
    })
    .await
}

/// Waits until a text is in the log this many times.
async fn wait_for_log_count(operator: &ChildProcess, text: &str, times: usize) -> TestResult {
    eventually(&format!("{times} times {text:?}"), async || {
        (operator.log().matches(text).count() >= times).then_some(())
    })
    .await
}

/// An operator with `--dev` of one implementation pauses a deployed one of the other twice: until it
/// exits, and until it is killed.
async fn developer_pauses_deployed(
    run: &PeeringRun,
    deployed: Implementation,
    developing: Implementation,
) -> TestResult {
    let first = run.start(deployed, &["--priority", "100"])?;
    run.create_and_expect("before", deployed).await?;
    let resumed = first.log().matches(RESUMING).count();

    let second = run.start(developing, &["--dev"])?;
    wait_until_paused(deployed, &first).await?;
    run.create_and_expect("exiting", developing).await?;
    assert_eq!(
        run.peering.records().await?[name(developing)]["priority"],
        666
    );
    second.terminate().await?;
    run.peering.wait_for(&[name(deployed)]).await?;
    wait_for_log_count(&first, RESUMING, resumed + 1).await?;
    run.create_and_expect("exited", deployed).await?;

    let second = run.start(developing, &["--dev"])?;
    wait_until_paused(deployed, &first).await?;
    run.create_and_expect("dying", developing).await?;
    second.signal(Signal::KILL)?;
    wait_for_log_count(&first, RESUMING, resumed + 2).await?;
    run.create_and_expect("dead", deployed).await?;
    run.peering.wait_for(&[name(deployed)]).await
}

#[tokio::test]
async fn our_operator_with_dev_priority_pauses_a_deployed_kopf() -> TestResult {
    let run = PeeringRun::open("peer-ours").await?;
    developer_pauses_deployed(&run, Implementation::Kopf, Implementation::Ours).await
}

#[tokio::test]
async fn kopf_with_dev_priority_pauses_our_deployed_operator() -> TestResult {
    let run = PeeringRun::open("peer-kopf").await?;
    developer_pauses_deployed(&run, Implementation::Ours, Implementation::Kopf).await
}

#[tokio::test]
async fn kopf_and_our_operator_of_equal_priority_pause_until_one_ends() -> TestResult {
    let run = PeeringRun::open("peer-equals").await?;
    for (stays, goes) in [
        (Implementation::Ours, Implementation::Kopf),
        (Implementation::Kopf, Implementation::Ours),
    ] {
        let priority = ["--priority", "7"];
        let (first, second) = (run.start(stays, &priority)?, run.start(goes, &priority)?);
        for (implementation, operator) in [(stays, &first), (goes, &second)] {
            operator
                .wait_for_log("Possibly conflicting operators with the same priority")
                .await?;
            wait_until_paused(implementation, operator).await?;
        }
        let object = format!("kept-by-{}", name(stays));
        run.create(&object).await?;
        second.terminate().await?;
        run.handled(&object, stays).await?;
        first.terminate().await?;
        run.peering.wait_for(&[]).await?;
    }
    Ok(())
}

#[tokio::test]
async fn kopf_and_our_operator_write_the_same_records_also_in_the_legacy_group() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "peer-old").await?;
    let legacy = kopf_tests::peering::LEGACY_GROUP;
    let peering = PeeringObject::create_in(&sandbox, legacy, "KopfPeering", "shared").await?;
    let run = PeeringRun::with(sandbox, peering).await?;
    let deployed = run.start(Implementation::Kopf, &["--priority", "100"])?;
    run.create_and_expect("before", Implementation::Kopf)
        .await?;
    let developing = run.start(Implementation::Ours, &["--dev"])?;
    wait_until_paused(Implementation::Kopf, &deployed).await?;
    run.create_and_expect("one", Implementation::Ours).await?;
    let records = run.peering.records().await?;
    let shape = |identity: &str| {
        let record = records[identity].as_object().cloned().unwrap_or_default();
        let plain = |(key, value): (&String, &serde_json::Value)| {
            let digits = value.to_string();
            let digits = digits.replace(|c: char| c.is_ascii_digit(), "9");
            let value = if key == "lastseen" {
                digits
            } else {
                key.clone()
            };
            format!("{key}: {value}")
        };
        record.iter().map(plain).collect::<Vec<_>>()
    };
    assert_eq!(shape("ours"), shape("python"), "{records:?}");
    assert_eq!(records["ours"]["lifetime"], records["python"]["lifetime"]);
    developing.terminate().await?;
    run.create_and_expect("two", Implementation::Kopf).await
}
