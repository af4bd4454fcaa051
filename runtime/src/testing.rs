//! For tests of operators on a cluster: a namespace of the test's own, the operator in it, and
//! waiting for what should happen.
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
//! names, and fail with instructions if it names none: no test passes, and none runs on a cluster
//! by accident.

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

/// How long a test waits for something to happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Who applies objects, as the API server keeps it.
const FIELD_MANAGER: &str = "kopf-gen-tests";

/// Where a test runs: a namespace of its own on a cluster.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    namespace: String,
    patience: Duration,
}

/// Runs a test in a new namespace of the cluster, which is deleted afterwards, however the test
/// ends. What the test makes outside of it stays.
///
/// # Errors
/// Those of the test; or that there is no cluster, and what to do about it.
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
            patience: PATIENCE,
        })
    }

    async fn close(&self) -> TestResult {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let parameters = DeleteParams::background();
        namespaces.delete(&self.namespace, &parameters).await?;
        Ok(())
    }

    /// The same place for those who wait longer, or not as long.
    #[must_use]
    pub fn within(&self, patience: Duration) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// A client that may do what the kubeconfig allows.
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

    /// Makes an object be as this JSON says, such as a CustomResourceDefinition, and waits until
    /// the server knows what a definition defines. Objects without a namespace stay after the test.
    ///
    /// # Errors
    /// If it is no object, or the server refuses it.
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

    /// An operator that is a program of its own, as it will be deployed.
    pub fn program(&self, path: impl Into<std::path::PathBuf>) -> OperatorProgram {
        OperatorProgram::new(self, path.into())
    }

    /// Starts an operator inside of the test, in the test's namespace, and waits until it is ready.
    ///
    /// # Errors
    /// If it ends, or is not ready in time.
    pub async fn start(&self, operator: Operator) -> Result<TestOperator, TestFailure> {
        let here = Namespaces::Only(vec![self.namespace.clone()]);
        let log = log::captured();
        let running = operator.namespaces(here).spawn(self.client());
        let operating = TestOperator::inside(self, running, log);
        operating.ready().await?;
        Ok(operating)
    }

    /// Asks again and again until there is an answer.
    ///
    /// # Errors
    /// If there is none in time, or asking fails.
    pub async fn eventually<T>(
        &self,
        what: &str,
        ask: impl AsyncFn() -> Result<Option<T>, TestFailure>,
    ) -> Result<T, TestFailure> {
        const PAUSE: Duration = Duration::from_millis(100);
        let deadline = tokio::time::Instant::now() + self.patience;
        loop {
            if let Some(answer) = ask().await? {
                return Ok(answer);
            }
            if tokio::time::Instant::now() >= deadline {
                let patience = self.patience;
                return Err(TestFailure::new(format!("not within {patience:?}: {what}")));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
