//! Connects to the cluster: by login handlers if there are any, or else as kubectl does.

use std::sync::Arc;

use kube::Client;

use super::error::Error;
use crate::client::authentication::Authenticator;
use crate::health::metrics::api::{ApiMetrics, ApiMetricsLayer};
use crate::index::Indices;
use crate::operator::hook::{Hook, LoginContext};
use crate::settings::Settings;

/// A client, and the source of its credentials.
pub(super) struct ClusterConnection {
    pub(super) client: Client,
    /// None if the operator was given a client.
    pub(super) authenticator: Option<Arc<Authenticator>>,
}

/// Logs in, and makes a client whose requests are counted.
pub(super) async fn connect(
    requests: Arc<ApiMetrics>,
    logins: Vec<Hook<LoginContext>>,
    settings: &Arc<Settings>,
    indices: &Indices,
) -> Result<ClusterConnection, Error> {
    let authenticator = Authenticator::log_in(logins, settings, indices)
        .await
        .map_err(Error::Login)?;
    let client = authenticator.client().await.map_err(Error::Login)?;
    Ok(ClusterConnection {
        client: client.with_layer(&ApiMetricsLayer(requests)).build(),
        authenticator: Some(authenticator),
    })
}
