//! Peering: several operators on the same objects, of which one is active.

use kopf_tests::child_process::{ChildProcess, Ending, Signal};
use kopf_tests::peering::{LEGACY_GROUP, PeeringObject};
use kopf_tests::{
    Objects, PrivateControlPlane, Sandbox, TestFailure, TestResult, User, eventually,
};
use kube::api::DynamicObject;
use serde_json::{Value, json};

const PAUSING: &str = "Pausing operations:";
const RESUMING: &str = "Resuming operations.";

/// A sandbox for several operators.
struct PeeringFixture {
    sandbox: Sandbox,
    widgets: Objects,
    account: User,
}

impl PeeringFixture {
    async fn open(name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    async fn in_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            account: sandbox.administrator("operators"),
            sandbox,
        })
    }

    /// Starts an operator of this name for the namespace of the sandbox.
    fn start(&self, name: &str, arguments: &[&str]) -> Result<ChildProcess, TestFailure> {
        let namespace = ["--namespace", self.sandbox.namespace()];
        self.start_with(name, &[&namespace, arguments].concat(), &[])
    }

    fn start_with(
        &self,
        name: &str,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<ChildProcess, TestFailure> {
        let mut builder = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_replica-operator"), &self.account)?
            .env("REPLICA_GROUP", self.sandbox.group())
            .env("REPLICA_NAME", name)
            .args(["run", "--verbose", "--log-format", "plain"])
            .args(arguments);
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        Ok(builder.start()?)
    }

    /// Runs a command of the operator; returns its exit status and output.
    async fn command(&self, arguments: &[&str]) -> Result<(Ending, String), TestFailure> {
        let process = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_replica-operator"), &self.account)?
            .args(arguments)
            .start()?;
        Ok((process.wait().await?, process.log()))
    }

    async fn create(&self, name: &str) -> TestResult {
        self.create_with(name, json!({"steps": 1})).await
    }

    async fn create_with(&self, name: &str, spec: Value) -> TestResult {
        self.widgets.create(name, json!({"spec": spec})).await?;
        Ok(())
    }

    async fn handled_by(&self, object: &str, operator: &str) -> TestResult {
        let waiting = self
            .widgets
            .wait_until(object, &format!("handled by {operator}"), |it| {
                operator_of(it).is_some()
            })
            .await?;
        assert_eq!(
            operator_of(&waiting),
            Some(operator),
            "the operator that handled {object}"
        );
        Ok(())
    }
}

fn operator_of(object: &DynamicObject) -> Option<&str> {
    object.data["status"]["by"].as_str()
}

/// The number of such notes about an object in the log.
fn count_notes(operator: &ChildProcess, what: &str, object: &str) -> usize {
    operator
        .log()
        .matches(&format!("NOTE {what} {object} "))
        .count()
}

/// Waits until a text is in the log this many times.
async fn wait_for_log_count(operator: &ChildProcess, text: &str, times: usize) -> TestResult {
    eventually(&format!("{times} times {text:?}"), async || {
        (operator.log().matches(text).count() >= times).then_some(())
    })
    .await
}

#[tokio::test]
async fn an_operator_pauses_for_a_higher_priority_until_that_exits() -> TestResult {
    let fixture = PeeringFixture::open("peers").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "ours").await?;
    let deployed = fixture.start("deployed", &["--peering", "ours"])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "deployed").await?;
    assert_eq!(peering.records().await?["deployed"]["priority"], 0);

    let dev = fixture.start("dev", &["--peering", "ours", "--dev"])?;
    deployed
        .wait_for_log("Pausing operations: in favour of dev (priority 666).")
        .await?;
    fixture.create("two").await?;
    fixture.handled_by("two", "dev").await?;
    assert_eq!(peering.records().await?["dev"]["priority"], 666);
    assert_eq!(count_notes(&deployed, "BEGIN", "two"), 0);

    assert_eq!(dev.terminate().await?, Ending::Exit(0));
    peering.wait_for(&["deployed"]).await?;
    deployed.wait_for_log(RESUMING).await?;
    fixture.create("three").await?;
    fixture.handled_by("three", "deployed").await?;
    assert_eq!(
        count_notes(&deployed, "RESUME", "one"),
        0,
        "a pause is no restart"
    );
    assert_eq!(count_notes(&deployed, "BEGIN", "one"), 1);
    deployed.terminate().await?;
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn the_record_of_a_killed_peer_expires_after_its_lifetime() -> TestResult {
    let fixture = PeeringFixture::open("death").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let dev = fixture.start_with(
        "dev",
        &["--namespace", fixture.sandbox.namespace(), "--dev"],
        &[("REPLICA_LIFETIME", "3")],
    )?;
    fixture.create("one").await?;
    fixture.handled_by("one", "dev").await?;
    let deployed = fixture.start("deployed", &[])?;
    deployed.wait_for_log(PAUSING).await?;
    dev.signal(Signal::KILL)?;
    deployed.wait_for_log(RESUMING).await?;
    peering.wait_for(&["deployed"]).await?;
    fixture.create("two").await?;
    fixture.handled_by("two", "deployed").await
}

