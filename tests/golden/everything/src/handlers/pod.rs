//! What happens to a Pod.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{Pod, PodHandlers};

/// What is remembered of a Pod while the operator runs; all of its handlers share it.
#[derive(Debug, Default)]
pub struct PodMemo {}

impl Memo<Pod> for PodMemo {}

impl PodHandlers for Operator {
    type Memo = PodMemo;

    /// Called for everything that is seen of a Pod.
    async fn pod_seen(&self, cx: &mut Seen<Pod>) -> HandlerResult {
        info!("pod_seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called when `status.phase` of a Pod changes.
    async fn phase_changed(&self, cx: &mut FieldChange<Pod, String>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "phase_changed was called");
        Ok(())
    }

    /// Called for a Pod every 1m.
    async fn look_at_pod(&self, cx: &mut Tick<Pod>) -> HandlerResult {
        info!("look_at_pod was called: {}", cx.name());
        Ok(())
    }

    /// Runs beside a Pod as long as it is there.
    async fn follow_pod(&self, cx: &mut Daemon<Pod>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_pod is running");
        }
        Ok(())
    }
}
