//! The draft of a handler: its object in its own type, to be changed.

use std::sync::{Mutex, MutexGuard, PoisonError};

use kopf_core::object::draft::draft_patch;
use kopf_core::object::patch::{apply_merge, merge_between};
use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tracing::warn;

use crate::handler::patch::Patch;
use crate::process::execute::invoke::CallEnd;

const STATUS: &str = "status";

/// The draft of a context; there is none until the handler asks for it.
///
/// Behind a lock only so that [`settle`](Self::settle) takes a shared borrow of the context, as
/// `cx.patch()` has it; it is never contended.
pub(crate) struct DraftSlot<K>(Mutex<Option<Box<Draft<K>>>>);

struct Draft<K> {
    /// The object, with all that the patch changes so far.
    origin: Value,
    /// What the type made of it.
    before: Value,
    object: K,
    /// A default status that the draft got because the object has none. Alone, it is not written.
    empty_status: Option<Value>,
    /// Only of kinds whose handlers use drafts, so that other kinds need not compile it.
    encode: fn(&K) -> Result<Value, serde_json::Error>,
}

// === impl DraftSlot ===

impl<K> DraftSlot<K> {
    /// Moves what the handler changed into the patch. The next draft begins with that.
    pub(crate) fn settle(&self, patch: &Patch) -> Result<(), serde_json::Error> {
        let Some(draft) = self.lock().take() else {
            return Ok(());
        };
        if let Some(change) = draft.change()? {
            patch.lock().merge(change);
        }
        Ok(())
    }

