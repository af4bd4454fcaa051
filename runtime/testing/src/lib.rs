//! Tests of operators on a real control plane, which starts by itself: a namespace for each test, the
//! operator in it, and conditions to wait for.
//!
//! ```no_run
//! use kopf_testing::{TestResult, on_cluster};
//! use serde_json::json;
//!
//! # const PROGRAM: &str = "";
//! # const DEFINITION: &str = "";
//! #[test]
//! fn an_object_is_handled() -> TestResult {
//!     on_cluster(async |cluster| {
//!         cluster.apply(DEFINITION).await?;
//!         let operator = cluster.program(PROGRAM).start().await?;
//!         let objects = cluster.objects("kopf.dev/v1", "KopfExample", "kopfexamples");
//!         objects.create("example", json!({"spec": {}})).await?;
//!         operator.wait_for_log("Handler 'create_fn' succeeded.").await?;
//!         operator.stop().await
//!     })
//! }
//! ```
//!
//! `PROGRAM` is `env!("CARGO_BIN_EXE_<name>")` there. All tests of a run share one control plane on this
//! machine, which ends with them. `KUBECONFIG` is not read, so that no test runs on the wrong cluster;
//! `KOPF_TEST_KUBECONFIG=<file>` names a cluster to test on instead.

mod host;
mod log;
mod objects;
mod program;

use std::fmt::Debug;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Namespace;
use kopf_cluster::{ControlPlane, Program, user};
use kopf_runtime::{Namespaces, Operator};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, ResourceExt as _, discovery};
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::host::OperatorEnd;
use self::host::WatchedOperators;
pub use self::objects::Objects;
pub use self::program::{OperatorProgram, TestOperator};
pub use kopf_cluster::{TestFailure, TestResult};

/// The program that runs the control plane.
const CONTROL_PLANE: &str = env!("KOPF_CONTROL_PLANE");

/// How long a test waits for a condition by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The field manager of applied objects.
const FIELD_MANAGER: &str = "kopf-gen-tests";

/// A cluster with a namespace for one test.
#[derive(Clone)]
pub struct Cluster {
    kubeconfig: PathBuf,
    client: Client,
    namespace: String,
    timeout: Duration,
    operators: WatchedOperators,
}

