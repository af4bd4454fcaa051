//! A daemon from its start to its end: attempts, with pauses between them.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::Reason;
use kopf_core::progress::record::Record;

use super::attempt::{Ended, Site};
use super::instance::LastOut;

/// Accompanies an object until the daemon has ended or was stopped.
pub(super) async fn accompany(site: Site, delay: Duration, alive: Arc<LastOut>) {
    let stop = site.run.stop();
    if !stop.sleep(delay).await {
        return;
    }
    let mut record = Record::begin(Reason::Noop, Timestamp::now());
    loop {
        let kept = Arc::clone(&alive);
        match site.attempt(&mut record, kept).await {
            Ended::Again(delay) => {
                if !stop.sleep(delay).await {
                    return;
                }
            }
            // Whoever was asked to stop may be asked to come back.
            Ended::Well | Ended::Badly if stop.is_set() => return,
            Ended::Well | Ended::Badly => return site.run.finish_for_good(),
            Ended::Interrupted => return,
        }
    }
}
