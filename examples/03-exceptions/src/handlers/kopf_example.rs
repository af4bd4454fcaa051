//! Handlers for KopfExample objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::kopf_example::{KopfExample, KopfExampleHandlers};

impl KopfExampleHandlers for Operator {
    /// Called when a KopfExample is created.
    async fn instant_failure(&self, _: &mut ChangeContext<KopfExample>) -> HandlerResult {
        Err(HandlerError::permanent("Fail once and for all."))
    }

    /// Called when a KopfExample is created.
    async fn eventual_success(&self, cx: &mut ChangeContext<KopfExample>) -> HandlerResult {
        if cx.retry() < 3 {
            let (soon, message) = (Duration::from_secs(1), "Expected recoverable error.");
            return Err(HandlerError::temporary_after(soon, message));
        }
        Ok(())
    }

    /// Called when a KopfExample is created.
    async fn eventual_failure(&self, _: &mut ChangeContext<KopfExample>) -> HandlerResult {
        Err("An error that might go away.".into())
    }

    /// Called when a KopfExample is created.
    async fn instant_failure_of_any_sort(
        &self,
        _: &mut ChangeContext<KopfExample>,
    ) -> HandlerResult {
        Err("An error that will not go away.".into())
    }
}
