//! Keeps the indices of one stream: every sighting passes here on its way to the queue.
//!
//! So an object is in the indices before any handler is called for the same sighting, and no worker
//! is kept from its work meanwhile. Several objects are looked at at once, and the results are put
//! into the indices in the order of the sightings.

mod evaluate;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesOrdered;
use jiff::Timestamp;
use kopf_core::progress::record::Record;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::info;

use self::evaluate::Looking;
pub(crate) use self::evaluate::{Indexer, Shared};
use crate::index::readiness::ListTicket;
use crate::watch::{ObjectKey, QueueItem, StreamMessage, WatchEvent, WatchEventType};

/// Objects that are looked at at the same time.
const AT_ONCE: usize = 16;

/// What fills the indices from one stream.
pub(crate) struct IndexUpdater {
    shared: Arc<Shared>,
    /// Where sightings go afterwards, if anybody wants them.
    queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
    /// Of all who wait until everything is listed.
    tickets: [ListTicket; 2],
    jobs: FuturesOrdered<BoxFuture<'static, Done>>,
    /// Objects for which a function has failed, and is not just to be called again.
    failures: HashMap<Arc<ObjectKey>, Failed>,
    due: DelayQueue<Arc<ObjectKey>>,
    /// Whether it was told that the server does not serve the kind.
    told_unserved: bool,
}

/// An object whose indexing has failed, with its newest state.
struct Failed {
    /// In the order of the indices; none where all is well.
    records: Vec<Option<Record>>,
    text: Arc<RawValue>,
    timer: Option<delay_queue::Key>,
}

/// A step that is over, in its order.
enum Done {
    Object(Box<Looked>),
    Listed(u64),
}

/// An object that was looked at for all its indices.
struct Looked {
    key: Arc<ObjectKey>,
    /// What is to be told to the queue; nothing if only the indices needed another attempt.
    watch_event: Option<WatchEvent>,
    text: Arc<RawValue>,
    results: Vec<Looking>,
}

/// Nobody takes sightings any more.
struct Unheard;

// === impl IndexUpdater ===

impl IndexUpdater {
    pub(crate) fn new(
        shared: Shared,
        queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
        tickets: [ListTicket; 2],
    ) -> Self {
        Self {
            shared: Arc::new(shared),
            queue,
            tickets,
            jobs: FuturesOrdered::new(),
            failures: HashMap::new(),
            due: DelayQueue::new(),
            told_unserved: false,
        }
    }

    /// Works until the stream ends, or nobody listens.
    pub(crate) async fn run(mut self, mut told: mpsc::Receiver<StreamMessage>) {
        let mut ended = false;
        // What the stream said last, when its namespace is gone, counts as well.
        while !ended || !self.jobs.is_empty() {
            let step = tokio::select! {
                biased;
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.settle(done).await,
                Some(due) = self.due.next(), if !self.due.is_empty() => {
                    self.again(due.into_inner());
                    Ok(())
                }
                told = told.recv(), if !ended && self.jobs.len() < AT_ONCE => {
                    match told {
                        Some(told) => self.take(told),
                        None => ended = true,
                    }
                    Ok(())
                }
            };
            if step.is_err() {
                return;
            }
        }
    }

    fn take(&mut self, told: StreamMessage) {
        match told {
            StreamMessage::Seen(key, watch_event) => {
                let text = Arc::clone(&watch_event.text);
                let job = if watch_event.event_type == WatchEventType::Deleted {
                    self.forget(&key);
                    // Whoever else handles the object forgets it when he is done with it.
                    if self.queue.is_none() {
                        self.shared.forget(&key);
                    }
                    self.job_of_deleted(key, watch_event)
                } else {
                    self.job(key, Some(watch_event), text)
                };
                self.jobs.push_back(job);
            }
            StreamMessage::Listed(epoch) => {
                self.told_unserved = false;
                self.jobs
                    .push_back(std::future::ready(Done::Listed(epoch)).boxed());
            }
            StreamMessage::Unserved(epoch) => {
                if !std::mem::replace(&mut self.told_unserved, true) {
                    let kind = &self.shared.api.spec().kind;
                    info!("indices of {kind} have nothing until the server serves the kind");
                }
                self.jobs
                    .push_back(std::future::ready(Done::Listed(epoch)).boxed());
            }
            StreamMessage::Hindered(obstacle) => {
                for ticket in &self.tickets {
                    ticket.hindered(obstacle.clone());
                }
            }
        }
    }

