//! The reasons for which an operator does not run, or ends before it is asked to stop.

use kopf_core::election;
use kopf_core::handler::registry;

use crate::client::authentication::CredentialsExhausted;
use crate::inspect::InspectError;
use crate::operator::hook::HookFailure;
use crate::settings::InvalidSetting;
use crate::task::TaskEnd;

/// The reason for which an operator could not run, or ended before it was asked to stop.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The declarations of the handlers of a kind contradict each other.
    #[error("invalid handler declarations for {kind}")]
    Declaration {
        /// The kind or the selection.
        kind: String,
        /// The contradiction.
        #[source]
        source: registry::Error,
    },
    /// The progress records of two declarations of one kind would overwrite each other.
    #[error("{kind} is declared twice: put all of its handlers into one declaration")]
    DeclaredTwice {
        /// The kind.
        kind: &'static str,
    },
    /// The progress records of two handlers would overwrite each other on objects that match both
    /// declarations.
    #[error("{one} and {other} may match the same objects, and both have a handler `{id}`")]
    SharedId {
        /// One declaration.
        one: String,
        /// The other declaration.
        other: String,
        /// The id that both of them have.
        id: String,
    },
    /// The operator cannot serve its admission webhooks, or cannot register them.
    #[error("the admission webhooks do not work")]
    Admission(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The operator cannot serve its health endpoint.
    #[error("the health endpoint cannot be served")]
    Health(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The operator cannot serve its page.
    #[error("the page cannot be served")]
    Page(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A setting has a value with which no operator works.
    #[error("invalid settings")]
    Settings(#[source] InvalidSetting),
    /// The durations of the leader election contradict each other.
    #[error("invalid leader election settings")]
    LeaderElection(#[source] election::Error),
    /// The commands `freeze` and `resume` could not change the peering.
    #[error("the peering cannot be used: {0}")]
    Peering(String),
    /// A startup handler has failed permanently; no request was sent to the cluster.
    #[error("the operator could not start")]
    Startup(#[source] HookFailure),
    /// A cleanup handler has failed permanently, or ran out of time.
    #[error("the operator could not clean up")]
    Cleanup(#[source] HookFailure),
    /// An essential task ended, which is a defect of the runtime.
    #[error("the operator cannot continue: {0}")]
    Ended(String),
    /// The command `crd --apply` could not apply a CustomResourceDefinition.
    #[error("the CustomResourceDefinition {} was not applied", name.as_deref().unwrap_or("in the program"))]
    Definition {
        /// Its name, if it could be read.
        name: Option<String>,
        /// The reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The commands `inspect` and `unstick` could not read or change objects.
    #[error("the objects cannot be inspected")]
    Inspection(#[source] InspectError),
    /// There is no cluster, or no credentials that it accepts.
    #[error(transparent)]
    Login(CredentialsExhausted),
    /// The operating system refused to start threads or to deliver signals.
    #[error("the process could not be set up")]
    Process(#[source] std::io::Error),
}

impl Error {
    pub(super) fn ended(ended: &TaskEnd) -> Self {
        Self::Ended(ended.to_string())
    }
}

/// The message of an error and of its causes, in one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
