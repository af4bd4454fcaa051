//! A sandbox of one test on a control plane: its own namespace, API group, client and operators.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{self, Scope};
use serde_json::{Value, json};

use crate::audit::{AuditedRequest, RequestCounts};
use crate::child_process::{ChildProcess, ChildProcessBuilder, ProcessLog};
use crate::control_plane::{ControlPlane, PrivateControlPlane};
use crate::test_failure::TestFailure;
use crate::user::User;

mod apply;
mod cleanup;
mod objects;
mod wait;

use apply::DefinitionLifetime;
pub use objects::Objects;
pub use wait::{eventually, try_eventually};

pub use kopf_cluster::child_process::DEFAULT_TIMEOUT;

/// The interval of polls where there is no watch.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A test's own namespace and API group on a control plane. Dropping it deletes both.
#[derive(Clone)]
pub struct Sandbox {
    state: Arc<SandboxState>,
}

pub(crate) struct SandboxState {
    plane: Arc<ControlPlane>,
    user: User,
    client: Client,
    namespace: String,
    group: String,
    /// The CustomResourceDefinitions to delete at the end.
    definitions: Mutex<BTreeSet<String>>,
    /// The logs of all operators, which a failed wait shows.
    logs: Mutex<Vec<Arc<ProcessLog>>>,
}

// === impl Sandbox ===

impl Sandbox {
    /// Opens a sandbox on the control plane that the test run shares.
    pub async fn open(name: &str) -> Result<Self, TestFailure> {
        Self::open_on(ControlPlane::shared().await?, name).await
    }

    /// The same for a test that counts requests: on a private control plane if the shared one is a
    /// given cluster, whose audit log cannot be read.
    pub async fn open_audited(name: &str) -> Result<Self, TestFailure> {
        let shared = ControlPlane::shared().await?;
        if shared.audit_log().is_ok() {
            return Self::open_on(shared, name).await;
        }
        Self::open_on(PrivateControlPlane::start().await?.handle(), name).await
    }

