//! Authenticates requests by the credentials of login handlers, and logs in again when they expire
//! or the API server rejects them.
//!
//! Each request uses the best credentials of that moment. The first request that finds none calls
//! the login handlers, and all others wait for it.

mod credential_pool;

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use jiff::Timestamp;
use kube::Client;
use kube::client::{Body, ClientBuilder};
use tokio::sync::{Mutex, watch};
use tower_service::Service;
use tracing::{info, warn};

use self::credential_pool::{CredentialPool, PooledCredentials};
use crate::operator::hook::{Credentials, Hook, HookFailurePolicy, LoginContext, run_hooks};
use crate::settings::Settings;

/// The login handlers, and the credentials that they have found.
pub(crate) struct Authenticator {
    logins: Vec<Hook<LoginContext>>,
    default_backoff: Duration,
    connect_timeout: Duration,
    /// Locked while login handlers run, so that they do not run twice at once.
    pool: Mutex<CredentialPool<Client>>,
    exhausted: watch::Sender<Option<String>>,
}

/// No credentials are left, and no login handler has others.
#[derive(Debug, Clone, thiserror::Error)]
#[error("there is no access to the cluster: {0}")]
pub struct CredentialsExhausted(String);

/// Sends requests with the credentials of the authenticator.
#[derive(Clone)]
pub(crate) struct AuthenticatedService(Arc<Authenticator>);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

// === impl Authenticator ===

impl Authenticator {
    /// Calls the login handlers for the first time.
    pub(crate) async fn log_in(
        logins: Vec<Hook<LoginContext>>,
        settings: &Settings,
    ) -> Result<Arc<Self>, CredentialsExhausted> {
        let authenticator = Self {
            logins,
            default_backoff: settings.execution.default_backoff,
            connect_timeout: settings.networking.connect_timeout,
            pool: Mutex::default(),
            exhausted: watch::Sender::new(None),
        };
        authenticator.credentials().await?;
        Ok(Arc::new(authenticator))
    }

    /// A client that uses the best credentials for each request.
    pub(crate) async fn client(
        self: &Arc<Self>,
    ) -> Result<ClientBuilder<AuthenticatedService>, CredentialsExhausted> {
        let namespace = self
            .credentials()
            .await?
            .client
            .default_namespace()
            .to_owned();
        Ok(ClientBuilder::new(
            AuthenticatedService(Arc::clone(self)),
            namespace,
        ))
    }

    /// Waits until no credentials are left.
    pub(crate) async fn exhausted(&self) -> CredentialsExhausted {
        let mut exhausted = self.exhausted.subscribe();
        let reason = exhausted.wait_for(Option::is_some).await;
        let reason = reason.map(|reason| reason.clone().unwrap_or_default());
        match reason {
            Ok(reason) => CredentialsExhausted(reason),
            Err(_) => std::future::pending().await,
        }
    }

    /// The best credentials; calls the login handlers if there are none.
    async fn credentials(&self) -> Result<PooledCredentials<Client>, CredentialsExhausted> {
        let mut pool = self.pool.lock().await;
        if let Some(reason) = &*self.exhausted.borrow() {
            return Err(CredentialsExhausted(reason.clone()));
        }
        if let Some(best) = pool.best(Timestamp::now()) {
            return Ok(best);
        }
        let mut cx = LoginContext::new(pool.has_ever_had_any());
        let failed = run_hooks(
            &self.logins,
            &mut cx,
            HookFailurePolicy::RunAll,
            self.default_backoff,
        )
        .await;
        let mut errors: Vec<String> = failed.iter().map(ToString::to_string).collect();
        for (handler, credentials) in cx.found {
            let offer = (
                handler.to_string(),
                credentials.fingerprint(),
                credentials.rank(),
                credentials.expiration(),
            );
            match client(credentials, self.connect_timeout) {
                Ok(client) => pool.add(offer, client),
                Err(error) => errors.push(format!("`{handler}`: {error}")),
            }
        }
        if let Some(best) = pool.best(Timestamp::now()) {
            info!("logged in by `{}`", best.source);
            return Ok(best);
        }
        if errors.is_empty() {
            errors.push("no login handler has new credentials".to_owned());
        }
        let reason = errors.join("; ");
        self.exhausted.send_replace(Some(reason.clone()));
        Err(CredentialsExhausted(reason))
    }

    /// Sends a request, and again with other credentials if the API server rejects the first.
    async fn send(&self, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let (head, body) = request.into_parts();
        let mut body = Some(body);
        loop {
            let credentials = self.credentials().await?;
            let Some(sent) = body.take() else {
                return Err("the request cannot be repeated".into());
            };
            body = sent.try_clone();
            let request = Request::from_parts(head.clone(), sent);
            let response = credentials.client.send(request).await?;
            if response.status() != StatusCode::UNAUTHORIZED {
                return Ok(response);
            }
            if self.pool.lock().await.reject(&credentials) {
                warn!(
                    "the API server rejects the credentials of `{}`",
                    credentials.source
                );
            }
            if body.is_none() {
                return Ok(response);
            }
        }
    }
}

fn client(credentials: Credentials, connect_timeout: Duration) -> Result<Client, String> {
    let mut config = credentials.into_config().map_err(|it| it.to_string())?;
    config.connect_timeout = Some(connect_timeout);
    Client::try_from(config).map_err(|it| it.to_string())
}

// === impl AuthenticatedService ===

impl Service<Request<Body>> for AuthenticatedService {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let authenticator = Arc::clone(&self.0);
        Box::pin(async move { authenticator.send(request).await })
    }
}
