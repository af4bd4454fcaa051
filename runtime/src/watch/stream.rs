//! The watch stream of a kind in one namespace or in all: lists in pages, then watches, for ever.
//!
//! While the operator is paused, a stream neither lists nor watches, unless indices need it;
//! afterwards it lists anew.
//! After a failure it tries again, in growing intervals: it ends only when its receiver is dropped
//! or its namespace is gone. The next list reveals deletions that happened while no watch was
//! open, and the stream sends events for them as for any other deletion; it does so for all objects
//! when the kind or the namespace is gone.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::watch::known_objects::{KeyedEvent, KnownObjects, Retention};
use kopf_core::watch::stream_failure::{FailureCause, StreamFailure};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::stream_health::StreamHealth;
use super::unserved::{UnservedKind, UnservedReason, UnservedReport};
use super::{
    KindIndex, ObjectHeader, ObjectKey, QueueItem, ReceiverDropped, StreamMessage, WatchEvent,
    WatchEventType,
};
use crate::client::backoff::Backoff;
use crate::client::discovery;
use crate::client::requests::{self, KindApi};
use crate::coordination::pause::{PauseGate, PausePeriod};
use crate::health::metrics::WatchRestart;

/// The next watch is opened at once only if the last one was open for at least this time.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// The time of a watch is up to twice as long as the setting, in this many steps.
const JITTER_STEPS: u32 = 1000;

type StreamObjects = KnownObjects<ObjectKey>;

/// A stream: its kind, its namespace and its settings.
pub(crate) struct WatchStream {
    pub(crate) api: KindApi,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<String>,
    pub(crate) retention: Retention,
    pub(crate) settings: StreamSettings,
    pub(crate) health: StreamHealth,
    /// Whether it lists and watches also while the operator is paused.
    pub(crate) runs_in_pauses: bool,
}

