//! Handlers for ConfigMap objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::config_map::{ConfigMap, ConfigMapHandlers};

impl ConfigMapHandlers for Operator {
    /// Decides whether a ConfigMap may be deleted.
    async fn check_map(&self, cx: &mut ValidationContext<ConfigMap>) -> AdmissionResult {
        info!("check_map was called: {}", cx.operation());
        Ok(())
    }

    /// Whether the filter of `check_map` accepts the annotation `note`.
    fn is_note(&self, _value: Option<&str>, _cx: &FilterContext<ConfigMap>) -> bool {
        true
    }
}
