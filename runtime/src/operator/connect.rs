//! The way to the cluster: by login handlers if there are any, or else as kubectl finds it.

use std::sync::Arc;

use kube::client::ClientBuilder;
use kube::{Client, Config};

use super::Error;
use crate::client::authentication::Authenticator;
use crate::health::metrics::api::{ApiMetrics, ApiMetricsLayer};
use crate::operator::hook::{Hook, LoginContext};
use crate::settings::Settings;

/// A way to the cluster.
pub(super) struct Access {
    pub(super) client: Client,
    /// Where its credentials come from, if not from kube.
    pub(super) authenticator: Option<Arc<Authenticator>>,
}

/// A client whose requests are counted.
pub(super) async fn connect(
    requests: Arc<ApiMetrics>,
    logins: Vec<Hook<LoginContext>>,
    settings: &Settings,
) -> Result<Access, Error> {
    if !logins.is_empty() {
        let authenticator = Authenticator::open(logins, settings)
            .await
            .map_err(Error::Login)?;
        let client = authenticator.client().await.map_err(Error::Login)?;
        return Ok(Access {
            client: client.with_layer(&ApiMetricsLayer(requests)).build(),
            authenticator: Some(authenticator),
        });
    }
    let mut config = Config::infer()
        .await
        .map_err(|error| Error::Config(Box::new(error)))?;
    // Whoever sends a request here knows how long to try, and when not to.
    config.default_retry = false;
    config.connect_timeout = Some(settings.networking.connect_timeout);
    let client = ClientBuilder::try_from(config).map_err(|error| Error::Client(Box::new(error)))?;
    Ok(Access {
        client: client.with_layer(&ApiMetricsLayer(requests)).build(),
        authenticator: None,
    })
}
