//! Tests of operators on a cluster: a namespace for each test, the operator in it, and conditions to
//! wait for.
//!
//! ```no_run
//! use kopf_runtime::testing::{TestResult, on_cluster};
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
//! `PROGRAM` is `env!("CARGO_BIN_EXE_<name>")` there. Tests run on the cluster that `KUBECONFIG`
//! names. Without it, they fail with instructions, so that no test passes untested or runs on the
//! wrong cluster.

mod failure;
mod log;
mod objects;
mod program;

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client, Config, ResourceExt as _, discovery};
use serde_json::Value;

pub use self::failure::{TestFailure, TestResult};
pub use self::objects::Objects;
pub use self::program::{OperatorProgram, TestOperator};
use crate::operator::{Namespaces, Operator};

/// The variable that names the cluster.
const KUBECONFIG: &str = "KUBECONFIG";

/// How long a test waits for a condition by default.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The field manager of applied objects.
const FIELD_MANAGER: &str = "kopf-gen-tests";

/// A cluster with a namespace for one test.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: String,
    timeout: Duration,
}

/// Runs a test in a new namespace of the cluster, and deletes the namespace afterwards, even if the
/// test fails or panics. Objects that the test creates elsewhere stay.
///
/// # Errors
/// Those of the test; or that there is no cluster, with instructions.
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
        if std::env::var_os(KUBECONFIG).is_none_or(|it| it.is_empty()) {
            return Err(TestFailure::no_cluster("KUBECONFIG is not set"));
        }
        let config = Config::infer().await;
        let config = config.map_err(|error| TestFailure::no_cluster(&error.to_string()))?;
        let client = Client::try_from(config)?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let mut namespace = Namespace::default();
        namespace.metadata.generate_name = Some("operator-test-".to_owned());
        let created = namespaces.create(&PostParams::default(), &namespace).await;
        let created = created.map_err(|error| TestFailure::no_cluster(&error.to_string()))?;
        Ok(Self {
            client,
            namespace: created.name_any(),
            timeout: DEFAULT_TIMEOUT,
        })
    }

    async fn close(&self) -> TestResult {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let parameters = DeleteParams::background();
        namespaces.delete(&self.namespace, &parameters).await?;
        Ok(())
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
    pub fn program(&self, path: impl Into<std::path::PathBuf>) -> OperatorProgram {
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
        let running = operator.namespaces(namespaces).spawn(self.client());
        let operator = TestOperator::in_process(self, running, log);
        operator.ready().await?;
        Ok(operator)
    }

    /// Calls `ask` again and again until it returns a value.
    ///
    /// # Errors
    /// If it returns none within the timeout, or fails.
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
            if tokio::time::Instant::now() >= deadline {
                let timeout = self.timeout;
                return Err(TestFailure::new(format!("not within {timeout:?}: {what}")));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
