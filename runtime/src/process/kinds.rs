//! All kinds that an operator handles or has handled, by their index.

use std::sync::{Arc, PoisonError, RwLock};

use super::HandledKind;
use crate::watch::KindIndex;

/// The kinds; new ones are added at the end, and none is removed.
#[derive(Default)]
pub(crate) struct HandledKinds {
    /// Written when a kind is added, read for each event; never held across an await.
    known: RwLock<Vec<Arc<HandledKind>>>,
}

impl HandledKinds {
    /// Adds a kind; none if there are too many.
    pub(crate) fn add(&self, kind: HandledKind) -> Option<KindIndex> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let index = u16::try_from(known.len()).ok().map(KindIndex)?;
        known.push(Arc::new(kind));
        Some(index)
    }

    /// The first kind that satisfies a condition.
    pub(crate) fn find(
        &self,
        is_wanted: impl Fn(&HandledKind) -> bool,
    ) -> Option<Arc<HandledKind>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.iter().find(|kind| is_wanted(kind)).cloned()
    }

    /// The kind with this index.
    ///
    /// # Panics
    /// If it did not come from [`HandledKinds::add`].
    pub(crate) fn get(&self, index: KindIndex) -> Arc<HandledKind> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known[usize::from(index.0)])
    }
}
