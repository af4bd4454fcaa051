//! The context of field handlers.

use std::ops::{Deref, DerefMut};

use super::Old;
use super::change::ChangeContext;

/// The context of a field handler: a change of one field of an object. It has all methods of
/// [`ChangeContext`].
pub struct FieldContext<K, F> {
    change: ChangeContext<K>,
    old: Old<F>,
    new: Option<F>,
}

impl<K, F> FieldContext<K, F> {
    pub(crate) fn new(change: ChangeContext<K>, old: Old<F>, new: Option<F>) -> Self {
        Self { change, old, new }
    }

    /// The value of the field when the object was handled last.
    pub fn old_value(&self) -> Old<&F> {
        self.old.as_ref()
    }

    /// The value of the field now.
    pub fn new_value(&self) -> Option<&F> {
        self.new.as_ref()
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
