//! Starts each part of an operator with the services that they share.

use std::sync::Arc;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::admission::Webhooks;
use crate::admission::running_webhooks::{RunningWebhooks, WebhookDependencies};
use crate::admission::selected_kinds::SelectedKinds;
use crate::background::{Background, BackgroundSetup};
use crate::children::Children;
use crate::client::resource::ResourceTarget;
use crate::coordination::clock::WallClock;
use crate::events::posting::{self, EventPoster};
use crate::health;
use crate::health::probe::{ProbeReceiver, ProbeRunner};
use crate::index::Indices;
use crate::index::list_gate::{self, GatedIndices};
use crate::operator::coordination::{CoordinationConfig, CoordinationTasks};
use crate::operator::declarations::{Declarations, SharedServices};
use crate::operator::discovery::{self, Discovered, DiscoveryWatcher};
use crate::operator::hook::{Hook, ProbeContext};
use crate::operator::namespaces::NamespaceScope;
use crate::operator::observability::Observability;
use crate::operator::streams::{StartupLists, StreamServices};
use crate::operator::{Error, Namespaces};
use crate::process::Pipeline;
use crate::process::execute::applied_uids::AppliedUids;
use crate::process::execute::handler_scope::OperatorServices;
use crate::process::kinds::HandledKinds;
use crate::queue;
use crate::queue::worker_limit::QueueLimits;
use crate::registration::{RegisteredWebhook, ResourceHandlers};
use crate::settings::{LeaderElectionSettings, PeeringSettings, Settings};
use crate::task::Tasks;
use crate::task::heartbeat::ConditionState;
use crate::watch::stream::StreamSettings;
use crate::watch::{ObjectKey, QueueItem};

/// Items on their way to the queue; a full channel makes the streams wait.
const QUEUE_CHANNEL: usize = 64;

/// The reason for not being ready as long as the streams are not known.
const STARTING: &str = "the start of the operator";

type QueueSender = mpsc::Sender<(Arc<ObjectKey>, QueueItem)>;
type QueueReceiver = mpsc::Receiver<(Arc<ObjectKey>, QueueItem)>;

/// Starts the parts of an operator.
pub(super) struct PartStarter<'a> {
    pub(super) name: &'static str,
    pub(super) client: Client,
    pub(super) settings: Arc<Settings>,
    pub(super) indices: Indices,
    pub(super) observability: &'a Observability,
}

pub(super) fn queue_channel() -> (QueueSender, QueueReceiver) {
    mpsc::channel(QUEUE_CHANNEL)
}

// === impl PartStarter ===

