//! Runs operators inside the test, whose handlers execute scripts of the test and report each call.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use kopf_runtime::{
    ChangeContext, ChangeHandler, HandlerError, HandlerResult, Namespaces, Operator, Reason,
    Resource, ResourceHandlers, ResourceSpec, Scope, Settings, StatusSubresource, WatchEventType,
};
use kopf_tests::sandbox::DEFAULT_TIMEOUT;
use kopf_tests::{ControlPlane, FaultProxy, Objects, Sandbox, TestFailure, TestResult, User};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

/// The annotation with the last handled state.
pub(crate) const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// The script that a handler executes when it is called.
pub(crate) type Script =
    Arc<dyn Fn(&mut ChangeContext<Value>) -> BoxFuture<'static, HandlerResult> + Send + Sync>;

/// One call of a handler.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HandlerCall {
    pub(crate) handler: String,
    pub(crate) object: String,
    pub(crate) reason: Reason,
    pub(crate) retry: u32,
    pub(crate) spec: Value,
}

/// The operator's state: scripts by handler, and channels for reports to the test.
pub(crate) struct HandlerScripts {
    by_handler: Mutex<BTreeMap<String, Script>>,
    calls: mpsc::UnboundedSender<HandlerCall>,
    reports: mpsc::UnboundedSender<String>,
    released: watch::Sender<bool>,
    release_senders: Mutex<Vec<oneshot::Sender<()>>>,
}

/// A running operator.
pub(crate) struct StartedOperator {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), kopf_runtime::Error>>,
    pub(crate) user: User,
}

/// A kind in a sandbox, the reports of its handlers, and methods to start operators for it.
pub(crate) struct HandlerFixture {
    pub(crate) sandbox: Sandbox,
    pub(crate) objects: Objects,
    pub(crate) scripts: Arc<HandlerScripts>,
    calls: mpsc::UnboundedReceiver<HandlerCall>,
    reports: mpsc::UnboundedReceiver<String>,
    spec: ResourceSpec,
    operators: usize,
}

