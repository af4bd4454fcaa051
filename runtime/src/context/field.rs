//! The context of handlers of one field.

use std::ops::{Deref, DerefMut};

use super::Old;
use super::change::Change;

/// A change of one field of an object; everything of [`Change`] is there, too.
pub struct FieldChange<K, F> {
    change: Change<K>,
    old: Old<F>,
    new: Option<F>,
}

impl<K, F> FieldChange<K, F> {
    pub(crate) fn new(change: Change<K>, old: Old<F>, new: Option<F>) -> Self {
        Self { change, old, new }
    }

    /// What the field held when the object was handled last.
    pub fn old_value(&self) -> Old<&F> {
        self.old.as_ref()
    }

    /// What the field holds now.
    pub fn new_value(&self) -> Option<&F> {
        self.new.as_ref()
    }
}

impl<K, F> Deref for FieldChange<K, F> {
    type Target = Change<K>;

    fn deref(&self) -> &Change<K> {
        &self.change
    }
}

impl<K, F> DerefMut for FieldChange<K, F> {
    fn deref_mut(&mut self) -> &mut Change<K> {
        &mut self.change
    }
}
