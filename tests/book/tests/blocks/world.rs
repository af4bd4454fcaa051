//! What the blocks of the pages refer to, and a reader has in their own crate.

pub use std::process::ExitCode;
pub use std::sync::atomic::{AtomicU32, Ordering};

pub use crate::generated::website::{Website, WebsiteHandlers, WebsiteReconcile};
use k8s_openapi::NamespaceResourceScope;
pub use k8s_openapi::api::apps::v1::Deployment;
pub use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
pub use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
pub use kopf_runtime::admission::{Certificates, Server, Tunnel, Webhooks};
pub use kopf_runtime::prelude::*;
pub use kopf_runtime::{
    DynamicObject, HasConditions, HasSpec, HasStatus, Index, Indices, LogFormat, LogSetup,
    LogVerbosity, Namespaces, TestContext,
};
pub use kopf_testing::{TestResult, on_cluster};
pub use kube::api::PostParams;
use serde::{Deserialize, Serialize};

/// A kind with a spec and a status.
macro_rules! kind {
    ($kind:ident, $spec:ident, $status:ident, $plural:literal) => {
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $kind {
            pub metadata: ObjectMeta,
            pub spec: $spec,
            pub status: Option<$status>,
        }

        impl k8s_openapi::Resource for $kind {
            const API_VERSION: &'static str = "kopf.dev/v1";
            const GROUP: &'static str = "kopf.dev";
            const KIND: &'static str = stringify!($kind);
            const VERSION: &'static str = "v1";
            const URL_PATH_SEGMENT: &'static str = $plural;
            type Scope = NamespaceResourceScope;
        }

        impl k8s_openapi::Metadata for $kind {
            type Ty = ObjectMeta;

            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut ObjectMeta {
                &mut self.metadata
            }
        }

        impl HasSpec for $kind {
            type Spec = $spec;

            fn spec(&self) -> &$spec {
                &self.spec
            }

            fn spec_mut(&mut self) -> &mut $spec {
                &mut self.spec
            }
        }

        impl HasStatus for $kind {
            type Status = $status;

            fn status(&self) -> Option<&$status> {
                self.status.as_ref()
            }

            fn status_mut(&mut self) -> &mut Option<$status> {
                &mut self.status
            }
        }

        impl HasConditions for $kind {
            const OBSERVED_GENERATION: bool = true;
        }
    };
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimSpec {
    pub size: Quantity,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClaimStatus {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExampleSpec {}

kind!(
    EphemeralVolumeClaim,
    ClaimSpec,
    ClaimStatus,
    "ephemeralvolumeclaims"
);
kind!(KopfExample, ExampleSpec, ClaimStatus, "kopfexamples");

/// The handlers of a kind, as kopf-gen would generate them.
pub trait EphemeralVolumeClaimHandlers {
    fn resize(
        &self,
        cx: &mut FieldContext<EphemeralVolumeClaim, Quantity>,
    ) -> impl Future<Output = HandlerResult> + Send;
}

/// The same for Pods with a memo.
pub trait PodHandlers {
    fn memo<'a>(&self, cx: &'a impl MemoContext<Pod>) -> &'a PodMemo {
        cx.memo()
    }
}

#[derive(Debug, Default)]
pub struct PodMemo {
    pub restarts: AtomicU32,
}

impl Memo<Pod> for PodMemo {}

/// An index of Pods by the name of a claim.
#[derive(Clone, Copy, Debug)]
pub struct PodsByClaim;

impl Index for PodsByClaim {
    type Key = String;
    type Value = (String, String);
    const NAME: &'static str = "pods_by_claim";
}

/// An index of addresses by the uid of an owner.
#[derive(Clone, Copy, Debug)]
pub struct NatsUrls;

impl Index for NatsUrls {
    type Key = String;
    type Value = String;
    const NAME: &'static str = "nats_urls";
}

/// The state of an operator, with whatever pages need in it.
#[derive(Default)]
pub struct Operator {
    pub pool: Pool,
    pub vault: Vault,
    pub provider: Provider,
}

impl PodHandlers for Operator {}

impl Operator {
    pub async fn create_fn(&self, cx: &mut ChangeContext<EphemeralVolumeClaim>) -> HandlerResult {
        cx.status_mut().phase = Some("Pending".into());
        Ok(())
    }

    pub async fn wait_for_provider(
        &self,
        _cx: &mut ChangeContext<EphemeralVolumeClaim>,
    ) -> HandlerResult {
        if !self.provider.is_ready {
            let delay = Duration::from_secs(30);
            return Err(HandlerError::temporary_after(
                delay,
                "the provider is not ready",
            ));
        }
        Ok(())
    }
}

pub fn random_password() -> String {
    String::new()
}

/// A state with a pool alone.
pub struct OnlyPool {
    pub pool: Pool,
}

#[derive(Clone, Default)]
pub struct Pool;

impl Pool {
    pub async fn connect() -> HandlerResult<Self> {
        Ok(Self)
    }

    pub async fn open(&self) -> HandlerResult {
        Ok(())
    }

    pub fn size(&self) -> usize {
        0
    }

    pub fn query(&self, text: &str, name: &str) -> Result<Vec<String>, std::fmt::Error> {
        Ok(vec![format!("{text} {name}")])
    }
}

#[derive(Default)]
pub struct Vault;

pub struct VaultSecret {
    pub server: String,
    pub ca: String,
    pub token: String,
    pub end: jiff::Timestamp,
}

impl Vault {
    pub async fn read(&self, name: &str) -> HandlerResult<VaultSecret> {
        Err(HandlerError::permanent(name))
    }
}

#[derive(Default)]
pub struct Provider {
    pub is_ready: bool,
}

impl Provider {
    pub async fn has(&self, key: &str) -> HandlerResult<bool> {
        Ok(key.is_empty())
    }

    pub async fn order(&self, key: &str) -> HandlerResult {
        Err(HandlerError::permanent(key))
    }
}

#[derive(Serialize, Deserialize)]
pub struct Usage {
    pub bytes: u64,
}

pub struct Limits {
    pub least: u64,
}

pub const PAUSE: Duration = Duration::from_secs(5);
pub const PROGRAM: &str = "";
pub const DEFINITION: &str = "";

pub fn checksum(path: &str, stop: &StopSignal) -> u64 {
    u64::from(stop.is_set() || path.is_empty())
}

pub fn pod_for(example: &KopfExample) -> Pod {
    Pod {
        metadata: example.metadata.clone(),
        ..Pod::default()
    }
}

pub fn pages_of(site: &Website) -> ConfigMap {
    ConfigMap {
        data: Some([("index.html".to_owned(), site.spec.page.clone())].into()),
        ..ConfigMap::default()
    }
}

pub fn deployment_of(site: &Website) -> Deployment {
    let replicas = i32::from(!site.spec.page.is_empty());
    let mut deployment = Deployment::default();
    deployment.spec.replicas = Some(replicas);
    deployment
}

pub fn readiness_of(child: &ConfigMap) -> readiness::Readiness {
    readiness::Readiness::waiting("Starting", child.name_any())
}

pub fn pvc_is_bound(pvc: &PersistentVolumeClaim) -> bool {
    pvc.status.is_some()
}

pub async fn create_item(
    cx: &mut ChangeContext<EphemeralVolumeClaim>,
    item: &str,
) -> HandlerResult {
    info!("{item} of {}", cx.name());
    Ok(())
}

/// The generated part of a crate.
pub mod generated {
    pub fn operator<S>(_state: S) -> kopf_runtime::Operator {
        kopf_runtime::Operator::new("book")
    }
}

/// The part that the reader writes.
pub mod handlers {
    #[derive(Default)]
    pub struct Operator;

    impl Operator {
        pub fn new(_indices: kopf_runtime::Indices) -> Self {
            Self
        }
    }
}
