//! What happens to a KopfExample.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn create_fn(&self, cx: &mut Change<KopfExample>) -> HandlerResult {
        for item in cx.object().spec.items.clone().unwrap_or_default() {
            cx.sub(SubHandler::new(&item), |cx| Box::pin(create_item(cx, item)));
        }
        Ok(())
    }
}

async fn create_item(cx: &mut Change<KopfExample>, item: String) -> HandlerResult {
    info!("=== Handling creation for {item}. ===");
    if item.starts_with("slow") && cx.retry() < 2 {
        return Err(HandlerError::temporary("Not yet.").after(Duration::from_secs(1)));
    }
    Ok(())
}
