//! One stream: lists a kind in pages, then watches it, for ever.
//!
//! While the operator is paused nothing is listed or watched, and afterwards all is listed anew.
//! Every failure leads to another attempt after a growing pause: a stream ends only when nobody
//! listens any more, or when the place that it looks at is gone. What was deleted while no watch
//! was open is noticed at the next list and reported like any other deletion; so is everything
//! when the kind itself or the namespace is gone.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::known_objects::{KnownObjects, Report, Retain};
use super::stream_health::StreamHealth;
use super::unserved::{Finding, UnservedKind, UnservedReason};
use super::{KindIndex, ObjectHeader, ObjectKey, QueueItem, StreamMessage, WatchEventType};
use crate::client::backoff::Backoff;
use crate::client::discovery;
use crate::client::requests::{self, KindApi};
use crate::coordination::pause::PauseGate;
use crate::health::metrics::Restart;

/// A watch that ends sooner is no reason to open the next one without a pause.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// What a stream watches and how.
pub(crate) struct Stream {
    pub(crate) api: KindApi,
    pub(crate) kind: KindIndex,
    pub(crate) namespace: Option<String>,
    pub(crate) retain: Retain,
    pub(crate) settings: StreamSettings,
    pub(crate) observed: StreamHealth,
}

/// How patient a stream is.
#[derive(Debug, Clone)]
pub(crate) struct StreamSettings {
    pub(crate) page_size: u32,
    /// The server sends a bookmark about once a minute: a longer silence is a dead connection.
    pub(crate) inactivity_timeout: Duration,
    /// The server ends the watch after this time, so that load spreads over its replicas again.
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
    #[error("the server ended the watch with an error")]
    InStream(#[source] requests::Error),
    #[error("the server closed the watch at once")]
    Hollow,
    #[error("reading from the watch failed")]
    Read(#[source] std::io::Error),
    #[error("the watch sent a line that is no event")]
    Decode(#[source] serde_json::Error),
}

/// Nobody takes sightings any more.
struct Unheard;

/// Where sightings go.
#[derive(Debug)]
pub(crate) enum Sink {
    /// Straight to the queue.
    Queue(mpsc::Sender<(Arc<ObjectKey>, QueueItem)>),
    /// The same, and somebody wants to know when everything was listed.
    Attended(
        mpsc::Sender<(Arc<ObjectKey>, QueueItem)>,
        Box<dyn Attendance>,
    ),
    /// To those who keep the indices of the kind, and from there to the queue.
    Indices(mpsc::Sender<StreamMessage>),
}

/// Who is told when everything was listed.
pub(crate) trait Attendance: std::fmt::Debug + Send + Sync {
    /// All that there was in this epoch has been listed.
    fn listed(&self, epoch: u64);
}

enum State {
    Unlisted,
    Listed { version: String },
}

/// Why one list or one watch was over.
enum Pass {
    Continue(State),
    NobodyListens,
}

#[derive(Deserialize)]
struct RawEvent<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Runs the stream until nobody listens.
pub(crate) async fn run(stream: Stream, sink: Sink, pause_gate: PauseGate) {
    run_until(stream, sink, pause_gate, CancellationToken::new()).await;
}

/// Runs the stream until nobody listens, or the namespace is gone and all that was in it.
pub(crate) async fn run_until(
    stream: Stream,
    sink: Sink,
    pause_gate: PauseGate,
    gone: CancellationToken,
) {
    let mut known_objects = KnownObjects::new(stream.kind, stream.retain);
    tokio::select! {
        biased;
        () = gone.cancelled() => {}
        () = follow(&stream, &mut known_objects, &sink, &pause_gate) => return,
    }
    // Without anybody who listens the operator stops anyway.
    let _ = dissolve(&mut known_objects, &sink).await;
}

async fn follow(
    stream: &Stream,
    known_objects: &mut KnownObjects,
    sink: &Sink,
    pause_gate: &PauseGate,
) {
    let mut state = State::Unlisted;
    let mut absence = None;
    let mut backoff = Backoff::new(stream.settings.first_pause, stream.settings.longest_pause);
    let mut epoch = stream.may_run(pause_gate).await;
    loop {
        let pass = async {
            match &mut state {
                State::Unlisted => {
                    stream.learn().await;
                    stream.list(known_objects, sink, epoch).await
                }
                State::Listed { version } => {
                    stream
                        .watch(version, known_objects, sink, &mut backoff)
                        .await
                }
            }
        };
        let pass = tokio::select! {
            biased;
            () = pause_gate.paused_since(epoch) => None,
            pass = pass => Some(pass),
        };
        let Some(pass) = pass else {
            epoch = stream.may_run(pause_gate).await;
            absence = None;
            state = State::Unlisted;
            backoff.reset();
            continue;
        };
        match pass {
            Ok(Pass::NobodyListens) => return,
            Ok(Pass::Continue(next)) => {
                absence = None;
                state = next;
            }
            Err(Error::List(requests::Error::NotFound)) => {
                state = State::Unlisted;
                stream.api.description().mark_stale();
                let absence = absence.get_or_insert_with(|| UnservedKind::new(&stream.api));
                let Finding {
                    why,
                    story,
                    is_news,
                } = absence.look().await;
                if is_news {
                    warn!(kind = %stream.describe(), "{story}");
                    backoff.reset();
                }
                stream.observed.absent(story);
                stream.observed.waits();
                if why == UnservedReason::Gone && dissolve(known_objects, sink).await.is_err() {
                    return;
                }
                let unlisted = sink.unlisted(epoch, &requests::Error::NotFound).await;
                if unlisted.is_err() {
                    return;
                }
                let pause = backoff.next(None);
                tokio::select! {
                    () = absence.changed(pause) => {}
                    () = pause_gate.paused_since(epoch) => {}
                }
            }
            Err(error) => {
                let pause = backoff.next(error.retry_after());
                stream.report(&error, pause);
                stream.observed.moves_within(pause);
                if let Some(restart) = error.restart() {
                    stream.observed.restarts(restart);
                }
                if let Error::List(cause) = &error
                    && sink.unlisted(epoch, cause).await.is_err()
                {
                    return;
                }
                if error.needs_list() {
                    state = State::Unlisted;
                    stream.api.description().mark_stale();
                }
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = pause_gate.paused_since(epoch) => {}
                }
            }
        }
    }
}

// === impl Stream ===

impl Stream {
    /// Waits until the operator runs, and returns the epoch.
    async fn may_run(&self, pause_gate: &PauseGate) -> u64 {
        self.observed.paused();
        pause_gate.running().await
    }

    /// Finds out what the server says about the kind, for those who handle its objects.
    async fn learn(&self) {
        self.observed.waits();
        let asked = discovery::description(self.api.client(), self.api.spec(), self.api.timeout());
        if let Err(error) = self.api.description().discover_if_stale(asked).await {
            debug!(kind = %self.describe(), "it cannot be described: {error}");
        }
    }

    async fn list(
        &self,
        known_objects: &mut KnownObjects,
        sink: &Sink,
        epoch: u64,
    ) -> Result<Pass, Error> {
        known_objects.begin();
        self.observed.listing();
        let mut next = None;
        loop {
            self.observed.waits();
            let page = self
                .api
                .list_page(self.namespace.as_deref(), self.settings.page_size, next)
                .await
                .map_err(Error::List)?;
            for text in &page.items {
                let Some(header) = self.header(text) else {
                    continue;
                };
                if let Some(report) =
                    known_objects.saw(WatchEventType::Listed, &header, Arc::clone(text))
                    && self.tell(sink, report).await.is_err()
                {
                    return Ok(Pass::NobodyListens);
                }
            }
            next = page.next;
            if next.is_none() {
                for report in known_objects.vanished() {
                    if self.tell(sink, report).await.is_err() {
                        return Ok(Pass::NobodyListens);
                    }
                }
                self.observed.listed();
                if sink.listed(epoch).await.is_err() {
                    return Ok(Pass::NobodyListens);
                }
                return Ok(Pass::Continue(State::Listed {
                    version: page.resource_version,
                }));
            }
        }
    }

    async fn watch(
        &self,
        version: &mut String,
        known_objects: &mut KnownObjects,
        sink: &Sink,
        backoff: &mut Backoff,
    ) -> Result<Pass, Error> {
        let server_timeout = self.settings.server_timeout.mul_f64(1.0 + fastrand::f64());
        self.observed.moves_within(self.api.timeout());
        let opened = self
            .api
            .watch(self.namespace.as_deref(), version, server_timeout)
            .await;
        let mut lines = Lines::new(opened.map_err(Error::Open)?);
        let opened_at = Instant::now();
        self.observed.watching();
        loop {
            self.observed.moves_within(self.settings.inactivity_timeout);
            let Ok(line) = timeout(self.settings.inactivity_timeout, lines.next()).await else {
                debug!(kind = %self.describe(), "no news for too long, reconnecting");
                self.observed.restarts(Restart::Silent);
                break;
            };
            // Whoever takes the sighting may take his time.
            self.observed.waits();
            let Some(line) = line.map_err(Error::Read)? else {
                if opened_at.elapsed() < SHORTEST_WATCH {
                    return Err(Error::Hollow);
                }
                self.observed.restarts(Restart::Closed);
                break;
            };
            let event: RawEvent<'_> = serde_json::from_slice(line).map_err(Error::Decode)?;
            if event.r#type == "ERROR" {
                return Err(Error::InStream(in_stream_error(event.object)));
            }
            backoff.reset();
            let Some(header) = self.header(event.object) else {
                continue;
            };
            if let Some(newer) = header.version() {
                newer.clone_into(version);
            }
            let event_type = match &*event.r#type {
                "ADDED" => WatchEventType::Added,
                "MODIFIED" => WatchEventType::Modified,
                "DELETED" => WatchEventType::Deleted,
                "BOOKMARK" => continue,
                other => {
                    warn!(kind = %self.describe(), "ignoring an event of unknown type {other:?}");
                    continue;
                }
            };
            let text = event.object.to_owned().into();
            if let Some(report) = known_objects.saw(event_type, &header, text)
                && self.tell(sink, report).await.is_err()
            {
                return Ok(Pass::NobodyListens);
            }
        }
        Ok(Pass::Continue(State::Listed {
            version: std::mem::take(version),
        }))
    }

