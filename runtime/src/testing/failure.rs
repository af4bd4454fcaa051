//! Why a test failed, as a person reads it.

use std::fmt;

/// What a test returns.
pub type TestResult = Result<(), Failure>;

/// The reason of a failure; made of any error by `?`.
pub struct Failure {
    story: String,
}

impl Failure {
    /// A failure for this reason.
    pub fn new(story: impl Into<String>) -> Self {
        Self {
            story: story.into(),
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
        Self::new(format!("{}\n\nThe operator said:\n{log}\n", self.story))
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.story)
    }
}

impl<E: std::error::Error> From<E> for Failure {
    fn from(error: E) -> Self {
        let mut story = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            story.push_str(": ");
            story.push_str(&error.to_string());
            cause = error.source();
        }
        Self { story }
    }
}
