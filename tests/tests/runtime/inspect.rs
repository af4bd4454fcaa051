//! The commands `inspect` and `unstick`: how far objects are handled, as the cluster shows it.

use kopf_tests::child_process::{ChildProcess, Ending};
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult};
use kube::ResourceExt as _;
use serde_json::{Value, json};

const OPERATOR: &str = env!("CARGO_BIN_EXE_flaky-operator");
const KOPF_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

struct InspectFixture {
    sandbox: Sandbox,
    objects: Objects,
}

impl InspectFixture {
    async fn new(name: &str) -> Result<Self, TestFailure> {
        let sandbox = Sandbox::open(name).await?;
        let objects = sandbox.define("Widget").await?;
        Ok(Self { sandbox, objects })
    }

    /// Starts the operator; each handler that fails is called again after an hour.
    fn operator(&self) -> Result<ChildProcess, TestFailure> {
        let identity = self.sandbox.administrator("operator");
        let builder = self.sandbox.operator(OPERATOR, &identity)?;
        let builder = builder
            .env("FLAKY_GROUP", self.sandbox.group())
            .env("FLAKY_DELAY", "3600000")
            .env("KOPF_RUN_NAMESPACE", self.sandbox.namespace());
        Ok(builder.start()?)
    }

    /// The output of a command of the operator.
    async fn command(&self, arguments: &[&str]) -> Result<(Ending, String), TestFailure> {
        let identity = self.sandbox.administrator("operator");
        let mut builder = self.sandbox.operator(OPERATOR, &identity)?;
        builder = builder.env("FLAKY_GROUP", self.sandbox.group());
        for argument in arguments {
            builder = builder.arg(argument);
        }
        let process = builder.arg("-n").arg(self.sandbox.namespace()).start()?;
        let ending = process.wait().await?;
        Ok((ending, process.log()))
    }

    async fn inspect(&self, target: &str) -> Result<Value, TestFailure> {
        let (ending, output) = self.command(&["inspect", target, "-o", "json"]).await?;
        assert_eq!(ending, Ending::Exit(0), "{output}");
        let all: Value = serde_json::from_str(&output).expect("the output is JSON");
        Ok(all["objects"][0].clone())
    }

    async fn waits_for_flaky(&self, name: &str) -> TestResult {
        let waits = |it: &kube::api::DynamicObject| {
            let record = it.annotations().get("kopf.zalando.org/flaky");
            record.is_some_and(|record| record.contains("delayed"))
        };
        self.objects.wait_until(name, "it waits", waits).await?;
        Ok(())
    }
}

