//! Admission reviews: requests of the API server, and responses to them.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::Operation;
use crate::object::patch::{JsonPatch, ObjectPatch, apply_merge, plain_json_patch};

/// A review whose objects are still text; most webhooks decode them once, into their own type.
#[derive(Clone, Debug)]
pub struct AdmissionReview {
    /// The version of the review; the response has the same.
    pub version: ReviewVersion,
    /// The request.
    pub request: ReviewRequest,
}

/// The versions of reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum ReviewVersion {
    /// The current version.
    #[serde(rename = "admission.k8s.io/v1")]
    V1,
    /// The old version.
    #[serde(rename = "admission.k8s.io/v1beta1")]
    V1Beta1,
}

/// The request in a review.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRequest {
    /// The UID of the review.
    pub uid: String,
    /// The kind of the object.
    #[serde(default)]
    pub kind: GroupVersionKind,
    /// The resource of the object.
    pub resource: GroupVersionResource,
    /// The subresource, if any.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// The name of the object; none if the API server generates it.
    #[serde(default)]
    pub name: Option<String>,
    /// The namespace of the object, if it has one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// The operation.
    pub operation: Operation,
    /// The user who made the request.
    pub user_info: UserInfo,
    /// The new object.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// The old object.
    #[serde(default)]
    pub old_object: Option<Box<RawValue>>,
    /// The options of the request.
    #[serde(default)]
    pub options: Option<Box<RawValue>>,
    /// Whether the request is a dry run.
    #[serde(default)]
    pub dry_run: Option<bool>,
}

/// A kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct GroupVersionResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural.
    pub resource: String,
}

/// The user who made a request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    pub username: String,
    /// The UID, which differs for another user of the same name.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Additional values of the authentication.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The response to a review.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewAnswer {
    /// The denial; the request is allowed if none.
    pub denial: Option<Denial>,
    /// Warnings to the user, also for allowed requests.
    pub warnings: Vec<String>,
    /// The change of the object.
    pub patch: Option<JsonPatch>,
}

/// The denial of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The message to the user.
    pub message: String,
    /// The HTTP status for the user.
    pub code: u16,
}

/// The reason why a text is not a valid review.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON, or a field is missing.
    #[error("this is not an AdmissionReview: {0}")]
    Json(#[source] serde_json::Error),
    /// It is another kind of object.
    #[error("expected an AdmissionReview, got kind `{0}`")]
    Kind(String),
    /// It has no request.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// The request has no object.
    #[error("the request has neither an object nor an old object")]
    NoObject,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    api_version: ReviewVersion,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(default)]
    request: Option<ReviewRequest>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerEnvelope<'a> {
    api_version: ReviewVersion,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<ReviewStatus<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

#[derive(Serialize)]
struct ReviewStatus<'a> {
    message: &'a str,
    code: u16,
}

// === impl AdmissionReview ===

impl AdmissionReview {
    /// Reads a review.
    ///
    /// # Errors
    /// If the text is not a valid review; the message is for the sender.
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let envelope: Envelope<'_> = serde_json::from_slice(text).map_err(Malformed::Json)?;
        if envelope.kind != "AdmissionReview" {
            return Err(Malformed::Kind(envelope.kind.into_owned()));
        }
        let mut request = envelope.request.ok_or(Malformed::NoRequest)?;
        request.drop_empty();
        if request.body().is_none() {
            return Err(Malformed::NoObject);
        }
        Ok(Self {
            version: envelope.api_version,
            request,
        })
    }

    /// The response as it is sent.
    #[must_use]
    pub fn answer(&self, answer: &ReviewAnswer) -> Vec<u8> {
        let patch = answer.patch.as_ref().filter(|_| answer.denial.is_none());
        let envelope = AnswerEnvelope {
            api_version: self.version,
            kind: "AdmissionReview",
            response: Response {
                uid: &self.request.uid,
                allowed: answer.denial.is_none(),
                status: answer.denial.as_ref().map(|denial| ReviewStatus {
                    message: &denial.message,
                    code: denial.code,
                }),
                warnings: &answer.warnings,
                patch_type: patch.map(|_| "JSONPatch"),
                patch: patch.map(|patch| STANDARD.encode(patch.to_json().to_string())),
            },
        };
        serde_json::to_vec(&envelope).expect("text and numbers are always JSON")
    }
}

// === impl ReviewRequest ===

impl ReviewRequest {
    /// The new object, or the old one if it is being deleted.
    #[must_use]
    pub fn body(&self) -> Option<&RawValue> {
        self.object.as_deref().or(self.old_object.as_deref())
    }

    /// The subresource, if any.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.sub_resource.as_deref()
    }

    /// Replaces nulls and empty texts, which the API server sends for absent values.
    fn drop_empty(&mut self) {
        for text in [&mut self.sub_resource, &mut self.name, &mut self.namespace] {
            text.take_if(|text| text.is_empty());
        }
        for object in [&mut self.object, &mut self.old_object, &mut self.options] {
            object.take_if(|object| object.get() == "null");
        }
    }
}

// === impl ReviewAnswer ===

impl ReviewAnswer {
    /// The request is allowed, without warnings or changes.
    #[must_use]
    pub fn allowed() -> Self {
        Self {
            denial: None,
            warnings: Vec::new(),
            patch: None,
        }
    }
}

/// The JSON patch that applies a patch to the object as it was sent; none if it stays the same.
#[must_use]
pub fn mutation(sent: &Value, patch: ObjectPatch) -> Option<JsonPatch> {
    let requests = patch.into_requests(false);
    let mut changed = sent.clone();
    if !changed.is_object() {
        changed = Value::Object(Map::new());
    }
    if let Some(merge) = requests.body {
        apply_merge(&mut changed, &merge);
    }
    for edit in &requests.edits {
        edit(&mut changed);
    }
    plain_json_patch(sent, &changed)
}

#[cfg(test)]
mod tests;
