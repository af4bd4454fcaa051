//! The error of a test.

use std::fmt;

use crate::handler::error::with_causes;

/// The result of a test.
pub type TestResult = Result<(), TestFailure>;

/// The message of a failed test; `?` converts any error into it.
pub struct TestFailure {
    message: String,
}

impl TestFailure {
    /// A failure with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }

    pub(super) fn no_cluster(reason: &str) -> Self {
        Self::new(format!(
            "there is no cluster to test on: {reason}\n\n\
             Set KUBECONFIG to a cluster in which the test may create namespaces and definitions, \
             and delete them,\nfor example:\n\n    \
             kind create cluster --kubeconfig /tmp/kubeconfig\n    \
             KUBECONFIG=/tmp/kubeconfig cargo test --features cluster\n"
        ))
    }

    pub(super) fn with_log(self, log: &str) -> Self {
        const LINES: usize = 40;
        let skipped = log.lines().count().saturating_sub(LINES);
        let last: Vec<&str> = log.lines().skip(skipped).collect();
        let log = last.join("\n");
        Self::new(format!(
            "{}\n\nThe log of the operator:\n{log}\n",
            self.message
        ))
    }
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for TestFailure {
    fn from(error: E) -> Self {
        Self::new(with_causes(&error))
    }
}
