//! Admission webhooks of others: they deny writes, or change what is written.

use serde_json::{Map, Value, json};

use super::answer::Failure;
use super::kind::KindId;
use super::object_view::{metadata, set};
use super::request::Endpoint;

/// A webhook for writes to one kind.
#[derive(Debug, Clone)]
pub struct AdmissionRule {
    /// The name, as in messages.
    pub name: String,
    /// The part of a write at which it is called.
    pub stage: AdmissionStage,
    /// The kind.
    pub kind: KindId,
    /// The endpoint whose writes are reviewed.
    pub endpoint: Endpoint,
    /// Whether creations are reviewed, too, and not only updates.
    pub on_create: bool,
    /// The reaction.
    pub action: AdmissionAction,
}

/// The part of a write at which a webhook is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionStage {
    /// Before the version and the fields are checked; only here it can change the write.
    Mutating,
    /// When only the storage is left.
    Validating,
}

/// The reaction of a webhook to a write.
#[derive(Debug, Clone)]
pub enum AdmissionAction {
    /// Denies the write.
    Deny {
        /// The HTTP status; 400 if the webhook gives none.
        code: Option<u16>,
        /// The message.
        message: String,
    },
    /// The webhook does not answer, and its failure policy is `Fail`.
    Fail,
    /// Removes the annotations whose names begin so.
    StripAnnotations(String),
    /// Gives the annotations whose names begin so the values that they had before.
    RevertAnnotations(String),
    /// Removes a finalizer.
    StripFinalizer(String),
    /// Adds a finalizer that the object had before.
    RestoreFinalizer(String),
    /// Gives a top-level field the value that it had before.
    RevertField(String),
    /// Gives an annotation another value at each write.
    Stamp(String),
}

/// The state before the write, and what is written.
pub(crate) struct ReviewedWrite<'a> {
    pub(crate) old: Option<&'a Value>,
    pub(crate) new: &'a mut Value,
    /// Different at each write.
    pub(crate) number: u64,
}

// === impl AdmissionRule ===

impl AdmissionRule {
    pub(crate) fn applies(&self, kind: KindId, endpoint: Endpoint, creates: bool) -> bool {
        self.kind == kind && self.endpoint == endpoint && (self.on_create || !creates)
    }

    /// The failure of a write that is denied.
    pub(crate) fn verdict(&self) -> Result<(), Failure> {
        let name = &self.name;
        match &self.action {
            AdmissionAction::Deny { code, message } => {
                let message = format!("admission webhook \"{name}\" denied the request: {message}");
                Err(Failure::new(code.unwrap_or(400), "", message))
            }
            AdmissionAction::Fail => {
                let message = format!(
                    "Internal error occurred: failed calling webhook \"{name}\": failed to call \
                     webhook: context deadline exceeded"
                );
                Err(Failure::new(500, "InternalError", message))
            }
            _ => Ok(()),
        }
    }
}

// === impl AdmissionAction ===

impl AdmissionAction {
    /// Changes what is written.
    pub(crate) fn mutate(&self, write: &mut ReviewedWrite<'_>) {
        match self {
            Self::Deny { .. } | Self::Fail => {}
            Self::StripAnnotations(prefix) => {
                edit_annotations(write.new, |it| {
                    it.retain(|name, _| !name.starts_with(prefix))
                });
            }
            Self::RevertAnnotations(prefix) => {
                let old = write.old.and_then(metadata);
                let old = old.and_then(|it| it.get("annotations")?.as_object());
                let old = old.cloned().unwrap_or_default();
                edit_annotations(write.new, |it| {
                    it.retain(|name, _| !name.starts_with(prefix));
                    let former = old.into_iter();
                    it.extend(former.filter(|(name, _)| name.starts_with(prefix)));
                });
            }
            Self::StripFinalizer(name) => edit_finalizers(write.new, |it| it.retain(|f| f != name)),
            Self::RestoreFinalizer(name) => {
                let had = write
                    .old
                    .is_some_and(|old| super::metadata::finalizers(old).any(|it| it == name));
                edit_finalizers(write.new, |it| {
                    if had && !it.iter().any(|f| f == name) {
                        it.push(name.clone());
                    }
                });
            }
            Self::RevertField(name) => {
                let former = write.old.and_then(|old| old.get(name)).cloned();
                if let (Some(old), Some(new)) = (write.old, write.new.as_object_mut()) {
                    match former.filter(|_| old.is_object()) {
                        Some(former) => new.insert(name.clone(), former),
                        None => new.shift_remove(name),
                    };
                }
            }
            Self::Stamp(name) => {
                let stamp = write.number.to_string();
                edit_annotations(write.new, |it| {
                    it.insert(name.clone(), json!(stamp));
                });
            }
        }
    }
}

fn edit_annotations(object: &mut Value, edit: impl FnOnce(&mut Map<String, Value>)) {
    let annotations = metadata(object).and_then(|it| it.get("annotations")?.as_object());
    let mut annotations = annotations.cloned().unwrap_or_default();
    edit(&mut annotations);
    let value = (!annotations.is_empty()).then_some(Value::Object(annotations));
    set(object, "annotations", value);
}

fn edit_finalizers(object: &mut Value, edit: impl FnOnce(&mut Vec<String>)) {
    let mut finalizers: Vec<String> = super::metadata::finalizers(object)
        .map(str::to_owned)
        .collect();
    edit(&mut finalizers);
    let value = (!finalizers.is_empty()).then(|| json!(finalizers));
    set(object, "finalizers", value);
}
