//! An operator inside the test, whose handlers do as told and report each call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_runtime::{
    Change, ChangeHandler, EventType, HandlerError, HandlerResult, Namespaces, Operator, Reason,
    Resource, ResourceHandlers, ResourceSpec, Scope, Settings, StatusSubresource,
};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
use kopf_tests::{ControlPlane, FaultProxy, Objects, Sandbox, TestFailure, TestResult, User};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// Where the last handled state is.
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// Everything that a handler is asked to do when it is called.
pub(crate) type Script =
    Arc<dyn Fn(&mut Change<Value>) -> BoxFuture<'static, HandlerResult> + Send + Sync>;

/// One call of a handler.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) handler: String,
    pub(crate) object: String,
    pub(crate) reason: Reason,
    pub(crate) retry: u32,
    pub(crate) spec: Value,
}

/// The operator's state: scripts by handler, and where calls are reported.
pub(crate) struct Stage {
    scripts: Mutex<BTreeMap<String, Script>>,
    calls: mpsc::UnboundedSender<Call>,
    seen: mpsc::UnboundedSender<String>,
    released: watch::Sender<bool>,
    gates: Mutex<Vec<oneshot::Sender<()>>>,
}

/// A running operator.
pub(crate) struct Running {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), kopf_runtime::Error>>,
    pub(crate) identity: User,
}

/// The reports of the handlers, and the means to start operators that share them.
pub(crate) struct Bench {
    pub(crate) sandbox: Sandbox,
    pub(crate) objects: Objects,
    pub(crate) stage: Arc<Stage>,
    calls: mpsc::UnboundedReceiver<Call>,
    seen: mpsc::UnboundedReceiver<String>,
    spec: ResourceSpec,
    operators: usize,
}

impl Bench {
    /// A kind of its own in a sandbox of its own.
    pub(crate) async fn new(name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    /// The same on a control plane of the test's own.
    pub(crate) async fn new_on(plane: Arc<ControlPlane>, name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open_on(plane, name).await?).await
    }

