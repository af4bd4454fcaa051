//! Keeps the indices of one stream: every sighting passes here on its way to the queue.
//!
//! So an object is in the indices before any handler is called for the same sighting, and no worker
//! is kept from its work meanwhile. Several objects are looked at at once, and the results are put
//! into the indices in the order of the sightings.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::FuturesOrdered;
use jiff::Timestamp;
use kopf_core::cause::{Reason, Subject as Matched};
use kopf_core::handler::HandlerSpec;
use kopf_core::object::ObjectView;
use kopf_core::outcome::{HandlerError as Failure, Outcome, Verdict as Consequence};
use kopf_core::progress::record::Record;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::time::{DelayQueue, delay_queue};
use tracing::{Instrument as _, error, info};

use crate::api::KindApi;
use crate::context::indexing::IndexFacts;
use crate::engine::subject::Subject;
use crate::execute::invoke::Verdict;
use crate::execute::report;
use crate::index::Update;
use crate::index::gate::Ticket;
use crate::memo::Memos;
use crate::metrics::HandlerMetrics;
use crate::shim::indexing::IndexFunction;
use crate::span;
use crate::surroundings::{Means, Surroundings};
use crate::watch::{EventType, News, ObjectKey, Sighting, Told};

/// Objects that are looked at at the same time.
const AT_ONCE: usize = 16;

/// How often it is tried in vain to write while somebody reads, before there is a pause.
const EAGER_TRIES: u32 = 16;

/// The pause between two tries to write while somebody reads.
const PAUSE_FOR_READERS: Duration = Duration::from_millis(1);

/// One index of a kind, with the function that fills it.
#[derive(Clone)]
pub(crate) struct Indexer {
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) function: Arc<dyn IndexFunction>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: Arc<HandlerMetrics>,
    /// None if the declaration has no memos.
    pub(crate) memos: Option<Arc<Memos>>,
}

/// What fills the indices from one stream.
pub(crate) struct Clerk {
    shared: Arc<Shared>,
    /// Where sightings go afterwards, if anybody wants them.
    queue: Option<mpsc::Sender<(Arc<ObjectKey>, News)>>,
    /// Of all who wait until everything is listed.
    tickets: [Ticket; 2],
    jobs: FuturesOrdered<BoxFuture<'static, Done>>,
    /// Objects for which a function has failed, and is not just to be called again.
    failures: HashMap<Arc<ObjectKey>, Failed>,
    due: DelayQueue<Arc<ObjectKey>>,
    /// Whether it was told that the server does not serve the kind.
    told_unserved: bool,
}

/// What every attempt needs.
pub(crate) struct Shared {
    pub(crate) indexers: Vec<Indexer>,
    pub(crate) api: KindApi,
    pub(crate) means: Arc<Means>,
    pub(crate) default_backoff: Duration,
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
    sighting: Option<Sighting>,
    text: Arc<RawValue>,
    results: Vec<Looking>,
}

/// What became of an object in one index.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the largest variant, and none is kept"
)]
enum Looking {
    /// It stays as it is.
    Left,
    /// It is not to be found.
    Unmatched,
    /// The function was called, or would have been if a limit allowed it.
    Called {
        record: Record,
        outcome: Outcome,
        update: Option<Box<dyn Update>>,
    },
}

/// Nobody takes sightings any more.
struct Unheard;

// === impl Clerk ===

impl Clerk {
    pub(crate) fn new(
        shared: Shared,
        queue: Option<mpsc::Sender<(Arc<ObjectKey>, News)>>,
        tickets: [Ticket; 2],
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
    pub(crate) async fn run(mut self, mut told: mpsc::Receiver<Told>) {
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

    fn take(&mut self, told: Told) {
        match told {
            Told::Seen(key, sighting) => {
                let text = Arc::clone(&sighting.text);
                let job = if sighting.event_type == EventType::Deleted {
                    self.forget(&key);
                    // Whoever else handles the object forgets it when he is done with it.
                    if self.queue.is_none() {
                        self.shared.forget(&key);
                    }
                    self.job_of_deleted(key, sighting)
                } else {
                    self.job(key, Some(sighting), text)
                };
                self.jobs.push_back(job);
            }
            Told::Listed(epoch) => {
                self.told_unserved = false;
                self.jobs
                    .push_back(std::future::ready(Done::Listed(epoch)).boxed());
            }
            Told::Unserved(epoch) => {
                if !std::mem::replace(&mut self.told_unserved, true) {
                    let kind = &self.shared.api.spec().kind;
                    info!("indices of {kind} have nothing until the server serves the kind");
                }
                self.jobs
                    .push_back(std::future::ready(Done::Listed(epoch)).boxed());
            }
            Told::Hindered(obstacle) => {
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
        if self.shared.means.activity.is_running() {
            let text = Arc::clone(&failed.text);
            let job = self.job(key, None, text);
            self.jobs.push_back(job);
        }
    }

    /// Looks at an object for all indices that want to.
    fn job(
        &mut self,
        key: Arc<ObjectKey>,
        sighting: Option<Sighting>,
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
                sighting,
                text,
                results,
            }))
        };
        look.boxed()
    }

