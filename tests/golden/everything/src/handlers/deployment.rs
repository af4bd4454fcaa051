//! What happens to a Deployment.

use kopf_runtime::prelude::*;

use super::Operator;
use crate::generated::deployment::{Deployment, DeploymentHandlers, Everybody};

impl DeploymentHandlers for Operator {
    /// Says by which keys of `everybody` a Deployment is found, and what is found.
    async fn everybody(&self, cx: &mut IndexContext<Deployment>) -> IndexResult<Everybody> {
        debug!("everybody was called: {}", cx.name());
        Ok(Vec::new())
    }
}