#[tokio::test]
async fn running_handlers_finish_during_a_pause_and_changes_are_handled_after_it() -> TestResult {
    let fixture = PeeringFixture::open("pause").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let operator = fixture.start("deployed", &[])?;
    fixture.create("goes").await?;
    fixture.create("changes").await?;
    for name in ["goes", "changes"] {
        fixture.handled_by(name, "deployed").await?;
    }
    fixture.create_with("runs", json!({"steps": 100})).await?;
    operator.wait_for_log("NOTE BEGIN runs").await?;

    let freeze = |priority: i64| {
        json!({"someone": {
            "priority": priority, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
        }})
    };
    peering.write(freeze(100)).await?;
    operator.wait_for_log("in favour of someone").await?;
    let finished = fixture
        .widgets
        .wait_until("runs", "finished and recorded", |it| {
            operator_of(it).is_some()
        })
        .await?;
    assert_eq!(operator_of(&finished), Some("deployed"));
    fixture.widgets.delete("goes").await?;
    fixture.widgets.wait_gone("goes").await?;
    let bigger = json!({"spec": {"steps": 2}});
    fixture.widgets.merge("changes", bigger).await?;
    fixture.create("comes").await?;
    peering.write(freeze(101)).await?;
    peering.write(json!({"someone": null})).await?;

    operator.wait_for_log(RESUMING).await?;
    operator.wait_for_log("NOTE DELETED goes").await?;
    fixture.handled_by("comes", "deployed").await?;
    eventually("the change is handled", async || {
        (count_notes(&operator, "FINISH", "changes") == 2).then_some(())
    })
    .await?;
    assert_eq!(count_notes(&operator, "BEGIN", "runs"), 1);
    assert_eq!(count_notes(&operator, "RESUME", "changes"), 0);
    operator.terminate().await.map(drop)
}

#[tokio::test]
async fn operators_of_equal_priority_pause_unless_ties_are_decided_by_identity() -> TestResult {
    let fixture = PeeringFixture::open("equals").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let a = fixture.start("a", &[])?;
    peering.wait_for(&["a"]).await?;
    let b = fixture.start("b", &[])?;
    for operator in [&a, &b] {
        operator
            .wait_for_log("Possibly conflicting operators with the same priority")
            .await?;
        operator.wait_for_log(PAUSING).await?;
    }
    fixture.create("one").await?;
    b.terminate().await?;
    fixture.handled_by("one", "a").await?;
    assert_eq!(count_notes(&b, "BEGIN", "one"), 0);
    a.terminate().await?;

    let scope = ["--namespace", fixture.sandbox.namespace()];
    let ties = [("REPLICA_TIES", "1"), ("REPLICA_LIFETIME", "3")];
    let all = ["x", "y", "z"];
    let start = |name: &&'static str| fixture.start_with(name, &scope, &ties);
    let mut replicas = all.iter().map(start).collect::<Result<Vec<_>, _>>()?;
    peering.wait_for(&all).await?;
    for waiting in &replicas[1..] {
        waiting.wait_for_log("in favour of x (priority 0)").await?;
    }
    fixture.create("two").await?;
    fixture.handled_by("two", "x").await?;
    replicas.remove(0).kill().await?;
    fixture.create("three").await?;
    fixture.handled_by("three", "y").await?;
    assert!(!replicas[0].log().contains("conflicting"));
    Ok(())
}

