//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample already exists when the operator starts.
    async fn resume_fn_1(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("RESUMED 1st: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn create_fn_1(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("CREATED 1st: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample already exists when the operator starts.
    async fn resume_fn_2(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("RESUMED 2nd: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn create_fn_2(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("CREATED 2nd: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is changed.
    async fn update_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("UPDATED {}", cx.diff());
        Ok(())
    }

    /// Called when a KopfExample is being deleted.
    async fn delete_fn_1(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("DELETED 1st: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is being deleted.
    async fn delete_fn_2(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("DELETED 2nd: {}", cx.name());
        Ok(())
    }

    /// Called when `spec.field` of a KopfExample changes.
    async fn field_fn(&self, cx: &mut FieldContext<KopfExample, String>) -> HandlerResult {
        let (old, new) = (cx.old_value(), cx.new_value());
        info!("FIELD CHANGED: {old:?} -> {new:?}");
        Ok(())
    }
}