/// The page size and the timeouts of a stream.
#[derive(Debug, Clone)]
pub(crate) struct StreamSettings {
    pub(crate) page_size: u32,
    /// The API server sends a bookmark about once a minute: a longer silence is a dead connection.
    pub(crate) inactivity_timeout: Duration,
    /// The API server ends the watch after this time, so that load spreads over its replicas.
    pub(crate) server_timeout: Duration,
    pub(crate) first_pause: Duration,
    pub(crate) longest_pause: Duration,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("listing failed")]
    List(#[source] requests::Error),
    #[error("opening the watch failed")]
    Open(#[source] requests::Error),
    #[error("the API server ended the watch with an error")]
    InStream(#[source] requests::Error),
    #[error("the API server closed the watch at once")]
    ClosedAtOnce,
    #[error("reading from the watch failed")]
    Read(#[source] std::io::Error),
    #[error("the watch sent a line that is no event")]
    Decode(#[source] serde_json::Error),
}

/// The receiver of watch events.
#[derive(Debug)]
pub(crate) enum StreamOutput {
    /// The queue.
    Queue(mpsc::Sender<(Arc<ObjectKey>, QueueItem)>),
    /// The queue, and an observer of complete lists.
    QueueWithObserver(
        mpsc::Sender<(Arc<ObjectKey>, QueueItem)>,
        Box<dyn ListObserver>,
    ),
    /// The index updater of the kind, which forwards to the queue.
    Indices(mpsc::Sender<StreamMessage>),
}

/// An observer of complete lists.
pub(crate) trait ListObserver: std::fmt::Debug + Send + Sync {
    /// The list of this epoch is complete.
    fn listed(&self, epoch: u64);
}

enum State {
    Unlisted,
    Listed { version: String },
}

/// The end of one list or one watch.
enum StreamStep {
    Continue(State),
    ReceiverDropped,
}

/// A running stream with its position.
struct StreamRun<'a> {
    stream: &'a WatchStream,
    output: &'a StreamOutput,
    pause_gate: &'a PauseGate,
    period: PausePeriod,
    state: State,
    unserved: Option<UnservedKind>,
    backoff: Backoff,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Runs the stream until its receiver is dropped.
pub(crate) async fn run(stream: WatchStream, output: StreamOutput, pause_gate: PauseGate) {
    run_until(stream, output, pause_gate, CancellationToken::new()).await;
}

/// Runs the stream until its receiver is dropped, or until its namespace is gone.
pub(crate) async fn run_until(
    stream: WatchStream,
    output: StreamOutput,
    pause_gate: PauseGate,
    gone: CancellationToken,
) {
    let mut known_objects = StreamObjects::new(stream.retention);
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = follow(&stream, &mut known_objects, &output, &pause_gate) => return,
    }
    // Without a receiver the operator ends anyway.
    let _ = remove_all(&mut known_objects, &output).await;
}

async fn follow(
    stream: &WatchStream,
    known_objects: &mut StreamObjects,
    output: &StreamOutput,
    pause_gate: &PauseGate,
) {
    let mut run = StreamRun {
        stream,
        output,
        pause_gate,
        period: stream.next_period(pause_gate).await,
        state: State::Unlisted,
        unserved: None,
        backoff: Backoff::new(stream.settings.first_pause, stream.settings.longest_pause),
    };
    loop {
        let result = match run.step(known_objects).await {
            None => {
                known_objects.end_list();
                run.restart_after_pause().await;
                Ok(())
            }
            Some(Ok(StreamStep::ReceiverDropped)) => return,
            Some(Ok(StreamStep::Continue(state))) => {
                run.unserved = None;
                run.state = state;
                Ok(())
            }
            Some(Err(Error::List(requests::Error::NotFound))) => {
                known_objects.end_list();
                run.wait_until_served(known_objects).await
            }
            Some(Err(error)) => {
                if !error.failure().interrupts_list() {
                    known_objects.end_list();
                }
                run.wait_after(&error).await
            }
        };
        if result.is_err() {
            return;
        }
    }
}

// === impl StreamRun ===

impl StreamRun<'_> {
    /// Lists or watches once; none if a pause has begun or ended meanwhile.
    async fn step(
        &mut self,
        known_objects: &mut StreamObjects,
    ) -> Option<Result<StreamStep, Error>> {
        let Self {
            stream,
            output,
            period,
            backoff,
            ..
        } = self;
        let state = &mut self.state;
        let step = async {
            match state {
                State::Unlisted => {
                    stream.describe_kind().await;
                    stream.list(known_objects, output, *period).await
                }
                State::Listed { version } => {
                    stream.watch(version, known_objects, output, backoff).await
                }
            }
        };
        tokio::select! {
            biased;
            () = self.pause_gate.period_ended(*period) => None,
            step = step => Some(step),
        }
    }

    /// Waits for the end of a pause; everything is listed anew then.
    async fn restart_after_pause(&mut self) {
        self.period = self.stream.next_period(self.pause_gate).await;
        self.unserved = None;
        self.state = State::Unlisted;
        self.backoff.reset();
    }

    /// Waits until the API server may serve the kind. If the kind is gone, first sends deletion
    /// events for its objects.
    async fn wait_until_served(
        &mut self,
        known_objects: &mut StreamObjects,
    ) -> Result<(), ReceiverDropped> {
        let stream = self.stream;
        self.state = State::Unlisted;
        stream.api.description().mark_stale();
        let unserved = self
            .unserved
            .get_or_insert_with(|| UnservedKind::new(&stream.api));
        let UnservedReport {
            reason,
            message,
            is_new,
        } = unserved.check().await;
        if is_new {
            warn!(kind = %stream.describe(), "{message}");
            self.backoff.reset();
        }
        stream.health.unserved(message);
        stream.health.rest();
        if reason == UnservedReason::Gone {
            remove_all(known_objects, self.output).await?;
        }
        self.output
            .list_failed(self.period, &requests::Error::NotFound)
            .await?;
        let pause = self.backoff.next(None);
        tokio::select! {
            () = unserved.wait_for_change(pause) => {}
            () = self.pause_gate.period_ended(self.period) => {}
        }
        Ok(())
    }

    /// Reports a failed list or watch, and waits until it is to be tried again.
    async fn wait_after(&mut self, error: &Error) -> Result<(), ReceiverDropped> {
        let stream = self.stream;
        let pause = self.backoff.next(error.retry_after());
        stream.report(error, pause);
        stream.health.beat_within(pause);
        if let Some(restart) = error.restart() {
            stream.health.count_restart(restart);
        }
        if let Error::List(cause) = error {
            self.output.list_failed(self.period, cause).await?;
        }
        if error.failure().needs_list() {
            self.state = State::Unlisted;
            stream.api.description().mark_stale();
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = self.pause_gate.period_ended(self.period) => {}
        }
        Ok(())
    }
}

// === impl WatchStream ===

impl WatchStream {
    /// Waits until the stream may list.
    async fn next_period(&self, pause_gate: &PauseGate) -> PausePeriod {
        self.health.paused();
        pause_gate.next_period(self.runs_in_pauses).await
    }

    /// Reads the description of the kind from discovery, for its handlers.
    async fn describe_kind(&self) {
        self.health.rest();
        let asked = discovery::description(self.api.client(), self.api.spec(), self.api.timeout());
        if let Err(error) = self.api.description().discover_if_stale(asked).await {
            debug!(kind = %self.describe(), "discovery of the kind failed: {error}");
        }
    }

    async fn list(
        &self,
        known_objects: &mut StreamObjects,
        output: &StreamOutput,
        period: PausePeriod,
    ) -> Result<StreamStep, Error> {
        known_objects.begin_list();
        self.health.listing();
        let mut next = None;
        loop {
            self.health.rest();
            let page = self
                .api
                .list_page(self.namespace.as_deref(), self.settings.page_size, next)
                .await
                .map_err(Error::List)?;
            for text in &page.items {
                let Some(header) = self.header(text) else {
                    continue;
                };
                let Some((key, state)) = self.state(WatchEventType::Listed, &header, text) else {
                    continue;
                };
                if let Some(event) = known_objects.record(key, state)
                    && self.send(output, event).await.is_err()
                {
                    return Ok(StreamStep::ReceiverDropped);
                }
            }
            next = page.next;
            if next.is_none() {
                known_objects.remove_missing();
                if self.send_deletions(known_objects, output).await.is_err() {
                    return Ok(StreamStep::ReceiverDropped);
                }
                self.health.listed();
                if output.listed(period).await.is_err() {
                    return Ok(StreamStep::ReceiverDropped);
                }
                return Ok(StreamStep::Continue(State::Listed {
                    version: page.resource_version,
                }));
            }
        }
    }

    async fn watch(
        &self,
        version: &mut String,
        known_objects: &mut StreamObjects,
        output: &StreamOutput,
        backoff: &mut Backoff,
    ) -> Result<StreamStep, Error> {
        let server_timeout = self.settings.server_timeout;
        let extra = server_timeout / JITTER_STEPS * fastrand::u32(..JITTER_STEPS);
        let server_timeout = server_timeout.saturating_add(extra);
        self.health.beat_within(self.api.timeout());
        let opened = self
            .api
            .watch(self.namespace.as_deref(), version, server_timeout)
            .await;
        let mut lines = LineReader::new(opened.map_err(Error::Open)?);
        let opened_at = Instant::now();
        self.health.watching();
        loop {
            self.health.beat_within(self.settings.inactivity_timeout);
            let line = timeout(self.settings.inactivity_timeout, lines.next()).await;
            if !matches!(line, Ok(Ok(Some(_)))) {
                known_objects.end_list();
            }
            let Ok(line) = line else {
                debug!(kind = %self.describe(), "no event for too long, reconnecting");
                self.health.count_restart(WatchRestart::Silent);
                break;
            };
            // The receiver may take its time.
            self.health.rest();
            let Some(line) = line.map_err(Error::Read)? else {
                if opened_at.elapsed() < SHORTEST_WATCH {
                    return Err(Error::ClosedAtOnce);
                }
                self.health.count_restart(WatchRestart::Closed);
                break;
            };
            let raw: RawEvent<'_> = serde_json::from_slice(line).map_err(Error::Decode)?;
            if raw.r#type == "ERROR" {
                return Err(Error::InStream(in_stream_error(raw.object)));
            }
            backoff.reset();
            known_objects.end_list();
            let Some(header) = self.header(raw.object) else {
                continue;
            };
            if let Some(newer) = header.version() {
                newer.clone_into(version);
            }
            let event_type = match &*raw.r#type {
                "ADDED" => WatchEventType::Added,
                "MODIFIED" => WatchEventType::Modified,
                "DELETED" => WatchEventType::Deleted,
                "BOOKMARK" => continue,
                other => {
                    warn!(kind = %self.describe(), "ignoring an event of unknown type {other:?}");
                    continue;
                }
            };
            let text = raw.object.to_owned().into();
            let Some((key, state)) = self.state(event_type, &header, &text) else {
                continue;
            };
            let sent = match known_objects.record(key, state) {
                Some(event) => self.send(output, event).await,
                None => self.send_deletions(known_objects, output).await,
            };
            if sent.is_err() {
                return Ok(StreamStep::ReceiverDropped);
            }
        }
        Ok(StreamStep::Continue(State::Listed {
            version: std::mem::take(version),
        }))
    }

    async fn send_deletions(
        &self,
        known_objects: &mut StreamObjects,
        output: &StreamOutput,
    ) -> Result<(), ReceiverDropped> {
        while let Some(event) = known_objects.unsent_deletion() {
            self.send(output, event).await?;
            known_objects.deletion_sent();
        }
        Ok(())
    }

    async fn send(
        &self,
        output: &StreamOutput,
        (key, watch_event): KeyedEvent<ObjectKey>,
    ) -> Result<(), ReceiverDropped> {
        self.health.count_event(watch_event.event_type);
        output.send((key, watch_event)).await
    }

    /// Parses the header of an object; one that is malformed must not stop the others.
    fn header<'a>(&self, text: &'a RawValue) -> Option<ObjectHeader<'a>> {
        ObjectHeader::at(text)
            .inspect_err(|error| {
                warn!(kind = %self.describe(), "ignoring a malformed object: {error}");
            })
            .ok()
    }

    /// The identity and the state of an object; none if it has no name or uid.
    fn state(
        &self,
        event_type: WatchEventType,
        header: &ObjectHeader<'_>,
        text: &Arc<RawValue>,
    ) -> Option<(ObjectKey, WatchEvent)> {
        let Some(key) = header.key(self.kind) else {
            warn!(kind = %self.describe(), "ignoring an object without a name or a uid");
            return None;
        };
        let state = WatchEvent {
            event_type,
            version: header.version().map(ResourceVersion::new),
            text: Arc::clone(text),
        };
        Some((key, state))
    }

    fn report(&self, error: &Error, pause: Duration) {
        let kind = self.describe();
        let pause = pause.as_secs_f32();
        let message = match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        if error.is_routine() {
            info!(%kind, "{message}; trying again in {pause:.1} s");
        } else {
            self.health.failing(message.clone());
            warn!(%kind, "{message}; trying again in {pause:.1} s");
        }
    }

    fn describe(&self) -> String {
        self.api.describe(self.namespace.as_deref())
    }
}

