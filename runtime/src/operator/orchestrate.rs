//! Starts the parts of an operator, watches over them, and stops them in order.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::coordination::{CoordinationConfig, CoordinationTasks};
use super::declarations::Declarations;
use super::discovery::{self, DiscoveryWatcher};
use super::namespaces::NamespaceScope;
use super::observability::OperatorStatus;
use super::streams::{Course, Streams};
use super::{Error, Operator};
use crate::admission::engine::{Around, Engine as Admission};
use crate::background::Staff;
use crate::events::posting;
use crate::health;
use crate::health::probe::Probing;
use crate::index::readiness::{self, ReadyIndices};
use crate::process::Pipeline;
use crate::process::execute::scope::OperatorServices;
use crate::queue::{self, QueueLimits};
use crate::registration::ResourceHandlers;
use crate::settings::Settings;
use crate::task::Tasks;
use crate::task::heartbeat::{ConditionState, OperatorPhase};
use crate::watch::stream::StreamSettings;
use crate::watch::{ObjectKey, QueueItem};

/// News on their way to the queue; a full channel makes the streams wait.
const NEWS_IN_FLIGHT: usize = 64;

/// What is waited for as long as nobody knows what else is.
const START: &str = "the start of the operator";

/// The queue ends by itself after the grace for its workers.
const QUEUE_MARGIN: Duration = Duration::from_secs(1);

