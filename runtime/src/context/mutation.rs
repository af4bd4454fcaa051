//! The context of webhooks that change objects before they are stored.

use std::ops::{Deref, DerefMut};

use super::validation::Validation;
use crate::handler::patch::Patch;

/// One request to the API server, as a mutating webhook sees it; everything of [`Validation`] is
/// there, too.
pub struct Mutation<K> {
    validation: Validation<K>,
    pub(crate) patch: Patch,
}

impl<K> Mutation<K> {
    pub(crate) fn new(validation: Validation<K>) -> Self {
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

impl<K> Deref for Mutation<K> {
    type Target = Validation<K>;

    fn deref(&self) -> &Validation<K> {
        &self.validation
    }
}

impl<K> DerefMut for Mutation<K> {
    fn deref_mut(&mut self) -> &mut Validation<K> {
        &mut self.validation
    }
}