    fn job_of_deleted(&self, key: Arc<ObjectKey>, sighting: Sighting) -> BoxFuture<'static, Done> {
        let unmatched = self.shared.indexers.iter().map(|_| Looking::Unmatched);
        let looked = Looked {
            key,
            text: Arc::clone(&sighting.text),
            sighting: Some(sighting),
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
            sighting,
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
        match (&self.queue, sighting) {
            (Some(queue), Some(sighting)) => {
                let told = queue.send((key, News::Seen(sighting))).await;
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

// === impl Shared ===

impl Shared {
    async fn look(
        &self,
        key: &Arc<ObjectKey>,
        text: &RawValue,
        mut records: Vec<Option<Record>>,
        now: Timestamp,
    ) -> Vec<Looking> {
        let object = match self.api.read(text) {
            Ok(object) => Arc::new(object),
            Err(error) => {
                error!(object = %key, "the object cannot be read: {error}");
                return self.indexers.iter().map(|_| Looking::Left).collect();
            }
        };
        let mut results = Vec::with_capacity(self.indexers.len());
        records.resize(self.indexers.len(), None);
        for (indexer, record) in self.indexers.iter().zip(records) {
            let rests = |record: &Record| record.is_finished() || record.is_sleeping(now);
            if record.as_ref().is_some_and(rests) {
                results.push(Looking::Left);
                continue;
            }
            let matched = Matched::object(ObjectView::new(&object));
            if !indexer.spec.matches(&matched) {
                results.push(Looking::Unmatched);
                continue;
            }
            let record = record.unwrap_or_else(|| Record::begin(Reason::Noop, now));
            results.push(self.call(key, indexer, Arc::clone(&object), record).await);
        }
        results
    }

    async fn call(
        &self,
        key: &Arc<ObjectKey>,
        indexer: &Indexer,
        object: Arc<Value>,
        record: Record,
    ) -> Looking {
        let policy = &indexer.spec.policy;
        let runtime = record.runtime(Timestamp::now());
        if let Err(limit) = policy.allow(record.retries, runtime) {
            indexer.metrics.exhausted();
            return Looking::Called {
                record,
                outcome: Outcome::Error(Failure::Exhausted(limit)),
                update: None,
            };
        }
        let around = self.surroundings(key, indexer.memos.as_deref());
        let span = around.subject.span();
        let span = span.in_scope(|| span::handler(indexer.spec.id.as_str(), record.retries));
        let facts = IndexFacts {
            around,
            raw: object,
            handler: indexer.spec.id.clone(),
            param: indexer.param.clone(),
            retry: record.retries,
            started: record.started,
            runtime,
        };
        let limit = policy
            .timeout
            .map(|timeout| timeout.saturating_sub(runtime));
        let measured = indexer.metrics.begin(record.retries);
        let (verdict, update) = indexer.function.call(facts, limit).instrument(span).await;
        measured.end(verdict.counted());
        let update = update.filter(|_| matches!(verdict, Verdict::Returned(Ok(()))));
        Looking::Called {
            record,
            outcome: verdict.into_outcome(None, Reason::Noop, policy),
            update,
        }
    }

    /// Puts into the index what an attempt came to; returns what is to be remembered.
    async fn conclude(
        &self,
        key: &Arc<ObjectKey>,
        at: usize,
        record: Record,
        outcome: Outcome,
        update: Option<Box<dyn Update>>,
    ) -> Option<Record> {
        let indexer = &self.indexers[at];
        let policy = &indexer.spec.policy;
        let default_backoff = self.default_backoff;
        let now = Timestamp::now();
        let consequence = Consequence::of(outcome.clone(), policy, default_backoff, &record, now);
        let record = consequence.apply(&record, now);
        if matches!(consequence, Consequence::Succeeded(_)) {
            if let Some(update) = update {
                apply(update, key).await;
            }
            return None;
        }
        let around = self.surroundings(key, indexer.memos.as_deref());
        around.subject.span().in_scope(|| {
            let finished = report::Finished {
                spec: &indexer.spec,
                outcome: &outcome,
                consequence: &consequence,
                record: Some(&record),
                default_backoff,
                now,
            };
            report::tell(&finished, &around);
        });
        match consequence {
            Consequence::Succeeded(_) | Consequence::Ignored { .. } => None,
            Consequence::Failed { .. }
            | Consequence::Retry { .. }
            | Consequence::Waiting { .. } => {
                self.discard(key, at).await;
                Some(record)
            }
        }
    }

    async fn discard(&self, key: &Arc<ObjectKey>, at: usize) {
        let function = &self.indexers[at].function;
        apply(function.nothing(&self.means.indices), key).await;
    }

    /// The object is gone, and so is what was remembered of it.
    fn forget(&self, key: &ObjectKey) {
        for memos in self.indexers.iter().filter_map(|it| it.memos.as_ref()) {
            memos.forget(&key.uid);
        }
    }

    fn surroundings(&self, key: &Arc<ObjectKey>, memos: Option<&Memos>) -> Surroundings {
        Surroundings {
            means: Arc::clone(&self.means),
            subject: Subject::handled(Arc::clone(self.api.name()), Arc::clone(key)),
            memo: memos.map(|memos| memos.recall(&key.uid)),
            resource: self.api.description().get(),
        }
    }
}

/// When the next attempt is to be made, if there will be one.
fn pending(record: &Record) -> Option<Duration> {
    (!record.is_finished()).then(|| record.delay(Timestamp::now()))
}

/// Waits for a moment when nobody reads, and lets all who want to read do so meanwhile.
async fn apply(mut update: Box<dyn Update>, key: &Arc<ObjectKey>) {
    let mut tries = 0;
    while !update.try_apply(key) {
        tries += 1;
        if tries < EAGER_TRIES {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(PAUSE_FOR_READERS).await;
        }
    }
}
