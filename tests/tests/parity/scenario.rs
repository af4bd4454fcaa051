//! Runs a scenario on Kopf or on our runtime, and records states, calls and events.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use futures::future::Either;
use k8s_openapi::api::core::v1::Event;
use kopf_tests::child_process::{ChildProcess, Signal};
use kopf_tests::sandbox::Objects;
use kopf_tests::{PythonKopf, Sandbox, TestFailure, TestResult, User};
use kube::api::{Api, DynamicObject, ListParams};
use serde_json::Value;

use crate::trace::{self, Trace, assert_same};

/// The annotation with the state that was handled last.
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// The time limit for Kopf to post its events.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(30);

/// The implementation of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Implementation {
    /// Python Kopf.
    Kopf,
    /// Our runtime.
    Ours,
}

/// A run of a scenario on one implementation.
pub(crate) struct ScenarioRun {
    pub(crate) implementation: Implementation,
    scenario: &'static str,
    kopf: PythonKopf,
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
    operators: Vec<(User, ChildProcess)>,
    variables: Vec<(&'static str, String)>,
    /// The newest state of each object that the scenario has got.
    known: RefCell<BTreeMap<String, DynamicObject>>,
    trace: RefCell<Trace>,
}

/// Runs the steps on both implementations; returns the traces: Kopf's, then ours.
pub(crate) async fn both(
    scenario: &'static str,
    steps: impl AsyncFn(&mut ScenarioRun) -> TestResult,
) -> Result<(Trace, Trace), TestFailure> {
    let (mut kopf, mut ours) = tokio::try_join!(
        ScenarioRun::open(scenario, Implementation::Kopf),
        ScenarioRun::open(scenario, Implementation::Ours)
    )?;
    tokio::try_join!(steps(&mut kopf), steps(&mut ours))?;
    // Both sandboxes still exist: dropping one takes time, which would delay the other.
    let ours = ours.trace().await?;
    kopf.wait_for_events(ours.events.len()).await;
    Ok((kopf.trace().await?, ours))
}

/// Runs the steps on both implementations and asserts equal traces.
pub(crate) async fn compare(
    scenario: &'static str,
    steps: impl AsyncFn(&mut ScenarioRun) -> TestResult,
) -> TestResult {
    let (kopf, ours) = both(scenario, steps).await?;
    assert_same(scenario, &kopf, &ours);
    Ok(())
}

// === impl ScenarioRun ===

impl ScenarioRun {
    pub(crate) async fn open(
        scenario: &'static str,
        implementation: Implementation,
    ) -> Result<Self, TestFailure> {
        let name = match implementation {
            Implementation::Kopf => "kopf",
            Implementation::Ours => "ours",
        };
        let sandbox = Sandbox::open(name).await?;
        Ok(Self {
            implementation,
            scenario,
            kopf: PythonKopf::obtain().await?,
            widgets: sandbox.define("Widget").await?,
            sandbox,
            operators: Vec::new(),
            variables: Vec::new(),
            known: RefCell::default(),
            trace: RefCell::default(),
        })
    }

    /// Sets an environment variable for operators started from now on.
    pub(crate) fn set(&mut self, name: &'static str, value: &str) {
        self.variables.push((name, value.to_owned()));
    }

    /// Starts the operator and waits until it watches the objects.
    pub(crate) async fn start(&mut self) -> TestResult {
        self.start_as(self.implementation).await
    }

    /// The same with the given implementation.
    pub(crate) async fn start_as(&mut self, implementation: Implementation) -> TestResult {
        let identity = self
            .sandbox
            .administrator(&format!("operator-{}", self.operators.len()));
        let builder = match implementation {
            Implementation::Kopf => {
                let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/scripts");
                let script = scripts.join(format!("{}.py", self.scenario));
                self.kopf.operator(&self.sandbox, &identity, &script)?
            }
            Implementation::Ours => self
                .sandbox
                .operator(env!("CARGO_BIN_EXE_parity-operator"), &identity)?
                .env("SCENARIO", self.scenario)
                .env("GROUP", self.sandbox.group())
                .arg("--namespace")
                .arg(self.sandbox.namespace()),
        };
        let variables = self.variables.iter();
        let builder = variables.fold(builder, |builder, (name, value)| builder.env(name, value));
        let operator = builder.arg("--verbose").start()?;
        self.operators.push((identity.clone(), operator));
        let sandbox = &self.sandbox;
        kopf_tests::eventually("the operator watches the objects", async || {
            let requests = sandbox.count_requests_of(&identity).await.ok()?;
            (requests.of("widgets", "watch") > 0).then_some(())
        })
        .await
    }