#[tokio::test]
async fn stealth_keeps_keep_alives_out_of_the_log() -> TestResult {
    let fixture = PeeringFixture::open("stealth").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let scope = ["--namespace", fixture.sandbox.namespace()];
    let lively = [("REPLICA_LIFETIME", "2")];
    let loud = fixture.start_with("loud", &scope, &lively)?;
    wait_for_log_count(&loud, "Keep-alive in \"default\"", 2).await?;
    loud.terminate().await?;

    let quiet = fixture.start_with("quiet", &scope, &[lively[0], ("REPLICA_STEALTH", "1")])?;
    let renewals = async |than: &Value| {
        eventually("the record is renewed", async || {
            let lastseen = peering.records().await.ok()?.get("quiet")?["lastseen"].clone();
            (lastseen != *than).then_some(lastseen)
        })
        .await
    };
    let first = renewals(&Value::Null).await?;
    renewals(&first).await?;
    assert!(!quiet.log().contains("Keep-alive"), "{}", quiet.log());
    Ok(())
}

#[tokio::test]
async fn the_operator_waits_for_a_mandatory_peering_object() -> TestResult {
    let fixture = PeeringFixture::open("mandatory").await?;
    kopf_tests::peering::define(&fixture.sandbox, kopf_tests::peering::GROUP).await?;
    let operator = fixture.start("deployed", &["--peering", "later"])?;
    operator
        .wait_for_log("the peering \"later\" does not exist in")
        .await?;
    fixture.create("one").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "later").await?;
    fixture.handled_by("one", "deployed").await?;
    peering.wait_for(&["deployed"]).await
}

#[tokio::test]
async fn an_operator_creates_the_peering_object_that_it_is_made_with() -> TestResult {
    let fixture = PeeringFixture::open("created").await?;
    kopf_tests::peering::define(&fixture.sandbox, kopf_tests::peering::GROUP).await?;
    let namespace = ["--namespace", fixture.sandbox.namespace()];
    let operators = ["first", "second"].map(|name| {
        let priority = ["--priority", if name == "first" { "2" } else { "1" }];
        let arguments = [&namespace[..], &priority].concat();
        fixture.start_with(name, &arguments, &[("REPLICA_CREATES", "ours")])
    });
    let [first, second] = operators;
    let (first, second) = (first?, second?);
    second.wait_for_log("in favour of first").await?;
    fixture.create("one").await?;
    fixture.handled_by("one", "first").await?;
    let peering = PeeringObject::existing(&fixture.sandbox, "ours").await?;
    peering.wait_for(&["first", "second"]).await?;
    first.terminate().await?;
    second.terminate().await.map(drop)
}

#[tokio::test]
async fn a_standalone_operator_ignores_peering_records() -> TestResult {
    let fixture = PeeringFixture::open("standalone").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    let dev = fixture.start("dev", &["--dev"])?;
    peering.wait_for(&["dev"]).await?;
    let alone = fixture.start("alone", &["--standalone"])?;
    fixture.create("one").await?;
    alone.wait_for_log("NOTE BEGIN one").await?;
    peering.wait_for(&["dev"]).await?;
    assert!(!alone.log().contains(PAUSING));
    dev.terminate().await.map(drop)
}

#[tokio::test]
async fn a_higher_priority_in_one_namespace_pauses_the_operator_in_all() -> TestResult {
    let fixture = PeeringFixture::open("two-scopes").await?;
    let other = Sandbox::open_on(fixture.sandbox.control_plane().clone(), "two-scopes").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    peering.create_beside(other.namespace()).await?;
    let both = ["-n", fixture.sandbox.namespace(), "-n", other.namespace()];
    let wide = fixture.start_with("wide", &both, &[])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "wide").await?;
    let dev = fixture.start_with("dev", &["--dev", "--namespace", other.namespace()], &[])?;
    wide.wait_for_log("in favour of dev").await?;
    fixture.create("two").await?;
    dev.terminate().await?;
    fixture.handled_by("two", "wide").await
}