impl PartStarter<'_> {
    /// Checks the declarations.
    pub(super) fn declarations(
        &self,
        resources: Vec<ResourceHandlers>,
        children: Arc<Children>,
    ) -> Result<Declarations, Error> {
        let services = SharedServices {
            client: self.client.clone(),
            persistence: Arc::new(self.settings.persistence.clone()),
            indices: self.indices.clone(),
            request_timeout: self.settings.networking.request_timeout,
            metrics: self.observability.metrics.clone(),
            children,
        };
        Declarations::new(resources, services, &self.observability.state.heartbeats)
    }

    /// The children of all kinds.
    pub(super) fn children(&self, resources: &[ResourceHandlers]) -> Arc<Children> {
        let declared = resources.iter().flat_map(ResourceHandlers::related_kinds);
        let manager = Arc::from(self.name);
        Children::new(self.client.clone(), manager, declared)
    }

    /// Keeps the operator unready until the streams hold tickets of their own.
    pub(super) fn startup_lists(&self, has_indices: bool) -> StartupLists {
        let state = &self.observability.state;
        (
            state.listed.expect_list(STARTING.to_owned()),
            has_indices.then(|| {
                let gates = [&state.indexed, &state.indexed_in_pause];
                gates.map(|gate| gate.expect_list(STARTING.to_owned()))
            }),
        )
    }

    pub(super) fn health_checks(
        &self,
        probes: Vec<Hook<ProbeContext>>,
        requests: Option<ProbeReceiver>,
    ) -> Tasks {
        let mut tasks = Tasks::default();
        if self.observability.health_server.is_running() {
            let heartbeat = self.observability.state.heartbeats.heartbeat("the runtime");
            tasks.spawn("runtime", health::beat(heartbeat));
        }
        if let Some(requests) = requests {
            let probing = ProbeRunner {
                probes,
                client: self.client.clone(),
                indices: self.indices.clone(),
                settings: Arc::clone(&self.settings),
            };
            tasks.spawn("probes", probing.run(requests));
        }
        tasks
    }

    pub(super) async fn admission(
        &self,
        options: Webhooks,
        webhooks: Vec<(ResourceTarget, RegisteredWebhook)>,
        namespaces: &Namespaces,
        selected: SelectedKinds,
    ) -> Result<Option<RunningWebhooks>, Error> {
        if webhooks.is_empty() {
            return Ok(None);
        }
        let state = &self.observability.state;
        let started = RunningWebhooks::start(
            self.name,
            options,
            webhooks,
            namespaces.into(),
            self.client.clone(),
            WebhookDependencies {
                lookup: GatedIndices {
                    indices: self.indices.clone(),
                    gate: state.indexed.clone(),
                    gate_of_pauses: state.indexed_in_pause.clone(),
                    pause_gate: state.pause_gate.clone(),
                },
                selected,
                heartbeats: &state.heartbeats,
                metrics: &self.observability.metrics,
            },
        );
        match started.await {
            Ok(admission) => Ok(Some(admission)),
            Err(error) => Err(Error::Admission(Box::new(error))),
        }
    }

    /// The served namespaces, and the task that keeps them up to date if they can change.
    pub(super) fn namespace_scope(
        &self,
        namespaces: &Namespaces,
    ) -> (NamespaceScope, Option<impl Future<Output = ()> + use<>>) {
        NamespaceScope::of(
            namespaces,
            self.client.clone(),
            self.stream_settings(),
            self.settings.networking.request_timeout,
            !self.settings.scanning.disabled,
        )
    }

    pub(super) fn coordination(
        &self,
        name: &'static str,
        namespace_scope: NamespaceScope,
        peering: PeeringSettings,
        leader_election: Option<LeaderElectionSettings>,
        identity: Option<String>,
        clock: WallClock,
    ) -> Result<CoordinationTasks, Error> {
        let state = &self.observability.state;
        CoordinationTasks::start(
            &state.switch,
            &state.pause_gate,
            CoordinationConfig {
                client: self.client.clone(),
                name,
                namespace_scope,
                peering,
                leader_election,
                identity,
                clock,
                streams: self.stream_settings(),
                metrics: self.observability.metrics.clone(),
                heartbeats: state.heartbeats.clone(),
            },
        )
    }

    /// The served resources and the task that keeps them up to date, if a declaration needs them.
    pub(super) fn discovery(
        &self,
        declarations: &Declarations,
    ) -> Option<(
        tokio::sync::watch::Receiver<Discovered>,
        impl Future<Output = ()> + use<>,
    )> {
        declarations.need_discovery().then(|| {
            DiscoveryWatcher::start(
                self.client.clone(),
                self.stream_settings(),
                self.settings.networking.request_timeout,
                !self.settings.scanning.disabled,
            )
        })
    }

    /// The poster of Kubernetes events and its task; neither if posting is disabled.
    pub(super) fn posting(&self) -> (Option<EventPoster>, Tasks) {
        let mut tasks = Tasks::default();
        let state = &self.observability.state;
        let poster = self.settings.posting.enabled.then(|| {
            let (poster, posting) = posting::poster(
                self.client.clone(),
                state.pause_gate.clone(),
                self.settings.posting.clone(),
                self.observability.metrics.posting(),
                state.heartbeats.heartbeat("the posting of events"),
            );
            tasks.spawn("posting of events", posting);
            poster.with_journal(self.observability.journal.clone())
        });
        (poster, tasks)
    }

    pub(super) fn handler_services(&self, poster: Option<EventPoster>) -> Arc<OperatorServices> {
        Arc::new(OperatorServices {
            client: self.client.clone(),
            field_manager: self.name.into(),
            poster,
            pause_gate: self.observability.state.pause_gate.clone(),
            indices: self.indices.clone(),
            applied: AppliedUids::default(),
            journal: self.observability.journal.clone(),
        })
    }

    /// Starts the watchers, and the discovery of kinds that have webhooks but no streams.
    pub(super) fn watchers(
        &self,
        declarations: &Declarations,
        namespace_watcher: Option<impl Future<Output = ()> + Send + 'static>,
        discovery_watcher: Option<impl Future<Output = ()> + Send + 'static>,
    ) -> Tasks {
        let mut tasks = Tasks::default();
        if let Some(watcher) = namespace_watcher {
            tasks.spawn("watch of namespaces", watcher);
        }
        let kinds = declarations.webhook_kinds();
        if !kinds.is_empty() {
            let timeout = self.settings.networking.request_timeout;
            let describing = discovery::describe(kinds, self.client.clone(), timeout);
            tasks.spawn("discovery of kinds with webhooks", describing);
        }
        if let Some(watcher) = discovery_watcher {
            tasks.spawn("discovery of kinds", watcher);
        }
        tasks
    }

    /// The daemons and timers, and the task that runs them if any are declared.
    pub(super) fn background(
        &self,
        has_background: bool,
        services: &Arc<OperatorServices>,
        sender: &QueueSender,
        stop: &CancellationToken,
        feeders: &mut Tasks,
    ) -> (Arc<Background>, Tasks) {
        let staff = BackgroundSetup::new(Arc::clone(&self.settings), Arc::clone(services));
        let background = Arc::clone(&staff.background);
        let mut scheduler = Tasks::default();
        if has_background {
            let heartbeats = &self.observability.state.heartbeats;
            let (running, nudges) = staff.scheduler(
                self.queue_limits(),
                heartbeats.heartbeat("the scheduler of daemons and timers"),
                stop.clone(),
            );
            scheduler.spawn("daemons and timers", running);
            let pauses = Arc::clone(&background).follow_pauses();
            feeders.spawn("pauses of daemons and timers", pauses);
            let forwarding = forward(nudges, sender.clone());
            feeders.spawn("ends of daemons and timers", forwarding);
        }
        (background, scheduler)
    }

    pub(super) fn stream_services(
        &self,
        sender: &QueueSender,
        services: &Arc<OperatorServices>,
        serves_webhooks: bool,
        children: &Arc<Children>,
    ) -> StreamServices {
        let state = &self.observability.state;
        StreamServices {
            settings: self.stream_settings(),
            sink: sender.clone(),
            pause_gate: state.pause_gate.clone(),
            finalizer: self.settings.persistence.finalizer.clone(),
            services: Arc::clone(services),
            gate: state.indexed.clone(),
            gate_of_pauses: serves_webhooks.then(|| state.indexed_in_pause.clone()),
            listed: state.listed.clone(),
            default_backoff: self.settings.execution.default_backoff,
            heartbeats: state.heartbeats.clone(),
            children: Arc::clone(children),
            metrics: self.observability.metrics.clone(),
        }
    }

    pub(super) fn pipeline(
        &self,
        kinds: Arc<HandledKinds>,
        background: &Arc<Background>,
        children: Arc<Children>,
        services: Arc<OperatorServices>,
        stop: &CancellationToken,
    ) -> Arc<Pipeline> {
        Arc::new(Pipeline::new(
            kinds,
            Arc::clone(background),
            children,
            services,
            Arc::clone(&self.settings),
            stop.clone(),
        ))
    }

    /// Warns as long as indices are not complete.
    pub(super) fn index_reminder(&self) -> impl Future<Output = ()> + use<> {
        let state = &self.observability.state;
        list_gate::warn_while_incomplete(
            state.indexed.clone(),
            state.pause_gate.clone(),
            state.heartbeats.condition("indices", ConditionState::Idle),
        )
    }

    pub(super) fn queue(
        &self,
        pipeline: Arc<Pipeline>,
        items: QueueReceiver,
        stop: &CancellationToken,
    ) -> Tasks {
        let state = &self.observability.state;
        let mut tasks = Tasks::default();
        tasks.spawn(
            "queue",
            queue::run(
                pipeline,
                items,
                self.queue_limits(),
                state.pause_gate.clone(),
                state.indexed.clone(),
                queue::QueueHealth {
                    heartbeat: state.heartbeats.heartbeat("the queue"),
                    metrics: self.observability.metrics.queue(),
                },
                queue::QueueShutdown {
                    stop: stop.clone(),
                    grace: self.settings.shutdown.grace,
                },
            ),
        );
        tasks
    }

    fn queue_limits(&self) -> QueueLimits {
        let queueing = &self.settings.queueing;
        QueueLimits::new(queueing.worker_limit, queueing.worker_patience)
    }

    fn stream_settings(&self) -> StreamSettings {
        let watching = &self.settings.watching;
        StreamSettings {
            page_size: watching.page_size,
            inactivity_timeout: watching.inactivity_timeout,
            server_timeout: watching.server_timeout,
            first_pause: watching.reconnect_backoff,
            longest_pause: watching.longest_backoff,
        }
    }
}

