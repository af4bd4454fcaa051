//! Authenticates requests by the credentials of login handlers, or of the default login, and logs in
//! again when they expire or the API server rejects them.
//!
//! Each request uses the best credentials of that moment. The first request that finds none starts
//! a login in a task of its own, and all of them wait for it. A request that gives up does not end
//! the login.

mod credential_pool;
mod shared_service;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Request, StatusCode};
use jiff::Timestamp;
use kopf_core::handler::HandlerId;
use kube::client::{Body, ClientBuilder};
use tokio::sync::watch;
use tower_service::Service;
use tracing::{info, warn};

use self::credential_pool::{CredentialOffer, CredentialPool, PooledCredentials};
use self::shared_service::{CredentialsClient, StreamedResponse};
use crate::client::backoff::Backoff;
use crate::index::Indices;
use crate::operator::hook::login_error::LoginError;
use crate::operator::hook::{
    Credentials, Hook, HookFailurePolicy, LoginContext, default_login, run_hooks,
};
use crate::settings::Settings;
use crate::task::UnnamedTasks;

/// The pauses before a login whose predecessor gave credentials that were never accepted.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Gives credentials to requests.
pub(crate) struct Authenticator {
    login: Arc<Login>,
    /// Each login is a task of its own, because it may take longer than any request that waits
    /// for it; it ends with this value.
    tasks: Mutex<UnnamedTasks>,
}

/// The login handlers, and the credentials that they have found.
struct Login {
    handlers: Vec<Hook<LoginContext>>,
    settings: Arc<Settings>,
    indices: Indices,
    // Held for the length of a lookup.
    state: Mutex<LoginState>,
    /// Counts the logins that have ended.
    ended: watch::Sender<u64>,
    exhausted: watch::Sender<Option<String>>,
}

struct LoginState {
    pool: CredentialPool<CredentialsClient>,
    pauses: Backoff,
    /// True if no request was accepted since the last login.
    unproven: bool,
    /// True while a login runs.
    running: bool,
}

