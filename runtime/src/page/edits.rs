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
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_rustls::rustls::crypto;

use super::journal::objects::ObjectDetail;
use super::running_parts::RunningParts;
use crate::client::resource::{KindSpec, Scope, StatusSubresource};
use crate::process::HandledKind;

/// The header in which the page sends its token: pages of other sites cannot set it.
pub(super) const TOKEN: HeaderName = HeaderName::from_static("kopf-page-token");

const TOKEN_BYTES: usize = 16;

/// How often an edit is tried while others write the object.
const ATTEMPTS: usize = 5;

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
    /// Replaces the spec of the object, unless it is no longer the one that the user saw.
    Apply {
        seen: Value,
        spec: Value,
    },
    Delete,
}

/// A spec as the user saw it and as it shall be: texts, because numbers of a browser are less
/// exact than those of Kubernetes.
#[derive(Debug, Deserialize)]
struct EditedSpec {
    seen: String,
    spec: String,
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
    #[error("write the edit as {{\"seen\": …, \"spec\": …}}, with texts of two specs")]
    InvalidEdit,
    #[error("the spec is not JSON: {0}")]
    InvalidSpec(#[source] serde_json::Error),
    #[error("the spec has changed meanwhile: open it again, and edit the present one")]
    SpecChanged,
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
            "apply" => Some(Self::apply(body)),
            _ => None,
        }
    }

    fn apply(body: &[u8]) -> Result<Self, Error> {
        let body: EditedSpec = serde_json::from_slice(body).map_err(|_| Error::InvalidEdit)?;
        Ok(Self::Apply {
            seen: serde_json::from_str(&body.seen).map_err(|_| Error::InvalidEdit)?,
            spec: serde_json::from_str(&body.spec).map_err(Error::InvalidSpec)?,
        })
    }
}

/// The text of the spec of an object, to be edited.
pub(super) async fn source(parts: &RunningParts, object: &ObjectDetail) -> Result<Value, Error> {
    let kind = kind_of(parts, object)?;
    if is_secret(&kind) {
        return Err(Error::Secret);
    }
    let found = api(&kind, object).get(&object.summary.name).await?;
    let spec = serde_json::to_string_pretty(&found.data["spec"]);
    Ok(json!({"spec": spec.map_err(kube::Error::SerdeError)?}))
}

/// Makes an edit, and again while others write the object between its read and its write, as
/// this operator itself does when it handles the object.
pub(super) async fn make(
    parts: &RunningParts,
    object: &ObjectDetail,
    edit: PageEdit,
) -> Result<(), Error> {
    let kind = kind_of(parts, object)?;
    for _ in 1..ATTEMPTS {
        match try_to_make(&kind, object, &edit).await {
            Err(Error::Refused(kube::Error::Api(status))) if status.is_conflict() => {}
            made => return made,
        }
    }
    try_to_make(&kind, object, &edit).await
}

async fn try_to_make(
    kind: &HandledKind,
    object: &ObjectDetail,
    edit: &PageEdit,
) -> Result<(), Error> {
    let (api, name) = (api(kind, object), &*object.summary.name);
    let uid = &*object.summary.uid;
    match edit {
        PageEdit::Delete => {
            let only = Preconditions {
                uid: Some(uid.to_owned()),
                ..Preconditions::default()
            };
            let deletion = DeleteParams::default().preconditions(only);
            api.delete(name, &deletion).await?;
            Ok(())
        }
        PageEdit::Apply { .. } if is_secret(kind) => Err(Error::Secret),
        PageEdit::Apply { seen, spec } => apply(&api, (name, uid), seen, spec).await,
        PageEdit::Retry => retry(kind, &api, name).await,
    }
}

/// Replaces a spec that is still the one that the user saw.
async fn apply(
    api: &Api<DynamicObject>,
    (name, uid): (&str, &str),
    seen: &Value,
    spec: &Value,
) -> Result<(), Error> {
    let mut found = api.get(name).await?;
    if found.metadata.uid.as_deref() != Some(uid) || found.data["spec"] != *seen {
        return Err(Error::SpecChanged);
    }
    found.data["spec"] = spec.clone();
    api.replace(name, &PostParams::default(), &found).await?;
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
    fn an_edit_has_the_texts_of_two_specs() {
        let edit = |action, body: &str| PageEdit::of(action, body.as_bytes());
        let applied = PageEdit::Apply {
            seen: json!({"size": 9_007_199_254_740_993_u64}),
            spec: json!({"size": 1}),
        };
        let body = r#"{"seen": "{\"size\": 9007199254740993}", "spec": "{\"size\": 1}"}"#;
        assert_eq!(edit("apply", body).unwrap().unwrap(), applied);
        for (body, message) in [
            ("", "write the edit as"),
            ("{}", "write the edit as"),
            (r#"{"seen": {}, "spec": {}}"#, "write the edit as"),
            (r#"{"seen": "{}"}"#, "write the edit as"),
            (
                r#"{"seen": "{}", "spec": "{size: 1}"}"#,
                "the spec is not JSON: key must be",
            ),
        ] {
            let refusal = edit("apply", body).unwrap().unwrap_err().to_string();
            assert!(refusal.starts_with(message), "{body}: {refusal}");
        }
        assert!(edit("other", "").is_none());
        assert_eq!(edit("retry", "").unwrap().unwrap(), PageEdit::Retry);
    }
}
