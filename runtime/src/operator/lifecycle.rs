//! The life of an operator: startup, the cluster, objects, and cleanup.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;
use tracing::{error, info, warn};

use super::connect::Access;
use super::observability::OperatorStatus;
use super::{Error, Operator, orchestrate};
use crate::client::authentication::{Authenticator, CredentialsExhausted};
use crate::operator::hook::{
    CleanupContext, Hook, HookFailure, HookFailurePolicy, LoginContext, StartupContext, run_hooks,
};
use crate::settings::Settings;
use crate::task::heartbeat::OperatorPhase;

/// What cleanup handlers get when those before them took all the time.
const LEAST_TIME_FOR_CLEANUP: Duration = Duration::from_secs(1);

/// Runs the operator from its startup handlers to its cleanup handlers.
///
/// The cluster is looked for when the former have succeeded. The latter are called if they did,
/// whatever happened since.
pub(super) async fn live(
    mut operator: Operator,
    connect: impl AsyncFnOnce(Vec<Hook<LoginContext>>, &Settings) -> Result<Access, Error>,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let mut watched = OperatorStatus::begin(&operator)?;
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
    operator.patience.settle(&operator.settings.shutdown);
    let cleanups = std::mem::take(&mut operator.handlers.cleanups);
    let indices = operator.indices.clone();
    let default_backoff = operator.settings.execution.default_backoff;
    let logins = std::mem::take(&mut operator.handlers.logins);
    let deadline = operator.settings.shutdown.deadline;
    let connected = tokio::select! {
        connected = connect(logins, &operator.settings) => connected.map(Some),
        () = &mut stop => Ok(None),
    };
    let (client, ended) = match connected {
        Ok(Some(Access {
            client,
            authenticator,
        })) => {
            let running = orchestrate::run(operator, &mut watched, client.clone(), stop);
            let ended = tokio::select! {
                ended = running => ended,
                locked_out = locked_out(authenticator) => Err(Error::Login(locked_out)),
            };
            (Some(client), ended)
        }
        Ok(None) => (None, Ok(())),
        Err(error) => (None, Err(error)),
    };
    watched.heartbeats.enter_phase(OperatorPhase::Stopping);
    let begun = stopped.get().map_or_else(Instant::now, |stopped| *stopped);
    let end = (begun + deadline).max(Instant::now() + LEAST_TIME_FOR_CLEANUP);
    let mut cx = CleanupContext::new(client, indices);
    let cleaned = clean_up(&cleanups, &mut cx, default_backoff, end).await;
    ended?;
    cleaned
}

/// Never, as long as there are credentials or others may be found.
///
/// Without, nothing that a handler does can be recorded any more: it is given a moment and no more.
async fn locked_out(authenticator: Option<Arc<Authenticator>>) -> CredentialsExhausted {
    let Some(authenticator) = authenticator else {
        return std::future::pending().await;
    };
    let exhausted = authenticator.exhausted().await;
    error!("{exhausted}");
    tokio::time::sleep(LEAST_TIME_FOR_CLEANUP).await;
    exhausted
}

async fn start(operator: &mut Operator) -> Result<(), Error> {
    let startups = std::mem::take(&mut operator.handlers.startups);
    if startups.is_empty() {
        return Ok(());
    }
    let settings = std::mem::take(&mut operator.settings);
    let peering = std::mem::take(&mut operator.peering);
    let default_backoff = settings.execution.default_backoff;
    let mut cx = StartupContext::new(settings, peering, operator.indices.clone());
    let failed = run_hooks(
        &startups,
        &mut cx,
        HookFailurePolicy::StopAtFirst,
        default_backoff,
    )
    .await;
    operator.settings = cx.settings;
    operator.peering = cx.peering;
    match failed.into_iter().next() {
        Some(failed) => Err(Error::Startup(failed)),
        None => Ok(()),
    }
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
    let run_hooks = run_hooks(cleanups, cx, HookFailurePolicy::RunAll, default_backoff);
    match tokio::time::timeout_at(end, run_hooks).await {
        Ok(failed) => failed
            .into_iter()
            .next()
            .map_or(Ok(()), |failed| Err(Error::Cleanup(failed))),
        Err(_) => Err(Error::Cleanup(HookFailure {
            handler: cx.handler_id().to_owned(),
            message: "it was not done in time".to_owned(),
        })),
    }
}
