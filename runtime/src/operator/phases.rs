//! The phases of an operator's run: startup handlers, connection, handling of objects, cleanup
//! handlers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::connect::{ClusterConnection, connect};
use super::observability::Observability;
use super::{Error, Operator, orchestrate};
use crate::client::authentication::{Authenticator, CredentialsExhausted};
use crate::health::metrics::api::with_metrics;
use crate::operator::hook::{
    CleanupContext, Hook, HookFailure, HookFailurePolicy, LoginContext, StartupContext, run_hooks,
};
use crate::settings::Settings;
use crate::task::heartbeat::OperatorPhase;

/// The time that cleanup handlers get at least, also when stopping has used up the deadline.
const MIN_CLEANUP_TIME: Duration = Duration::from_secs(1);

/// The time for cleanup handlers if the settings name one that the clock cannot express.
const LONGEST_CLEANUP_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Operator {
    /// Handles objects until `stop` is ready, then lets running handlers finish.
    ///
    /// The operator calls its startup handlers before it uses the client, and its cleanup handlers
    /// at the end.
    ///
    /// # Errors
    /// If the declarations are invalid, a startup or cleanup handler fails permanently, or an
    /// essential task ends by itself. Failures of the cluster are not errors: the operator retries
    /// until the cluster answers again.
    pub async fn run(self, client: Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let client = with_metrics(client, Arc::clone(&self.requests));
        let connect = async |logins: Vec<_>, _: &Arc<Settings>| {
            if !logins.is_empty() {
                warn!("login handlers are not called: the operator was given a client");
            }
            Ok(ClusterConnection {
                client,
                authenticator: None,
            })
        };
        run(self, connect, stop).await
    }

    /// Runs as [`run`](Self::run) does, but finds the cluster as the command line does: by login
    /// handlers if there are any, or else by a kubeconfig or the service account of the pod.
    ///
    /// # Errors
    /// As [`run`](Self::run), and if there is no cluster or no access to it.
    pub async fn connect_and_run(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let (requests, indices) = (Arc::clone(&self.requests), self.indices.clone());
        let connect = async |logins, settings: &Arc<Settings>| {
            connect(requests, logins, settings, &indices).await
        };
        run(self, connect, stop).await
    }
}

/// Runs the operator from its startup handlers to its cleanup handlers.
///
/// The operator connects after all startup handlers have succeeded. From then on it calls the
/// cleanup handlers in any case.
async fn run(
    mut operator: Operator,
    connect: impl AsyncFnOnce(
        Vec<Hook<LoginContext>>,
        &Arc<Settings>,
    ) -> Result<ClusterConnection, Error>,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut observability = Observability::start(&operator)?;
    let stopped = OnceCell::new();
    let mut stop = pin!(async {
        stop.await;
        stopped.get_or_init(async || Instant::now()).await;
    });
    tokio::select! {
        started = start(&mut operator) => started?,
        () = &mut stop => {
            warn!("stopped during the startup: it is not completed, and nothing is cleaned up");
            return Ok(());
        }
    }
    operator.shutdown_timeout.set(&operator.settings.shutdown);
    let cleanups = std::mem::take(&mut operator.handlers.cleanups);
    let indices = operator.indices.clone();
    let settings = Arc::new(operator.settings.clone());
    let logins = std::mem::take(&mut operator.handlers.logins);
    let connected = tokio::select! {
        connected = connect(logins, &settings) => connected.map(Some),
        () = &mut stop => Ok(None),
    };
    let (client, ended) = match connected {
        Ok(Some(ClusterConnection {
            client,
            authenticator,
        })) => {
            let running = orchestrate::run(operator, &mut observability, client.clone(), stop);
            let ended = tokio::select! {
                ended = running => ended,
                exhausted = credentials_exhausted(authenticator) => Err(Error::Login(exhausted)),
            };
            (Some(client), ended)
        }
        Ok(None) => (None, Ok(())),
        Err(error) => (None, Err(error)),
    };
    let heartbeats = &observability.state.heartbeats;
    heartbeats.enter_phase(OperatorPhase::Stopping);
    let begun = stopped.get().map_or_else(Instant::now, |stopped| *stopped);
    let least = Instant::now() + MIN_CLEANUP_TIME;
    let end = begun
        .checked_add(settings.shutdown.total())
        .map_or(least + LONGEST_CLEANUP_TIME, |end| end.max(least));
    let default_backoff = settings.execution.default_backoff;
    let mut cx = CleanupContext::new(client, settings, indices);
    let cleaned = clean_up(&cleanups, &mut cx, default_backoff, end).await;
    ended?;
    cleaned
}

/// Waits until no credentials are left and no login handler has others.
///
/// Without credentials the operator can record nothing that a handler does, so handlers get only a
/// moment to finish.
async fn credentials_exhausted(authenticator: Option<Arc<Authenticator>>) -> CredentialsExhausted {
    let Some(authenticator) = authenticator else {
        return std::future::pending().await;
    };
    let exhausted = authenticator.exhausted().await;
    error!("{exhausted}");
    tokio::time::sleep(MIN_CLEANUP_TIME).await;
    exhausted
}

/// Builds the state, then calls the startup handlers.
pub(super) async fn start(operator: &mut Operator) -> Result<(), Error> {
    let state = operator.handlers.state.take();
    let startups = std::mem::take(&mut operator.handlers.startups);
    if state.is_none() && startups.is_empty() {
        return Ok(());
    }
    let settings = std::mem::take(&mut operator.settings);
    let peering = std::mem::take(&mut operator.peering);
    let default_backoff = settings.execution.default_backoff;
    let webhooks = std::mem::take(&mut operator.webhooks);
    let mut cx = StartupContext::new(settings, peering, webhooks, operator.indices.clone());
    let built = match state {
        Some(state) => state.build(&mut cx, default_backoff).await,
        None => Ok(()),
    };
    let started = match built {
        Ok(()) => {
            let policy = HookFailurePolicy::StopAtFirst;
            let failures = run_hooks(&startups, &mut cx, policy, default_backoff).await;
            failures.into_iter().next().map_or(Ok(()), Err)
        }
        Err(failure) => Err(failure),
    };
    operator.settings = cx.settings;
    operator.peering = cx.peering;
    operator.webhooks = cx.webhooks;
    started.map_err(Error::Startup)
}

async fn clean_up(
    cleanups: &[Hook<CleanupContext>],
    cx: &mut CleanupContext,
    default_backoff: Duration,
    end: Instant,
) -> Result<(), Error> {
    if cleanups.is_empty() {
        return Ok(());
    }
    info!("cleaning up");
    let running = run_hooks(cleanups, cx, HookFailurePolicy::RunAll, default_backoff);
    match tokio::time::timeout_at(end, running).await {
        Ok(failures) => failures
            .into_iter()
            .next()
            .map_or(Ok(()), |failure| Err(Error::Cleanup(failure))),
        Err(_) => Err(Error::Cleanup(HookFailure {
            handler: cx.handler_id().to_owned(),
            message: "it was not done in time".to_owned(),
        })),
    }
}
