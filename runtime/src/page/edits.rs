//! Edits of objects from the page, if the operator was started with `--page-edits`.
//!
//! They are requests of the user who has the page's token, sent with the operator's permissions.

use std::io;
use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use kopf_core::handler::registry::Registry;
use kopf_core::object::ObjectView;
use kopf_core::object::patch::ObjectPatch;
use kopf_core::persistence::Persistence;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto;

use super::journal::objects::ObjectDetail;
use super::running_parts::RunningParts;
use crate::client::resource::{KindSpec, Scope, StatusSubresource};
use crate::process::HandledKind;

/// The header in which the page sends its token: pages of other sites cannot set it.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("kopf-page-token");

const TOKEN_BYTES: usize = 16;

/// The edits of a page, for those who know the token.
#[derive(Debug)]
pub(super) struct PageEdits {
    token: String,
}

/// An edit of one object.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PageEdit {
    /// Removes the delays of all handlers that wait for their next attempt.
    Retry,
    /// Replaces the spec of the object, unless it has changed since this version.
    Apply {
        version: String,
        spec: Value,
    },
    Delete,
}

/// The reason for which an object was not edited.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("the operator does not handle objects at the moment")]
    NotRunning,
    #[error("the operator does not handle this kind any more")]
    UnknownKind,
    #[error("no handler of the object waits for its next attempt")]
    NothingWaits,
    #[error("write the edit as {{\"version\": …, \"spec\": …}}")]
    InvalidEdit,
    #[error("contents of Secrets are neither shown nor edited here")]
    Secret,
    #[error(transparent)]
    Refused(#[from] kube::Error),
}

// === impl PageEdits ===

impl PageEdits {
    pub(super) fn new() -> io::Result<Self> {
        let mut bytes = [0; TOKEN_BYTES];
        let random = crypto::ring::default_provider().secure_random;
        let filled = random.fill(&mut bytes);
        filled.map_err(|_| io::Error::other("there are no random numbers"))?;
        let token = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self { token })
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// Whether a request comes from a page that knows the token.
    pub(super) fn allows(&self, headers: &HeaderMap) -> bool {
        let mut given = headers.get_all(TOKEN).iter();
        let (first, second) = (given.next(), given.next());
        let Some(given) = first.filter(|_| second.is_none()) else {
            return false;
        };
        let (given, token) = (given.as_bytes(), self.token.as_bytes());
        // All bytes are compared: the time tells nothing about the token.
        let differences = given.iter().zip(token).filter(|(given, own)| given != own);
        differences.count() == 0 && given.len() == token.len()
    }
}

// === impl PageEdit ===

impl PageEdit {
    /// The edit of a path; none if there is no such edit.
    pub(super) fn of(action: &str, body: &[u8]) -> Option<Result<Self, Error>> {
        match action {
            "retry" => Some(Ok(Self::Retry)),
            "delete" => Some(Ok(Self::Delete)),
            "apply" => Some(Self::apply(body).ok_or(Error::InvalidEdit)),
            _ => None,
        }
    }

    fn apply(body: &[u8]) -> Option<Self> {
        let mut body: Value = serde_json::from_slice(body).ok()?;
        Some(Self::Apply {
            version: body["version"].as_str()?.to_owned(),
            spec: body.get_mut("spec")?.take(),
        })
    }
}

/// The spec of an object and its version, to be edited.
pub(super) async fn source(parts: &RunningParts, object: &ObjectDetail) -> Result<Value, Error> {
    let kind = kind_of(parts, object)?;
    if is_secret(&kind) {
        return Err(Error::Secret);
    }
    let found = api(&kind, object).get(&object.summary.name).await?;
    let spec = found.data.get("spec").cloned().unwrap_or_default();
    Ok(json!({"version": found.metadata.resource_version, "spec": spec}))
}

/// Makes an edit.
pub(super) async fn make(
    parts: &RunningParts,
    object: &ObjectDetail,
    edit: PageEdit,
) -> Result<(), Error> {
    let kind = kind_of(parts, object)?;
    let (api, name) = (api(&kind, object), &*object.summary.name);
    match edit {
        PageEdit::Delete => {
            let only = Preconditions {
                uid: Some(object.summary.uid.to_string()),
                ..Preconditions::default()
            };
            let deletion = DeleteParams::default().preconditions(only);
            api.delete(name, &deletion).await?;
        }
        PageEdit::Apply { .. } if is_secret(&kind) => return Err(Error::Secret),
        PageEdit::Apply { version, spec } => {
            // A former version is a conflict.
            let mut edited = api.get(name).await?;
            edited.metadata.uid = Some(object.summary.uid.to_string());
            edited.metadata.resource_version = Some(version);
            edited.data["spec"] = spec;
            api.replace(name, &PostParams::default(), &edited).await?;
        }
        PageEdit::Retry => retry(&kind, &api, name).await?,
    }
    Ok(())
}

