//! The context of handlers of children: a child, what happened to it, and its owner.

use std::ops::{Deref, DerefMut};

use super::event::{EventContext, EventInputs};

/// The context of a handler of children. The owner is the object of this context, which has all
/// methods of [`EventContext`].
pub struct ChildContext<K, T> {
    owner: EventContext<K>,
    child: T,
    change: ChildChange,
}

/// What happened to a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChildChange {
    /// It was found, created or changed.
    Applied,
    /// It was deleted.
    Deleted,
}

impl<K, T> ChildContext<K, T> {
    pub(crate) fn new(owner: K, inputs: EventInputs, child: T, change: ChildChange) -> Self {
        let owner = EventContext::new(owner, inputs);
        Self {
            owner,
            child,
            change,
        }
    }

    pub(crate) fn into_owner(self) -> EventContext<K> {
        self.owner
    }

    /// The child; its last known state if it was deleted.
    pub fn child(&self) -> &T {
        &self.child
    }

    /// What happened to the child.
    pub fn event_type(&self) -> ChildChange {
        self.change
    }
}

impl<K, T> Deref for ChildContext<K, T> {
    type Target = EventContext<K>;

    fn deref(&self) -> &EventContext<K> {
        &self.owner
    }
}

impl<K, T> DerefMut for ChildContext<K, T> {
    fn deref_mut(&mut self) -> &mut EventContext<K> {
        &mut self.owner
    }
}
