//! Updates the indices from one stream: every watch event passes here on its way to the queue.
//!
//! So an object is in the indices before any handler is called for the same event, and no worker
//! waits for that. Several objects are evaluated at once; the results are put into the indices in
//! the order of the events.

mod evaluate;

use std::collections::{HashMap, HashSet};
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
use crate::coordination::pause::PausePeriod;
use crate::index::list_gate::PendingList;
use crate::watch::{
    ObjectKey, QueueItem, ReceiverDropped, StreamMessage, WatchEvent, WatchEventType,
};

/// A [`DelayQueue`] panics on delays of more than about two years; functions may ask for any.
const LONGEST_RETRY_DELAY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The number of objects that are evaluated at once.
const AT_ONCE: usize = 16;

/// Updates all indices of one stream.
pub(crate) struct IndexUpdater {
    evaluator: Arc<IndexEvaluator>,
    /// The receiver of the events afterwards; none if the kind has only index functions.
    queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
    lists: IndexLists,
    /// The objects that the queue knows, if events of pauses do not reach it.
    queued: HashSet<Arc<ObjectKey>>,
    jobs: FuturesOrdered<BoxFuture<'static, FinishedIndexJob>>,
    /// Objects for which an index function has failed.
    failures: HashMap<Arc<ObjectKey>, FailedObject>,
    retries: DelayQueue<Arc<ObjectKey>>,
    /// True if the log says already that the API server does not serve the kind.
    logged_unserved: bool,
}

/// The list of one stream, as the gates see it.
pub(crate) struct IndexLists {
    /// The same list at the gates of the indices and of the whole operator.
    pub(crate) running: [PendingList; 2],
    /// The list in pauses; none if the stream waits for the end of a pause.
    pub(crate) in_pauses: Option<PendingList>,
}

/// An object whose indexing has failed, with its newest state.
struct FailedObject {
    /// In the order of the indices; none where the function did not fail.
    records: Vec<Option<Record>>,
    text: Arc<RawValue>,
    timer: Option<delay_queue::Key>,
}

/// A finished job, in its order.
enum FinishedIndexJob {
    Object(Box<EvaluatedObject>),
    Listed(PausePeriod),
}

/// An object that was evaluated for all its indices.
struct EvaluatedObject {
    key: Arc<ObjectKey>,
    /// For the queue; none if this was another attempt of a failed function.
    watch_event: Option<WatchEvent>,
    text: Arc<RawValue>,
    results: Vec<IndexEvaluation>,
}

// === impl IndexUpdater ===

impl IndexUpdater {
    pub(crate) fn new(
        evaluator: IndexEvaluator,
        queue: Option<mpsc::Sender<(Arc<ObjectKey>, QueueItem)>>,
        lists: IndexLists,
    ) -> Self {
        Self {
            evaluator: Arc::new(evaluator),
            queue,
            lists,
            queued: HashSet::new(),
            jobs: FuturesOrdered::new(),
            failures: HashMap::new(),
            retries: DelayQueue::new(),
            logged_unserved: false,
        }
    }

    /// Runs until the stream ends, or the queue is dropped.
    pub(crate) async fn run(mut self, mut messages: mpsc::Receiver<StreamMessage>) {
        let mut ended = false;
        // The last events, the deletions in a namespace that is gone, are processed too.
        while !ended || !self.jobs.is_empty() {
            let step = tokio::select! {
                biased;
                Some(done) = self.jobs.next(), if !self.jobs.is_empty() => self.finish(done).await,
                Some(due) = self.retries.next(), if !self.retries.is_empty() => {
                    self.retry(due.into_inner());
                    Ok(())
                }
                message = messages.recv(), if !ended && self.jobs.len() < AT_ONCE => {
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
                    // Otherwise the pipeline forgets the object when it has handled its deletion.
                    if self.queue.is_none() {
                        self.evaluator.forget(&key);
                    }
                    self.removal(key, watch_event)
                } else {
                    self.evaluation(key, Some(watch_event), text)
                };
                self.jobs.push_back(job);
            }
            StreamMessage::Listed(period) => {
                self.logged_unserved = false;
                self.jobs
                    .push_back(std::future::ready(FinishedIndexJob::Listed(period)).boxed());
            }
            StreamMessage::Unserved(period) => {
                if !std::mem::replace(&mut self.logged_unserved, true) {
                    let kind = &self.evaluator.api.spec().kind;
                    info!("indices of {kind} are empty until the API server serves the kind");
                }
                self.jobs
                    .push_back(std::future::ready(FinishedIndexJob::Listed(period)).boxed());
            }
            StreamMessage::ListFailed(error) => {
                for list in self.lists.running.iter().chain(&self.lists.in_pauses) {
                    list.failed(error.clone());
                }
            }
        }
    }