    async fn in_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        let _ = tracing_subscriber::fmt()
            .with_env_filter("info")
            .with_test_writer()
            .try_init();
        let objects = sandbox.define("Widget").await?;
        let (sender, calls) = mpsc::unbounded_channel();
        let (witness, seen) = mpsc::unbounded_channel();
        let spec = ResourceSpec {
            group: sandbox.group().to_owned().leak(),
            version: "v1",
            kind: "Widget",
            plural: "widgets",
            scope: Scope::Namespaced,
            status: StatusSubresource::Present,
        };
        Ok(Self {
            sandbox,
            objects,
            stage: Arc::new(Stage {
                scripts: Mutex::default(),
                calls: sender,
                seen: witness,
                released: watch::Sender::new(false),
                gates: Mutex::default(),
            }),
            calls,
            seen,
            spec,
            operators: 0,
        })
    }

    /// Makes a handler do something when it is called.
    pub(crate) fn script(
        &self,
        handler: &str,
        script: impl Fn(&mut Change<Value>) -> HandlerResult + Send + Sync + 'static,
    ) {
        let script: Script = Arc::new(move |cx| {
            let result = script(cx);
            Box::pin(async move { result })
        });
        let mut scripts = self.stage.scripts.lock().unwrap();
        scripts.insert(handler.to_owned(), script);
    }

    /// Makes a handler do something that takes its time.
    pub(crate) fn script_async<F: Future<Output = HandlerResult> + Send + 'static>(
        &self,
        handler: &str,
        script: impl Fn(&mut Change<Value>) -> F + Send + Sync + 'static,
    ) {
        let script: Script = Arc::new(move |cx| Box::pin(script(cx)));
        let mut scripts = self.stage.scripts.lock().unwrap();
        scripts.insert(handler.to_owned(), script);
    }

    /// The kind, for handlers to be added.
    pub(crate) fn resource(&self) -> Resource<Value, Stage> {
        Resource::new(self.spec, &self.stage)
    }

    /// The kind with these change handlers, all of which report.
    pub(crate) fn handlers(
        &self,
        handlers: impl IntoIterator<Item = ChangeHandler>,
    ) -> ResourceHandlers {
        handlers
            .into_iter()
            .fold(self.resource(), |resource, handler| {
                resource.change(handler, |stage, cx| Box::pin(stage.act(cx)))
            })
            .build()
    }

    /// Starts an operator with a name of its own.
    pub(crate) async fn start(
        &mut self,
        resource: ResourceHandlers,
    ) -> Result<Running, TestFailure> {
        self.start_with(resource, Settings::default()).await
    }

    /// The same with other settings.
    pub(crate) async fn start_with(
        &mut self,
        resource: ResourceHandlers,
        settings: Settings,
    ) -> Result<Running, TestFailure> {
        let operator = Operator::new("bench").resource(resource);
        self.start_operator(operator.settings(settings)).await
    }

    /// Starts an operator of any kind, for the namespace of the sandbox.
    pub(crate) async fn start_operator(
        &mut self,
        operator: Operator,
    ) -> Result<Running, TestFailure> {
        let identity = self.identity();
        let client = self.sandbox.control_plane().client(&identity).await?;
        Ok(self.run(operator, client, identity))
    }

    /// Starts an operator that is put together by the test, as somebody who may do this much.
    pub(crate) async fn start_as(
        &self,
        identity: User,
        operator: Operator,
    ) -> Result<Running, TestFailure> {
        let client = self.sandbox.control_plane().client(&identity).await?;
        Ok(Running::of(operator, client, identity))
    }

    /// Starts an operator that talks to the control plane through a proxy.
    pub(crate) async fn start_through_proxy(
        &mut self,
        resource: ResourceHandlers,
    ) -> Result<(FaultProxy, Running), TestFailure> {
        let operator = Operator::new("bench").resource(resource);
        self.start_operator_through_proxy(operator).await
    }

    /// The same with an operator of any kind.
    pub(crate) async fn start_operator_through_proxy(
        &mut self,
        operator: Operator,
    ) -> Result<(FaultProxy, Running), TestFailure> {
        let identity = self.identity();
        let proxy = FaultProxy::start(self.sandbox.control_plane(), &identity).await?;
        let client = proxy.client().await?;
        let running = self.run(operator, client, identity);
        Ok((proxy, running))
    }

    /// An administrator of its own for each operator.
    pub(crate) fn identity(&mut self) -> User {
        self.operators += 1;
        let name = format!("operator-{}", self.operators);
        self.sandbox.administrator(&name)
    }

    /// Runs an operator for the namespace of the sandbox.
    pub(crate) fn run(&self, operator: Operator, client: Client, identity: User) -> Running {
        let namespaces = Namespaces::Only(vec![self.sandbox.namespace().to_owned()]);
        Running::of(operator.namespaces(namespaces), client, identity)
    }

    /// The next call of any handler.
    pub(crate) async fn call(&mut self) -> Call {
        tokio::time::timeout(DEFAULT_TIMEOUT, self.calls.recv())
            .await
            .expect("a handler is called in time")
            .expect("the bench keeps a sender")
    }

    /// The next event that an event handler reported.
    pub(crate) async fn seen(&mut self) -> String {
        tokio::time::timeout(DEFAULT_TIMEOUT, self.seen.recv())
            .await
            .expect("an event is seen in time")
            .expect("the bench keeps a sender")
    }

    /// The same, if it comes soon.
    pub(crate) async fn seen_within(&mut self, patience: Duration) -> Option<String> {
        let seen = tokio::time::timeout(patience, self.seen.recv());
        seen.await.ok().flatten()
    }

    /// What this bench's kind is.
    pub(crate) fn spec(&self) -> ResourceSpec {
        self.spec
    }

    /// Creates an object with this `spec.size`.
    pub(crate) async fn create(&self, name: &str, size: u32) -> TestResult {
        let body = json!({"spec": {"size": size}});
        self.objects.create(name, body).await?;
        Ok(())
    }

    /// Waits until the object's last handled state has this `spec.size` and no record is left.
    pub(crate) async fn handled(
        &self,
        name: &str,
        size: u32,
    ) -> Result<DynamicObject, TestFailure> {
        self.objects
            .wait_until(name, &format!("size {size} is handled"), |it| {
                let annotations = it.annotations();
                let state = annotations.get(LAST_HANDLED);
                let state = state.and_then(|text| serde_json::from_str::<Value>(text).ok());
                state.is_some_and(|state| state["spec"]["size"] == size) && records(it).is_empty()
            })
            .await
    }

    /// The calls that were reported and not yet looked at.
    pub(crate) fn calls_so_far(&mut self) -> Vec<Call> {
        std::iter::from_fn(|| self.calls.try_recv().ok()).collect()
    }

    /// The writes to objects of the kind by an operator, as `patch` and `patch status`.
    pub(crate) async fn writes(&self, operator: &Running) -> Result<(usize, usize), TestFailure> {
        let requests = self.sandbox.requests_of(&operator.identity).await?;
        let count = |resource: &str| {
            requests
                .iter()
                .filter(|request| request.verb == "patch")
                .filter(|request| request.resource.as_deref() == Some(resource))
                .count()
        };
        Ok((count("widgets"), count("widgets/status")))
    }
}

