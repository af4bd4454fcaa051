//! Wall clocks that jump: forward and backward, by seconds and by hours.

use std::time::Duration;

use kopf_tests::TestFailure;
use tokio::time::sleep;

use crate::stage::Stage;

/// The offsets in seconds; the length of the trouble chooses one.
const OFFSETS: [i64; 6] = [3600, -3600, 30, -30, 86_400 * 400, -7];

/// Sets the clock of the operator for a while, then to the real time.
pub(super) async fn jump(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let Some(clock) = &stage.clock else {
        return Ok(());
    };
    let number = usize::try_from(lasts.as_millis()).unwrap_or(0);
    clock.set(OFFSETS[number % OFFSETS.len()])?;
    sleep(lasts).await;
    clock.set(0)?;
    Ok(())
}
