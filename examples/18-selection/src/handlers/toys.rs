//! Handlers for objects of `Toys`.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::toys::{DynamicObject, ToysByKind, ToysHandlers};

impl ToysHandlers for Operator {
    /// Called for every watch event of an object of `Toys`.
    async fn toy_seen(&self, cx: &mut EventContext<DynamicObject>) -> HandlerResult {
        let kind = &cx.resource().kind;
        let names = cx.index(ToysByKind).get(kind.as_str());
        info!(
            "{} {kind} {}; there are {}",
            cx.event_type(),
            cx.name(),
            names.len()
        );
        Ok(())
    }

    /// Called when an object of `Toys` is created or is changed.
    async fn toy_changed(&self, cx: &mut ChangeContext<DynamicObject>) -> HandlerResult {
        let spec = &cx.object().data["spec"];
        info!("{} of a {}: {spec}", cx.reason(), cx.resource().singular);
        Ok(())
    }

    /// Returns the keys and values of an object of `Toys` in the index `toys_by_kind`.
    async fn toys_by_kind(&self, cx: &mut IndexContext<DynamicObject>) -> IndexResult<ToysByKind> {
        let kind = cx.resource().kind.clone();
        Ok(vec![(kind, cx.name().to_owned())])
    }
}
