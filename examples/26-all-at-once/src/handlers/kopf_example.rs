//! Handlers for KopfExample objects.

use std::sync::atomic::{AtomicU32, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{
    KopfExample, KopfExampleHandlers, KopfExampleReconcile, NamesByField,
};

/// The in-memory state of a KopfExample while the operator runs: how often it was updated.
#[derive(Debug, Default)]
pub struct ChangeCount {
    updates: AtomicU32,
}

impl Memo<KopfExample> for ChangeCount {}

impl KopfExampleHandlers for Operator {
    type Memo = ChangeCount;

    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult<Value> {
        info!("=> And here we are! Creating: {:?}", cx.object().spec);
        cx.info("Created", "The operator knows this object now.");
        Ok(json!({"message": "hello world"}))
    }

    /// Called when a KopfExample is created.
    async fn create_items(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        for item in cx.object().spec.items.clone().unwrap_or_default() {
            cx.sub(SubHandler::new(&item), move |_| {
                info!("=> Item {item}");
                Box::pin(async { Ok(()) })
            });
        }
        Ok(())
    }

    /// Called when a KopfExample is created, changed or found at the start, and when its ConfigMap is
    /// changed or gone.
    async fn keep_config(&self, cx: &mut KopfExampleReconcile) -> HandlerResult {
        let field = cx.object().spec.field.clone().unwrap_or_default();
        let config = ConfigMap {
            data: Some([("field".to_owned(), field)].into()),
            ..ConfigMap::default()
        };
        cx.apply(config).await?;
        Ok(())
    }

    /// Called when a KopfExample is changed.
    async fn update_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        let updates = self.memo(cx).updates.fetch_add(1, Ordering::Relaxed) + 1;
        info!("=> Update {updates}: {}", cx.diff());
        cx.patch().set("status.updates", updates);
        Ok(())
    }

    /// Called when `spec.field` of a KopfExample changes.
    async fn field_fn(&self, cx: &mut FieldContext<KopfExample, String>) -> HandlerResult {
        if cx.retry() == 0 {
            return Err("the first attempt fails".into());
        }
        let (old, new) = (cx.old_value().known(), cx.new_value());
        info!(
            "=> The field: {old:?} -> {new:?}, attempt {}",
            cx.retry() + 1
        );
        Ok(())
    }

    /// Called when a KopfExample already exists when the operator starts.
    async fn resume_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("=> {} was there before", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is being deleted.
    async fn delete_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("=> {} is deleted", cx.name());
        Ok(())
    }

    /// Called for every watch event of a KopfExample.
    async fn event_fn(&self, cx: &mut EventContext<KopfExample>) -> HandlerResult {
        info!("=> Event {}", cx.event_type());
        Ok(())
    }

    /// Runs for a KopfExample as long as the object exists.
    async fn daemon_fn(&self, cx: &mut DaemonContext<KopfExample>) -> HandlerResult {
        info!("=> The daemon starts");
        cx.stop().wait().await;
        info!("=> The daemon stops: {}", cx.stop().reasons());
        Ok(())
    }

    /// Called for a KopfExample every 1s.
    async fn timer_fn(&self, cx: &mut TimerContext<KopfExample>) -> HandlerResult {
        let field = cx.object().spec.field.clone().unwrap_or_default();
        let alike = cx.index(NamesByField).get(&field).len();
        info!("=> The timer: {alike} with the field {field:?}");
        Ok(())
    }

    /// Returns the keys and values of a KopfExample in the index `names_by_field`.
    async fn names_by_field(
        &self,
        cx: &mut IndexContext<KopfExample>,
    ) -> IndexResult<NamesByField> {
        let field = cx.object().spec.field.clone().unwrap_or_default();
        Ok(vec![(field, cx.name().to_owned())])
    }

    /// Whether the filter of `update_fn` accepts a KopfExample: whatever a handler sees, a filter sees.
    fn sees_everything(&self, cx: &FilterContext<KopfExample>) -> bool {
        let field = cx.object().spec.field.as_deref().unwrap_or_default();
        let former = cx.old().known().and_then(|old| old.spec.field.as_deref());
        cx.reason() == Some(Reason::Update)
            && cx.diff().to_string().contains("spec.field")
            && former != Some(field)
            && cx.raw()["spec"]["field"] == field
            && cx.label("somelabel") == Some("somevalue")
            && cx.annotation("someannotation").is_some()
            && cx.namespace().is_some()
            && cx.uid().is_some()
            && cx.resource().plural == "kopfexamples"
            && cx
                .index(NamesByField)
                .get(field)
                .iter()
                .any(|it| cx.name() == Some(it))
            && self.memo(cx).updates.load(Ordering::Relaxed) < 100
    }
}
