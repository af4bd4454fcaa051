//! Handlers for Deployment objects.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::deployment::{Deployment, DeploymentHandlers, Everybody};

impl DeploymentHandlers for Operator {
    /// Returns the keys and values of a Deployment in the index `everybody`.
    async fn everybody(&self, cx: &mut IndexContext<Deployment>) -> IndexResult<Everybody> {
        debug!("everybody was called: {}", cx.name());
        Ok(Vec::new())
    }
}