pub(super) async fn run(
    operator: Operator,
    watched: &mut OperatorStatus,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let OperatorStatus {
        switch,
        pause_gate,
        heartbeats,
        metrics,
        listed,
        indexed: gate,
        questions,
        served,
    } = watched;
    let pause_gate = pause_gate.clone();
    let settings = Arc::new(operator.settings);
    let persistence = Arc::new(settings.persistence.clone());
    let mut declarations = Declarations::new(
        operator.resources,
        client.clone(),
        Arc::clone(&persistence),
        settings.networking.request_timeout,
        metrics.clone(),
        heartbeats,
    )?;
    let webhooks = declarations.take_webhooks();
    let webhook_kinds = declarations.unwatched();

    let indices = operator.indices;
    let has_indices = declarations.iter().any(ResourceHandlers::has_indices);
    let has_duties = declarations.iter().any(ResourceHandlers::has_duties);
    // Nobody may think that there is nothing to wait for before the streams are there.
    let starting = (
        listed.ticket(START.to_owned()),
        has_indices.then(|| gate.ticket(START.to_owned())),
    );
    let mut essentials = Tasks::default();
    if served.is_somewhere() {
        essentials.spawn("runtime", health::beat(heartbeats.heartbeat("the runtime")));
    }
    if let Some(questions) = questions.take() {
        let probing = Probing {
            probes: operator.handlers.probes,
            client: client.clone(),
            indices: indices.clone(),
            cached_for: settings.health.probe_cache,
        };
        essentials.spawn("probes", probing.run(questions));
    }

    let mut admission = None;
    if !webhooks.is_empty() {
        let started = Admission::start(
            operator.name,
            operator.webhooks,
            webhooks,
            (&operator.namespaces).into(),
            client.clone(),
            Around {
                lookup: ReadyIndices {
                    indices: indices.clone(),
                    gate: gate.clone(),
                    pause_gate: pause_gate.clone(),
                },
                heartbeats,
                metrics,
            },
        );
        let started = started.await;
        admission = Some(started.map_err(|error| Error::Admission(Box::new(error)))?);
    }
    let (namespace_scope, following) = NamespaceScope::of(
        &operator.namespaces,
        client.clone(),
        stream_settings(&settings),
        settings.networking.request_timeout,
        !settings.scanning.disabled,
    );
    let mut coordination = CoordinationTasks::start(
        switch,
        &pause_gate,
        CoordinationConfig {
            client: client.clone(),
            name: operator.name,
            namespace_scope: namespace_scope.clone(),
            peering: operator.peering,
            leader_election: operator.leader_election,
            identity: operator.identity,
            clock: operator.clock,
            streams: stream_settings(&settings),
            metrics: metrics.clone(),
            heartbeats: heartbeats.clone(),
        },
    )?;
    let discovery = declarations.are_open().then(|| {
        DiscoveryWatcher::send_out(
            client.clone(),
            stream_settings(&settings),
            settings.networking.request_timeout,
            !settings.scanning.disabled,
        )
    });
    let (discovered, scouting) = discovery.unzip();
    let mut engines = Tasks::default();
    let poster = settings.posting.enabled.then(|| {
        let (poster, posting) = posting::poster(
            client.clone(),
            pause_gate.clone(),
            settings.posting.clone(),
            metrics.posting(),
            heartbeats.heartbeat("the posting of events"),
        );
        engines.spawn("posting of events", posting);
        poster
    });
    let limits = QueueLimits {
        busy: settings.queueing.worker_limit,
        patience: settings.queueing.worker_patience,
    };
    let (sink, news) = mpsc::channel(NEWS_IN_FLIGHT);
    let services = |poster| {
        Arc::new(OperatorServices {
            client: client.clone(),
            poster,
            pause_gate: pause_gate.clone(),
            indices: indices.clone(),
        })
    };
    // Whoever fills an index has nothing to tell about the object.
    let clerks = services(None);
    let services = services(poster);
    let staff = Staff::new(Arc::clone(&settings), Arc::clone(&services));
    let background = Arc::clone(&staff.background);
    let quit = CancellationToken::new();
    let (mut crew, mut couriers) = (Tasks::default(), Tasks::default());
    if let Some(following) = following {
        couriers.spawn("following of namespaces", following);
    }
    if !webhook_kinds.is_empty() {
        let patience = settings.networking.request_timeout;
        let describing = discovery::describe(webhook_kinds, client.clone(), patience);
        couriers.spawn("descriptions of kinds with webhooks", describing);
    }
    if let Some(scouting) = scouting {
        couriers.spawn("discovery of kinds", scouting);
    }
    if has_duties {
        let (working, nudges) = staff.crew(
            limits,
            heartbeats.heartbeat("the crew of daemons and timers"),
            quit.clone(),
        );
        crew.spawn("daemons and timers", working);
        let pauses = Arc::clone(&background).follow_pauses();
        couriers.spawn("pauses of daemons and timers", pauses);
        couriers.spawn("news of daemons and timers", forward(nudges, sink.clone()));
    } else {
        drop(staff);
    }
    let course = Course {
        settings: stream_settings(&settings),
        sink: sink.clone(),
        pause_gate: pause_gate.clone(),
        finalizer: persistence.finalizer.clone(),
        services: clerks,
        gate: gate.clone(),
        listed: listed.clone(),
        default_backoff: settings.execution.default_backoff,
        heartbeats: heartbeats.clone(),
    };
    let kinds = Arc::clone(declarations.kinds());
    let mut reach = Streams::start(course, declarations, discovered, namespace_scope, starting)?;
    // Without streams, nothing ever comes; the queue need not end because of that.
    let _idle = reach.is_idle().then_some(sink);

    let halt = CancellationToken::new();
    let pipeline = Arc::new(Pipeline::new(
        kinds,
        Arc::clone(&background),
        services,
        Arc::clone(&settings),
        halt.clone(),
    ));
    if has_indices {
        couriers.spawn(
            "patience with indices",
            readiness::remind(
                gate.clone(),
                pause_gate.clone(),
                heartbeats.condition("indices", ConditionState::Idle),
            ),
        );
    }
    let mut workers = Tasks::default();
    let grace = settings.shutdown.grace;
    workers.spawn(
        "queue",
        queue::run(
            pipeline,
            news,
            limits,
            pause_gate,
            gate.clone(),
            queue::QueueHealth {
                heartbeat: heartbeats.heartbeat("the queue"),
                metrics: metrics.queue(),
            },
            queue::Halt {
                stop: halt.clone(),
                grace,
            },
        ),
    );
    heartbeats.enter_phase(OperatorPhase::Running);

    let ended = tokio::select! {
        () = stop => Ok(()),
        ended = reach.ended() => Err(Error::ended(&ended)),
        ended = workers.ended() => Err(Error::ended(&ended)),
        ended = engines.ended(), if !engines.is_empty() => Err(Error::ended(&ended)),
        ended = crew.ended(), if !crew.is_empty() => Err(Error::ended(&ended)),
        ended = coordination.ended() => Err(Error::ended(&ended)),
        failed = failed(admission.as_mut()) => Err(failed),
        ended = couriers.ended(), if !couriers.is_empty() => Err(Error::ended(&ended)),
        ended = essentials.ended(), if !essentials.is_empty() => Err(Error::ended(&ended)),
        ended = served.ended() => Err(Error::ended(&ended)),
    };
    heartbeats.enter_phase(match &ended {
        Ok(()) => OperatorPhase::Stopping,
        Err(error) => OperatorPhase::Broken(error.to_string()),
    });
    reach.cancel().await;
    couriers.cancel().await;
    halt.cancel();
    let reviews = async {
        if let Some(admission) = admission {
            admission.stop(grace).await;
        }
    };
    let (disobedient, (), ()) = tokio::join!(
        background.shut_down(grace),
        workers.drain(grace + QUEUE_MARGIN),
        reviews
    );
    for name in disobedient {
        error!("{name} has not stopped within {grace:?}: it is interrupted");
    }
    quit.cancel();
    crew.drain(2 * QUEUE_MARGIN).await;
    // With the last of those who may post something, the posting ends by itself.
    drop(background);
    engines.drain(settings.shutdown.posting_grace).await;
    // Only now may others act instead.
    coordination.stop().await;
    info!("all handlers have stopped");
    ended
}

/// Never, if there are no webhooks.
async fn failed(admission: Option<&mut Admission>) -> Error {
    match admission {
        Some(admission) => Error::Admission(Box::new(admission.failed().await)),
        None => std::future::pending().await,
    }
}

/// Makes the queue look at objects beside which something has ended.
async fn forward(
    mut nudges: mpsc::UnboundedReceiver<Arc<ObjectKey>>,
    sink: mpsc::Sender<(Arc<ObjectKey>, QueueItem)>,
) {
    while let Some(key) = nudges.recv().await {
        // Without a queue the operator stops, and objects are looked at when it starts again.
        if sink.send((key, QueueItem::Nudge)).await.is_err() {
            return std::future::pending().await;
        }
    }
}

fn stream_settings(settings: &Settings) -> StreamSettings {
    let watching = &settings.watching;
    StreamSettings {
        page_size: watching.page_size,
        inactivity_timeout: watching.inactivity_timeout,
        server_timeout: watching.server_timeout,
        first_pause: watching.reconnect_backoff,
        longest_pause: watching.longest_backoff,
    }
}
