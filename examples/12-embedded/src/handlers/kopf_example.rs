//! What happens to a KopfExample.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{FieldByName, KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("{} is handled inside of another program", cx.name());
        Ok(())
    }

    /// Says by which keys of `field_by_name` a KopfExample is found, and what is found.
    async fn field_by_name(&self, cx: &mut IndexContext<KopfExample>) -> IndexResult<FieldByName> {
        let field = cx.raw()["spec"]["field"].as_str().unwrap_or_default();
        Ok(vec![(cx.name().to_owned(), field.to_owned())])
    }
}
