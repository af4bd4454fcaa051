//! The operator as a process: exit codes, broken environments, and stopping under load.

use std::time::Instant;

use kopf_runtime::Settings;
use kopf_tests::child_process::{ChildProcess, ChildProcessBuilder, Ending, Signal};
use kopf_tests::health_client::HealthClient;
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult};
use serde_json::json;

const OPERATOR: &str = env!("CARGO_BIN_EXE_flaky-operator");

/// A kind, and a program that is an operator for it.
struct ProcessFixture {
    sandbox: Sandbox,
    objects: Objects,
}

impl ProcessFixture {
    async fn new(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        let objects = sandbox.define("Widget").await?;
        Ok(Self { sandbox, objects })
    }

    fn builder(&self, program: &str) -> Result<ChildProcessBuilder, TestFailure> {
        let identity = self.sandbox.administrator("operator");
        let builder = self.sandbox.operator(program, &identity)?;
        Ok(builder
            .env("FLAKY_GROUP", self.sandbox.group())
            .env("KOPF_RUN_NAMESPACE", self.sandbox.namespace()))
    }

    /// Prepares to start the operator by a shell script; `$OPERATOR` is the program.
    fn scripted(&self, script: &str) -> Result<ChildProcessBuilder, TestFailure> {
        let builder = self.builder("/bin/bash")?.env("OPERATOR", OPERATOR);
        Ok(builder.arg("-c").arg(script))
    }

    async fn is_handled(&self, name: &str) -> TestResult {
        let handled = |it: &kube::api::DynamicObject| it.data["status"]["quick"] == 1;
        self.objects
            .wait_until(name, "it is handled", handled)
            .await?;
        Ok(())
    }

    async fn create(&self, name: &str) -> TestResult {
        let body = json!({"spec": {"size": 1}});
        self.objects.create(name, body).await?;
        Ok(())
    }
}

