//! Runs operators whose webhooks record each review, and decide by fields of the object.

use std::sync::{Arc, Mutex};

use http::HeaderMap;
use kopf_runtime::admission::{Server, Webhooks};
use kopf_runtime::{
    AdmissionError, AdmissionResult, MutationContext, Namespaces, Old, Operation, Operator,
    Resource, ResourceSpec, Scope, StatusSubresource, UserInfo, ValidationContext, WebhookHandler,
};
use kopf_tests::sandbox::eventually;
use kopf_tests::{Objects, Sandbox, TestFailure, TestResult};
use kube::api::{DynamicObject, PostParams};
use kube::core::Status;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// One review as a webhook got it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecordedReview {
    pub(crate) webhook: String,
    pub(crate) name: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) subresource: Option<String>,
    pub(crate) dry_run: bool,
    pub(crate) user: String,
    pub(crate) old: Option<Value>,
    pub(crate) new: Option<Value>,
    pub(crate) changed: Vec<String>,
    pub(crate) client: Option<String>,
    pub(crate) caller: ReviewCaller,
    pub(crate) param: Option<Value>,
}

/// The request headers and the user of a review.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReviewCaller {
    pub(crate) headers: HeaderMap,
    pub(crate) user: UserInfo,
}

/// The operator's state: all reviews so far.
#[derive(Default)]
pub(crate) struct ReviewRecorder {
    reviews: Mutex<Vec<RecordedReview>>,
}

/// A kind with webhooks in a sandbox of its own.
pub(crate) struct WebhookFixture {
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
    pub(crate) recorder: Arc<ReviewRecorder>,
    spec: ResourceSpec,
}

/// A running operator.
pub(crate) struct RunningWebhookOperator {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), kopf_runtime::Error>>,
}

pub(crate) const DEFINITION: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources:
        status: {}
        scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"#;

// === impl ReviewRecorder ===

impl ReviewRecorder {
    /// Records a review; warns, fails or denies as the spec of the object says.
    pub(crate) async fn check(&self, cx: &mut ValidationContext<Value>) -> AdmissionResult {
        self.report(cx);
        let spec = &cx.object()["spec"];
        if let Some(warning) = spec["warn"].as_str() {
            cx.warn(warning);
        }
        if spec["panic"] == true {
            panic!("as requested");
        }
        if spec["fail"] == true {
            "x".parse::<u8>()?;
        }
        if let Some(message) = spec["deny"].as_str() {
            return Err(match spec["code"].as_u64() {
                Some(code) => AdmissionError::denied_with(u16::try_from(code)?, message),
                None => AdmissionError::denied(message),
            });
        }
        Ok(())
    }

    /// Records a review, and mutates the object.
    pub(crate) async fn complete(&self, cx: &mut MutationContext<Value>) -> AdmissionResult {
        self.report(cx);
        if cx.object()["spec"]["size"].is_null() {
            cx.patch().set("spec.size", 3).label("completed", "yes");
        }
        cx.patch().set("spec.remove", Value::Null);
        cx.patch().edit(|body| {
            if let Some(list) = body["spec"]["list"].as_array_mut() {
                list.push(json!("end"));
            }
        });
        Ok(())
    }

    fn report(&self, cx: &ValidationContext<Value>) {
        let changed = cx.diff().iter().map(|item| item.path.to_string());
        let review = RecordedReview {
            webhook: cx.handler_id().to_owned(),
            name: cx.name().map(str::to_owned),
            operation: cx.operation(),
            subresource: cx.subresource().map(str::to_owned),
            dry_run: cx.is_dry_run(),
            user: cx.user().username.clone(),
            old: match cx.old() {
                Old::Known(old) => Some(old["spec"].clone()),
                Old::Absent | Old::Unknown => None,
            },
            new: cx.new_raw().map(|new| new["spec"].clone()),
            changed: changed
                .filter(|path| !path.starts_with("metadata"))
                .collect(),
            client: cx
                .client_certificate()
                .and_then(|certificate| certificate.subject.common_name())
                .map(str::to_owned),
            caller: ReviewCaller {
                headers: cx.headers().clone(),
                user: cx.user().clone(),
            },
            param: cx.param().cloned(),
        };
        self.reviews.lock().unwrap().push(review);
    }

    /// The reviews of an object.
    pub(crate) fn reviews_of(&self, name: &str) -> Vec<RecordedReview> {
        let reviews = self.reviews.lock().unwrap();
        let named = reviews.iter().filter(|it| it.name.as_deref() == Some(name));
        named.cloned().collect()
    }
}

// === impl WebhookFixture ===

impl WebhookFixture {
    pub(crate) async fn new(name: &str) -> Result<Self, TestFailure> {
        Self::in_sandbox(Sandbox::open(name).await?).await
    }

