//! Handlers for objects of `Jobs`.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::jobs::{DynamicObject, JobsHandlers};

impl JobsHandlers for Operator {
    /// Called for every watch event of an object of `Jobs`.
    async fn job_seen(&self, cx: &mut EventContext<DynamicObject>) -> HandlerResult {
        info!("job_seen was called: {:?}", cx.event_type());
        Ok(())
    }

    /// Decides whether a DynamicObject may be stored.
    async fn check_job(
        &self,
        cx: &mut ValidationContext<DynamicObject>,
        _param: i64,
    ) -> AdmissionResult {
        info!("check_job was called: {}", cx.operation());
        Ok(())
    }
}