/// The progress records on an object, by the name of the annotation.
pub(crate) fn records(object: &DynamicObject) -> BTreeMap<String, Value> {
    let annotations = object.annotations().iter();
    annotations
        .filter(|(key, _)| key.as_str() != LAST_HANDLED)
        .filter_map(|(key, value)| {
            let name = key.strip_prefix("kopf.zalando.org/")?;
            Some((name.to_owned(), serde_json::from_str(value).ok()?))
        })
        .collect()
}

impl Stage {
    /// Reports a call and does what the script for it says.
    pub(crate) async fn act(&self, cx: &mut Change<Value>) -> HandlerResult {
        self.report(cx)?;
        let handler = cx.handler_id().to_owned();
        let script = self.scripts.lock().unwrap().get(&handler).cloned();
        match script {
            Some(script) => script(cx).await,
            None => Ok(()),
        }
    }

    /// Reports a call.
    pub(crate) fn report<K>(&self, cx: &Change<K>) -> HandlerResult {
        let call = Call {
            handler: cx.handler_id().to_owned(),
            object: cx.name().to_owned(),
            reason: cx.reason(),
            retry: cx.retry(),
            spec: cx.raw()["spec"].clone(),
        };
        self.calls
            .send(call)
            .map_err(|_| HandlerError::permanent("nobody listens"))
    }

    /// Reports whatever a daemon or timer has to say.
    pub(crate) fn tell(&self, what: String) {
        self.seen.send(what).expect("the bench listens");
    }

    /// Lets go whoever waits for it.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
        for gate in self.gates.lock().unwrap().drain(..) {
            // The one who waited may be gone.
            let _ = gate.send(());
        }
    }

    /// Waits until the test lets go.
    pub(crate) async fn released(&self) {
        let mut released = self.released.subscribe();
        let released = released.wait_for(|released| *released).await;
        released.expect("the stage keeps a sender");
    }

    /// The same for a thread.
    pub(crate) fn gate(&self) -> oneshot::Receiver<()> {
        let (gate, opened) = oneshot::channel();
        self.gates.lock().unwrap().push(gate);
        opened
    }

    /// Reports an event.
    pub(crate) fn see(&self, name: &str, event_type: EventType, raw: &Value) {
        let size = &raw["spec"]["size"];
        self.seen
            .send(format!("{name} {event_type} {size}"))
            .expect("the bench listens");
    }
}

impl Running {
    fn of(operator: Operator, client: Client, identity: User) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(operator.run(client, async {
            let _ = stopped.await;
        }));
        Self {
            stop: Some(stop),
            task,
            identity,
        }
    }

    /// Stops the operator and waits for it.
    pub(crate) async fn stop(mut self) -> TestResult {
        drop(self.stop.take());
        (&mut self.task)
            .await
            .expect("the operator does not panic")?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
