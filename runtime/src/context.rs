//! What handlers are given: the object, why they are called, and what they may do about it.

pub(crate) mod background;
pub(crate) mod change;
pub(crate) mod daemon;
pub(crate) mod event;
pub(crate) mod field;
pub mod hierarchy;
pub(crate) mod index;
pub(crate) mod mutation;
mod recorder;
pub(crate) mod stop;
mod subhandler;
pub(crate) mod timer;
pub(crate) mod validation;

/// A value before the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Old<T> {
    /// There was none.
    Absent,
    /// It was this.
    Known(T),
    /// It was something else than now, but only its fingerprint was kept.
    Unknown,
}

impl<T> Old<T> {
    /// The value, if there was one and it was kept.
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
