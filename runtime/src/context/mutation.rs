//! The context of mutating webhooks.

use std::ops::{Deref, DerefMut};

use serde_json::Value;

use super::draft::{DraftSlot, DraftSource, draft_accessors};
use super::validation::ValidationContext;
use crate::handler::patch::Patch;

/// The context of a mutating webhook. It has all methods of [`ValidationContext`].
pub struct MutationContext<K> {
    validation: ValidationContext<K>,
    pub(crate) draft: DraftSlot<K>,
    pub(crate) patch: Patch,
}

impl<K> MutationContext<K> {
    pub(crate) fn new(validation: ValidationContext<K>) -> Self {
        Self {
            validation,
            draft: DraftSlot::default(),
            patch: Patch::default(),
        }
    }
}

draft_accessors!(MutationContext, patch, validation);

impl<K> DraftSource for ValidationContext<K> {
    fn drafted(&self) -> Value {
        self.raw().clone()
    }

    fn generation(&self) -> Option<i64> {
        self.raw()["metadata"]["generation"].as_i64()
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