impl HandlerFixture {
    /// Opens a sandbox and defines the kind `Widget`.
    pub(crate) async fn new(name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    /// The same on the given control plane.
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
        let (reporter, reports) = mpsc::unbounded_channel();
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
            scripts: Arc::new(HandlerScripts {
                by_handler: Mutex::default(),
                calls: sender,
                reports: reporter,
                released: watch::Sender::new(false),
                release_senders: Mutex::default(),
            }),
            calls,
            reports,
            spec,
            operators: 0,
        })
    }

    /// Sets the script of a handler.
    pub(crate) fn script(
        &self,
        handler: &str,
        script: impl Fn(&mut ChangeContext<Value>) -> HandlerResult + Send + Sync + 'static,
    ) {
        let script: Script = Arc::new(move |cx| {
            let result = script(cx);
            Box::pin(async move { result })
        });
        let mut scripts = self.scripts.by_handler.lock().unwrap();
        scripts.insert(handler.to_owned(), script);
    }

    /// Sets an asynchronous script of a handler.
    pub(crate) fn script_async<F: Future<Output = HandlerResult> + Send + 'static>(
        &self,
        handler: &str,
        script: impl Fn(&mut ChangeContext<Value>) -> F + Send + Sync + 'static,
    ) {
        let script: Script = Arc::new(move |cx| Box::pin(script(cx)));
        let mut scripts = self.scripts.by_handler.lock().unwrap();
        scripts.insert(handler.to_owned(), script);
    }

    /// The kind, for handlers to be added.
    pub(crate) fn resource(&self) -> Resource<Value, HandlerScripts> {
        Resource::new(self.spec, &self.scripts)
    }

    /// The kind with these change handlers, which report their calls and execute their scripts.
    pub(crate) fn handlers(
        &self,
        handlers: impl IntoIterator<Item = ChangeHandler>,
    ) -> ResourceHandlers {
        handlers
            .into_iter()
            .fold(self.resource(), |resource, handler| {
                resource.change(handler, |scripts, cx| Box::pin(scripts.run(cx)))
            })
            .build()
    }

    /// Starts an operator as a new administrator.
    pub(crate) async fn start(
        &mut self,
        resource: ResourceHandlers,
    ) -> Result<StartedOperator, TestFailure> {
        self.start_with(resource, Settings::default()).await
    }

    /// The same with other settings.
    pub(crate) async fn start_with(
        &mut self,
        resource: ResourceHandlers,
        settings: Settings,
    ) -> Result<StartedOperator, TestFailure> {
        let operator = Operator::new("fixture").resource(resource);
        self.start_operator(operator.settings(settings)).await
    }

    /// Starts any operator for the namespace of the sandbox.
    pub(crate) async fn start_operator(
        &mut self,
        operator: Operator,
    ) -> Result<StartedOperator, TestFailure> {
        let user = self.new_user();
        let client = self.sandbox.control_plane().client(&user).await?;
        Ok(self.run(operator, client, user))
    }

    /// Starts any operator as the given user, with the operator's own namespaces.
    pub(crate) async fn start_as(
        &self,
        user: User,
        operator: Operator,
    ) -> Result<StartedOperator, TestFailure> {
        let client = self.sandbox.control_plane().client(&user).await?;
        Ok(StartedOperator::of(operator, client, user))
    }

    /// Starts an operator that connects to the control plane through a fault proxy.
    pub(crate) async fn start_through_proxy(
        &mut self,
        resource: ResourceHandlers,
    ) -> Result<(FaultProxy, StartedOperator), TestFailure> {
        let operator = Operator::new("fixture").resource(resource);
        self.start_operator_through_proxy(operator).await
    }

    /// The same with any operator.
    pub(crate) async fn start_operator_through_proxy(
        &mut self,
        operator: Operator,
    ) -> Result<(FaultProxy, StartedOperator), TestFailure> {
        let user = self.new_user();
        let proxy = FaultProxy::start(self.sandbox.control_plane(), &user).await?;
        let client = proxy.client().await?;
        let running = self.run(operator, client, user);
        Ok((proxy, running))
    }

    /// A new administrator for an operator.
    pub(crate) fn new_user(&mut self) -> User {
        self.operators += 1;
        let name = format!("operator-{}", self.operators);
        self.sandbox.administrator(&name)
    }

    /// Runs an operator for the namespace of the sandbox.
    pub(crate) fn run(&self, operator: Operator, client: Client, user: User) -> StartedOperator {
        let namespaces = Namespaces::Only(vec![self.sandbox.namespace().to_owned()]);
        StartedOperator::of(operator.namespaces(namespaces), client, user)
    }

    /// Waits for the next call of a handler.
    pub(crate) async fn next_call(&mut self) -> HandlerCall {
        tokio::time::timeout(DEFAULT_TIMEOUT, self.calls.recv())
            .await
            .expect("a handler is called in time")
            .expect("the fixture keeps a sender")
    }

    /// Waits for the next report of a handler.
    pub(crate) async fn next_report(&mut self) -> String {
        tokio::time::timeout(DEFAULT_TIMEOUT, self.reports.recv())
            .await
            .expect("a handler reports in time")
            .expect("the fixture keeps a sender")
    }

    /// The next report, if it comes within this time.
    pub(crate) async fn next_report_within(&mut self, limit: Duration) -> Option<String> {
        let report = tokio::time::timeout(limit, self.reports.recv());
        report.await.ok().flatten()
    }

    /// The kind of this fixture.
    pub(crate) fn spec(&self) -> ResourceSpec {
        self.spec
    }

    /// Creates an object with this `spec.size`.
    pub(crate) async fn create(&self, name: &str, size: u32) -> TestResult {
        let body = json!({"spec": {"size": size}});
        self.objects.create(name, body).await?;
        Ok(())
    }

    /// Waits until the object's last handled state has this `spec.size` and no progress is left.
    pub(crate) async fn wait_until_handled(
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

    /// The reported calls that the test has not taken yet.
    pub(crate) fn calls_so_far(&mut self) -> Vec<HandlerCall> {
        std::iter::from_fn(|| self.calls.try_recv().ok()).collect()
    }

    /// The number of patches of objects, and of their status, by an operator.
    pub(crate) async fn writes(
        &self,
        operator: &StartedOperator,
    ) -> Result<(usize, usize), TestFailure> {
        let requests = self.sandbox.requests_of(&operator.user).await?;
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

impl HandlerScripts {
    /// Reports a call and executes the script of the handler.
    pub(crate) async fn run(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        self.report_call(cx)?;
        let handler = cx.handler_id().to_owned();
        let script = self.by_handler.lock().unwrap().get(&handler).cloned();
        match script {
            Some(script) => script(cx).await,
            None => Ok(()),
        }
    }

    /// Reports a call.
    pub(crate) fn report_call<K>(&self, cx: &ChangeContext<K>) -> HandlerResult {
        let call = HandlerCall {
            handler: cx.handler_id().to_owned(),
            object: cx.name().to_owned(),
            reason: cx.reason(),
            retry: cx.retry(),
            spec: cx.raw()["spec"].clone(),
        };
        self.calls
            .send(call)
            .map_err(|_| HandlerError::permanent("the test has ended"))
    }

    /// Reports a text of a handler.
    pub(crate) fn report(&self, text: String) {
        self.reports
            .send(text)
            .expect("the fixture keeps a receiver");
    }

    /// Releases all handlers that wait for it.
    pub(crate) fn release(&self) {
        self.released.send_replace(true);
        for sender in self.release_senders.lock().unwrap().drain(..) {
            // The waiting thread may have ended.
            let _ = sender.send(());
        }
    }

    /// Waits until the test releases the handlers.
    pub(crate) async fn wait_for_release(&self) {
        let mut released = self.released.subscribe();
        let released = released.wait_for(|released| *released).await;
        released.expect("the handlers keep a sender");
    }

    /// The same for a thread.
    pub(crate) fn release_receiver(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.release_senders.lock().unwrap().push(sender);
        receiver
    }

    /// Reports a watch event.
    pub(crate) fn report_event(&self, name: &str, event_type: WatchEventType, raw: &Value) {
        let size = &raw["spec"]["size"];
        self.reports
            .send(format!("{name} {event_type} {size}"))
            .expect("the fixture keeps a receiver");
    }
}

impl StartedOperator {
    fn of(operator: Operator, client: Client, user: User) -> Self {
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(operator.run(client, async {
            let _ = stopped.await;
        }));
        Self {
            stop: Some(stop),
            task,
            user,
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

impl Drop for StartedOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}