    /// Another attempt for an object whose time has come.
    fn again(&mut self, key: Arc<ObjectKey>) {
        let Some(failed) = self.failures.get_mut(&key) else {
            return;
        };
        failed.timer = None;
        // After a pause, the list brings all objects again.
        if self.shared.services.pause_gate.is_running() {
            let text = Arc::clone(&failed.text);
            let job = self.job(key, None, text);
            self.jobs.push_back(job);
        }
    }

    /// Looks at an object for all indices that want to.
    fn job(
        &mut self,
        key: Arc<ObjectKey>,
        watch_event: Option<WatchEvent>,
        text: Arc<RawValue>,
    ) -> BoxFuture<'static, Done> {
        let now = Timestamp::now();
        let known = self.failures.get_mut(&key);
        let records = known.map_or_else(Vec::new, |failed| {
            failed.text = Arc::clone(&text);
            failed.records.clone()
        });
        let shared = Arc::clone(&self.shared);
        let look = async move {
            let results = shared.look(&key, &text, records, now).await;
            Done::Object(Box::new(Looked {
                key,
                watch_event,
                text,
                results,
            }))
        };
        look.boxed()
    }

    fn job_of_deleted(
        &self,
        key: Arc<ObjectKey>,
        watch_event: WatchEvent,
    ) -> BoxFuture<'static, Done> {
        let unmatched = self.shared.indexers.iter().map(|_| Looking::Unmatched);
        let looked = Looked {
            key,
            text: Arc::clone(&watch_event.text),
            watch_event: Some(watch_event),
            results: unmatched.collect(),
        };
        std::future::ready(Done::Object(Box::new(looked))).boxed()
    }

    async fn settle(&mut self, done: Done) -> Result<(), Unheard> {
        let looked = match done {
            Done::Object(looked) => *looked,
            Done::Listed(epoch) => {
                for ticket in &self.tickets {
                    ticket.listed(epoch);
                }
                return Ok(());
            }
        };
        let Looked {
            key,
            watch_event,
            text,
            results,
        } = looked;
        let shared = Arc::clone(&self.shared);
        let mut records: Vec<Option<Record>> = Vec::new();
        let mut delay: Option<Duration> = None;
        for (at, result) in results.into_iter().enumerate() {
            let record = match result {
                Looking::Left => self.record(&key, at),
                Looking::Unmatched => {
                    shared.discard(&key, at).await;
                    None
                }
                // It was given up while this attempt was on its way.
                Looking::Called { .. } if self.is_given_up(&key, at) => self.record(&key, at),
                Looking::Called {
                    record,
                    outcome,
                    update,
                } => shared.conclude(&key, at, record, outcome, update).await,
            };
            if let Some(wait) = record.as_ref().and_then(pending) {
                delay = Some(delay.map_or(wait, |shortest| shortest.min(wait)));
            }
            records.push(record);
        }
        self.remember(&key, records, text, delay);
        match (&self.queue, watch_event) {
            (Some(queue), Some(watch_event)) => {
                let told = queue.send((key, QueueItem::Seen(watch_event))).await;
                told.map_err(|_| Unheard)
            }
            _ => Ok(()),
        }
    }

    fn is_given_up(&self, key: &Arc<ObjectKey>, at: usize) -> bool {
        let records = self.failures.get(key).map(|failed| &failed.records);
        let record = records.and_then(|records| records.get(at)?.as_ref());
        record.is_some_and(Record::is_finished)
    }

    fn record(&self, key: &Arc<ObjectKey>, at: usize) -> Option<Record> {
        let records = &self.failures.get(key)?.records;
        records.get(at).cloned().flatten()
    }

    fn remember(
        &mut self,
        key: &Arc<ObjectKey>,
        records: Vec<Option<Record>>,
        text: Arc<RawValue>,
        delay: Option<Duration>,
    ) {
        let text = self
            .failures
            .get(key)
            .map_or(text, |failed| Arc::clone(&failed.text));
        self.forget(key);
        if records.iter().all(Option::is_none) {
            return;
        }
        let timer = delay.map(|delay| self.due.insert(Arc::clone(key), delay));
        let failed = Failed {
            records,
            text,
            timer,
        };
        self.failures.insert(Arc::clone(key), failed);
    }

    fn forget(&mut self, key: &Arc<ObjectKey>) {
        if let Some(timer) = self.failures.remove(key).and_then(|failed| failed.timer) {
            self.due.try_remove(&timer);
        }
    }
}

/// When the next attempt is to be made, if there will be one.
fn pending(record: &Record) -> Option<Duration> {
    (!record.is_finished()).then(|| record.delay(Timestamp::now()))
}