#[tokio::test]
async fn the_exit_code_depends_on_the_reason_of_the_end() -> TestResult {
    let fixture = ProcessFixture::new("exit-codes").await?;
    let ending = async |builder: ChildProcessBuilder| -> Result<(Ending, String), TestFailure> {
        let process = builder.start()?;
        let ending = process.wait().await?;
        Ok((ending, process.log()))
    };
    for (variable, argument, code, message) in [
        ("A", "--nonsense", 2, "unexpected argument '--nonsense'"),
        (
            "FLAKY_FAIL_STARTUP",
            "run",
            4,
            "the operator could not start: `prepare` has failed: as requested",
        ),
        (
            "A",
            "--log-format=xml",
            2,
            "possible values: full, plain, json",
        ),
    ] {
        let builder = fixture
            .builder(OPERATOR)?
            .env(variable, "yes")
            .arg(argument);
        let (ending, log) = ending(builder).await?;
        assert_eq!(ending, Ending::Exit(code), "{log}");
        assert!(log.contains(message), "{log}");
    }
    let nowhere = fixture.builder(OPERATOR)?.env("KUBECONFIG", "/nowhere");
    let (ended, log) = ending(nowhere).await?;
    assert_eq!(ended, Ending::Exit(5), "{log}");
    assert!(log.contains("no cluster to connect to"), "{log}");

    let untidy = fixture
        .builder(OPERATOR)?
        .env("FLAKY_FAIL_CLEANUP", "yes")
        .start()?;
    fixture.create("one").await?;
    fixture.is_handled("one").await?;
    assert_eq!(untidy.terminate().await?, Ending::Exit(7));
    untidy
        .wait_for_log("the operator could not clean up: `tear_down` has failed: as requested")
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_operator_works_when_its_log_pipe_is_closed() -> TestResult {
    let fixture = ProcessFixture::new("no-reader").await?;
    let process = fixture
        .scripted("exec \"$OPERATOR\" --verbose > >(head -n 1) 2>&1")?
        .start()?;
    for name in ["one", "two", "three"] {
        fixture.create(name).await?;
        fixture.is_handled(name).await?;
    }
    assert_eq!(process.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_operator_works_with_all_descriptors_closed() -> TestResult {
    let fixture = ProcessFixture::new("closed").await?;
    let process = fixture
        .scripted("exec \"$OPERATOR\" <&- >&- 2>&-")?
        .start()?;
    fixture.create("one").await?;
    fixture.is_handled("one").await?;
    assert_eq!(process.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_operator_works_without_home_user_and_writable_files() -> TestResult {
    let fixture = ProcessFixture::new("bare").await?;
    // With a file size limit of zero bytes, a program that writes to a file is killed.
    let process = fixture
        .scripted(
            "ulimit -f 0; cd /; exec env -i KUBECONFIG=\"$KUBECONFIG\" FLAKY_GROUP=\"$FLAKY_GROUP\" \
             KOPF_RUN_NAMESPACE=\"$KOPF_RUN_NAMESPACE\" \"$OPERATOR\"",
        )?
        .start()?;
    fixture.create("one").await?;
    fixture.is_handled("one").await?;
    assert_eq!(process.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_crd_command_succeeds_when_its_reader_closes_the_pipe() -> TestResult {
    let process = ChildProcess::command("/bin/bash")
        .env("OPERATOR", OPERATOR)
        .arg("-c")
        .arg("exec 3> >(true); wait $!; exec \"$OPERATOR\" crd >&3")
        .start()?;
    assert_eq!(process.wait().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn the_crd_command_applies_definitions_and_prints_what_changed() -> TestResult {
    let fixture = ProcessFixture::new("definitions").await?;
    let name = format!("samples.{}", fixture.sandbox.group());
    let api_version = "apiextensions.k8s.io/v1";
    let kind = "CustomResourceDefinition";
    let definitions = fixture.sandbox.objects(api_version, kind).await?;
    for (description, change) in [
        ("First", "is created"),
        ("First", "is unchanged"),
        ("Second", "is changed"),
    ] {
        let process = fixture
            .builder(OPERATOR)?
            .env("FLAKY_DESCRIPTION", description)
            .args(["crd", "--apply"])
            .start()?;
        assert_eq!(process.wait().await?, Ending::Exit(0), "{}", process.log());
        let log = process.log();
        assert!(log.contains(&format!("{name} {change}")), "{log}");
        let definition = definitions.get(&name).await?;
        assert!(is_established(&definition), "it is served: {definition:?}");
    }
    let refused = fixture
        .builder(OPERATOR)?
        .env("FLAKY_DESCRIPTION", "[not, a, text]")
        .args(["crd", "--apply"])
        .start()?;
    assert_eq!(refused.wait().await?, Ending::Exit(6));
    let log = refused.log();
    assert!(
        log.contains(&format!(
            "the CustomResourceDefinition {name} was not applied"
        )),
        "{log}"
    );
    Ok(())
}

fn is_established(definition: &kube::api::DynamicObject) -> bool {
    let conditions = definition.data["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it["type"] == "Established" && it["status"] == "True")
}

#[tokio::test]
async fn a_definition_whose_names_are_taken_is_reported() -> TestResult {
    let fixture = ProcessFixture::new("taken-names").await?;
    let first = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: specimens.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Sample, plural: specimens, singular: specimen}
  versions:
    - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
";
    fixture.sandbox.apply(first).await?;
    let refused = fixture
        .builder(OPERATOR)?
        .args(["crd", "--apply"])
        .start()?;
    assert_eq!(refused.wait().await?, Ending::Exit(6), "{}", refused.log());
    let group = fixture.sandbox.group();
    let message = format!(
        "the CustomResourceDefinition samples.{group} was not applied: the server does not accept its names"
    );
    refused.wait_for_log(&message).await?;
    refused.wait_for_log("is already in use").await?;
    let api_version = "apiextensions.k8s.io/v1";
    let kind = "CustomResourceDefinition";
    let definitions = fixture.sandbox.objects(api_version, kind).await?;
    definitions.delete(&format!("samples.{group}")).await?;
    Ok(())
}

#[tokio::test]
async fn a_flag_variable_accepts_yes_and_no_values() -> TestResult {
    let fixture = ProcessFixture::new("flags").await?;
    fixture.create("one").await?;
    let prefix = format!("[{}/one]", fixture.sandbox.namespace());
    for (number, (variables, arguments, prefixed)) in [
        (vec![("KOPF_RUN_LOG_PREFIX", "false")], &[][..], false),
        (vec![("KOPF_RUN_LOG_PREFIX", "no")], &["--log-prefix"], true),
        (
            vec![("KOPF_RUN_LOG_PREFIX", "1")],
            &["--no-log-prefix"],
            false,
        ),
        // A flag that is off does not conflict with the given namespace.
        (
            vec![("KOPF_RUN_ALL_NAMESPACES", "off"), ("KOPF_RUN_QUIET", "0")],
            &["-v"],
            true,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let mut builder = fixture.builder(OPERATOR)?.env("FLAKY_PAUSE", "1");
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        let process = builder
            .args(["--log-format", "plain"])
            .args(arguments)
            .start()?;
        let size = json!({"spec": {"size": number + 2}});
        fixture.objects.merge("one", size).await?;
        let line = process.wait_for_log("is done with one").await?;
        assert_eq!(line.starts_with(&prefix), prefixed, "{number}: {line}");
        assert_eq!(process.terminate().await?, Ending::Exit(0));
    }
    let nonsense = fixture
        .builder(OPERATOR)?
        .env("KOPF_RUN_DEV", "perhaps")
        .start()?;
    assert_eq!(nonsense.wait().await?, Ending::Exit(2));
    nonsense.wait_for_log("perhaps").await?;
    Ok(())
}

#[tokio::test]
async fn handlers_that_block_all_threads_do_not_prevent_the_exit() -> TestResult {
    let fixture = ProcessFixture::new("blocked").await?;
    let blocked = async || -> Result<ChildProcess, TestFailure> {
        let process = fixture
            .builder(OPERATOR)?
            .env("TOKIO_WORKER_THREADS", "1")
            .env("FLAKY_BLOCKING", "yes")
            .env("FLAKY_GRACE", "10")
            .start()?;
        process.wait_for_log("blocks its thread").await?;
        process.signal(Signal::INT)?;
        process
            .wait_for_log("another signal ends the process at once")
            .await?;
        Ok(process)
    };
    fixture.create("one").await?;
    let process = blocked().await?;
    process.signal(Signal::INT)?;
    assert_eq!(process.wait().await?, Ending::Exit(130));
    let process = blocked().await?;
    assert_eq!(process.wait().await?, Ending::Exit(8), "{}", process.log());
    process
        .wait_for_log("the operator did not stop in time")
        .await?;
    Ok(())
}

#[tokio::test]
async fn the_environment_of_a_kopf_operator_means_the_same() -> TestResult {
    let fixture = ProcessFixture::new("variables").await?;
    let identity = fixture.sandbox.administrator("operator");
    let health = HealthClient::on_free_port().await?;
    let namespaces = format!("elsewhere {}", fixture.sandbox.namespace());
    let process = fixture
        .sandbox
        .operator(OPERATOR, &identity)?
        .env("FLAKY_GROUP", fixture.sandbox.group())
        .env("KOPF_RUN_NAMESPACES", namespaces)
        .env("KOPF_RUN_LOG_FORMAT", "JSON")
        .env(
            "KOPF_RUN_LIVENESS_ENDPOINT",
            format!("http://{}/healthz", health.address()),
        )
        .start()?;
    fixture.create("one").await?;
    fixture.is_handled("one").await?;
    assert_eq!(health.get("/healthz").await?.status, 200);
    process.terminate().await?;
    let log = process.log();
    let is_json = |line: &str| serde_json::from_str::<serde_json::Value>(line).is_ok();
    assert!(log.lines().any(is_json), "{log}");
    // Without the variable, the object would be handled as well.
    assert!(!log.contains("serving the whole cluster"), "{log}");
    Ok(())
}

#[tokio::test]
async fn an_option_overrides_its_variable_and_without_both_the_whole_cluster_is_served()
-> TestResult {
    let fixture = ProcessFixture::new("scope").await?;
    let serving = "serving the whole cluster";
    let process = fixture
        .builder(OPERATOR)?
        .env("KOPF_RUN_NAMESPACE", "elsewhere")
        .args(["--namespace", fixture.sandbox.namespace()])
        .start()?;
    fixture.create("one").await?;
    fixture.is_handled("one").await?;
    process.terminate().await?;
    assert!(!process.log().contains(serving), "{}", process.log());

    let identity = fixture.sandbox.administrator("operator");
    let process = fixture
        .sandbox
        .operator(OPERATOR, &identity)?
        .env("FLAKY_GROUP", fixture.sandbox.group())
        .start()?;
    process.wait_for_log(serving).await?;
    fixture.create("two").await?;
    fixture.is_handled("two").await?;
    process.terminate().await?;
    Ok(())
}

#[tokio::test]
async fn stopping_under_load_is_quick_and_loses_nothing() -> TestResult {
    const OBJECTS: usize = 200;
    let fixture = ProcessFixture::new("load").await?;
    for number in 0..OBJECTS {
        fixture.create(&format!("object-{number}")).await?;
    }
    let busy = || -> Result<ChildProcess, TestFailure> {
        let builder = fixture.builder(OPERATOR)?.env("FLAKY_PAUSE", "100");
        Ok(builder.start()?)
    };
    let calls = |process: &ChildProcess| process.log().matches("is done with object-").count();
    let first = busy()?;
    first.wait_for_log("is done with object-").await?;
    let begin = Instant::now();
    assert_eq!(first.terminate().await?, Ending::Exit(0));
    let stopping = begin.elapsed();
    let second = busy()?;
    for number in 0..OBJECTS {
        fixture.is_handled(&format!("object-{number}")).await?;
    }
    second.terminate().await?;
    let (before, after) = (calls(&first), calls(&second));
    let counts = format!("{before} of {OBJECTS} calls before, {after} after the restart");
    print(&format!("stopped in {stopping:?}: {counts}"));
    assert!(before < OBJECTS, "there was no load");
    assert_eq!(before + after, OBJECTS, "each handler was called once");
    assert!(
        stopping < Settings::default().shutdown.grace,
        "{stopping:?}"
    );
    Ok(())
}

/// Prints a figure, which `--nocapture` shows.
#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn print(figure: &str) {
    println!("{figure}");
}