    pub(crate) async fn in_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        let _ = tracing_subscriber::fmt()
            .with_env_filter("info")
            .with_test_writer()
            .try_init();
        sandbox.apply(DEFINITION).await?;
        let group = sandbox.group().to_owned();
        let widgets = sandbox.objects(&format!("{group}/v1"), "Widget").await?;
        let spec = ResourceSpec {
            group: group.leak(),
            version: "v1",
            kind: "Widget",
            plural: "widgets",
            scope: Scope::Namespaced,
            status: StatusSubresource::Present,
        };
        Ok(Self {
            sandbox,
            widgets,
            recorder: Arc::default(),
            spec,
        })
    }

    /// The kind, for webhooks to be added.
    pub(crate) fn resource(&self) -> Resource<Value, ReviewRecorder> {
        Resource::new(self.spec, &self.recorder)
    }

    /// The kind with one validating webhook.
    pub(crate) fn with_check(&self, handler: WebhookHandler) -> Resource<Value, ReviewRecorder> {
        self.resource()
            .validate(handler, |recorder, cx| Box::pin(recorder.check(cx)))
    }

    /// The configuration's name.
    pub(crate) fn configuration_name(&self) -> String {
        format!("hooks.{}", self.sandbox.group())
    }

    /// Managed webhooks with a server on loopback.
    pub(crate) fn local_server(&self) -> Webhooks {
        Webhooks::default()
            .managed(self.configuration_name())
            .server(Server::local("localhost"))
    }

    /// Starts an operator.
    pub(crate) fn start(
        &self,
        resource: Resource<Value, ReviewRecorder>,
        webhooks: Webhooks,
    ) -> RunningWebhookOperator {
        self.start_as(resource, webhooks, self.sandbox.client())
    }

    pub(crate) fn start_as(
        &self,
        resource: Resource<Value, ReviewRecorder>,
        webhooks: Webhooks,
        client: kube::Client,
    ) -> RunningWebhookOperator {
        let (stop, stopped) = oneshot::channel();
        let operator = Operator::new("webhooks")
            .resource(resource.build())
            .namespaces(Namespaces::Only(vec![self.sandbox.namespace().to_owned()]))
            .webhooks(webhooks);
        let task = tokio::spawn(operator.run(client, async {
            let _ = stopped.await;
        }));
        RunningWebhookOperator {
            stop: Some(stop),
            task,
        }
    }

    /// Starts an operator and waits until the API server calls its webhooks.
    pub(crate) async fn start_and_wait(
        &self,
        resource: Resource<Value, ReviewRecorder>,
        webhooks: Webhooks,
    ) -> Result<RunningWebhookOperator, TestFailure> {
        let running = self.start(resource, webhooks);
        self.wait_until_called().await?;
        Ok(running)
    }

    /// Waits until the API server calls the webhook for creations.
    pub(crate) async fn wait_until_called(&self) -> TestResult {
        let name = format!("probe-{}", self.recorder.reviews.lock().unwrap().len());
        eventually("the API server calls the webhooks", async || {
            // A failure is retried, too.
            let _ = self.dry_run(&name, json!({"spec": {}})).await;
            (!self.recorder.reviews_of(&name).is_empty()).then_some(())
        })
        .await
    }

    /// Waits until the API server no longer calls the webhooks, and creations pass.
    pub(crate) async fn wait_until_not_called(&self) -> TestResult {
        eventually("the API server no longer calls the webhooks", async || {
            let before = self.recorder.reviews.lock().unwrap().len();
            let created = self.dry_run("probe", json!({"spec": {}})).await;
            let after = self.recorder.reviews.lock().unwrap().len();
            (created.is_ok() && before == after).then_some(())
        })
        .await
    }

    pub(crate) async fn dry_run(&self, name: &str, body: Value) -> kube::Result<DynamicObject> {
        let mut object = DynamicObject::new(name, self.widgets.resource());
        object.data = body;
        let params = PostParams {
            dry_run: true,
            ..PostParams::default()
        };
        self.widgets.api().create(&params, &object).await
    }

    /// The webhook configuration of one kind, if it exists.
    pub(crate) async fn configuration(
        &self,
        kind: &str,
    ) -> Result<Option<DynamicObject>, TestFailure> {
        let objects = self
            .sandbox
            .objects("admissionregistration.k8s.io/v1", kind)
            .await?;
        Ok(objects.api().get_opt(&self.configuration_name()).await?)
    }
}

impl Drop for WebhookFixture {
    /// Webhook configurations are cluster-scoped, so the sandbox does not remove them.
    fn drop(&mut self) {
        let (client, name) = (self.sandbox.client(), self.configuration_name());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        std::thread::spawn(move || {
            runtime.block_on(async {
                use k8s_openapi::api::admissionregistration::v1 as registration;
                use kube::Api;
                let params = kube::api::DeleteParams::default();
                let validating: Api<registration::ValidatingWebhookConfiguration> =
                    Api::all(client.clone());
                let mutating: Api<registration::MutatingWebhookConfiguration> = Api::all(client);
                // Usually the operator has removed them already.
                let _ = validating.delete(&name, &params).await;
                let _ = mutating.delete(&name, &params).await;
            });
        });
    }
}

// === impl RunningWebhookOperator ===

impl RunningWebhookOperator {
    /// Stops the operator and waits for it.
    pub(crate) async fn stop(mut self) -> TestResult {
        drop(self.stop.take());
        (&mut self.task)
            .await
            .expect("the operator does not panic")?;
        Ok(())
    }

    /// Ends the operator as `kill -9` would.
    pub(crate) async fn kill(self) {
        self.task.abort();
    }

    /// Waits for the error with which the operator ends by itself.
    pub(crate) async fn error(mut self) -> kopf_runtime::Error {
        let ended = (&mut self.task).await.expect("the operator does not panic");
        ended.expect_err("the operator cannot go on")
    }
}

impl Drop for RunningWebhookOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The API server's status for a rejected request.
pub(crate) fn rejection<T: std::fmt::Debug>(response: kube::Result<T>) -> Status {
    match response.expect_err("the API server rejects it") {
        kube::Error::Api(status) => *status,
        other => panic!("{other}"),
    }
}