/// Runs a test in a new namespace of the cluster, and deletes the namespace afterwards, even if the
/// test fails or panics. Objects that the test creates elsewhere stay.
///
/// # Errors
/// Those of the test; or that no control plane can be started, with the ways to get one.
pub fn on_cluster(test: impl AsyncFnOnce(&Cluster) -> TestResult) -> TestResult {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let cluster = Cluster::open().await?;
        let ended = AssertUnwindSafe(test(&cluster)).catch_unwind().await;
        let closed = cluster.close().await;
        match ended {
            Ok(result) => result.and(closed),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

impl Cluster {
    async fn open() -> Result<Self, TestFailure> {
        let plane = ControlPlane::shared_by(Program::at(CONTROL_PLANE)).await?;
        let kubeconfig = plane.administrator_kubeconfig();
        let client = user::client_from(&kubeconfig).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some("operator-test-".to_owned());
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        let created = created?;
        Ok(Self {
            kubeconfig,
            client,
            namespace: created.name_any(),
            timeout: DEFAULT_TIMEOUT,
            operators: WatchedOperators::default(),
        })
    }

    async fn close(&self) -> TestResult {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let parameters = DeleteParams::background();
        namespaces.delete(&self.namespace, &parameters).await?;
        self.delete_webhooks::<ValidatingWebhookConfiguration>()
            .await?;
        self.delete_webhooks::<MutatingWebhookConfiguration>().await
    }

    /// Deletes what an operator leaves that a failed test has killed.
    async fn delete_webhooks<K>(&self) -> TestResult
    where
        K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        let configurations: Api<K> = Api::all(self.client.clone());
        let name = self.webhook_configuration();
        match configurations.delete(&name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }

    /// The name of the webhook configurations of operators in this test, which no other test uses.
    fn webhook_configuration(&self) -> String {
        format!("{}.tests.kopf-gen.dev", self.namespace)
    }

    /// The same cluster and namespace with another timeout for conditions.
    #[must_use]
    pub fn within(&self, timeout: Duration) -> Self {
        Self {
            timeout,
            ..self.clone()
        }
    }

    /// A client with the permissions of the kubeconfig.
    #[must_use]
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The kubeconfig with which operators of the test run.
    #[must_use]
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The namespace of the test.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The objects of any kind in the namespace of the test.
    pub fn objects(&self, api_version: &str, kind: &str, plural: &str) -> Objects {
        Objects::new(self, api_version, kind, plural)
    }

    /// Applies an object from JSON, such as a CustomResourceDefinition; for a definition, waits until
    /// it is established. Cluster-scoped objects stay after the test.
    ///
    /// # Errors
    /// If the JSON is not an object, or the API server rejects it.
    pub async fn apply(&self, json: &str) -> TestResult {
        let object: Value = serde_json::from_str(json)?;
        let text = |pointer: &str| {
            let text = object.pointer(pointer).and_then(Value::as_str);
            text.ok_or_else(|| TestFailure::new(format!("the object has no {pointer}")))
        };
        let (api_version, kind, name) = (
            text("/apiVersion")?,
            text("/kind")?,
            text("/metadata/name")?,
        );
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let wanted = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = discovery::pinned_kind(&self.client, &wanted).await?;
        let client = self.client();
        let api: Api<DynamicObject> = match capabilities.scope {
            discovery::Scope::Cluster => Api::all_with(client, &resource),
            discovery::Scope::Namespaced => {
                Api::namespaced_with(client, &self.namespace, &resource)
            }
        };
        let parameters = PatchParams::apply(FIELD_MANAGER).force();
        api.patch(name, &parameters, &Patch::Apply(&object)).await?;
        if kind == "CustomResourceDefinition" {
            self.eventually(&format!("{name} is established"), async || {
                let definition = api.get(name).await?;
                let conditions = definition.data.pointer("/status/conditions");
                let conditions = conditions.and_then(Value::as_array).into_iter().flatten();
                let mut conditions = conditions.filter(|it| it["status"] == "True");
                Ok(conditions
                    .any(|it| it["type"] == "Established")
                    .then_some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// An operator that runs as a separate program, as it is deployed.
    pub fn program(&self, path: impl Into<PathBuf>) -> OperatorProgram {
        OperatorProgram::new(self, path.into())
    }

    /// Starts an operator inside the test program, for the test's namespace, and waits until it is
    /// ready.
    ///
    /// # Errors
    /// If it ends, or is not ready in time.
    pub async fn start(&self, operator: Operator) -> Result<TestOperator, TestFailure> {
        let namespaces = Namespaces::Only(vec![self.namespace.clone()]);
        let log = log::captured();
        let operator = operator
            .namespaces(namespaces)
            .webhook_configuration(self.webhook_configuration());
        let running = operator.spawn(self.client());
        let operator = TestOperator::in_process(self, running, log);
        operator.ready().await?;
        Ok(operator)
    }

    /// Calls `ask` again and again until it returns a value.
    ///
    /// # Errors
    /// If it returns none within the timeout, or fails; or if an operator of this test has ended by
    /// itself, with its exit code, the reason and its log.
    pub async fn eventually<T>(
        &self,
        what: &str,
        ask: impl AsyncFn() -> Result<Option<T>, TestFailure>,
    ) -> Result<T, TestFailure> {
        const PAUSE: Duration = Duration::from_millis(100);
        let deadline = tokio::time::Instant::now() + self.timeout;
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            self.operators.check()?;
            if tokio::time::Instant::now() >= deadline {
                let timeout = self.timeout;
                return Err(TestFailure::new(format!("not within {timeout:?}: {what}")));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
