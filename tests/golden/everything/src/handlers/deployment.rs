//! What happens to a Deployment.

use super::Operator;
use crate::generated::deployment::DeploymentHandlers;

impl DeploymentHandlers for Operator {}
