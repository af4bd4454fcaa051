//! The errors of handlers, which decide whether and when a handler is called again.

mod admission;

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

pub(crate) use self::admission::AdmissionErrorKind;
pub use self::admission::{AdmissionError, AdmissionResult};

/// The result of one call of a handler. `T` is what the runtime writes to `status.<handler id>`.
pub type HandlerResult<T = ()> = Result<T, HandlerError>;

/// The reason for which a handler did not succeed.
///
/// It deliberately does not implement [`std::error::Error`]: so `?` and `into` convert every error
/// into it, also boxed errors and strings. Such an error is *arbitrary*: the error mode of the
/// handler decides whether it is temporary or permanent.
#[derive(Debug)]
pub struct HandlerError {
    pub(crate) kind: HandlerErrorKind,
    pub(crate) message: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of an error, which decides whether and when the handler is called again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerErrorKind {
    Temporary {
        delay: Duration,
    },
    Permanent,
    Arbitrary,
    /// Sub-handlers are not done, which is not a failure.
    Waiting {
        delay: Option<Duration>,
    },
}

impl HandlerError {
    /// The default delay after a temporary error.
    pub const DEFAULT_DELAY: Duration = Duration::from_secs(60);

    /// A temporary error: the handler is called again after a minute.
    #[must_use]
    pub fn temporary(message: impl Into<String>) -> Self {
        Self::temporary_after(Self::DEFAULT_DELAY, message)
    }

    /// A temporary error: the handler is called again after this delay.
    #[must_use]
    pub fn temporary_after(delay: Duration, message: impl Into<String>) -> Self {
        Self {
            kind: HandlerErrorKind::Temporary { delay },
            message: message.into(),
            source: None,
        }
    }

    /// A permanent error: the handler has failed and is not called again for this change.
    #[must_use]
    pub fn permanent(message: impl Into<String>) -> Self {
        Self {
            kind: HandlerErrorKind::Permanent,
            message: message.into(),
            source: None,
        }
    }

    /// Whether it asks for another call, as [`temporary`](Self::temporary) does. An error that `?`
    /// converted does not: the `errors` of the handler decide about it.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self.kind, HandlerErrorKind::Temporary { .. })
    }

    /// Whether it forbids another call, as [`permanent`](Self::permanent) does.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        self.kind == HandlerErrorKind::Permanent
    }

    /// The delay of a temporary error.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        match self.kind {
            HandlerErrorKind::Temporary { delay } => Some(delay),
            _ => None,
        }
    }

    /// Keeps the error that caused this one: its text and that of its own causes follow the
    /// message in logs and events.
    #[must_use]
    pub fn because(self, cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let cause = cause.into();
        Self {
            message: format!("{}: {}", self.message, with_causes(&*cause)),
            source: Some(cause),
            ..self
        }
    }

    /// The error that caused this one, with its own causes; an error that `?` converted is its own
    /// cause.
    #[must_use]
    pub fn source(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.source.as_deref()
    }

    pub(crate) fn waiting(delay: Option<Duration>) -> Self {
        Self {
            kind: HandlerErrorKind::Waiting { delay },
            message: "sub-handlers are not done".to_owned(),
            source: None,
        }
    }

    pub(crate) fn arbitrary(message: impl Into<String>) -> Self {
        Self {
            kind: HandlerErrorKind::Arbitrary,
            message: message.into(),
            source: None,
        }
    }
}

impl fmt::Display for HandlerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let error = error.into();
        Self {
            kind: HandlerErrorKind::Arbitrary,
            message: with_causes(&*error),
            source: Some(error),
        }
    }
}

/// The error and its causes in one line, without causes that the text already contains.
pub(crate) fn with_causes(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("the volume is not ready")]
    struct NotReady(#[source] std::num::ParseIntError);

    #[test]
    fn any_error_becomes_an_arbitrary_one_that_names_its_causes() {
        fn handler() -> HandlerResult {
            "x".parse::<u8>().map_err(NotReady)?;
            Ok(())
        }
        let error = handler().unwrap_err();
        assert_eq!(error.kind, HandlerErrorKind::Arbitrary);
        assert_eq!(
            error.to_string(),
            "the volume is not ready: invalid digit found in string"
        );
    }

    #[test]
    fn the_cause_of_an_error_is_kept() {
        let cause = NotReady("x".parse::<u8>().unwrap_err());
        let error = HandlerError::permanent("no volume").because(cause);
        assert_eq!(error.kind, HandlerErrorKind::Permanent);
        assert_eq!(
            error.to_string(),
            "no volume: the volume is not ready: invalid digit found in string"
        );
        let source = error.source().expect("the cause is kept");
        assert!(source.is::<NotReady>());
        assert!(source.source().is_some());
        let converted = HandlerError::from(fmt::Error);
        assert!(converted.source().is_some_and(|it| it.is::<fmt::Error>()));
        assert!(HandlerError::temporary("later").source().is_none());
    }

    #[test]
    fn a_unit_test_learns_what_an_error_asks_for() {
        let minute = HandlerError::temporary("later");
        assert!(minute.is_temporary() && !minute.is_permanent());
        assert_eq!(minute.delay(), Some(HandlerError::DEFAULT_DELAY));
        let delay = Duration::from_secs(5);
        let soon = HandlerError::temporary_after(delay, "soon").because(fmt::Error);
        assert_eq!(soon.delay(), Some(delay));
        let never = HandlerError::permanent("never");
        assert!(never.is_permanent() && !never.is_temporary());
        let other = HandlerError::from(fmt::Error);
        assert!(!other.is_temporary() && !other.is_permanent());
        assert_eq!((never.delay(), other.delay()), (None, None));
    }

    #[test]
    fn a_text_and_a_boxed_error_are_arbitrary_errors_too() {
        fn handler(boxed: Box<dyn StdError + Send + Sync>) -> HandlerResult {
            Err(boxed)?
        }
        let texts: [HandlerError; 2] = ["oops".into(), format!("{} oops", 2).into()];
        let boxed = handler("x".parse::<u8>().unwrap_err().into()).unwrap_err();
        for (error, text) in
            texts
                .iter()
                .chain([&boxed])
                .zip(["oops", "2 oops", "invalid digit found in string"])
        {
            assert_eq!(error.kind, HandlerErrorKind::Arbitrary);
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn a_temporary_error_has_a_delay() {
        let delay = Duration::from_secs(5);
        let error = HandlerError::temporary_after(delay, "no").because(fmt::Error);
        assert_eq!(error.kind, HandlerErrorKind::Temporary { delay });
        let delay = HandlerError::DEFAULT_DELAY;
        let error = HandlerError::temporary("no");
        assert_eq!(error.kind, HandlerErrorKind::Temporary { delay });
    }
}
