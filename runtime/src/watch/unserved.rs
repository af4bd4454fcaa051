//! Finds out why the API server does not serve a kind, and waits until that may have changed.
//!
//! With the permission to do so, the stream watches the CustomResourceDefinition of the kind and
//! notices at once when it is created. Otherwise it asks the API server in growing intervals.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::AsyncBufReadExt as _;
use kopf_core::handler::watch_selectors::WatchSelectors;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tracing::warn;

use crate::client::requests::{self, KindApi};
use crate::client::resource::{KindSpec, ResourceSpec, Scope, StatusSubresource};

pub(crate) const CUSTOM_RESOURCE_DEFINITIONS: ResourceSpec = ResourceSpec {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    scope: Scope::Cluster,
    status: StatusSubresource::Present,
};

/// The longest time without asking the API server again.
const RECHECK_AFTER: Duration = Duration::from_secs(300);

/// A kind that the API server does not serve.
pub(super) struct UnservedKind {
    kind: KindSpec,
    name: String,
    crds: KindApi,
    /// The start of a watch of the definition, if that is allowed.
    resource_version: Option<String>,
    reason: Option<UnservedReason>,
    /// True if it has logged that the definition cannot be watched.
    warned_unwatchable: bool,
}

/// The reason why the API server does not serve a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnservedReason {
    /// The kind is not defined, and has no objects.
    Gone,
    /// The kind is served in other versions only, which this operator does not know.
    OtherVersions(Vec<String>),
    /// The kind is defined, and will be served in a moment.
    Coming,
    /// The API server did not answer.
    Unknown,
}

/// The result of a check.
pub(super) struct UnservedReport {
    pub(super) reason: UnservedReason,
    /// The reason in words.
    pub(super) message: String,
    /// True if it differs from the last check.
    pub(super) is_new: bool,
}

#[derive(Deserialize)]
struct CrdObject {
    spec: CrdSpec,
}

#[derive(Deserialize)]
struct CrdSpec {
    versions: Vec<CrdVersion>,
}

#[derive(Deserialize)]
struct CrdVersion {
    name: String,
    served: bool,
}

// === impl UnservedKind ===

impl UnservedKind {
    pub(super) fn new(api: &KindApi) -> Self {
        let kind = api.spec().clone();
        let name = format!("{}.{}", kind.plural, kind.group);
        let selectors = WatchSelectors {
            fields: BTreeMap::from([("metadata.name".to_owned(), name.clone())]),
            ..WatchSelectors::default()
        };
        Self {
            kind,
            name,
            crds: KindApi::new(api.client().clone(), CUSTOM_RESOURCE_DEFINITIONS, selectors)
                .with_timeout(api.timeout()),
            resource_version: None,
            reason: None,
            warned_unwatchable: false,
        }
    }

    /// Finds out why the kind is not served.
    pub(super) async fn check(&mut self) -> UnservedReport {
        self.resource_version = None;
        let (reason, hint) = match self.crds.list_page(None, 1, None).await {
            Ok(page) => {
                self.resource_version = Some(page.resource_version);
                let crd = page.items.first().map(|text| self.reason_in_crd(text));
                (crd.unwrap_or(UnservedReason::Gone), String::new())
            }
            Err(error) if error.is_forbidden() => {
                let hint = format!(
                    "; without the permission to list and watch customresourcedefinitions \
                     (at least {:?}), the operator notices late when it is served: {error}",
                    self.name
                );
                (self.discover().await, hint)
            }
            Err(_) => (UnservedReason::Unknown, String::new()),
        };
        let is_new = self.reason.as_ref() != Some(&reason);
        self.reason = Some(reason.clone());
        UnservedReport {
            message: format!("{}{hint}", self.message(&reason)),
            reason,
            is_new,
        }
    }

    /// Waits until the kind may be served; at most `pause` if its definition cannot be watched.
    pub(super) async fn wait_for_change(&mut self, pause: Duration) {
        let (Some(resource_version), Some(reason)) = (&self.resource_version, &self.reason) else {
            return tokio::time::sleep(pause).await;
        };
        let patience = match reason {
            UnservedReason::Gone | UnservedReason::OtherVersions(_) => RECHECK_AFTER,
            UnservedReason::Coming | UnservedReason::Unknown => pause,
        };
        let changed = async {
            let opened = self.crds.watch(None, resource_version, patience).await;
            let body = match opened {
                Ok(body) => body,
                Err(error) => {
                    let warned = &mut self.warned_unwatchable;
                    if error.is_forbidden() && !std::mem::replace(warned, true) {
                        warn!(
                            "the operator notices late when {} is served: {error}",
                            self.name
                        );
                    }
                    return tokio::time::sleep(pause).await;
                }
            };
            let mut body = std::pin::pin!(body);
            let mut line = Vec::new();
            loop {
                line.clear();
                match body.read_until(b'\n', &mut line).await {
                    Ok(length) if length > 0 && is_bookmark(&line) => {}
                    Ok(length) if length > 0 => return,
                    Ok(_) | Err(_) => return tokio::time::sleep(pause).await,
                }
            }
        };
        // After the timeout the caller lists again.
        let _ = timeout(patience, changed).await;
    }

    fn reason_in_crd(&self, text: &RawValue) -> UnservedReason {
        let Ok(crd) = serde_json::from_str::<CrdObject>(text.get()) else {
            return UnservedReason::Unknown;
        };
        let served = crd.spec.versions.into_iter();
        self.reason_for_versions(served.filter(|it| it.served).map(|it| it.name).collect())
    }

    /// Asks discovery, which every client may do, for the versions that serve the kind.
    async fn discover(&self) -> UnservedReason {
        let client = self.crds.client();
        let KindSpec { group, plural, .. } = &self.kind;
        let Ok(groups) = client.list_api_groups().await else {
            return UnservedReason::Unknown;
        };
        let mut served = Vec::new();
        let groups = groups.groups.into_iter().filter(|it| *it.name == **group);
        for version in groups.flat_map(|it| it.versions) {
            let resources = client.list_api_group_resources(&version.group_version);
            match resources.await.map_err(requests::Error::from) {
                Ok(list) if list.resources.iter().any(|it| *it.name == **plural) => {
                    served.push(version.version);
                }
                Ok(_) | Err(requests::Error::NotFound) => {}
                Err(_) => return UnservedReason::Unknown,
            }
        }
        if served.is_empty() {
            UnservedReason::Gone
        } else {
            self.reason_for_versions(served)
        }
    }

    fn reason_for_versions(&self, served: Vec<String>) -> UnservedReason {
        if served.iter().any(|version| **version == *self.kind.version) {
            UnservedReason::Coming
        } else {
            UnservedReason::OtherVersions(served)
        }
    }

    fn message(&self, reason: &UnservedReason) -> String {
        let version = &self.kind.version;
        match reason {
            UnservedReason::Gone => "the API server does not serve this kind (yet)".to_owned(),
            UnservedReason::Coming => {
                "the API server does not serve this kind yet, but knows it".to_owned()
            }
            UnservedReason::Unknown => "the API server does not serve this kind".to_owned(),
            UnservedReason::OtherVersions(served) if served.is_empty() => {
                "the API server does not serve any version of this kind".to_owned()
            }
            UnservedReason::OtherVersions(served) => format!(
                "the API server does not serve this kind in version {version}, which the operator was \
                 generated for, but in {}",
                served.join(", ")
            ),
        }
    }
}

fn is_bookmark(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct EventLine<'a> {
        r#type: &'a str,
    }
    serde_json::from_slice::<EventLine<'_>>(line).is_ok_and(|event| event.r#type == "BOOKMARK")
}
