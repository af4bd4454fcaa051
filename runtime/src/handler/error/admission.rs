//! What a webhook returns: yes, or why not.

use std::error::Error as StdError;
use std::fmt;

use super::{HandlerError, with_causes};

/// The result of one review by a webhook.
pub type AdmissionResult = Result<(), AdmissionError>;

/// Why a webhook does not let a request pass.
///
/// It does not implement [`std::error::Error`] on purpose: so `?` and `into` turn every error into
/// it, boxed ones and plain texts too. Such an error is a failure of the webhook and not a verdict on
/// the object.
#[derive(Debug)]
pub struct AdmissionError {
    pub(crate) kind: AdmissionErrorKind,
    pub(crate) message: String,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionErrorKind {
    /// The request's.
    Denied { code: u16 },
    /// The webhook's.
    Failed,
}

impl AdmissionError {
    /// The HTTP status of a denial, unless told otherwise: forbidden.
    pub const DEFAULT_CODE: u16 = 403;

    /// The request must not pass; the person who made it is told why.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self {
            kind: AdmissionErrorKind::Denied {
                code: Self::DEFAULT_CODE,
            },
            message: message.into(),
        }
    }

    /// A denial with another HTTP status.
    #[must_use]
    pub fn with_code(self, code: u16) -> Self {
        Self {
            kind: AdmissionErrorKind::Denied { code },
            ..self
        }
    }
}

impl fmt::Display for AdmissionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for AdmissionError {
    fn from(error: E) -> Self {
        Self {
            kind: AdmissionErrorKind::Failed,
            message: with_causes(&*error.into()),
        }
    }
}

impl From<HandlerError> for AdmissionError {
    fn from(error: HandlerError) -> Self {
        Self {
            kind: AdmissionErrorKind::Failed,
            message: error.message,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denial_is_a_verdict_and_any_other_error_a_failure() {
        fn review() -> AdmissionResult {
            "x".parse::<u8>()?;
            Ok(())
        }
        assert_eq!(review().unwrap_err().kind, AdmissionErrorKind::Failed);
        let denied = AdmissionError::denied("no");
        assert_eq!(denied.kind, AdmissionErrorKind::Denied { code: 403 });
        let denied = denied.with_code(499);
        assert_eq!(denied.kind, AdmissionErrorKind::Denied { code: 499 });
        let failed = AdmissionError::from(HandlerError::permanent("no"));
        assert_eq!(failed.kind, AdmissionErrorKind::Failed);
    }
}
