//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::indices::NatsUrls;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};
use crate::generated::nats_example::NatsExample;

const PAUSE: Duration = Duration::from_secs(1);

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_blob_storage(
        &self,
        cx: &mut ChangeContext<KopfExample>,
    ) -> HandlerResult<Value> {
        info!("step 1: upload blob!");
        Ok(json!({"name": format!("blob-of-{}", cx.name())}))
    }

    /// Called when a KopfExample is created.
    async fn create_nats(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        let Some(blob) = cx.raw()["status"]["create_blob_storage"]["name"].as_str() else {
            return Err(HandlerError::temporary_after(
                PAUSE,
                "step 2 waits for the blob",
            ));
        };
        info!("{blob} is created");
        info!("step 2: creating nats!");
        let mut nats = NatsExample::default();
        nats.spec.blob = Some(blob.to_owned());
        cx.apply(nats).await?;
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn connect(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult<Value> {
        let Some(url) = cx.index(NatsUrls).first(cx.uid()) else {
            return Err(HandlerError::temporary_after(
                PAUSE,
                "step 3 waits for nats",
            ));
        };
        info!("nats is created: {url}");
        info!("step 3: do something else!");
        Ok(json!({"nats": url}))
    }
}

#[cfg(test)]
mod tests {
    use kopf_runtime::TestContext;

    use super::*;

    #[tokio::test]
    async fn each_step_waits_for_the_one_before_it() {
        let tenant = json!({"metadata": {"name": "one", "uid": "1"}, "spec": {}});
        let mut cx = TestContext::new(&tenant).change();
        let operator = Operator::default();
        assert!(operator.create_nats(&mut cx).await.is_err());
        assert!(operator.connect(&mut cx).await.is_err());
        let entries = [("1".to_owned(), "nats://one:4222".to_owned())];
        let mut cx = TestContext::new(&tenant).index(NatsUrls, entries).change();
        let result = operator.connect(&mut cx).await.unwrap();
        assert_eq!(result, json!({"nats": "nats://one:4222"}));
    }
}
