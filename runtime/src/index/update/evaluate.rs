//! One look at an object for all its indices: what their functions say, and what comes of it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::cause::{Reason, Subject as Matched};
use kopf_core::handler::HandlerSpec;
use kopf_core::object::ObjectView;
use kopf_core::outcome::{Consequence, HandlerFailure, Outcome};
use kopf_core::progress::record::Record;
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::{Instrument as _, error};

use crate::client::requests::KindApi;
use crate::context::index::IndexInputs;
use crate::events::object_ref::ObjectRef;
use crate::events::span;
use crate::handler::memo::Memos;
use crate::health::metrics::HandlerMetrics;
use crate::index::Update;
use crate::process::execute::invoke::CallEnd;
use crate::process::execute::report;
use crate::process::execute::scope::{HandlerScope, OperatorServices};
use crate::registration::function::index::IndexFunction;
use crate::watch::ObjectKey;

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

/// What every attempt needs.
pub(crate) struct Shared {
    pub(crate) indexers: Vec<Indexer>,
    pub(crate) api: KindApi,
    pub(crate) services: Arc<OperatorServices>,
    pub(crate) default_backoff: Duration,
}

/// What became of an object in one index.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the largest variant, and none is kept"
)]
pub(super) enum Looking {
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

// === impl Shared ===

impl Shared {
    /// Looks at an object for all of its indices.
    pub(super) async fn look(
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
                outcome: Outcome::Error(HandlerFailure::Exhausted(limit)),
                update: None,
            };
        }
        let scope = self.surroundings(key, indexer.memos.as_deref());
        let span = scope.subject.span();
        let span = span.in_scope(|| span::handler(indexer.spec.id.as_str(), record.retries));
        let facts = IndexInputs {
            scope,
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
        let update = update.filter(|_| matches!(verdict, CallEnd::Returned(Ok(()))));
        Looking::Called {
            record,
            outcome: verdict.into_outcome(None, Reason::Noop, policy),
            update,
        }
    }

    /// Puts into the index what an attempt came to; returns what is to be remembered.
    pub(super) async fn conclude(
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
        let scope = self.surroundings(key, indexer.memos.as_deref());
        scope.subject.span().in_scope(|| {
            let finished = report::Finished {
                spec: &indexer.spec,
                outcome: &outcome,
                consequence: &consequence,
                record: Some(&record),
                default_backoff,
                now,
            };
            report::tell(&finished, &scope);
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

    /// Takes an object out of an index.
    pub(super) async fn discard(&self, key: &Arc<ObjectKey>, at: usize) {
        let function = &self.indexers[at].function;
        apply(function.nothing(&self.services.indices), key).await;
    }

    /// The object is gone, and so is what was remembered of it.
    pub(super) fn forget(&self, key: &ObjectKey) {
        for memos in self.indexers.iter().filter_map(|it| it.memos.as_ref()) {
            memos.forget(&key.uid);
        }
    }

    fn surroundings(&self, key: &Arc<ObjectKey>, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(&self.services),
            subject: ObjectRef::handled(Arc::clone(self.api.name()), Arc::clone(key)),
            memo: memos.map(|memos| memos.recall(&key.uid)),
            resource: self.api.description().get(),
        }
    }
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