    async fn tell(&self, sink: &Sink, (key, watch_event): Report) -> Result<(), Unheard> {
        self.observed.saw(watch_event.event_type);
        sink.tell((key, watch_event)).await
    }

    /// Looks at an object; one that has no shape must not stop the others.
    fn header<'a>(&self, text: &'a RawValue) -> Option<ObjectHeader<'a>> {
        ObjectHeader::at(text)
            .inspect_err(|error| {
                warn!(kind = %self.describe(), "ignoring an object without a shape: {error}");
            })
            .ok()
    }

    fn report(&self, error: &Error, pause: Duration) {
        let kind = self.describe();
        let pause = pause.as_secs_f32();
        let story = match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        if error.is_routine() {
            info!(%kind, "{story}; trying again in {pause:.1} s");
        } else {
            self.observed.failing(story.clone());
            warn!(%kind, "{story}; trying again in {pause:.1} s");
        }
    }

    fn describe(&self) -> String {
        self.api.describe(self.namespace.as_deref())
    }
}

// === impl Error ===

impl Error {
    /// The list is begun anew whenever the position in the stream is in doubt.
    fn needs_list(&self) -> bool {
        match self {
            Self::List(_) | Self::InStream(_) | Self::Decode(_) => true,
            Self::Open(error) => !error.is_transient(),
            Self::Read(_) | Self::Hollow => false,
        }
    }

