//! All kinds that an operator handles or has handled, by their position.

use std::sync::{Arc, PoisonError, RwLock};

use super::HandledKind;
use crate::watch::KindIndex;

/// The kinds; those that come later are added behind the others, and none is taken away.
#[derive(Default)]
pub(crate) struct HandledKinds {
    /// Written when a kind comes, read for each sighting; never held across an await.
    known: RwLock<Vec<Arc<HandledKind>>>,
}

impl HandledKinds {
    /// Adds a kind; none if there have been too many already.
    pub(crate) fn add(&self, kind: HandledKind) -> Option<KindIndex> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let index = u16::try_from(known.len()).ok().map(KindIndex)?;
        known.push(Arc::new(kind));
        Some(index)
    }

    /// The kind at a position.
    ///
    /// # Panics
    /// If it did not come from [`Kinds::add`].
    pub(crate) fn get(&self, index: KindIndex) -> Arc<HandledKind> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known[usize::from(index.0)])
    }
}