    /// As [`settle`](Self::settle), at the end of a call, which fails if the draft is not JSON.
    pub(crate) fn settle_at(&self, end: CallEnd, patch: &Patch) -> CallEnd {
        match (end, self.settle(patch)) {
            (CallEnd::Returned(Ok(())), Err(error)) => CallEnd::Returned(Err(error.into())),
            (end, _) => end,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Draft<K>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Serialize + DeserializeOwned> DraftSlot<K> {
    /// The draft: the object with all that the patch changes so far.
    pub(super) fn open(&mut self, patch: &Patch, object: impl FnOnce() -> Value) -> &mut K {
        &mut self.draft(patch, object).object
    }

    /// The status of the draft; the default one if the object has none.
    pub(super) fn status(&mut self, patch: &Patch, object: impl FnOnce() -> Value) -> &mut K::Status
    where
        K: HasStatus<Status: Default>,
    {
        let draft = self.draft(patch, object);
        if draft.object.status().is_none() {
            *draft.object.status_mut() = Some(K::Status::default());
            let encoded = (draft.encode)(&draft.object).expect("a default status is JSON");
            draft.empty_status = encoded.get(STATUS).cloned();
        }
        draft.object.status_mut().get_or_insert_default()
    }

    fn draft(&mut self, patch: &Patch, object: impl FnOnce() -> Value) -> &mut Draft<K> {
        let slot = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        slot.get_or_insert_with(|| Box::new(Draft::of(object(), patch)))
    }
}

impl<K> Default for DraftSlot<K> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

// === impl Draft ===

impl<K> Draft<K> {
    fn change(&self) -> Result<Option<Value>, serde_json::Error> {
        let mut after = (self.encode)(&self.object)?;
        if let (Some(empty), Some(fields)) = (&self.empty_status, after.as_object_mut())
            && fields.get(STATUS) == Some(empty)
        {
            fields.shift_remove(STATUS);
        }
        Ok(draft_patch(&self.origin, &self.before, &after))
    }
}

impl<K: Serialize + DeserializeOwned> Draft<K> {
    fn of(object: Value, patch: &Patch) -> Self {
        let writes = patch.lock();
        let changes = writes.merge_patch();
        if changes.is_empty() {
            return Self::decode(object)
                .unwrap_or_else(|error| panic!("the object does not fit its type: {error}"));
        }
        let mut changed = object.clone();
        apply_merge(&mut changed, &Value::Object(changes.clone()));
        Self::decode(changed).unwrap_or_else(|error| {
            warn!("the draft lacks the changes of the patch, which do not fit the type: {error}");
            Self::decode(object)
                .unwrap_or_else(|error| panic!("the object does not fit its type: {error}"))
        })
    }

    fn decode(origin: Value) -> Result<Self, serde_json::Error> {
        let object = K::deserialize(&origin)?;
        let encode = |object: &K| serde_json::to_value(object);
        Ok(Self {
            before: encode(&object)?,
            origin,
            object,
            empty_status: None,
            encode,
        })
    }
}

/// All changes of an object as one merge patch.
pub(super) fn changes(patch: &Patch, object: &Value) -> Value {
    let requests = patch.lock().clone().into_requests(false);
    let mut changed = object.clone();
    if let Some(merge) = &requests.body {
        apply_merge(&mut changed, merge);
    }
    for edit in &requests.edits {
        edit(&mut changed);
    }
    merge_between(object, &changed)
}

/// An edit of the newest state in its type, as one of its JSON. A state that does not fit the type
/// is not edited.
pub(super) fn typed_edit<K: Serialize + DeserializeOwned>(
    edit: impl Fn(&mut K) + Send + Sync + 'static,
) -> impl Fn(&mut Value) + Send + Sync + 'static {
    move |object| {
        let edited = Draft::<K>::decode(object.clone()).and_then(|mut draft| {
            edit(&mut draft.object);
            draft.change()
        });
        match edited {
            Ok(Some(change)) => apply_merge(object, &change),
            Ok(None) => {}
            Err(error) => warn!("the object is not edited, it does not fit its type: {error}"),
        }
    }
}

/// The inputs of a context, as the draft reads them.
pub(super) trait DraftSource {
    /// The object as the draft begins with it.
    fn drafted(&self) -> Value;

    /// The generation of that object.
    fn generation(&self) -> Option<i64> {
        self.drafted()["metadata"]["generation"].as_i64()
    }
}

/// The methods of contexts whose handlers can change the object. The field `draft` is a
/// [`DraftSlot`], `$patch` a [`Patch`], and `$source` a [`DraftSource`].
macro_rules! draft_accessors {
    ($context:ident, $($patch:ident).+, $($source:ident).+) => {
        impl<K> $context<K> {
            /// Changes of the object as JSON, for what its type cannot express. They are written
            /// together with those of the [draft](Self::draft); if both change one field, the
            /// later change counts.
            ///
            /// # Panics
            /// If the draft cannot be turned into JSON.
            pub fn patch(&self) -> &$crate::Patch {
                let patch = &self.$($patch).+;
                let settled = self.draft.settle(patch);
                settled.expect("the draft can be turned into JSON");
                patch
            }

            /// All changes so far as one merge patch, with those of edits: what the runtime writes
            /// when the attempt has ended. Unit tests compare it.
            ///
            /// # Panics
            /// As [`patch`](Self::patch).
            pub fn changes(&self) -> serde_json::Value {
                let object = $crate::context::draft::DraftSource::drafted(&self.$($source).+);
                $crate::context::draft::changes(self.patch(), &object)
            }

            /// Sets a condition in the status, where its schema has `conditions` as Kubernetes
            /// defines them: `cx.set_condition("Ready", true, "Bound", "the claim is bound")`.
            ///
            /// The transition time changes only with the status of the condition. The observed
            /// generation is that of the object which this context has. What other clients do to
            /// the conditions is kept, and nothing is sent if the object has the condition.
            pub fn set_condition(
                &self,
                condition_type: &str,
                status: impl Into<$crate::ConditionStatus>,
                reason: &str,
                message: impl Into<String>,
            ) where
                K: $crate::HasConditions,
            {
                let generation = if K::OBSERVED_GENERATION { self.generation() } else { None };
                let (status, message) = (status.into(), message.into());
                let patch = &self.$($patch).+;
                $crate::context::condition::set(
                    patch, generation, condition_type, status, reason, message,
                );
            }

            /// Sets the condition `Ready` to the readiness of a child, or of several:
            /// `cx.set_ready_condition(&readiness::of(&deployment))`.
            pub fn set_ready_condition(&self, readiness: &$crate::readiness::Readiness)
            where
                K: $crate::HasConditions,
            {
                let (status, reason) = (readiness.is_ready(), readiness.reason());
                self.set_condition("Ready", status, reason, readiness.message());
            }

            /// The generation of the object, which the API server counts up with every change of
            /// the spec.
            pub fn generation(&self) -> Option<i64> {
                $crate::context::draft::DraftSource::generation(&self.$($source).+)
            }
        }

        impl<K: serde::Serialize + serde::de::DeserializeOwned> $context<K> {
            /// The object to be changed. What the handler changes in it is written as the smallest
            /// merge patch when the attempt has ended, even with an error.
            ///
            /// It is decoded on first use, with all changes so far. What its type does not know
            /// stays as it is. A merge patch replaces a list as a whole: for a list that other
            /// clients change too, use [`edit`](Self::edit).
            ///
            /// # Panics
            /// If the object does not fit its type any more.
            pub fn draft(&mut self) -> &mut K {
                let object = || $crate::context::draft::DraftSource::drafted(&self.$($source).+);
                self.draft.open(&self.$($patch).+, object)
            }

            /// The spec of the [draft](Self::draft).
            ///
            /// # Panics
            /// As [`draft`](Self::draft).
            pub fn spec_mut(&mut self) -> &mut K::Spec
            where
                K: kube::core::object::HasSpec,
            {
                self.draft().spec_mut()
            }

            /// The status of the [draft](Self::draft). If the object has none, it is the default
            /// one, which is written once the handler has changed it.
            ///
            /// # Panics
            /// As [`draft`](Self::draft).
            pub fn status_mut(&mut self) -> &mut K::Status
            where
                K: kube::core::object::HasStatus<Status: Default>,
            {
                let object = || $crate::context::draft::DraftSource::drafted(&self.$($source).+);
                self.draft.status(&self.$($patch).+, object)
            }

            /// The metadata of the [draft](Self::draft): change labels, annotations and owners.
            ///
            /// # Panics
            /// As [`draft`](Self::draft).
            pub fn metadata_mut(
                &mut self,
            ) -> &mut k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta
            where
                K: kube::Resource,
            {
                self.draft().meta_mut()
            }

            /// Edits the newest state of the object, for lists that other clients change too.
            ///
            /// After a conflict, the edit is repeated on the newer state. It is made after all
            /// changes of the draft and the patch.
            pub fn edit(&self, edit: impl Fn(&mut K) + Send + Sync + 'static)
            where
                K: 'static,
            {
                let patch = &self.$($patch).+;
                patch.edit($crate::context::draft::typed_edit(edit));
            }
        }
    };
}

pub(super) use draft_accessors;