    /// What became of a watch, if there was one.
    fn restart(&self) -> Option<Restart> {
        match self {
            Self::List(_) => None,
            Self::Open(requests::Error::Expired) | Self::InStream(requests::Error::Expired) => {
                Some(Restart::Expired)
            }
            Self::Hollow => Some(Restart::Closed),
            Self::Open(_) | Self::InStream(_) | Self::Read(_) | Self::Decode(_) => {
                Some(Restart::Failed)
            }
        }
    }

    fn is_routine(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::Hollow
                | Self::List(requests::Error::Expired)
                | Self::Open(requests::Error::Expired)
                | Self::InStream(requests::Error::Expired)
        )
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::List(error) | Self::Open(error) | Self::InStream(error) => error.retry_after(),
            Self::Read(_) | Self::Hollow | Self::Decode(_) => None,
        }
    }
}

/// The lines of a response body, read into one buffer that is used again.
struct Lines<R> {
    body: std::pin::Pin<Box<R>>,
    buffer: Vec<u8>,
}

impl<R: AsyncBufRead> Lines<R> {
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

/// Reports everything that was there as gone.
async fn dissolve(known_objects: &mut KnownObjects, sink: &Sink) -> Result<(), Unheard> {
    for report in known_objects.dissolve() {
        sink.tell(report).await?;
    }
    Ok(())
}

// === impl Sink ===

impl Sink {
    async fn tell(&self, (key, watch_event): Report) -> Result<(), Unheard> {
        match self {
            Self::Queue(queue) | Self::Attended(queue, _) => {
                let told = queue.send((key, QueueItem::Seen(watch_event))).await;
                told.map_err(|_| Unheard)
            }
            Self::Indices(indices) => {
                let told = indices.send(StreamMessage::Seen(key, watch_event)).await;
                told.map_err(|_| Unheard)
            }
        }
    }

    async fn listed(&self, epoch: u64) -> Result<(), Unheard> {
        if let Self::Attended(_, attendance) = self {
            attendance.listed(epoch);
        }
        self.mark(|| StreamMessage::Listed(epoch)).await
    }

    async fn unlisted(&self, epoch: u64, cause: &requests::Error) -> Result<(), Unheard> {
        let mark = || match cause {
            requests::Error::NotFound => StreamMessage::Unserved(epoch),
            cause => StreamMessage::Hindered(cause.to_string()),
        };
        self.mark(mark).await
    }

    /// Says something that concerns nobody but those who keep indices.
    async fn mark(&self, mark: impl FnOnce() -> StreamMessage) -> Result<(), Unheard> {
        match self {
            Self::Queue(_) | Self::Attended(..) => Ok(()),
            Self::Indices(indices) => indices.send(mark()).await.map_err(|_| Unheard),
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
    use super::*;

    #[tokio::test]
    async fn a_line_that_was_cut_short_is_the_end() {
        let mut lines = Lines::new(futures::io::Cursor::new(b"one\ntwo\nthr".to_vec()));
        assert_eq!(lines.next().await.unwrap(), Some(&b"one"[..]));
        assert_eq!(lines.next().await.unwrap(), Some(&b"two"[..]));
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
