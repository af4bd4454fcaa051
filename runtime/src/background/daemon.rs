//! The loop of a daemon from its start to its end: attempts, with delays between them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::progress::record::Record;
use tracing::debug;

use super::attempt::{AttemptEnd, InstanceRunner};
use super::instance::InstanceEndOnDrop;

/// Runs a daemon until it has ended or was stopped.
pub(super) async fn run(runner: InstanceRunner, delay: Duration, alive: Arc<InstanceEndOnDrop>) {
    let stop = runner.instance.stop();
    if !stop.sleep(delay).await {
        return;
    }
    let mut record = Record::begin(Reason::Noop, Timestamp::now());
    loop {
        let kept = Arc::clone(&alive);
        match runner.attempt(&mut record, kept).await {
            AttemptEnd::Retry(delay) => {
                if !stop.sleep(delay).await {
                    return;
                }
            }
            // A daemon that was asked to stop may be started again later.
            AttemptEnd::Succeeded | AttemptEnd::Failed if stop.is_set() => return,
            AttemptEnd::Succeeded | AttemptEnd::Failed => {
                debug!(
                    "{} has exited on its own and is not started again.",
                    runner.instance
                );
                return runner.instance.mark_finished();
            }
            AttemptEnd::Interrupted => return,
        }
    }
}