// === impl Error ===

impl Error {
    /// The failure, as far as it decides about the next list.
    fn failure(&self) -> StreamFailure {
        let cause = |error: &requests::Error| match error {
            requests::Error::Expired => FailureCause::Expired,
            error if error.is_transient() => FailureCause::Transient,
            _ => FailureCause::Other,
        };
        match self {
            Self::List(_) => StreamFailure::List,
            Self::Open(error) => StreamFailure::Open(cause(error)),
            Self::InStream(error) => StreamFailure::InStream(cause(error)),
            Self::Read(_) => StreamFailure::Read,
            Self::ClosedAtOnce => StreamFailure::ClosedAtOnce,
            Self::Decode(_) => StreamFailure::Decode,
        }
    }

    /// The way a watch ended, if there was one.
    fn restart(&self) -> Option<WatchRestart> {
        match self {
            Self::List(_) => None,
            Self::Open(requests::Error::Expired) | Self::InStream(requests::Error::Expired) => {
                Some(WatchRestart::Expired)
            }
            Self::ClosedAtOnce => Some(WatchRestart::Closed),
            Self::Open(_) | Self::InStream(_) | Self::Read(_) | Self::Decode(_) => {
                Some(WatchRestart::Failed)
            }
        }
    }

    fn is_routine(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::ClosedAtOnce
                | Self::List(requests::Error::Expired)
                | Self::Open(requests::Error::Expired)
                | Self::InStream(requests::Error::Expired)
        )
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::List(error) | Self::Open(error) | Self::InStream(error) => error.retry_after(),
            Self::Read(_) | Self::ClosedAtOnce | Self::Decode(_) => None,
        }
    }
}