#[tokio::test]
async fn inspect_shows_how_far_an_object_is_handled() -> TestResult {
    let fixture = InspectFixture::new("inspect").await?;
    let body = json!({"spec": {"size": 1}});
    fixture.objects.create("one", body).await?;
    let new = fixture.inspect("widgets/one").await?;
    assert_eq!(new["state"], "new", "{new}");

    let operator = fixture.operator()?;
    fixture.waits_for_flaky("one").await?;
    operator.kill().await?;
    let waiting = fixture.inspect("Widget/one").await?;
    assert_eq!(waiting["state"], "waiting", "{waiting}");
    let handlers = waiting["handlers"].as_array().expect("it is a list");
    let states: Vec<_> = handlers
        .iter()
        .map(|it| {
            (
                it["id"].as_str(),
                it["state"].as_str(),
                it["attempts"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            (Some("flaky"), Some("waiting"), Some(1)),
            (Some("quick"), Some("succeeded"), Some(1))
        ]
    );
    assert_eq!(handlers[0]["message"], "not at once");
    assert!(waiting["nextAttempt"].is_string(), "{waiting}");

    let (ending, table) = fixture.command(&["inspect"]).await?;
    assert_eq!(ending, Ending::Exit(0), "{table}");
    assert!(table.contains("STATE"), "{table}");
    assert!(table.contains("flaky: not at once"), "{table}");
    let (_, details) = fixture.command(&["inspect", "widgets/one"]).await?;
    assert!(
        details.contains("waiting for the next attempt"),
        "{details}"
    );
    assert!(details.contains("flaky waiting, 1 attempt"), "{details}");
    let (ending, yaml) = fixture.command(&["inspect", "-o", "yaml"]).await?;
    assert_eq!(ending, Ending::Exit(0), "{yaml}");
    assert!(yaml.contains("state: waiting"), "{yaml}");
    Ok(())
}

#[tokio::test]
async fn inspect_shows_what_changed_since_an_object_was_handled() -> TestResult {
    let fixture = InspectFixture::new("inspect-changes").await?;
    let handled = json!({"spec": {"size": 1}}).to_string();
    let body = json!({
        "metadata": {"annotations": {"kopf.zalando.org/last-handled-configuration": handled}},
        "spec": {"size": 1},
    });
    fixture.objects.create("one", body).await?;
    let inspected = fixture.inspect("widgets/one").await?;
    assert_eq!(inspected["state"], "handled", "{inspected}");
    let merge = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", merge).await?;
    let inspected = fixture.inspect("widgets/one").await?;
    assert_eq!(inspected["state"], "changed", "{inspected}");
    let change = json!({"op": "change", "path": "spec.size", "old": 1, "new": 2});
    assert_eq!(inspected["changes"], json!([change]));
    Ok(())
}

#[tokio::test]
async fn inspect_says_what_does_not_exist() -> TestResult {
    let fixture = InspectFixture::new("inspect-nothing").await?;
    let (ending, output) = fixture.command(&["inspect", "gadgets"]).await?;
    assert_eq!(ending, Ending::Exit(5), "{output}");
    assert!(output.contains("the cluster serves no gadgets"), "{output}");
    let (ending, output) = fixture.command(&["inspect", "widgets/none"]).await?;
    assert_eq!(ending, Ending::Exit(5), "{output}");
    assert!(output.contains("there is no Widget \"none\""), "{output}");
    let (ending, output) = fixture.command(&["inspect"]).await?;
    assert_eq!(ending, Ending::Exit(0), "{output}");
    assert!(output.contains("No objects found"), "{output}");
    Ok(())
}

#[tokio::test]
async fn inspect_prints_an_object_again_when_its_handling_changes() -> TestResult {
    let fixture = InspectFixture::new("inspect-watch").await?;
    let identity = fixture.sandbox.administrator("operator");
    let watcher = fixture
        .sandbox
        .operator(OPERATOR, &identity)?
        .env("FLAKY_GROUP", fixture.sandbox.group())
        .arg("inspect")
        .arg("--watch")
        .arg("-n")
        .arg(fixture.sandbox.namespace())
        .start()?;
    watcher.wait_for_log("No objects found").await?;
    let operator = fixture.operator()?;
    let body = json!({"spec": {"size": 1}});
    fixture.objects.create("one", body).await?;
    watcher.wait_for_log("flaky: not at once").await?;
    operator.terminate().await?;
    fixture.objects.delete("one").await?;
    watcher.wait_for_log("gone").await?;
    Ok(())
}

#[tokio::test]
async fn unstick_releases_an_object_whose_operator_is_gone_after_showing_it() -> TestResult {
    let fixture = InspectFixture::new("unstick").await?;
    let record = json!({"started": "2026-01-01T00:00:00.000000+00:00", "retries": 1}).to_string();
    let body = json!({
        "metadata": {
            "finalizers": ["example.com/other", KOPF_FINALIZER],
            "annotations": {"kopf.zalando.org/flaky": record, "example.com/kept": "yes"},
        },
        "spec": {"size": 1},
    });
    fixture.objects.create("one", body).await?;
    let progress = json!({"kopf": {"progress": {"quick": {"retries": 1}}}});
    fixture.objects.merge_status("one", progress).await?;
    fixture.objects.delete("one").await?;

    let (ending, output) = fixture.command(&["unstick", "widgets"]).await?;
    assert_eq!(ending, Ending::Exit(5), "{output}");
    assert!(output.contains("remove the finalizer"), "{output}");
    assert!(output.contains("nothing is changed"), "{output}");
    let object = fixture.objects.get("one").await?;
    assert_eq!(object.finalizers().len(), 2);

    let (ending, output) = fixture.command(&["unstick", "widgets", "--yes"]).await?;
    assert_eq!(ending, Ending::Exit(0), "{output}");
    let object = fixture.objects.get("one").await?;
    assert_eq!(object.finalizers(), ["example.com/other"]);
    let progress = &object.data["status"]["kopf"]["progress"];
    assert_eq!(progress.get("quick"), None, "{progress}");
    let annotations: Vec<_> = object.annotations().keys().collect();
    assert_eq!(annotations, ["example.com/kept"]);
    let (_, output) = fixture.command(&["unstick", "widgets", "--yes"]).await?;
    assert!(output.contains("Nothing to remove"), "{output}");
    fixture
        .objects
        .merge("one", json!({"metadata": {"finalizers": null}}))
        .await?;
    Ok(())
}
