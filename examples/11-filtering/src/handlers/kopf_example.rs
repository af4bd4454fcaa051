//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn label_has_this_value(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Label is matching: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn label_is_there(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Label is present: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn label_is_not_there(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Label is absent: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn label_is_accepted(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Label is accepted by the predicate: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn label_has_another_value(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Label is not matching, never logged: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn annotation_has_this_value(
        &self,
        cx: &mut ChangeContext<KopfExample>,
    ) -> HandlerResult {
        info!("Annotation is matching: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn annotation_is_there(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Annotation is present: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn annotation_is_not_there(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Annotation is absent: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn annotation_is_accepted(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Annotation is accepted by the predicate: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn annotation_has_another_value(
        &self,
        cx: &mut ChangeContext<KopfExample>,
    ) -> HandlerResult {
        info!("Annotation is not matching, never logged: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn object_is_accepted(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Object is accepted by the condition: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn object_has_items(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("Object has items: {}", cx.name());
        Ok(())
    }

    /// Called when a KopfExample is created, with `spec.field`.
    async fn field_has_this_value(
        &self,
        cx: &mut FieldContext<KopfExample, String>,
    ) -> HandlerResult {
        info!("Field value is satisfied: {}", cx.name());
        Ok(())
    }

    /// Called when `spec.field` of a KopfExample is changed by an update.
    async fn field_changed_to_this_value(
        &self,
        cx: &mut FieldContext<KopfExample, String>,
    ) -> HandlerResult {
        info!("Field change is satisfied: {}", cx.name());
        Ok(())
    }

    /// Whether the filter of `label_is_accepted` accepts the label `somelabel`.
    /// Whether the filter of `annotation_is_accepted` accepts the annotation `someannotation`.
    fn starts_with_some(&self, value: Option<&str>, _cx: &FilterContext<KopfExample>) -> bool {
        value.is_some_and(|value| value.starts_with("some"))
    }

    /// Whether the filter of `object_is_accepted` accepts a KopfExample.
    fn has_a_field(&self, cx: &FilterContext<KopfExample>) -> bool {
        cx.object().spec.field.is_some()
    }

    /// Whether the filter of `object_has_items` accepts a KopfExample.
    fn has_items(&self, cx: &FilterContext<KopfExample>) -> bool {
        cx.object().spec.items.is_some()
    }
}
