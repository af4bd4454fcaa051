//! The errors of webhooks: denials and failures.

use std::error::Error as StdError;
use std::fmt;

use super::{HandlerError, with_causes};

/// The result of one call of a webhook: `Ok` allows the request.
pub type AdmissionResult = Result<(), AdmissionError>;

/// The reason for which a webhook does not allow a request.
///
/// It deliberately does not implement [`std::error::Error`]: so `?` and `into` convert every error
/// into it, also boxed errors and strings. Such an error is a failure of the webhook and not a
/// denial.
#[derive(Debug)]
pub struct AdmissionError {
    pub(crate) kind: AdmissionErrorKind,
    pub(crate) message: String,
}

/// A denial by the webhook, or its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AdmissionErrorKind {
    /// The webhook denied the request.
    Denied { code: u16 },
    /// The webhook failed.
    Failed,
}

impl AdmissionError {
    /// The default HTTP status code of a denial: forbidden.
    pub const DEFAULT_CODE: u16 = 403;

    /// A denial of the request; the API server returns the message to the user.
    #[must_use]
    pub fn denied(message: impl Into<String>) -> Self {
        Self::denied_with(Self::DEFAULT_CODE, message)
    }

    /// A denial with another HTTP status code.
    #[must_use]
    pub fn denied_with(code: u16, message: impl Into<String>) -> Self {
        Self {
            kind: AdmissionErrorKind::Denied { code },
            message: message.into(),
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
    fn any_error_but_a_denial_is_a_failure_of_the_webhook() {
        fn review() -> AdmissionResult {
            "x".parse::<u8>()?;
            Ok(())
        }
        assert_eq!(review().unwrap_err().kind, AdmissionErrorKind::Failed);
        let denied = AdmissionError::denied("no");
        assert_eq!(denied.kind, AdmissionErrorKind::Denied { code: 403 });
        let denied = AdmissionError::denied_with(499, "no");
        assert_eq!(denied.kind, AdmissionErrorKind::Denied { code: 499 });
        let failed = AdmissionError::from(HandlerError::permanent("no"));
        assert_eq!(failed.kind, AdmissionErrorKind::Failed);
    }
}