    /// The operator started last.
    pub(crate) fn operator(&self) -> &ChildProcess {
        &self
            .operators
            .last()
            .expect("a scenario starts its operator first")
            .1
    }

    /// Stops the operator with SIGTERM.
    pub(crate) async fn stop(&self) -> TestResult {
        self.operator().terminate().await.map(drop)
    }

    /// Kills the operator.
    pub(crate) async fn kill(&self) -> TestResult {
        self.operator().kill().await.map(drop)
    }

    pub(crate) async fn create(&self, name: &str, body: Value) -> TestResult {
        let object = self.widgets.create(name, body).await?;
        self.remember(name, object);
        Ok(())
    }

    pub(crate) async fn merge(&self, name: &str, patch: Value) -> TestResult {
        let object = self.widgets.merge(name, patch).await?;
        self.remember(name, object);
        Ok(())
    }

    /// Waits until `holds` is true of the object, and records its state: the first such state since
    /// the last step of the scenario, however short, so that timing does not matter.
    #[track_caller]
    pub(crate) fn note(
        &self,
        name: &str,
        moment: &str,
        holds: impl FnMut(&DynamicObject) -> bool,
    ) -> impl Future<Output = TestResult> {
        let earlier = self.known.borrow().get(name).cloned();
        let waiting = match earlier {
            Some(earlier) => Either::Left(self.widgets.wait_from(earlier, moment, holds)),
            None => Either::Right(self.widgets.wait_until(name, moment, holds)),
        };
        async move {
            let object = waiting.await?;
            self.keep(format!("{name}: {moment}"), trace::state(&object));
            self.remember(name, object);
            Ok(())
        }
    }

    /// Waits until the object is settled, and records its state.
    #[track_caller]
    pub(crate) fn note_settled(&self, name: &str) -> impl Future<Output = TestResult> {
        self.note(name, "settled", is_settled)
    }

    /// Waits until the object is settled and has the results of these handlers, which Kopf writes
    /// only after that, and records its state.
    #[track_caller]
    pub(crate) fn note_results(
        &self,
        name: &str,
        handlers: &[&str],
    ) -> impl Future<Output = TestResult> {
        self.note(name, "settled with results", |object| {
            is_settled(object)
                && handlers
                    .iter()
                    .all(|it| !object.data["status"][it].is_null())
        })
    }

    /// Waits until the object is settled with this value of `spec.size`.
    #[track_caller]
    pub(crate) fn note_settled_with(
        &self,
        name: &str,
        size: i64,
    ) -> impl Future<Output = TestResult> {
        self.note(name, "settled with the new size", move |object| {
            is_settled(object) && last_handled(object)["spec"]["size"] == size
        })
    }

    /// Waits until the object is gone.
    #[track_caller]
    pub(crate) fn note_gone(&self, name: &str) -> impl Future<Output = TestResult> {
        let waiting = self.widgets.wait_gone(name);
        async move {
            waiting.await?;
            self.keep(format!("{name}: gone"), Value::Null);
            Ok(())
        }
    }

    /// Waits until handlers have logged this many calls.
    pub(crate) async fn wait_for_calls(&self, count: usize) -> TestResult {
        kopf_tests::eventually(&format!("{count} calls are logged"), async || {
            let calls = trace::calls(self.operator()).ok()?;
            (calls.len() >= count).then_some(())
        })
        .await
        .map_err(|failure| TestFailure::new(format!("{failure:?}\n{}", self.operator().log())))
    }

    /// The number of requests of the operators for events.
    pub(crate) async fn event_requests(&self) -> Result<usize, TestFailure> {
        let mut count = 0;
        for (identity, _) in &self.operators {
            let requests = self.sandbox.count_requests_of(identity).await?;
            count += requests.of("events", "create") + requests.of("events", "patch");
        }
        Ok(count)
    }