    /// Opens a sandbox on the given control plane.
    pub async fn open_on(plane: Arc<ControlPlane>, name: &str) -> Result<Self, TestFailure> {
        let unique = unique(name);
        let user = User::administrator(unique.clone());
        let client = plane.client(&user).await?;
        let body = json!({"metadata": {"name": unique}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(body)?)
            .await?;
        let state = SandboxState {
            plane,
            user,
            client,
            group: format!("{unique}.kopf.test"),
            namespace: unique,
            definitions: Mutex::default(),
            logs: Mutex::default(),
        };
        Ok(Self {
            state: Arc::new(state),
        })
    }

    /// The namespace of this sandbox.
    pub fn namespace(&self) -> &str {
        &self.state.namespace
    }

    /// An API group that no other sandbox uses.
    pub fn group(&self) -> &str {
        &self.state.group
    }

    /// A client with all permissions, as [`Sandbox::client_user`].
    pub fn client(&self) -> Client {
        self.state.client.clone()
    }

    /// The user as which [`Sandbox::client`] acts.
    pub fn client_user(&self) -> &User {
        &self.state.user
    }

    /// The control plane of this sandbox.
    pub fn control_plane(&self) -> &Arc<ControlPlane> {
        &self.state.plane
    }

    /// A user without permissions, under a name that no other sandbox uses.
    pub fn user(&self, name: &str) -> User {
        User::new(format!("{name}.{}", self.state.namespace))
    }

    /// An administrator under a name that no other sandbox uses.
    pub fn administrator(&self, name: &str) -> User {
        User::administrator(format!("{name}.{}", self.state.namespace))
    }

    /// Defines a namespaced kind in version `v1` with a status subresource and arbitrary fields, and
    /// waits until the API server serves it.
    pub async fn define(&self, kind: &str) -> Result<Objects, TestFailure> {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
        self.define_with(kind, schema).await
    }

    /// The same with a schema of the whole object.
    pub async fn define_with(&self, kind: &str, schema: Value) -> Result<Objects, TestFailure> {
        let (singular, group) = (kind.to_lowercase(), self.group());
        let plural = format!("{singular}s");
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"kind": kind, "plural": plural, "singular": singular},
                "versions": [{
                    "name": "v1",
                    "served": true,
                    "storage": true,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }],
            },
        });
        let definition = serde_json::from_value(definition)?;
        apply::apply_one(&self.state, definition, DefinitionLifetime::Sandbox).await?;
        self.objects(&format!("{group}/v1"), kind).await
    }

    /// Applies every document of `yaml`, in order, as `kubectl apply --server-side` does, with
    /// `$NAMESPACE` and `$GROUP` replaced by those of this sandbox. Objects without a namespace go
    /// into this sandbox's; after a CustomResourceDefinition, waits until it is served.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>, TestFailure> {
        self.apply_for(yaml, DefinitionLifetime::Sandbox).await
    }

    /// The same for CustomResourceDefinitions that several tests share: they are not deleted with
    /// the sandbox.
    pub async fn apply_shared(&self, yaml: &str) -> Result<Vec<DynamicObject>, TestFailure> {
        self.apply_for(yaml, DefinitionLifetime::ControlPlane).await
    }

    async fn apply_for(
        &self,
        yaml: &str,
        lifetime: DefinitionLifetime,
    ) -> Result<Vec<DynamicObject>, TestFailure> {
        let text = yaml
            .replace("$NAMESPACE", self.namespace())
            .replace("$GROUP", self.group());
        let mut applied = Vec::new();
        for document in serde_saphyr::from_multiple::<Value>(&text)? {
            if !document.is_null() {
                let object = serde_json::from_value(document)?;
                applied.push(apply::apply_one(&self.state, object, lifetime).await?);
            }
        }
        Ok(applied)
    }

    /// The objects of a kind: in this sandbox's namespace, or all of a cluster-scoped kind.
    pub async fn objects(&self, api_version: &str, kind: &str) -> Result<Objects, TestFailure> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = discovery::pinned_kind(&self.state.client, &gvk).await?;
        let namespace = match capabilities.scope {
            Scope::Namespaced => Some(self.state.namespace.clone()),
            Scope::Cluster => None,
        };
        Ok(Objects::new(Arc::clone(&self.state), resource, namespace))
    }

    /// Prepares to run an operator on this sandbox's control plane, as `user`.
    pub fn operator(
        &self,
        program: impl AsRef<Path>,
        user: &User,
    ) -> Result<ChildProcessBuilder, TestFailure> {
        let kubeconfig = self.state.plane.kubeconfig(user)?;
        let log = Arc::new(ProcessLog::default());
        lock(&self.state.logs).push(Arc::clone(&log));
        Ok(ChildProcess::builder(program.as_ref(), log).env("KUBECONFIG", kubeconfig))
    }

    /// All requests of `user` so far, including those just answered.
    pub async fn requests_of(&self, user: &User) -> Result<Vec<AuditedRequest>, TestFailure> {
        let log = self.state.plane.audit_log()?;
        let mark = format!("/version?mark={}", unique("audit"));
        let request = http::Request::get(&mark).body(Vec::new())?;
        self.state.client.request_text(request).await?;
        let mut requests = eventually("the audit log has all requests", async || {
            let requests = log.requests().ok()?;
            requests
                .iter()
                .any(|request| request.uri == mark)
                .then_some(requests)
        })
        .await?;
        requests.retain(|request| {
            request.user == user.name() && !request.uri.starts_with("/version?mark=")
        });
        Ok(requests)
    }

    /// The number of requests of `user` so far, per resource and verb.
    pub async fn count_requests_of(&self, user: &User) -> Result<RequestCounts, TestFailure> {
        Ok(self.requests_of(user).await?.iter().collect())
    }
}

/// A name that no other test uses, valid for namespaces and DNS.
fn unique(name: &str) -> String {
    // A new `RandomState` is the standard library's only source of randomness.
    let random = RandomState::new().hash_one(std::process::id());
    format!("{name}-{:010x}", random >> 24)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