/// Reads the lines of a response body into one buffer.
struct LineReader<R> {
    body: std::pin::Pin<Box<R>>,
    buffer: Vec<u8>,
}

impl<R: AsyncBufRead> LineReader<R> {
    fn new(body: R) -> Self {
        Self {
            body: Box::pin(body),
            buffer: Vec::new(),
        }
    }

    /// The next complete line; a line that the connection cut short counts as the end.
    async fn next(&mut self) -> std::io::Result<Option<&[u8]>> {
        self.buffer.clear();
        self.body
            .as_mut()
            .read_until(b'\n', &mut self.buffer)
            .await?;
        Ok(self.buffer.strip_suffix(b"\n"))
    }
}

/// Sends deletion events for all objects.
async fn remove_all(
    known_objects: &mut StreamObjects,
    output: &StreamOutput,
) -> Result<(), ReceiverDropped> {
    known_objects.remove_all();
    while let Some(event) = known_objects.unsent_deletion() {
        output.send(event).await?;
        known_objects.deletion_sent();
    }
    Ok(())
}

// === impl StreamOutput ===

impl StreamOutput {
    async fn send(&self, (key, watch_event): KeyedEvent<ObjectKey>) -> Result<(), ReceiverDropped> {
        match self {
            Self::Queue(queue) | Self::QueueWithObserver(queue, _) => {
                let sent = queue.send((key, QueueItem::Event(watch_event))).await;
                sent.map_err(|_| ReceiverDropped)
            }
            Self::Indices(indices) => {
                let sent = indices.send(StreamMessage::Event(key, watch_event)).await;
                sent.map_err(|_| ReceiverDropped)
            }
        }
    }

