//! The context of field handlers.

use std::ops::{Deref, DerefMut};

use kopf_core::object::diff::OldValue;
use serde::de::DeserializeOwned;

use super::Old;
use super::change::{ChangeContext, ChangeInputs};

/// The context of a field handler: a change of one field of an object. It has all methods of
/// [`ChangeContext`].
pub struct FieldContext<K, F> {
    change: ChangeContext<K>,
    old: Old<F>,
    new: Option<F>,
}

impl<K, F> FieldContext<K, F> {
    /// The value of the field when the object was handled last.
    pub fn old_value(&self) -> Old<&F> {
        self.old.as_ref()
    }

    /// The value of the field now.
    pub fn new_value(&self) -> Option<&F> {
        self.new.as_ref()
    }
}

impl<K: DeserializeOwned, F: DeserializeOwned> FieldContext<K, F> {
    /// The context of one call, for the field of its handler.
    pub(crate) fn new(inputs: ChangeInputs) -> Result<Self, serde_json::Error> {
        let object = K::deserialize(&*inputs.situation.body)?;
        let change = &inputs.situation.change;
        let new = inputs.field.resolve(change.new.as_value());
        let new = new.map(F::deserialize).transpose()?;
        let old = match change.old.value_at(&inputs.field, &change.new) {
            OldValue::Absent => Old::Absent,
            // The stored state may be older than the type: a value that does not decode is unknown.
            OldValue::Known(value) => F::deserialize(value).map_or(Old::Unknown, Old::Known),
            OldValue::Unknown => Old::Unknown,
        };
        let change = ChangeContext::new(object, inputs);
        Ok(Self { change, old, new })
    }
}

impl<K, F> Deref for FieldContext<K, F> {
    type Target = ChangeContext<K>;

    fn deref(&self) -> &ChangeContext<K> {
        &self.change
    }
}

impl<K, F> DerefMut for FieldContext<K, F> {
    fn deref_mut(&mut self) -> &mut ChangeContext<K> {
        &mut self.change
    }
}