/// Makes all handlers due that wait. A handler that the operator called meanwhile has a newer
/// record, which the API server then keeps: the patches are for the version that was read.
async fn retry(kind: &HandledKind, api: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
    let params = PatchParams::default();
    let found = api.get(name).await?;
    let mut version = found.resource_version();
    let found = serde_json::to_value(found).map_err(kube::Error::SerdeError)?;
    let (registry, persistence) = (kind.registry(), kind.persistence());
    let patch = without_delays(ObjectView::new(&found), registry, persistence);
    let patch = patch.ok_or(Error::NothingWaits)?;
    let has_status = kind.spec().status == StatusSubresource::Present;
    let requests = patch.into_requests(has_status);
    if let Some(status) = requests.status {
        let status = Patch::Merge(at_version(status, version));
        let patched = api.patch_status(name, &params, &status).await?;
        version = patched.resource_version();
    }
    if let Some(body) = requests.body {
        let body = Patch::Merge(at_version(body, version));
        api.patch(name, &params, &body).await?;
    }
    Ok(())
}

/// A merge patch that the API server refuses if the object has changed since this version.
fn at_version(mut patch: Value, version: Option<String>) -> Value {
    patch["metadata"]["resourceVersion"] = version.into();
    patch
}

fn kind_of(parts: &RunningParts, object: &ObjectDetail) -> Result<Arc<HandledKind>, Error> {
    let kinds = parts.kinds().ok_or(Error::NotRunning)?;
    let found = kinds.find(|kind| {
        let name = kind.api().name();
        *name.api_version == *object.api_version
            && object.summary.kind.split('.').next() == Some(&name.kind)
    });
    found.ok_or(Error::UnknownKind)
}

fn is_secret(kind: &HandledKind) -> bool {
    let KindSpec { group, kind, .. } = kind.spec();
    group.is_empty() && &**kind == "Secret"
}

fn api(kind: &HandledKind, object: &ObjectDetail) -> Api<DynamicObject> {
    let spec = kind.spec();
    let resource = ApiResource {
        group: spec.group.to_string(),
        version: spec.version.to_string(),
        api_version: object.api_version.to_string(),
        kind: spec.kind.to_string(),
        plural: spec.plural.to_string(),
    };
    let client = kind.api().client().clone();
    match (spec.scope, &object.summary.namespace) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    }
}

/// The patch that makes all handlers due that wait for their next attempt; none if there are none.
fn without_delays(
    view: ObjectView<'_>,
    registry: &Registry,
    persistence: &Persistence,
) -> Option<ObjectPatch> {
    let mut patch = ObjectPatch::new();
    let mut ids = registry.owned_ids();
    while let Some(id) = ids.pop() {
        let Some(mut record) = persistence.progress.fetch(&id, view) else {
            continue;
        };
        ids.extend(record.subrefs.iter().filter(|it| **it != id).cloned());
        if record.is_sleeping(Timestamp::now()) {
            record.delayed = None;
            persistence.progress.store(&id, &record, view, &mut patch);
        }
    }
    (!patch.is_empty()).then_some(patch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_allows_edits() {
        let edits = PageEdits::new().unwrap();
        assert_eq!(edits.token().len(), 2 * TOKEN_BYTES);
        let with = |tokens: &[&str]| {
            let mut headers = HeaderMap::new();
            for token in tokens {
                headers.append(TOKEN, token.parse().unwrap());
            }
            edits.allows(&headers)
        };
        assert!(with(&[edits.token()]));
        assert!(!with(&[]));
        assert!(!with(&[""]));
        assert!(!with(&[&edits.token()[1..]]));
        assert!(!with(&[edits.token(), edits.token()]));
        assert!(!with(&[PageEdits::new().unwrap().token()]));
    }

    #[test]
    fn an_edit_has_a_version_and_a_spec() {
        let edit = |action, body: &str| PageEdit::of(action, body.as_bytes());
        let applied = PageEdit::Apply {
            version: "7".to_owned(),
            spec: json!({"size": 1}),
        };
        let body = r#"{"version": "7", "spec": {"size": 1}}"#;
        assert_eq!(edit("apply", body).unwrap().unwrap(), applied);
        for body in [
            "",
            "{}",
            r#"{"version": 7, "spec": {}}"#,
            r#"{"version": "7"}"#,
        ] {
            assert!(edit("apply", body).unwrap().is_err(), "{body}");
        }
        assert!(edit("other", "").is_none());
        assert_eq!(edit("retry", "").unwrap().unwrap(), PageEdit::Retry);
    }
}
