//! The error type of tests: a message with its causes, and the line of the test.

use std::error::Error;
use std::fmt;
use std::panic::Location;

/// The return type of a test.
pub type TestResult = Result<(), TestFailure>;

/// The reason why a test failed.
///
/// Like a handler error, this deliberately does not implement [`std::error::Error`], so that `?`
/// turns any error into it and notes the line of that `?`.
pub struct TestFailure {
    message: String,
    at: &'static Location<'static>,
}

// === impl TestFailure ===

impl TestFailure {
    /// A failure with a message of its own.
    #[track_caller]
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            at: Location::caller(),
        }
    }

    /// An error with its causes, each of them once.
    pub fn describe(error: &dyn Error) -> String {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(source) = cause {
            let reason = source.to_string();
            if !text.contains(&reason) {
                text.push_str(": ");
                text.push_str(&reason);
            }
            cause = source.source();
        }
        text
    }

    /// A failure at the caller's line; [`TestFailure::with_message`] adds the message.
    #[track_caller]
    pub fn at_caller() -> Self {
        Self::new("")
    }

    /// The same failure with this message.
    #[must_use]
    pub fn with_message(self, message: String) -> Self {
        Self { message, ..self }
    }

    /// The message with its causes, without the line.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl<E: Error> From<E> for TestFailure {
    #[track_caller]
    fn from(error: E) -> Self {
        Self::new(Self::describe(&error))
    }
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  at {}", self.message, self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_its_cause_and_the_line_of_the_question_mark() {
        fn fails() -> TestResult {
            "x".parse::<u8>()?;
            Ok(())
        }
        let line = line!() - 3;

        let shown = format!("{:?}", fails().expect_err("x is no number"));

        assert!(shown.contains("invalid digit"), "{shown}");
        assert!(
            shown.contains(&format!("test_failure.rs:{line}:")),
            "{shown}"
        );
    }
}