    async fn listed(&self, period: PausePeriod) -> Result<(), ReceiverDropped> {
        if let Self::QueueWithObserver(_, observer) = self {
            observer.listed(period.epoch);
        }
        self.send_to_indices(|| StreamMessage::Listed(period)).await
    }

    async fn list_failed(
        &self,
        period: PausePeriod,
        cause: &requests::Error,
    ) -> Result<(), ReceiverDropped> {
        let message = || match cause {
            requests::Error::NotFound => StreamMessage::Unserved(period),
            cause => StreamMessage::ListFailed(cause.to_string()),
        };
        self.send_to_indices(message).await
    }

    /// Sends a message that only the index updater needs.
    async fn send_to_indices(
        &self,
        message: impl FnOnce() -> StreamMessage,
    ) -> Result<(), ReceiverDropped> {
        match self {
            Self::Queue(_) | Self::QueueWithObserver(..) => Ok(()),
            Self::Indices(indices) => indices.send(message()).await.map_err(|_| ReceiverDropped),
        }
    }
}

fn in_stream_error(status: &RawValue) -> requests::Error {
    match serde_json::from_str(status.get()) {
        Ok(status) => requests::Error::from_status(status),
        Err(error) => requests::Error::Decode(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_deletion_whose_sending_is_cancelled_is_sent_later() {
        let mut known_objects = StreamObjects::new(Retention::Identity);
        known_objects.begin_list();
        for name in ["one", "two"] {
            let object = json!({"metadata": {"name": name, "uid": name}});
            let text: Arc<RawValue> = to_raw_value(&object).unwrap().into();
            let header = ObjectHeader::at(&text).unwrap();
            let key = header.key(KindIndex(0)).expect("a name and a uid");
            let state = WatchEvent {
                event_type: WatchEventType::Listed,
                version: None,
                text: Arc::clone(&text),
            };
            let listed = known_objects.record(key, state);
            assert!(listed.is_some());
        }
        let (sender, mut receiver) = mpsc::channel(1);
        let output = StreamOutput::Queue(sender);
        let name = |received: Option<(Arc<ObjectKey>, QueueItem)>| received.unwrap().0.name.clone();
        let cancelled = timeout(
            Duration::from_secs(1),
            remove_all(&mut known_objects, &output),
        );
        assert!(cancelled.await.is_err(), "the channel has room for one");
        let first = name(receiver.recv().await);
        assert!(remove_all(&mut known_objects, &output).await.is_ok());
        let second = name(receiver.recv().await);
        assert_ne!(first, second, "none is lost, and none is sent twice");
        assert!(receiver.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_line_without_a_newline_ends_the_stream() {
        let mut lines = LineReader::new(futures::io::Cursor::new(b"one\ntwo\nthr".to_vec()));
        assert_eq!(lines.next().await.unwrap(), Some(&b"one"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b"two"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
