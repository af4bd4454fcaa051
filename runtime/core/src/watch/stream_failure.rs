//! The failures of lists and watches, and whether everything is to be listed again.

/// The end of a list or a watch by a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFailure {
    /// A list failed.
    List,
    /// A watch could not be opened.
    Open(FailureCause),
    /// The API server ended a watch with an error.
    InStream(FailureCause),
    /// The connection of a watch broke.
    Read,
    /// The API server closed a watch at once.
    ClosedAtOnce,
    /// A watch sent something that is no event.
    Decode,
}

/// The cause of a failure, as far as it decides about the next list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureCause {
    /// The version or the page is too old (410).
    Expired,
    /// The same request may succeed later.
    Transient,
    /// Anything else.
    Other,
}

// === impl StreamFailure ===

impl StreamFailure {
    /// Whether the resource version of the watch is in doubt.
    #[must_use]
    pub fn needs_list(self) -> bool {
        match self {
            Self::InStream(FailureCause::Expired) if planted!(ExpiredWatchNotRelisted) => false,
            Self::List if planted!(FailedListNotRepeated) => false,
            Self::List | Self::InStream(_) | Self::Decode => true,
            Self::Open(cause) => cause != FailureCause::Transient,
            Self::Read | Self::ClosedAtOnce => false,
        }
    }

    /// Whether the list is not complete, or too old for the watch that was to follow it.
    #[must_use]
    pub fn interrupts_list(self) -> bool {
        matches!(
            self,
            Self::List | Self::Open(FailureCause::Expired) | Self::InStream(FailureCause::Expired)
        )
    }
}
