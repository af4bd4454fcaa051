//! What happens to a Pod.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{Everybody, Pod, PodHandlers, PodsByClaim};

/// What is remembered of a Pod while the operator runs; all of its handlers share it.
#[derive(Debug, Default)]
pub struct PodMemo {}

impl Memo<Pod> for PodMemo {}

impl PodHandlers for Operator {
    type Memo = PodMemo;

    /// Called for everything that is seen of a Pod.
    async fn pod_seen(&self, cx: &mut EventContext<Pod>) -> HandlerResult {
        info!("pod_seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called when `status.phase` of a Pod changes.
    async fn phase_changed(&self, cx: &mut FieldContext<Pod, String>) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "phase_changed was called");
        Ok(())
    }

    /// Called for a Pod every 1m.
    async fn look_at_pod(&self, cx: &mut TimerContext<Pod>) -> HandlerResult {
        info!("look_at_pod was called: {}", cx.name());
        Ok(())
    }

    /// Runs beside a Pod as long as it is there.
    async fn follow_pod(&self, cx: &mut DaemonContext<Pod>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_pod is running");
        }
        Ok(())
    }

    /// Says by which keys of `pods_by_claim` a Pod with `status.phase` is found, and what is found.
    async fn pods_by_claim(&self, cx: &mut IndexContext<Pod>) -> IndexResult<PodsByClaim> {
        debug!("pods_by_claim was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Says by which keys of `everybody` a Pod is found, and what is found.
    async fn everybody(&self, cx: &mut IndexContext<Pod>) -> IndexResult<Everybody> {
        debug!("everybody was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether the label `size` is one for `pods_by_claim`.
    fn is_label(&self, _value: Option<&str>) -> bool {
        true
    }

    /// Whether `status.phase` is one for `pods_by_claim`.
    fn is_active(&self, _value: Option<&String>) -> bool {
        true
    }
}
