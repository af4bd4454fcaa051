//! Handlers for Exhibit objects.

use std::collections::BTreeMap;

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::exhibit::{Exhibit, ExhibitHandlers, IndexFn};

impl ExhibitHandlers for Operator {
    /// Called when an Exhibit is created.
    async fn create_fn(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("create_fn was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit is changed.
    async fn update_fn(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("update_fn was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit is being deleted.
    async fn delete_fn(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("delete_fn was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit already exists when the operator starts.
    async fn resume_fn(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("resume_fn was called: {}", cx.reason());
        Ok(())
    }

    /// Called when `metadata.labels` of an Exhibit changes.
    async fn field_fn(
        &self,
        cx: &mut FieldContext<Exhibit, BTreeMap<String, String>>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "field_fn was called");
        Ok(())
    }

    /// Called for every watch event of an Exhibit.
    async fn event_fn(&self, cx: &mut EventContext<Exhibit>) -> HandlerResult {
        info!("event_fn was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called for an Exhibit every 1m.
    async fn timer_fn(&self, cx: &mut TimerContext<Exhibit>) -> HandlerResult {
        info!("timer_fn was called: {}", cx.name());
        Ok(())
    }

    /// Runs for an Exhibit as long as the object exists.
    async fn daemon_fn(&self, cx: &mut DaemonContext<Exhibit>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("daemon_fn is running");
        }
        Ok(())
    }

    /// Returns the keys and values of an Exhibit in the index `index_fn`.
    async fn index_fn(&self, cx: &mut IndexContext<Exhibit>) -> IndexResult<IndexFn> {
        debug!("index_fn was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Decides whether an Exhibit may be stored.
    async fn validate_fn(&self, cx: &mut ValidationContext<Exhibit>) -> AdmissionResult {
        info!("validate_fn was called: {}", cx.operation());
        Ok(())
    }

    /// Can change an Exhibit before it is stored.
    async fn mutate_fn(&self, cx: &mut MutationContext<Exhibit>) -> AdmissionResult {
        info!("mutate_fn was called: {}", cx.operation());
        Ok(())
    }
}
