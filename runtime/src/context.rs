//! The contexts that handlers take: the object, the cause of the call, and what a handler can do.

mod accessors;
mod apply;
pub(crate) mod background;
mod blocking;
pub(crate) mod change;
pub(crate) mod child;
pub(crate) mod condition;
pub(crate) mod daemon;
pub(crate) mod draft;
pub(crate) mod event;
pub(crate) mod field;
pub(crate) mod filter;
pub mod hierarchy;
pub(crate) mod index;
pub(crate) mod memo_context;
pub(crate) mod mutation;
pub(crate) mod object_context;
pub mod predicate;
pub(crate) mod reconcile;
pub(crate) mod stop;
mod subhandler;
pub(crate) mod timer;
pub(crate) mod validation;

/// A value before a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old<T> {
    /// There was no value.
    Absent,
    /// The value.
    Known(T),
    /// There was another value than now, of which only a hash was stored.
    Unknown,
}

impl<T> Old<T> {
    /// The value, if there was one and it was stored.
    pub fn known(self) -> Option<T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown => None,
        }
    }

    /// The same for a borrowed value.
    pub fn as_ref(&self) -> Old<&T> {
        match self {
            Self::Absent => Old::Absent,
            Self::Known(value) => Old::Known(value),
            Self::Unknown => Old::Unknown,
        }
    }
}