/// The end of a login, whichever way it ends.
struct LoginEnd<'a>(&'a Login);

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
    /// Calls the login handlers for the first time; the default login, if there are none.
    pub(crate) async fn log_in(
        logins: Vec<Hook<LoginContext>>,
        settings: &Arc<Settings>,
        indices: &Indices,
    ) -> Result<Arc<Self>, CredentialsExhausted> {
        let handlers = if logins.is_empty() {
            vec![default_login()]
        } else {
            logins
        };
        let login = Login {
            handlers,
            settings: Arc::clone(settings),
            indices: indices.clone(),
            state: Mutex::new(LoginState {
                pool: CredentialPool::default(),
                pauses: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE),
                unproven: false,
                running: false,
            }),
            ended: watch::Sender::new(0),
            exhausted: watch::Sender::new(None),
        };
        let authenticator = Self {
            login: Arc::new(login),
            tasks: Mutex::default(),
        };
        authenticator.credentials().await?;
        Ok(Arc::new(authenticator))
    }

    /// A client that uses the best credentials for each request.
    pub(crate) async fn client(
        self: &Arc<Self>,
    ) -> Result<ClientBuilder<AuthenticatedService>, CredentialsExhausted> {
        let credentials = self.credentials().await?;
        let service = AuthenticatedService(Arc::clone(self));
        Ok(ClientBuilder::new(service, &*credentials.client.namespace))
    }

    /// Waits until no credentials are left.
    pub(crate) async fn exhausted(&self) -> CredentialsExhausted {
        let mut exhausted = self.login.exhausted.subscribe();
        let reason = exhausted.wait_for(Option::is_some).await;
        let reason = reason.map(|reason| reason.clone().unwrap_or_default());
        match reason {
            Ok(reason) => CredentialsExhausted(reason),
            Err(_) => std::future::pending().await,
        }
    }

    /// The best credentials; waits for a login if there are none.
    async fn credentials(
        &self,
    ) -> Result<PooledCredentials<CredentialsClient>, CredentialsExhausted> {
        if let Some(known) = self.login.known() {
            return known;
        }
        loop {
            let mut ended = self.login.ended.subscribe();
            // A login may have ended before this value could see it.
            if let Some(known) = self.login.known() {
                return known;
            }
            self.begin_login();
            // The sender is in this value.
            let _ = ended.changed().await;
        }
    }

    /// Starts a login, unless one runs.
    fn begin_login(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.forget_ended();
        // The last one may have ended between the caller's look at its result and now.
        if self.login.known().is_none() && self.login.state().begin() {
            let login = Arc::clone(&self.login);
            tasks.spawn(async move { login.run().await });
        }
    }

    /// Sends a request, and again with other credentials if the API server rejects the first.
    async fn send(&self, request: Request<Body>) -> Result<StreamedResponse, BoxError> {
        let (head, body) = request.into_parts();
        let mut body = Some(body);
        loop {
            let credentials = self.credentials().await?;
            let Some(sent) = body.take() else {
                return Err("the request cannot be repeated".into());
            };
            body = sent.try_clone();
            let request = Request::from_parts(head.clone(), sent);
            let sent = credentials.client.send(request).await;
            let response = sent.map_err(|error| match LoginError::find(&*error) {
                // Plugins run again before their tokens expire.
                Some(error) => BoxError::from(error),
                None => error,
            })?;
            if response.status() != StatusCode::UNAUTHORIZED {
                if !response.status().is_server_error() {
                    self.login.state().accepted(&credentials);
                }
                return Ok(response);
            }
            let rejected = self.login.state().pool.reject(&credentials);
            if rejected {
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

// === impl Login ===

impl Login {
    /// The best credentials, or the reason why there will be none; `None` before a login.
    fn known(&self) -> Option<Result<PooledCredentials<CredentialsClient>, CredentialsExhausted>> {
        if let Some(reason) = &*self.exhausted.borrow() {
            return Some(Err(CredentialsExhausted(reason.clone())));
        }
        self.state().pool.best(Timestamp::now()).map(Ok)
    }

    async fn run(&self) {
        let _end = LoginEnd(self);
        let pause = self.state().next_pause();
        if !pause.is_zero() {
            warn!(
                "no credentials of the last login were accepted; logging in again in {:.1} s",
                pause.as_secs_f32()
            );
            tokio::time::sleep(pause).await;
        }
        self.call_handlers().await;
    }

    /// Calls the login handlers until each is done, and keeps what they have found.
    async fn call_handlers(&self) {
        let mut cx = LoginContext::new(
            self.state().pool.has_ever_had_any(),
            Arc::clone(&self.settings),
            self.indices.clone(),
        );
        let failed = run_hooks(
            &self.handlers,
            &mut cx,
            HookFailurePolicy::RunAll,
            self.settings.execution.default_backoff,
        )
        .await;
        let mut errors: Vec<String> = failed.iter().map(ToString::to_string).collect();
        let mut found = Vec::new();
        for (handler, credentials) in cx.found {
            match self.offer(&handler, credentials).await {
                Ok(offered) => found.push(offered),
                Err(error) => errors.push(format!("`{handler}`: {error}")),
            }
        }
        let mut state = self.state();
        for (offer, client) in found {
            state.pool.add(offer, client);
        }
        if let Some(best) = state.pool.best(Timestamp::now()) {
            info!("logged in by `{}`", best.source);
            return;
        }
        drop(state);
        if errors.is_empty() {
            errors.push(self.without_new_credentials());
        }
        self.exhausted.send_replace(Some(errors.join("; ")));
    }

    /// The credentials with the client that uses them.
    async fn offer(
        &self,
        handler: &HandlerId,
        credentials: Credentials,
    ) -> Result<(CredentialOffer, CredentialsClient), String> {
        let source = handler.as_str().into();
        let connect_timeout = self.settings.networking.connect_timeout;
        // Reads files, and runs the plugin of a kubeconfig, which may take long.
        let made = tokio::task::spawn_blocking(move || {
            let mut offer = CredentialOffer {
                source,
                fingerprint: credentials.fingerprint(),
                priority: credentials.rank(),
                expiration: credentials.expiration(),
                tries: credentials.tries(),
            };
            let client = client(credentials, connect_timeout)?;
            let ends = [offer.expiration, client.valid_until];
            offer.expiration = ends.into_iter().flatten().min();
            Ok::<_, String>((offer, client))
        });
        made.await.map_err(|panic| panic.to_string())?
    }

    /// The reason if no login handler fails, and none has credentials that may be tried.
    fn without_new_credentials(&self) -> String {
        let state = self.state();
        let rejected: Vec<String> = state.pool.rejected().map(|it| format!("`{it}`")).collect();
        if rejected.is_empty() {
            return "no login handler has credentials".to_owned();
        }
        format!(
            "the API server rejects the credentials of {}, and there are no others",
            rejected.join(" and ")
        )
    }

    fn state(&self) -> MutexGuard<'_, LoginState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl LoginState ===

impl LoginState {
    /// Notes that a login runs; `false` if one did before.
    fn begin(&mut self) -> bool {
        !std::mem::replace(&mut self.running, true)
    }

    /// The API server has accepted the credentials of a request.
    fn accepted(&mut self, credentials: &PooledCredentials<CredentialsClient>) {
        self.unproven = false;
        self.pauses.reset();
        self.pool.accept(credentials);
    }

    /// The pause before the next login; none if the last one was of use.
    fn next_pause(&mut self) -> Duration {
        if std::mem::replace(&mut self.unproven, true) {
            self.pauses.next(None)
        } else {
            Duration::ZERO
        }
    }
}

// === impl LoginEnd ===

impl Drop for LoginEnd<'_> {
    fn drop(&mut self) {
        self.0.state().running = false;
        self.0.ended.send_modify(|ended| *ended += 1);
    }
}

fn client(
    credentials: Credentials,
    connect_timeout: Duration,
) -> Result<CredentialsClient, String> {
    let mut config = credentials.into_config().map_err(|it| it.to_string())?;
    config.connect_timeout = Some(connect_timeout);
    CredentialsClient::new(config).map_err(|error| LoginError::describe(&error))
}

// === impl AuthenticatedService ===

impl Service<Request<Body>> for AuthenticatedService {
    type Response = StreamedResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<StreamedResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let authenticator = Arc::clone(&self.0);
        Box::pin(async move { authenticator.send(request).await })
    }
}
