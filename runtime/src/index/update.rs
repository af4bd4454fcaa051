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

use self::evaluate::IndexEvaluation;
pub(crate) use self::evaluate::{IndexEvaluator, Indexer};
use crate::index::readiness::PendingList;
use crate::watch::{ObjectKey, QueueItem, StreamMessage, WatchEvent, WatchEventType};

/// Objects that are looked at at the same time.
const AT_ONCE: usize = 16;

/// What fills the indices from one stream.
pub(crate) struct IndexUpdater {
    evaluator: Arc<IndexEvaluator>,
    /// Where sightings go afterwards, if anybody wants them.
    queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
    /// Of all who wait until everything is listed.
    lists: [PendingList; 2],
    jobs: FuturesOrdered<BoxFuture<'static, FinishedStep>>,
    /// Objects for which a function has failed, and is not just to be called again.
    failures: HashMap<Arc<ObjectKey>, FailedObject>,
    retries: DelayQueue<Arc<ObjectKey>>,
    /// Whether it was told that the server does not serve the kind.
    logged_unserved: bool,
}

/// An object whose indexing has failed, with its newest state.
struct FailedObject {
    /// In the order of the indices; none where all is well.
    records: Vec<Option<Record>>,
    text: Arc<RawValue>,
    timer: Option<delay_queue::Key>,
}

/// A step that is over, in its order.
enum FinishedStep {
    Object(Box<EvaluatedObject>),
    Listed(u64),
}

/// An object that was looked at for all its indices.
struct EvaluatedObject {
    key: Arc<ObjectKey>,
    /// What is to be told to the queue; nothing if only the indices needed another attempt.
    watch_event: Option<WatchEvent>,
    text: Arc<RawValue>,
    results: Vec<IndexEvaluation>,
}

/// Nobody takes sightings any more.
struct ReceiverDropped;

// === impl IndexUpdater ===

impl IndexUpdater {
    pub(crate) fn new(
        evaluator: IndexEvaluator,
        queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
        lists: [PendingList; 2],
    ) -> Self {
        Self {
            evaluator: Arc::new(evaluator),
            queue,
            lists,
            jobs: FuturesOrdered::new(),
            failures: HashMap::new(),
            retries: DelayQueue::new(),
            logged_unserved: false,
        }
    }

