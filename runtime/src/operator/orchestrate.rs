//! Starts the parts of an operator, supervises them, and stops them in order.

mod start;

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use self::start::PartStarter;
use super::coordination::CoordinationTasks;
use super::observability::{Observability, ServerThread};
use super::streams::Streams;
use super::{Error, Operator};
use crate::admission::running_webhooks::RunningWebhooks;
use crate::admission::selected_kinds::SelectedKinds;
use crate::background::Background;
use crate::registration::ResourceHandlers;
use crate::settings::ShutdownSettings;
use crate::task::Tasks;
use crate::task::heartbeat::OperatorPhase;
use crate::watch::{ObjectKey, QueueItem};

/// The queue and the scheduler end by themselves; this is added to the grace of their workers.
const STOP_MARGIN: Duration = Duration::from_secs(1);

/// The tasks of a running operator, grouped by the moment at which they stop.
struct OperatorTasks {
    streams: Streams,
    /// Tasks that feed the streams and the queue, and stop together with the streams.
    feeders: Tasks,
    queue: Tasks,
    admission: Option<RunningWebhooks>,
    /// The daemons and timers.
    background: Arc<Background>,
    /// The task that runs them; empty if the operator has none.
    scheduler: Tasks,
    /// The task that posts Kubernetes events; it ends when nothing is left that may post.
    posting: Tasks,
    coordination: CoordinationTasks,
    /// The tasks behind the health endpoint; they run until everything else has stopped.
    health_checks: Tasks,
    stop_queue: CancellationToken,
    stop_scheduler: CancellationToken,
    shutdown: ShutdownSettings,
    /// Without streams, nothing ever arrives; this keeps the queue from ending because of that.
    _queue_sender: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
}

/// Runs all parts of the operator until `stop` is ready or one of them ends, then stops them.
pub(super) async fn run(
    operator: Operator,
    observability: &mut Observability,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    // Startup handlers may have changed them.
    operator.settings.check().map_err(Error::Settings)?;
    let mut tasks = OperatorTasks::start(operator, observability, client).await?;
    let heartbeats = observability.state.heartbeats.clone();
    heartbeats.enter_phase(OperatorPhase::Running);
    let ended = tasks
        .supervise(
            &mut observability.health_server,
            &mut observability.page_server,
            stop,
        )
        .await;
    heartbeats.enter_phase(match &ended {
        Ok(()) => OperatorPhase::Stopping,
        Err(error) => OperatorPhase::Broken(error.to_string()),
    });
    tasks.stop().await;
    ended
}

// === impl OperatorTasks ===

impl OperatorTasks {
    /// Starts every part after those that it depends on.
    async fn start(
        operator: Operator,
        observability: &mut Observability,
        client: Client,
    ) -> Result<Self, Error> {
        let probe_requests = observability.probe_requests.take();
        let starter = PartStarter {
            name: operator.name,
            client,
            settings: Arc::new(operator.settings),
            indices: operator.indices,
            observability,
        };
        let children = starter.children(&operator.resources);
        let mut declarations = starter.declarations(operator.resources, Arc::clone(&children))?;
        let webhooks = declarations.take_webhooks();
        let has_indices = declarations.iter().any(ResourceHandlers::needs_lists);
        let has_background = declarations.iter().any(ResourceHandlers::has_background);

        let tickets = starter.startup_lists(has_indices);
        let health_checks = starter.health_checks(operator.handlers.probes, probe_requests);
        let (discovered, discovery_watcher) = starter.discovery(&declarations).unzip();
        let selected = SelectedKinds::new(discovered.clone());
        let admission = starter
            .admission(operator.webhooks, webhooks, &operator.namespaces, selected)
            .await?;
        let (namespace_scope, namespace_watcher) = starter.namespace_scope(&operator.namespaces);
        let coordination = starter.coordination(
            operator.name,
            namespace_scope.clone(),
            operator.peering,
            operator.leader_election,
            operator.identity,
            operator.clock,
        )?;
        let (poster, posting) = starter.posting();
        let services = starter.handler_services(poster);

        let (sender, queue_items) = start::queue_channel();
        let mut feeders = starter.watchers(&declarations, namespace_watcher, discovery_watcher);
        let stop_scheduler = CancellationToken::new();
        let (background, scheduler) = starter.background(
            has_background,
            &services,
            &sender,
            &stop_scheduler,
            &mut feeders,
        );
        let kinds = Arc::clone(declarations.kinds());
        starter.observability.page_parts.set(&background, &kinds);
        let streams = Streams::start(
            starter.stream_services(&sender, &services, admission.is_some(), &children),
            declarations,
            discovered,
            namespace_scope,
            tickets,
        )?;
        start::feed_owners(&children, &sender, &mut feeders);
        if has_indices {
            feeders.spawn("readiness of indices", starter.index_reminder());
        }
        let stop_queue = CancellationToken::new();
        let pipeline = starter.pipeline(kinds, &background, children, services, &stop_queue);
        let queue = starter.queue(pipeline, queue_items, &stop_queue);
        Ok(Self {
            _queue_sender: streams.is_idle().then_some(sender),
            shutdown: starter.settings.shutdown.clone(),
            streams,
            feeders,
            queue,
            admission,
            background,
            scheduler,
            posting,
            coordination,
            health_checks,
            stop_queue,
            stop_scheduler,
        })
    }

    /// Waits until `stop` is ready, or until a task ends that must not.
    async fn supervise(
        &mut self,
        health_server: &mut ServerThread,
        page_server: &mut ServerThread,
        stop: impl Future<Output = ()>,
    ) -> Result<(), Error> {
        let ended = tokio::select! {
            () = stop => return Ok(()),
            failed = failed(self.admission.as_mut()) => return Err(failed),
            ended = self.streams.ended() => ended,
            ended = self.queue.ended() => ended,
            ended = self.posting.ended() => ended,
            ended = self.scheduler.ended() => ended,
            ended = self.coordination.ended() => ended,
            ended = self.feeders.ended() => ended,
            ended = self.health_checks.ended() => ended,
            ended = health_server.ended() => ended,
            ended = page_server.ended() => ended,
        };
        Err(Error::ended(&ended))
    }

    /// Stops what brings new work, then the handlers, then what they need.
    async fn stop(self) {
        let grace = self.shutdown.grace;
        self.streams.cancel().await;
        self.feeders.cancel().await;
        self.stop_queue.cancel();
        let admission = async {
            if let Some(admission) = self.admission {
                admission.stop(grace).await;
            }
        };
        let (overdue, (), ()) = tokio::join!(
            self.background.shut_down(grace),
            self.queue.drain(grace.saturating_add(STOP_MARGIN)),
            admission
        );
        for name in overdue {
            error!("{name} has not stopped within {grace:?} and is cancelled");
        }
        self.stop_scheduler.cancel();
        self.scheduler.drain(2 * STOP_MARGIN).await;
        // The posting task ends by itself when the last holder of its poster is gone.
        drop(self.background);
        self.posting.drain(self.shutdown.posting_grace).await;
        // Other operators and replicas may act only when no handler runs here any more.
        self.coordination.stop().await;
        info!("all handlers have stopped");
    }
}

/// Never returns if there are no webhooks.
async fn failed(admission: Option<&mut RunningWebhooks>) -> Error {
    match admission {
        Some(admission) => Error::Admission(Box::new(admission.failed().await)),
        None => std::future::pending().await,
    }
}
