//! The troubles: each begins, lasts for a while, and undoes itself.

mod access;
mod clock_jump;
mod control_plane;
mod deletion;
mod network;
mod rival;
mod writers;

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use kopf_tests::TestFailure;
use tokio::time::sleep;

use crate::stage::Stage;

/// The pause before a step of a trouble is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// The sorts of trouble beside `kill -9`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Trouble {
    /// The operator is stopped (SIGSTOP), and continues
    Suspend,
    /// The API server is killed and started again
    RestartApiServer,
    /// The API server is stopped, and continues
    SuspendApiServer,
    /// etcd is killed and started again
    RestartEtcd,
    /// etcd is stopped, and continues
    SuspendEtcd,
    /// etcd forgets all old revisions
    Compact,
    /// All old resource versions expire: etcd forgets them, and the API server starts again
    ExpireVersions,
    /// All connections of the operator are closed
    CutConnections,
    /// Watches end in the middle of an event
    TruncateWatches,
    /// Requests are answered with 429
    TooManyRequests,
    /// Requests are answered with 500
    ServerErrors,
    /// Requests take a second
    SlowAnswers,
    /// The API server executes writes, and their answers are lost
    LostAnswers,
    /// Requests are answered with 401
    RejectCredentials,
    /// The token of the operator ends, and a new one is in its file after a while
    RotateToken,
    /// The wall clock of the operator jumps; needs libfaketime
    JumpClock,
    /// The operator loses its permissions, and gets them back
    RevokePermissions,
    /// Another client stamps the objects
    ConflictingWriters,
    /// Another client writes garbage into the annotations of the operator
    GarbageAnnotations,
    /// The kind is deleted with all objects, and defined again
    RecreateDefinition,
    /// A namespace is deleted with all objects, and created again
    RecreateNamespace,
    /// Many objects are created and deleted at once
    Crowd,
    /// An object is nearly as large as the API server accepts
    LargeObject,
    /// A second operator with a higher priority takes over for a while
    Rival,
}

// === impl Trouble ===

impl Trouble {
    pub(crate) const ALL: [Self; 24] = [
        Self::Suspend,
        Self::RestartApiServer,
        Self::SuspendApiServer,
        Self::RestartEtcd,
        Self::SuspendEtcd,
        Self::Compact,
        Self::ExpireVersions,
        Self::CutConnections,
        Self::TruncateWatches,
        Self::TooManyRequests,
        Self::ServerErrors,
        Self::SlowAnswers,
        Self::LostAnswers,
        Self::RejectCredentials,
        Self::RotateToken,
        Self::JumpClock,
        Self::RevokePermissions,
        Self::ConflictingWriters,
        Self::GarbageAnnotations,
        Self::RecreateDefinition,
        Self::RecreateNamespace,
        Self::Crowd,
        Self::LargeObject,
        Self::Rival,
    ];

    /// Makes the trouble and undoes it.
    pub(crate) async fn make(self, stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
        match self {
            Self::Suspend => {
                let all: Vec<_> = stage.slots().collect();
                let number = usize::try_from(lasts.as_millis()).unwrap_or(0) % all.len();
                all[number].suspend(lasts).await
            }
            Self::RestartApiServer
            | Self::SuspendApiServer
            | Self::RestartEtcd
            | Self::SuspendEtcd
            | Self::Compact
            | Self::ExpireVersions => control_plane::make(self, stage, lasts).await,
            Self::CutConnections
            | Self::TruncateWatches
            | Self::TooManyRequests
            | Self::ServerErrors
            | Self::SlowAnswers
            | Self::LostAnswers
            | Self::RejectCredentials => {
                network::make(self, stage, lasts).await;
                Ok(())
            }
            Self::RotateToken => access::rotate_token(stage, lasts).await,
            Self::JumpClock => clock_jump::jump(stage, lasts).await,
            Self::RevokePermissions => access::revoke(stage, lasts).await,
            Self::ConflictingWriters => {
                writers::stamp(stage, lasts).await;
                Ok(())
            }
            Self::GarbageAnnotations => writers::scramble(stage, lasts).await,
            Self::RecreateDefinition => deletion::definition(stage).await,
            Self::RecreateNamespace => deletion::namespace(stage).await,
            Self::Crowd => deletion::crowd(stage, lasts).await,
            Self::LargeObject => deletion::large(stage, lasts).await,
            Self::Rival => rival::fight(stage, lasts).await,
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_possible_value() {
            Some(value) => f.pad(value.get_name()),
            None => Ok(()),
        }
    }
}

/// Repeats a step until it is done: troubles meet each other.
async fn until_done(mut step: impl AsyncFnMut() -> bool) {
    while !step().await {
        sleep(RETRY_PAUSE).await;
    }
}