    /// Works until the stream ends, or nobody listens.
    pub(crate) async fn run(mut self, mut message: mpsc::Receiver<StreamMessage>) {
        let mut ended = false;
        // What the stream said last, when its namespace is gone, counts as well.
        while !ended || !self.jobs.is_empty() {
            let step = tokio::select! {
                biased;
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.finish(done).await,
                Some(retries) = self.retries.next(), if !self.retries.is_empty() => {
                    self.retry(retries.into_inner());
                    Ok(())
                }
                message = message.recv(), if !ended && self.jobs.len() < AT_ONCE => {
                    match message {
                        Some(message) => self.take(message),
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

    fn take(&mut self, message: StreamMessage) {
        match message {
            StreamMessage::Event(key, watch_event) => {
                let text = Arc::clone(&watch_event.text);
                let job = if watch_event.event_type == WatchEventType::Deleted {
                    self.forget(&key);
                    // Whoever else handles the object forgets it when he is done with it.
                    if self.queue.is_none() {
                        self.evaluator.forget(&key);
                    }
                    self.removal(key, watch_event)
                } else {
                    self.evaluation(key, Some(watch_event), text)
                };
                self.jobs.push_back(job);
            }
            StreamMessage::Listed(epoch) => {
                self.logged_unserved = false;
                self.jobs
                    .push_back(std::future::ready(FinishedStep::Listed(epoch)).boxed());
            }
            StreamMessage::Unserved(epoch) => {
                if !std::mem::replace(&mut self.logged_unserved, true) {
                    let kind = &self.evaluator.api.spec().kind;
                    info!("indices of {kind} have nothing until the server serves the kind");
                }
                self.jobs
                    .push_back(std::future::ready(FinishedStep::Listed(epoch)).boxed());
            }
            StreamMessage::ListFailed(error) => {
                for list in &self.lists {
                    list.failed(error.clone());
                }
            }
        }
    }

    /// Another attempt for an object whose time has come.
    fn retry(&mut self, key: Arc<ObjectKey>) {
        let Some(failed) = self.failures.get_mut(&key) else {
            return;
        };
        failed.timer = None;
        // After a pause, the list brings all objects again.
        if self.evaluator.services.pause_gate.is_running() {
            let text = Arc::clone(&failed.text);
            let job = self.evaluation(key, None, text);
            self.jobs.push_back(job);
        }
    }

    /// Looks at an object for all indices that want to.
    fn evaluation(
        &mut self,
        key: Arc<ObjectKey>,
        watch_event: Option<WatchEvent>,
        text: Arc<RawValue>,
    ) -> BoxFuture<'static, FinishedStep> {
        let now = Timestamp::now();
        let failed = self.failures.get_mut(&key);
        let records = failed.map_or_else(Vec::new, |failed| {
            failed.text = Arc::clone(&text);
            failed.records.clone()
        });
        let evaluator = Arc::clone(&self.evaluator);
        let evaluation = async move {
            let results = evaluator.evaluate(&key, &text, records, now).await;
            FinishedStep::Object(Box::new(EvaluatedObject {
                key,
                watch_event,
                text,
                results,
            }))
        };
        evaluation.boxed()
    }

    fn removal(
        &self,
        key: Arc<ObjectKey>,
        watch_event: WatchEvent,
    ) -> BoxFuture<'static, FinishedStep> {
        let unmatched = self
            .evaluator
            .indexers
            .iter()
            .map(|_| IndexEvaluation::Unmatched);
        let evaluated = EvaluatedObject {
            key,
            text: Arc::clone(&watch_event.text),
            watch_event: Some(watch_event),
            results: unmatched.collect(),
        };
        std::future::ready(FinishedStep::Object(Box::new(evaluated))).boxed()
    }

    async fn finish(&mut self, done: FinishedStep) -> Result<(), ReceiverDropped> {
        let evaluated = match done {
            FinishedStep::Object(evaluated) => *evaluated,
            FinishedStep::Listed(epoch) => {
                for list in &self.lists {
                    list.listed(epoch);
                }
                return Ok(());
            }
        };
        let EvaluatedObject {
            key,
            watch_event,
            text,
            results,
        } = evaluated;
        let evaluator = Arc::clone(&self.evaluator);
        let mut records: Vec<Option<Record>> = Vec::new();
        let mut delay: Option<Duration> = None;
        for (at, result) in results.into_iter().enumerate() {
            let record = match result {
                IndexEvaluation::Unchanged => self.record(&key, at),
                IndexEvaluation::Unmatched => {
                    evaluator.discard(&key, at).await;
                    None
                }
                // It was given up while this attempt was on its way.
                IndexEvaluation::Called { .. } if self.is_given_up(&key, at) => {
                    self.record(&key, at)
                }
                IndexEvaluation::Called {
                    record,
                    outcome,
                    update,
                } => evaluator.conclude(&key, at, record, outcome, update).await,
            };
            if let Some(wait) = record.as_ref().and_then(pending) {
                delay = Some(delay.map_or(wait, |shortest| shortest.min(wait)));
            }
            records.push(record);
        }
        self.remember(&key, records, text, delay);
        match (&self.queue, watch_event) {
            (Some(queue), Some(watch_event)) => {
                let message = queue.send((key, QueueItem::Event(watch_event))).await;
                message.map_err(|_| ReceiverDropped)
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
        let timer = delay.map(|delay| self.retries.insert(Arc::clone(key), delay));
        let failed = FailedObject {
            records,
            text,
            timer,
        };
        self.failures.insert(Arc::clone(key), failed);
    }

    fn forget(&mut self, key: &Arc<ObjectKey>) {
        if let Some(timer) = self.failures.remove(key).and_then(|failed| failed.timer) {
            self.retries.try_remove(&timer);
        }
    }
}

/// When the next attempt is to be made, if there will be one.
fn pending(record: &Record) -> Option<Duration> {
    (!record.is_finished()).then(|| record.delay(Timestamp::now()))
}
