//! Health checks of operators in processes of their own: what they say when things go wrong.

use kopf_tests::http_get::{Answer, HealthEndpoint};
use kopf_tests::operator::{Ending, Operator};
use kopf_tests::{
    Component, Failure, Identity, Objects, PrivateControlPlane, Sandbox, TestResult, eventually,
};
use serde_json::{Value, json};

const LIVENESS: &str = "/healthz";
const READINESS: &str = "/readyz";

/// A sandbox with widgets and an operator for them.
pub(crate) struct Ward {
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
}

/// An operator with its endpoint.
pub(crate) struct Patient {
    pub(crate) operator: Operator,
    pub(crate) endpoint: HealthEndpoint,
}

impl Ward {
    pub(crate) async fn open(name: &str) -> Result<Self, Failure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    async fn in_sandbox(sandbox: Sandbox) -> Result<Self, Failure> {
        Ok(Self {
            widgets: sandbox.define("Widget").await?,
            sandbox,
        })
    }

    pub(crate) async fn admit(&self, variables: &[(&str, &str)]) -> Result<Patient, Failure> {
        let account = self.sandbox.administrator("patient");
        self.admit_as(&account, &[], variables).await
    }

    pub(crate) async fn admit_as(
        &self,
        account: &Identity,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<Patient, Failure> {
        let mut builder = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_health-operator"), account)?
            .env("HEALTH_GROUP", self.sandbox.group())
            .args(["run", "--verbose", "--log-format", "plain"])
            .args(["--namespace", self.sandbox.namespace()])
            .args(["--liveness", "http://127.0.0.1:0/healthz"])
            .args(arguments);
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        let operator = builder.start()?;
        let endpoint = HealthEndpoint::of(&operator).await?;
        Ok(Patient { operator, endpoint })
    }
}

impl Patient {
    pub(crate) async fn get(&self, path: &str) -> Result<Answer, Failure> {
        self.endpoint.get(path).await
    }

    /// Waits until a path is answered with this status, and returns the body.
    pub(crate) async fn until(&self, path: &str, status: u16) -> Result<Value, Failure> {
        eventually(&format!("{path} answers {status}"), async || {
            let answer = self.get(path).await.ok()?;
            (answer.status == status).then(|| answer.json())
        })
        .await
    }
}

fn problems(answer: &Value) -> String {
    answer["problems"].to_string()
}

#[tokio::test]
async fn an_operator_is_ready_when_it_has_listed_everything() -> TestResult {
    let ward = Ward::open("ready").await?;
    let patient = ward.admit(&[]).await?;
    let ready = patient.until(READINESS, 200).await?;
    assert_eq!(ready, json!({"ready": true, "problems": []}));
    ward.widgets.create("one", json!({})).await?;
    ward.widgets
        .wait_until("one", "handled", |it| it.data["status"]["done"] == true)
        .await?;
    assert_eq!(patient.get(LIVENESS).await?.status, 200);
    assert_eq!(patient.operator.terminate().await?, Ending::Exit(0));
    Ok(())
}

#[tokio::test]
async fn a_handler_that_never_ends_is_alive_and_blocked_threads_are_not() -> TestResult {
    let ward = Ward::open("stuck").await?;
    let patient = ward
        .admit(&[("HEALTH_STUCK_AFTER", "2"), ("TOKIO_WORKER_THREADS", "2")])
        .await?;
    patient.until(READINESS, 200).await?;
    ward.widgets
        .create("waits", json!({"spec": {"do": "wait"}}))
        .await?;
    patient.operator.wait_for_log("waiting for ever").await?;
    // Longer than a part may be late.
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 5 {
        assert_eq!(patient.get(LIVENESS).await?.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }

    let block = json!({"spec": {"do": "block", "seconds": 8}});
    ward.widgets.create("blocks", block).await?;
    let stuck = patient.until(LIVENESS, 503).await?;
    assert!(problems(&stuck).contains("the runtime is stuck"), "{stuck}");
    let unready = patient.get(READINESS).await?;
    assert_eq!(unready.status, 503);
    assert!(problems(&unready.json()).contains("the runtime is stuck"));
    Ok(())
}

#[tokio::test]
async fn without_the_api_server_an_operator_is_alive_but_not_ready_and_says_why() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "away").await?;
    let ward = Ward::in_sandbox(sandbox).await?;
    let patient = ward.admit(&[("HEALTH_STUCK_AFTER", "2")]).await?;
    patient.until(READINESS, 200).await?;
    plane.kill(Component::ApiServer).await?;
    let unready = patient.until(READINESS, 503).await?;
    assert!(problems(&unready).contains("the watch failed"), "{unready}");
    let begun = std::time::Instant::now();
    while begun.elapsed().as_secs() < 5 {
        assert_eq!(patient.get(LIVENESS).await?.status, 200);
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    plane.revive(Component::ApiServer).await?;
    patient.until(READINESS, 200).await?;
    Ok(())
}

#[tokio::test]
async fn a_missing_permission_is_named() -> TestResult {
    let ward = Ward::open("no-leave").await?;
    let account = ward.sandbox.user("nobody");
    let patient = ward.admit_as(&account, &["--standalone"], &[]).await?;
    let unready = eventually("the permission is missed", async || {
        let unready = patient.until(READINESS, 503).await.ok()?;
        problems(&unready)
            .contains("is forbidden")
            .then_some(unready)
    })
    .await?;
    let told = problems(&unready);
    let missing = format!(
        r#"User \"{}\" cannot list resource \"widgets\" in API group \"{}\" in the namespace"#,
        account.name(),
        ward.sandbox.group()
    );
    assert!(told.contains(&missing), "{told} lacks {missing}");
    assert_eq!(patient.get(LIVENESS).await?.status, 200);
    Ok(())
}
