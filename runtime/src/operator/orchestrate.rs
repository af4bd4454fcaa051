//! Starts the parts of an operator, watches over them, and stops them in order.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::info;

use super::{Error, Namespaces, Operator};
use crate::admission::engine::Engine as Admission;
use crate::engine::posting;
use crate::process::{Kind, Pipeline};
use crate::queue::{self, Limits};
use crate::resource::Scope;
use crate::settings::Settings;
use crate::task::Tasks;
use crate::watch::KindIndex;
use crate::watch::stream::{self, Stream, StreamSettings};

/// News on their way to the queue; a full channel makes the streams wait.
const NEWS_IN_FLIGHT: usize = 64;

/// The queue ends by itself after the grace for its workers.
const QUEUE_MARGIN: Duration = Duration::from_secs(1);

pub(super) async fn run(
    operator: Operator,
    client: Client,
    stop: impl Future<Output = ()>,
) -> Result<(), Error> {
    let settings = Arc::new(operator.settings);
    let persistence = Arc::new(settings.persistence.clone());
    let mut kinds: Vec<Kind> = Vec::new();
    let mut webhooks = Vec::new();
    let mut unwatched = Vec::new();
    for mut resource in operator.resources {
        let spec = resource.spec;
        if kinds.iter().any(|kind| kind.spec().is_same_kind(&spec)) {
            return Err(Error::DeclaredTwice { kind: spec.kind });
        }
        let declared = std::mem::take(&mut resource.webhooks);
        if resource.handlers.is_empty() && !declared.is_empty() {
            unwatched.push(KindIndex(u16::try_from(kinds.len()).unwrap_or(u16::MAX)));
        }
        webhooks.extend(declared.into_iter().map(|webhook| (spec, webhook)));
        let made = Kind::new(resource, client.clone(), Arc::clone(&persistence));
        kinds.push(made.map_err(|source| Error::Declaration {
            kind: spec.kind,
            source,
        })?);
    }

    let mut admission = match webhooks.is_empty() {
        true => None,
        false => Some(
            Admission::start(
                operator.name,
                operator.webhooks,
                webhooks,
                operator.namespaces.names(),
                client.clone(),
            )
            .await
            .map_err(|error| Error::Admission(Box::new(error)))?,
        ),
    };
    let mut engines = Tasks::default();
    let poster = settings.posting.enabled.then(|| {
        let (poster, posting) = posting::poster(client);
        engines.spawn("posting of events", posting);
        poster
    });
    let (sink, news) = mpsc::channel(NEWS_IN_FLIGHT);
    let mut streams = Tasks::default();
    for (index, kind) in (0..).map(KindIndex).zip(&kinds) {
        if unwatched.contains(&index) {
            continue;
        }
        for namespace in scopes(&operator.namespaces, kind.spec().scope) {
            let stream = Stream {
                api: kind.api().clone(),
                kind: index,
                namespace,
                retain: kind.retain(),
                settings: stream_settings(&settings),
            };
            let name = format!("watch {}", kind.api().describe(stream.namespace.as_deref()));
            streams.spawn(name, stream::run(stream, sink.clone()));
        }
    }
    // Without streams, nothing ever comes; the queue need not end because of that.
    let _idle = streams.is_empty().then_some(sink);

    let halt = CancellationToken::new();
    let pipeline = Arc::new(Pipeline::new(
        kinds,
        poster,
        Arc::clone(&settings),
        halt.clone(),
    ));
    let limits = Limits {
        busy: settings.queueing.worker_limit,
        patience: settings.queueing.worker_patience,
    };
    let mut workers = Tasks::default();
    let grace = settings.shutdown.grace;
    workers.spawn(
        "queue",
        queue::run(pipeline, news, limits, halt.clone(), grace),
    );

    let ended = tokio::select! {
        () = stop => Ok(()),
        ended = streams.ended(), if !streams.is_empty() => Err(Error::ended(&ended)),
        ended = workers.ended() => Err(Error::ended(&ended)),
        ended = engines.ended(), if !engines.is_empty() => Err(Error::ended(&ended)),
        failed = failed(admission.as_mut()) => Err(failed),
    };
    streams.cancel().await;
    halt.cancel();
    let reviews = async {
        if let Some(admission) = admission {
            admission.stop(grace).await;
        }
    };
    tokio::join!(workers.drain(grace + QUEUE_MARGIN), reviews);
    engines.drain(settings.shutdown.posting_grace).await;
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

/// The namespaces to watch one by one; none stands for all at once.
fn scopes(namespaces: &Namespaces, scope: Scope) -> Vec<Option<String>> {
    match (namespaces, scope) {
        (Namespaces::Only(names), Scope::Namespaced) => {
            let unique: BTreeSet<&String> = names.iter().collect();
            unique.into_iter().cloned().map(Some).collect()
        }
        (Namespaces::Only(_), Scope::Cluster) | (Namespaces::All, _) => vec![None],
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
