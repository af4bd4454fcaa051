//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        info!("create was called: {}", cx.reason());
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