    /// The number of writes of the operators to an object.
    pub(crate) async fn writes(&self, name: &str) -> Result<usize, TestFailure> {
        let mut count = 0;
        for (identity, _) in &self.operators {
            let requests = self.sandbox.requests_of(identity).await?;
            count += requests
                .iter()
                .filter(|it| it.verb == "patch" || it.verb == "update")
                .filter(|it| {
                    it.resource
                        .as_deref()
                        .is_some_and(|it| it.starts_with("widgets"))
                })
                .filter(|it| it.name.as_deref() == Some(name))
                .count();
        }
        Ok(count)
    }

    /// The number of writes of the operators to objects, without those to the status subresource.
    pub(crate) async fn body_writes(&self) -> Result<usize, TestFailure> {
        let mut count = 0;
        for (identity, _) in &self.operators {
            let requests = self.sandbox.count_requests_of(identity).await?;
            count += requests.of("widgets", "patch");
        }
        Ok(count)
    }

    fn remember(&self, name: &str, object: DynamicObject) {
        self.known.borrow_mut().insert(name.to_owned(), object);
    }

    fn keep(&self, moment: String, state: Value) {
        self.trace.borrow_mut().states.push((moment, state));
    }

    /// Kopf drops unposted events when it ends. If there are fewer than expected, the comparison
    /// fails.
    async fn wait_for_events(&self, count: usize) {
        let posted = kopf_tests::eventually("the events are posted", async || {
            (self.events().await.ok()?.len() >= count).then_some(())
        });
        let _ = tokio::time::timeout(EVENTS_TIMEOUT, posted).await;
    }

    async fn events(&self) -> Result<Vec<Event>, TestFailure> {
        let events: Api<Event> = Api::namespaced(self.sandbox.client(), self.sandbox.namespace());
        let mut events = events.list(&ListParams::default()).await?.items;
        events.retain(|it| it.involved_object.kind.as_deref() == Some("Widget"));
        Ok(events)
    }

    /// Stops the operators and returns the trace.
    pub(crate) async fn trace(&self) -> Result<Trace, TestFailure> {
        let mut trace = self.trace.take();
        for (_, operator) in &self.operators {
            if operator.signal(Signal::TERM).is_ok() {
                operator.wait().await?;
            }
            trace.calls.extend(trace::calls(operator)?);
        }
        let mut events = self.events().await?;
        events.sort_by_cached_key(|it| it.event_time.clone().map(|it| it.0));
        for event in events.iter().map(trace::event) {
            // We count repeated events, Kopf posts them again, also after a timeout.
            if !trace.events.contains(&event) {
                trace.events.push(event);
            }
        }
        Ok(trace)
    }
}

/// Whether the object is handled: the last handled state is the current one, and no progress is left.
pub(crate) fn is_settled(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.iter().flatten();
    let ours: Vec<&String> = annotations
        .map(|(key, _)| key)
        .filter(|key| key.starts_with("kopf.zalando.org/") && *key != trace::SEEN_STATES)
        .collect();
    ours == [LAST_HANDLED] && last_handled(object)["spec"] == object.data["spec"]
}

/// Whether the object has a finalizer.
pub(crate) fn is_held(object: &DynamicObject) -> bool {
    object.metadata.finalizers.is_some()
}

/// The state that was handled last.
pub(crate) fn last_handled(object: &DynamicObject) -> Value {
    object
        .metadata
        .annotations
        .as_ref()
        .and_then(|it| serde_json::from_str(it.get(LAST_HANDLED)?).ok())
        .unwrap_or_default()
}

/// Whether a handler was called this many times and waits for its retry.
pub(crate) fn waits_after(handler: &str, retries: u64) -> impl Fn(&DynamicObject) -> bool {
    let key = format!("kopf.zalando.org/{handler}");
    move |object| {
        let record = object
            .metadata
            .annotations
            .as_ref()
            .and_then(|it| serde_json::from_str::<Value>(it.get(&key)?).ok())
            .unwrap_or_default();
        record["retries"] == retries && record["delayed"].is_string()
    }
}
