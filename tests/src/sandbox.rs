//! A place of one test on a control plane: its own namespace, API group, client and operators.

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
use crate::control_plane::{ControlPlane, PrivateControlPlane};
use crate::failure::Failure;
use crate::identity::Identity;
use crate::operator::{self, Log, Operator};

mod apply;
mod cleanup;
mod objects;
mod wait;

use apply::Stay;
pub use objects::Objects;
pub use wait::{eventually, try_eventually};

/// How long a helper waits unless told otherwise: long, because machines are noisy, and only a
/// failing test ever waits that long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often something that cannot be watched is asked for.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// A test's own place on a control plane. Dropping it removes what it made.
#[derive(Clone)]
pub struct Sandbox {
    place: Arc<Place>,
}

pub(crate) struct Place {
    plane: Arc<ControlPlane>,
    identity: Identity,
    client: Client,
    namespace: String,
    group: String,
    /// The definitions to remove at the end.
    definitions: Mutex<BTreeSet<String>>,
    /// What a failed wait shows.
    logs: Mutex<Vec<Arc<Log>>>,
}

// === impl Sandbox ===

impl Sandbox {
    /// Opens a sandbox on the control plane that the test run shares.
    pub async fn open(name: &str) -> Result<Self, Failure> {
        Self::open_on(ControlPlane::shared().await?, name).await
    }

    /// The same for a test that counts requests: on a control plane of the test's own if the shared
    /// one is a given cluster, whose audit log is out of reach.
    pub async fn open_audited(name: &str) -> Result<Self, Failure> {
        let shared = ControlPlane::shared().await?;
        if shared.audit_log().is_ok() {
            return Self::open_on(shared, name).await;
        }
        Self::open_on(PrivateControlPlane::start().await?.handle(), name).await
    }

    /// Opens a sandbox on a control plane of the test's own.
    pub async fn open_on(plane: Arc<ControlPlane>, name: &str) -> Result<Self, Failure> {
        let unique = unique(name);
        let identity = Identity::administrator(unique.clone());
        let client = plane.client(&identity).await?;
        let body = json!({"metadata": {"name": unique}});
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .create(&PostParams::default(), &serde_json::from_value(body)?)
            .await?;
        let place = Place {
            plane,
            identity,
            client,
            group: format!("{unique}.kopf.test"),
            namespace: unique,
            definitions: Mutex::default(),
            logs: Mutex::default(),
        };
        Ok(Self {
            place: Arc::new(place),
        })
    }

    /// The namespace of this sandbox.
    pub fn namespace(&self) -> &str {
        &self.place.namespace
    }

    /// An API group that no other sandbox uses.
    pub fn group(&self) -> &str {
        &self.place.group
    }

    /// A client that may do everything, under a name of its own.
    pub fn client(&self) -> Client {
        self.place.client.clone()
    }

    /// As whom [`Sandbox::client`] acts.
    pub fn identity(&self) -> &Identity {
        &self.place.identity
    }

    /// The control plane on which this sandbox is.
    pub fn control_plane(&self) -> &Arc<ControlPlane> {
        &self.place.plane
    }

    /// A user name that no other sandbox uses, without any permission.
    pub fn user(&self, name: &str) -> Identity {
        Identity::user(format!("{name}.{}", self.place.namespace))
    }

    /// An administrator whose requests can be told from all others.
    pub fn administrator(&self, name: &str) -> Identity {
        Identity::administrator(format!("{name}.{}", self.place.namespace))
    }

    /// Defines a namespaced kind in version `v1` with a status subresource and any fields, and waits
    /// until it is served.
    pub async fn define(&self, kind: &str) -> Result<Objects, Failure> {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": any, "status": any}});
        self.define_with(kind, schema).await
    }

    /// The same with a schema for the whole object.
    pub async fn define_with(&self, kind: &str, schema: Value) -> Result<Objects, Failure> {
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
        apply::apply_one(&self.place, definition, Stay::WithTheSandbox).await?;
        self.objects(&format!("{group}/v1"), kind).await
    }

    /// Applies every document of `yaml`, in order, as `kubectl apply --server-side` does, with
    /// `$NAMESPACE` and `$GROUP` replaced by those of this sandbox. Objects without a namespace go
    /// into this one's; a definition is waited for until it is served.
    pub async fn apply(&self, yaml: &str) -> Result<Vec<DynamicObject>, Failure> {
        self.apply_for(yaml, Stay::WithTheSandbox).await
    }

    /// The same for definitions that several tests use, maybe at once: they stay as long as the
    /// control plane.
    pub async fn apply_shared(&self, yaml: &str) -> Result<Vec<DynamicObject>, Failure> {
        self.apply_for(yaml, Stay::WithTheControlPlane).await
    }

    async fn apply_for(&self, yaml: &str, stay: Stay) -> Result<Vec<DynamicObject>, Failure> {
        let text = yaml
            .replace("$NAMESPACE", self.namespace())
            .replace("$GROUP", self.group());
        let mut applied = Vec::new();
        for document in serde_saphyr::from_multiple::<Value>(&text)? {
            if !document.is_null() {
                let object = serde_json::from_value(document)?;
                applied.push(apply::apply_one(&self.place, object, stay).await?);
            }
        }
        Ok(applied)
    }

    /// The objects of a kind: those in this sandbox's namespace, or all if the kind has none.
    pub async fn objects(&self, api_version: &str, kind: &str) -> Result<Objects, Failure> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = GroupVersionKind::gvk(group, version, kind);
        let (resource, capabilities) = discovery::pinned_kind(&self.place.client, &gvk).await?;
        let namespace = match capabilities.scope {
            Scope::Namespaced => Some(self.place.namespace.clone()),
            Scope::Cluster => None,
        };
        Ok(Objects::new(Arc::clone(&self.place), resource, namespace))
    }

    /// Prepares to run an operator against this sandbox's control plane, as `identity`.
    pub fn operator(
        &self,
        program: impl AsRef<Path>,
        identity: &Identity,
    ) -> Result<operator::Builder, Failure> {
        let kubeconfig = self.place.plane.kubeconfig(identity)?;
        let log = Arc::new(Log::default());
        lock(&self.place.logs).push(Arc::clone(&log));
        Ok(Operator::builder(program.as_ref(), log).env("KUBECONFIG", kubeconfig))
    }

    /// All requests that `identity` has made so far, including those just answered.
    pub async fn requests_of(&self, identity: &Identity) -> Result<Vec<AuditedRequest>, Failure> {
        let log = self.place.plane.audit_log()?;
        let mark = format!("/version?mark={}", unique("audit"));
        let request = http::Request::get(&mark).body(Vec::new())?;
        self.place.client.request_text(request).await?;
        let mut requests = eventually("the audit log has recorded everything", async || {
            let requests = log.requests().ok()?;
            requests
                .iter()
                .any(|request| request.uri == mark)
                .then_some(requests)
        })
        .await?;
        requests.retain(|request| {
            request.user == identity.name() && !request.uri.starts_with("/version?mark=")
        });
        Ok(requests)
    }

    /// How many requests `identity` has made so far, per resource and verb.
    pub async fn count_requests_of(&self, identity: &Identity) -> Result<RequestCounts, Failure> {
        Ok(self.requests_of(identity).await?.iter().collect())
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