#[tokio::test]
async fn cluster_wide_operators_use_a_cluster_peering() -> TestResult {
    let fixture = PeeringFixture::open("clusterwide").await?;
    let peering = PeeringObject::create_cluster_wide(&fixture.sandbox).await?;
    let name = peering.name().to_owned();
    let deployed = fixture.start_with("deployed", &["-A", "--peering", &name], &[])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "deployed").await?;
    let dev = fixture.start_with("dev", &["-A", "--dev", "--peering", &name], &[])?;
    deployed.wait_for_log("in favour of dev").await?;
    peering.wait_for(&["deployed", "dev"]).await?;
    dev.terminate().await?;
    deployed.wait_for_log(RESUMING).await?;
    deployed.terminate().await?;
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn the_freeze_and_resume_commands_pause_and_resume_operators() -> TestResult {
    let fixture = PeeringFixture::open("freeze").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "ours").await?;
    let operator = fixture.start("deployed", &["--peering", "ours"])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "deployed").await?;
    let scope = [
        "--namespace",
        fixture.sandbox.namespace(),
        "--peering",
        "ours",
    ];

    let freeze = ["freeze", "--lifetime", "600", "--id", "me@here"];
    let (ending, log) = fixture.command(&[&freeze[..], &scope].concat()).await?;
    assert_eq!(ending, Ending::Exit(0), "{log}");
    assert!(log.contains("pause for 600 s"), "{log}");
    operator
        .wait_for_log("Pausing operations: in favour of me@here (priority 100).")
        .await?;
    let record = peering.records().await?["me@here"].clone();
    assert_eq!(
        (&record["priority"], &record["lifetime"]),
        (&json!(100), &json!(600))
    );
    fixture.create("two").await?;

    let resume = ["resume", "--id", "me@here"];
    let (ending, log) = fixture.command(&[&resume[..], &scope].concat()).await?;
    assert_eq!(ending, Ending::Exit(0), "{log}");
    fixture.handled_by("two", "deployed").await?;

    let short = ["freeze", "-t", "1", "-i", "me@here"];
    fixture.command(&[&short[..], &scope].concat()).await?;
    wait_for_log_count(&operator, RESUMING, 2).await?;

    let elsewhere = ["resume", "-P", "nowhere", "-n", fixture.sandbox.namespace()];
    let (ending, log) = fixture.command(&elsewhere).await?;
    assert_eq!(ending, Ending::Exit(6));
    assert!(log.contains("there is no KopfPeering \"nowhere\""), "{log}");
    Ok(())
}

#[tokio::test]
async fn wrong_clocks_neither_block_operators_nor_let_two_run() -> TestResult {
    let fixture = PeeringFixture::open("wrong-clock").await?;
    PeeringObject::create(&fixture.sandbox, "default").await?;
    let scope = ["--namespace", fixture.sandbox.namespace()];
    let late = [("REPLICA_CLOCK", "-7200"), ("REPLICA_LIFETIME", "3")];
    let deployed = fixture.start("deployed", &[])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "deployed").await?;
    let dev = fixture.start_with("dev", &[&scope[..], &["--dev"]].concat(), &late)?;
    deployed.wait_for_log("in favour of dev").await?;
    fixture.create("two").await?;
    fixture.handled_by("two", "dev").await?;
    // One per second: longer than the lifetime, and all with a time two hours ago.
    wait_for_log_count(&dev, "Keep-alive in \"default\"", 6).await?;
    assert!(!deployed.log().contains(RESUMING));
    dev.kill().await?;
    wait_for_log_count(&deployed, RESUMING, 1).await
}

#[tokio::test]
async fn peerings_of_the_legacy_group_and_with_a_status_subresource_are_used() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "legacy").await?;
    let fixture = PeeringFixture::in_sandbox(sandbox).await?;
    let alone = fixture.start("alone", &[])?;
    fixture.create("one").await?;
    fixture.handled_by("one", "alone").await?;
    alone.terminate().await?;

    let peering =
        PeeringObject::create_in(&fixture.sandbox, LEGACY_GROUP, "KopfPeering", "default").await?;
    let deployed = fixture.start("deployed", &[])?;
    peering.wait_for(&["deployed"]).await?;
    let dev = fixture.start("dev", &["--dev"])?;
    deployed.wait_for_log("in favour of dev").await?;
    dev.terminate().await?;
    fixture.create("two").await?;
    fixture.handled_by("two", "deployed").await?;
    deployed.terminate().await?;

    kopf_tests::peering::define_with_status_subresource(&fixture.sandbox).await?;
    let peering = PeeringObject::create(&fixture.sandbox, "modern").await?;
    let operator = fixture.start("modern", &["--peering", "modern"])?;
    peering.wait_for(&["modern"]).await?;
    operator.terminate().await?;
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn a_peer_with_an_endless_lifetime_pauses_an_operator_until_its_record_is_removed()
-> TestResult {
    let fixture = PeeringFixture::open("endless").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "default").await?;
    for (number, lifetime) in [json!("inf"), json!(1e20)].into_iter().enumerate() {
        peering
            .write(json!({"endless": {"priority": 100, "lifetime": lifetime}}))
            .await?;
        let operator = fixture.start(&format!("ours-{number}"), &[])?;
        operator.wait_for_log(PAUSING).await?;
        peering.write(json!({"endless": null})).await?;
        operator.wait_for_log(RESUMING).await?;
        assert_eq!(operator.terminate().await?, Ending::Exit(0));
    }
    Ok(())
}
