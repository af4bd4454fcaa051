//! The context of webhooks that change objects before they are stored.

use std::ops::{Deref, DerefMut};

use super::validation::ValidationContext;
use crate::handler::patch::Patch;

/// One request to the API server, as a mutating webhook sees it; everything of [`ValidationContext`] is
/// there, too.
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

    /// How the object is to be changed before it is stored.
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
