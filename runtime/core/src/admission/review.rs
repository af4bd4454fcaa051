//! Reviews as the API server sends them, and the answers to them.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use super::Operation;
use crate::object::patch::{JsonPatch, ObjectPatch, apply_merge, plain_json_patch};

/// A review whose objects are still text: most webhooks read them once, into their own type.
#[derive(Clone, Debug)]
pub struct AdmissionReview {
    /// The version of the review, which the answer repeats.
    pub version: ReviewVersion,
    /// What is asked.
    pub request: ReviewRequest,
}

/// The versions of reviews.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub enum ReviewVersion {
    /// The present one.
    #[serde(rename = "admission.k8s.io/v1")]
    V1,
    /// The one before.
    #[serde(rename = "admission.k8s.io/v1beta1")]
    V1Beta1,
}

/// What the API server asks about.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewRequest {
    /// The identity of the question.
    pub uid: String,
    /// What the object is.
    #[serde(default)]
    pub kind: GroupVersionKind,
    /// Under which resource it is known.
    pub resource: GroupVersionResource,
    /// Which subresource is concerned, if any.
    #[serde(default)]
    pub sub_resource: Option<String>,
    /// The name of the object; empty if the server makes one up.
    #[serde(default)]
    pub name: Option<String>,
    /// The namespace of the object, if it lives in one.
    #[serde(default)]
    pub namespace: Option<String>,
    /// What is about to happen.
    pub operation: Operation,
    /// Who wants it.
    pub user_info: UserInfo,
    /// The object as it would be.
    #[serde(default)]
    pub object: Option<Box<RawValue>>,
    /// The object as it is.
    #[serde(default)]
    pub old_object: Option<Box<RawValue>>,
    /// The options of the request.
    #[serde(default)]
    pub options: Option<Box<RawValue>>,
    /// Whether nothing will be stored.
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

/// Who made a request to the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct UserInfo {
    /// The name.
    pub username: String,
    /// The identity that a namesake does not share.
    pub uid: String,
    /// The groups.
    pub groups: Vec<String>,
    /// Whatever else the authentication tells.
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The answer to a review.
#[derive(Clone, Debug, PartialEq)]
pub struct ReviewAnswer {
    /// Why the request is refused; it is allowed if there is no reason.
    pub denial: Option<Denial>,
    /// What the person who made the request is told in any case.
    pub warnings: Vec<String>,
    /// How the object is changed.
    pub patch: Option<JsonPatch>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// What is wrong.
    pub message: String,
    /// The HTTP status that the person gets.
    pub code: u16,
}

/// Why a text is not a review.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// It is not JSON, or lacks something.
    #[error("this is not an AdmissionReview: {0}")]
    Json(#[source] serde_json::Error),
    /// It is another kind of object.
    #[error("expected an AdmissionReview, got kind `{0}`")]
    Kind(String),
    /// There is no question in it.
    #[error("the AdmissionReview has no request")]
    NoRequest,
    /// Nothing to look at.
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
    /// If it is not one; the message tells the sender why.
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

    /// The answer as it is sent.
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
    /// The object as it will be, or as it was if it is being deleted.
    #[must_use]
    pub fn body(&self) -> Option<&RawValue> {
        self.object.as_deref().or(self.old_object.as_deref())
    }

    /// The subresource, if one is concerned.
    #[must_use]
    pub fn subresource(&self) -> Option<&str> {
        self.sub_resource.as_deref()
    }

    /// The API server writes null and the empty text for nothing.
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
    /// Yes, without any more words.
    #[must_use]
    pub fn allowed() -> Self {
        Self {
            denial: None,
            warnings: Vec::new(),
            patch: None,
        }
    }
}

/// What a patch makes of an object exactly as it was sent; none if it stays as it is.
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