    /// Evaluates an object again whose index function has failed.
    fn retry(&mut self, key: Arc<ObjectKey>) {
        let Some(failed) = self.failures.get_mut(&key) else {
            return;
        };
        failed.timer = None;
        // After a pause, the list brings all objects again.
        if self.lists.in_pauses.is_some() || self.evaluator.services.pause_gate.is_running() {
            let text = Arc::clone(&failed.text);
            let job = self.evaluation(key, None, text);
            self.jobs.push_back(job);
        }
    }

    /// The job that evaluates an object for all indices.
    fn evaluation(
        &mut self,
        key: Arc<ObjectKey>,
        watch_event: Option<WatchEvent>,
        text: Arc<RawValue>,
    ) -> BoxFuture<'static, FinishedIndexJob> {
        let now = Timestamp::now();
        let failed = self.failures.get_mut(&key);
        let records = failed.map_or_else(Vec::new, |failed| {
            failed.text = Arc::clone(&text);
            failed.records.clone()
        });
        let evaluator = Arc::clone(&self.evaluator);
        let evaluation = async move {
            let results = evaluator.evaluate(&key, &text, records, now).await;
            FinishedIndexJob::Object(Box::new(EvaluatedObject {
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
    ) -> BoxFuture<'static, FinishedIndexJob> {
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
        std::future::ready(FinishedIndexJob::Object(Box::new(evaluated))).boxed()
    }

    async fn finish(&mut self, done: FinishedIndexJob) -> Result<(), ReceiverDropped> {
        let evaluated = match done {
            FinishedIndexJob::Object(evaluated) => *evaluated,
            FinishedIndexJob::Listed(period) => {
                self.lists.listed(period);
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
                // An earlier attempt, which ended meanwhile, has failed for good.
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
        match watch_event {
            Some(watch_event) => self.forward(key, watch_event).await,
            None => Ok(()),
        }
    }

    /// Sends an event to the queue.
    ///
    /// Of events in a pause, the queue needs only the deletions of objects that it knows: the list
    /// after the pause brings all others again, and not the deleted ones.
    async fn forward(
        &mut self,
        key: Arc<ObjectKey>,
        watch_event: WatchEvent,
    ) -> Result<(), ReceiverDropped> {
        let Some(queue) = &self.queue else {
            return Ok(());
        };
        if self.lists.in_pauses.is_some() {
            let deleted = watch_event.event_type == WatchEventType::Deleted;
            let running = self.evaluator.services.pause_gate.period().running;
            let known = if deleted {
                self.queued.remove(&key)
            } else {
                running && !self.queued.insert(Arc::clone(&key))
            };
            if !running && !known {
                if deleted {
                    self.evaluator.forget(&key);
                }
                return Ok(());
            }
        }
        let sent = queue.send((key, QueueItem::Event(watch_event))).await;
        sent.map_err(|_| ReceiverDropped)
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
        let timer = delay.map(|delay| {
            let delay = delay.min(LONGEST_RETRY_DELAY);
            self.retries.insert(Arc::clone(key), delay)
        });
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

// === impl IndexLists ===

impl IndexLists {
    /// The list of this time is complete.
    fn listed(&self, period: PausePeriod) {
        if period.running {
            for list in &self.running {
                list.listed(period.epoch);
            }
        } else if let Some(list) = &self.in_pauses {
            list.listed(period.epoch);
        }
    }
}

/// The time until the next attempt, if there is one.
fn pending(record: &Record) -> Option<Duration> {
    (!record.is_finished()).then(|| record.delay(Timestamp::now()))
}
