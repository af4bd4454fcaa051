//! A second operator for the same objects, with a higher priority.

use std::time::Duration;

use kopf_tests::TestFailure;
use tokio::time::sleep;

use crate::stage::Stage;
use crate::workload::PEER_LIFETIME;

/// The time that a rival has at least: it needs some to start.
const LEAST: Duration = Duration::from_secs(3);

/// Starts the rival, and ends it by SIGTERM or, if it had little time, by SIGKILL.
pub(super) async fn fight(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    stage.rival.start().await?;
    sleep(LEAST + lasts).await;
    if lasts.as_millis().is_multiple_of(2) {
        stage.rival.terminate().await?;
    } else {
        stage.rival.abandon().await?;
        // The operator trusts the record of the dead one for so long.
        sleep(PEER_LIFETIME).await;
    }
    Ok(())
}
