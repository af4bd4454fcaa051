//! Why a test failed, as a person reads it.

use std::fmt;

/// What a test returns.
pub type TestResult = Result<(), TestFailure>;

/// The reason of a failure; made of any error by `?`.
pub struct TestFailure {
    message: String,
}

impl TestFailure {
    /// A failure for this reason.
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
        Self::new(format!("{}\n\nThe operator said:\n{log}\n", self.message))
    }
}

impl fmt::Debug for TestFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: std::error::Error> From<E> for TestFailure {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message.push_str(": ");
            message.push_str(&error.to_string());
            cause = error.source();
        }
        Self { message }
    }
}
