//! Connects to the cluster: by login handlers if there are any, or else as kubectl does.

use std::sync::Arc;

use kube::client::ClientBuilder;
use kube::{Client, Config};

use super::error::Error;
use crate::client::authentication::Authenticator;
use crate::health::metrics::api::{ApiMetrics, ApiMetricsLayer};
use crate::operator::hook::{Hook, LoginContext};
use crate::settings::Settings;

/// A client, and the source of its credentials.
pub(super) struct ClusterConnection {
    pub(super) client: Client,
    /// Set if the credentials come from login handlers.
    pub(super) authenticator: Option<Arc<Authenticator>>,
}

/// Makes a client whose requests are counted.
pub(super) async fn connect(
    requests: Arc<ApiMetrics>,
    logins: Vec<Hook<LoginContext>>,
    settings: &Settings,
) -> Result<ClusterConnection, Error> {
    if !logins.is_empty() {
        let authenticator = Authenticator::log_in(logins, settings)
            .await
            .map_err(Error::Login)?;
        let client = authenticator.client().await.map_err(Error::Login)?;
        return Ok(ClusterConnection {
            client: client.with_layer(&ApiMetricsLayer(requests)).build(),
            authenticator: Some(authenticator),
        });
    }
    let mut config = Config::infer()
        .await
        .map_err(|error| Error::Config(Box::new(error)))?;
    // Each caller in this crate decides how long to retry, and when not to.
    config.default_retry = false;
    config.connect_timeout = Some(settings.networking.connect_timeout);
    let client = ClientBuilder::try_from(config).map_err(|error| Error::Client(Box::new(error)))?;
    Ok(ClusterConnection {
        client: client.with_layer(&ApiMetricsLayer(requests)).build(),
        authenticator: None,
    })
}