/// Makes the queue process an object again when one of its daemons or timers has ended.
async fn forward(mut ended: mpsc::UnboundedReceiver<Arc<ObjectKey>>, sender: QueueSender) {
    while let Some(key) = ended.recv().await {
        // Without a queue the operator stops; the next start processes every object.
        if sender.send((key, QueueItem::Requeue)).await.is_err() {
            return std::future::pending().await;
        }
    }
}

/// Lets changes of children reach the queue, if there are children.
pub(super) fn feed_owners(children: &Arc<Children>, sender: &QueueSender, feeders: &mut Tasks) {
    if !children.kinds().is_empty() {
        let forwarding = forward_owners(Arc::clone(children), sender.clone());
        feeders.spawn("changes of children", forwarding);
    }
}

/// Makes the queue handle owners again whose children, or whose objects that they refer to, changed.
///
/// An owner leaves only when the queue has a place for it, so that what happens meanwhile is added to
/// its reasons.
async fn forward_owners(children: Arc<Children>, sender: QueueSender) {
    let requeues = children.requeues();
    loop {
        requeues.filled().await;
        let Ok(place) = sender.reserve().await else {
            return std::future::pending().await;
        };
        let Some((key, reasons)) = requeues.take() else {
            continue;
        };
        place.send(match reasons.is_empty() {
            true => (key, QueueItem::Requeue),
            false => (key, QueueItem::Reconcile(reasons)),
        });
    }
}
