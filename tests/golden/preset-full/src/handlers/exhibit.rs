//! Handlers for Exhibit objects.

use std::collections::BTreeMap;

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::exhibit::{ByLabel, Exhibit, ExhibitHandlers};

impl ExhibitHandlers for Operator {
    /// Called when an Exhibit is created.
    async fn create(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("create was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit is changed.
    async fn update(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("update was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit is being deleted.
    async fn delete(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("delete was called: {}", cx.reason());
        Ok(())
    }

    /// Called when an Exhibit already exists when the operator starts.
    async fn resume(&self, cx: &mut ChangeContext<Exhibit>) -> HandlerResult {
        info!("resume was called: {}", cx.reason());
        Ok(())
    }

    /// Called when `metadata.labels` of an Exhibit changes.
    async fn relabel(
        &self,
        cx: &mut FieldContext<Exhibit, BTreeMap<String, String>>,
    ) -> HandlerResult {
        info!(old = ?cx.old_value(), new = ?cx.new_value(), "relabel was called");
        Ok(())
    }

    /// Called for every watch event of an Exhibit.
    async fn observe(&self, cx: &mut EventContext<Exhibit>) -> HandlerResult {
        info!("observe was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Called for an Exhibit every 1m.
    async fn check(&self, cx: &mut TimerContext<Exhibit>) -> HandlerResult {
        info!("check was called: {}", cx.name());
        Ok(())
    }

    /// Runs for an Exhibit as long as the object exists.
    async fn monitor(&self, cx: &mut DaemonContext<Exhibit>) -> HandlerResult {
        while cx.sleep(Duration::from_secs(60)).await {
            info!("monitor is running");
        }
        Ok(())
    }

    /// Returns the keys and values of an Exhibit in the index `by_label`.
    async fn by_label(&self, cx: &mut IndexContext<Exhibit>) -> IndexResult<ByLabel> {
        debug!("by_label was called: {}", cx.name());
        Ok(Vec::new())
    }

    /// Decides whether an Exhibit may be stored.
    async fn validate(&self, cx: &mut ValidationContext<Exhibit>) -> AdmissionResult {
        info!("validate was called: {}", cx.operation());
        Ok(())
    }

    /// Can change an Exhibit before it is stored.
    async fn set_defaults(&self, cx: &mut MutationContext<Exhibit>) -> AdmissionResult {
        info!("set_defaults was called: {}", cx.operation());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use kopf_runtime::TestContext;

    use super::*;

    #[tokio::test]
    async fn the_object_is_left_as_it_is() {
        let object = json!({
            "spec": {}
        });
        let mut cx = TestContext::new(&object).change();
        Operator::default().create(&mut cx).await.unwrap();
        assert_eq!(cx.changes(), json!({}));
    }
}
