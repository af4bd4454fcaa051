//! The context of mutating webhooks.

use std::ops::{Deref, DerefMut};

use super::validation::ValidationContext;
use crate::handler::patch::Patch;

/// The context of a mutating webhook. It has all methods of [`ValidationContext`].
pub struct MutationContext<K> {
    validation: ValidationContext<K>,
    pub(crate) patch: Patch,
}

impl<K> MutationContext<K> {
    pub(crate) fn new(validation: ValidationContext<K>) -> Self {
        Self {
            validation,
            patch: Patch::default(),
        }
    }

    /// Changes of the object, which the API server applies before it stores the object.
    pub fn patch(&self) -> &Patch {
        &self.patch
    }
}

impl<K> Deref for MutationContext<K> {
    type Target = ValidationContext<K>;

    fn deref(&self) -> &ValidationContext<K> {
        &self.validation
    }
}

impl<K> DerefMut for MutationContext<K> {
    fn deref_mut(&mut self) -> &mut ValidationContext<K> {
        &mut self.validation
    }
}
