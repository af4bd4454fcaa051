//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{FieldByName, KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("{} is handled by an embedded operator", cx.name());
        Ok(())
    }

    /// Returns the keys and values of a KopfExample in the index `field_by_name`.
    async fn field_by_name(&self, cx: &mut IndexContext<KopfExample>) -> IndexResult<FieldByName> {
        let field = cx.raw()["spec"]["field"].as_str().unwrap_or_default();
        Ok(vec![(cx.name().to_owned(), field.to_owned())])
    }
}
