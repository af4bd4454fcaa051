//! Handlers for Pod objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::pod::{Everybody, Pod, PodHandlers, PodsByClaim};

/// The in-memory state of a Pod while the operator runs; its handlers share it.
#[derive(Debug, Default)]
pub struct PodMemo {}

impl Memo<Pod> for PodMemo {}

impl PodHandlers for Operator {
    type Memo = PodMemo;

    /// Called for every watch event of a Pod.
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

    /// Runs for a Pod as long as the object exists.
    async fn follow_pod(&self, cx: &mut DaemonContext<Pod>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("follow_pod is running");
        }
        Ok(())
    }

    /// Returns the keys and values of a Pod with `status.phase` in the index `pods_by_claim`.
    async fn pods_by_claim(
        &self,
        cx: &mut IndexContext<Pod>,
        _param: &str,
    ) -> IndexResult<PodsByClaim> {
        debug!("pods_by_claim was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Returns the keys and values of a Pod in the index `everybody`.
    async fn everybody(&self, cx: &mut IndexContext<Pod>) -> IndexResult<Everybody> {
        debug!("everybody was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Whether the filter of `pods_by_claim` accepts the label `size`.
    fn is_label(&self, _value: Option<&str>, _cx: &FilterContext<Pod>, _param: &str) -> bool {
        true
    }

    /// Whether the filter of `pods_by_claim` accepts `status.phase`.
    fn is_active(&self, _value: Option<&String>, _cx: &FilterContext<Pod>, _param: &str) -> bool {
        true
    }
}
