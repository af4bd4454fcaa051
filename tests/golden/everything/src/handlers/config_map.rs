//! What happens to a ConfigMap.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::config_map::{ConfigMap, ConfigMapHandlers};

impl ConfigMapHandlers for Operator {
    /// Says whether a ConfigMap may be deleted.
    async fn check_map(&self, cx: &mut ValidationContext<ConfigMap>) -> AdmissionResult {
        info!("check_map was called: {}", cx.operation());
        Ok(())
    }

    /// Whether the annotation `note` is one for `check_map`.
    fn is_note(&self, _value: Option<&str>) -> bool {
        true
    }
}
