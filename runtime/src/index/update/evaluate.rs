//! Evaluates the index functions for one object, and applies their results to the indices.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
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
use crate::index::IndexUpdate;
use crate::process::execute::handler_scope::{HandlerScope, OperatorServices};
use crate::process::execute::invoke::CallEnd;
use crate::process::execute::report;
use crate::registration::function::index::IndexFunction;
use crate::task::panic_message;
use crate::watch::ObjectKey;

/// One index of a kind with its function.
#[derive(Clone)]
pub(crate) struct Indexer {
    pub(crate) spec: Arc<HandlerSpec>,
    pub(crate) function: Arc<dyn IndexFunction>,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) metrics: Arc<HandlerMetrics>,
    /// None if the declaration has no memos.
    pub(crate) memos: Option<Arc<Memos>>,
}

/// The index functions of a kind, with the services that their calls need.
pub(crate) struct IndexEvaluator {
    pub(crate) indexers: Vec<Indexer>,
    pub(crate) api: KindApi,
    pub(crate) services: Arc<OperatorServices>,
    pub(crate) default_backoff: Duration,
}

/// The result of one index function for an object.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are of the largest variant, and none is kept"
)]
pub(super) enum IndexEvaluation {
    /// The entries stay: the function was not called.
    Unchanged,
    /// The filters do not match: the entries are removed.
    Unmatched,
    /// The function was called, or a limit of its retries was reached.
    Called {
        record: Record,
        outcome: Outcome,
        update: Option<Box<dyn IndexUpdate>>,
    },
}

// === impl IndexEvaluator ===

impl IndexEvaluator {
    /// Evaluates an object for all of its indices.
    pub(super) async fn evaluate(
        &self,
        key: &Arc<ObjectKey>,
        text: &RawValue,
        mut records: Vec<Option<Record>>,
        now: Timestamp,
    ) -> Vec<IndexEvaluation> {
        let object = match self.api.read(text) {
            Ok(object) => Arc::new(object),
            Err(error) => {
                error!(object = %key, "the object cannot be read: {error}");
                return self
                    .indexers
                    .iter()
                    .map(|_| IndexEvaluation::Unchanged)
                    .collect();
            }
        };
        let mut results = Vec::with_capacity(self.indexers.len());
        records.resize(self.indexers.len(), None);
        for (indexer, record) in self.indexers.iter().zip(records) {
            let is_waiting = |record: &Record| record.is_finished() || record.is_sleeping(now);
            if record.as_ref().is_some_and(is_waiting) {
                results.push(IndexEvaluation::Unchanged);
                continue;
            }
            let matched = || {
                indexer
                    .spec
                    .matches(&Matched::object(ObjectView::new(&object)))
            };
            // A filter is code of the user: its panic must not end the stream of all objects.
            let matched = catch_unwind(AssertUnwindSafe(matched));
            let record = record.unwrap_or_else(|| Record::begin(Reason::Noop, now));
            results.push(match matched {
                Ok(true) => self.call(key, indexer, Arc::clone(&object), record).await,
                Ok(false) => IndexEvaluation::Unmatched,
                Err(payload) => {
                    let message = format!("its filter panicked: {}", panic_message(&*payload));
                    IndexEvaluation::Called {
                        record,
                        outcome: Outcome::Error(HandlerFailure::Other { message }),
                        update: None,
                    }
                }
            });
        }
        results
    }

    async fn call(
        &self,
        key: &Arc<ObjectKey>,
        indexer: &Indexer,
        object: Arc<Value>,
        record: Record,
    ) -> IndexEvaluation {
        let policy = &indexer.spec.policy;
        let runtime = record.runtime(Timestamp::now());
        if let Err(limit) = policy.allow(record.retries, runtime) {
            indexer.metrics.exhausted();
            return IndexEvaluation::Called {
                record,
                outcome: Outcome::Error(HandlerFailure::Exhausted(limit)),
                update: None,
            };
        }
        let scope = self.handler_scope(key, indexer.memos.as_deref());
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
        let (end, update) = indexer.function.call(facts, limit).instrument(span).await;
        measured.end(end.counted());
        let update = update.filter(|_| matches!(end, CallEnd::Returned(Ok(()))));
        IndexEvaluation::Called {
            record,
            outcome: end.into_outcome(None, Reason::Noop, policy),
            update,
        }
    }

    /// Applies the result of an attempt to the index; returns the record of a failure.
    pub(super) async fn conclude(
        &self,
        key: &Arc<ObjectKey>,
        at: usize,
        record: Record,
        outcome: Outcome,
        update: Option<Box<dyn IndexUpdate>>,
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
        let scope = self.handler_scope(key, indexer.memos.as_deref());
        scope.subject.span().in_scope(|| {
            let finished = report::FinishedCall {
                spec: &indexer.spec,
                outcome: &outcome,
                consequence: &consequence,
                record: Some(&record),
                default_backoff,
                now,
            };
            report::report_call(&finished, &scope);
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

    /// Removes an object from an index.
    pub(super) async fn discard(&self, key: &Arc<ObjectKey>, at: usize) {
        let function = &self.indexers[at].function;
        apply(function.nothing(&self.services.indices), key).await;
    }

    /// Forgets the memos of an object that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        for memos in self.indexers.iter().filter_map(|it| it.memos.as_ref()) {
            memos.forget(&key.uid);
        }
    }

    fn handler_scope(&self, key: &Arc<ObjectKey>, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(&self.services),
            subject: ObjectRef::handled(Arc::clone(self.api.name()), Arc::clone(key)),
            memo: memos.map(|memos| memos.recall(&key.uid)),
            resource: self.api.description().get(),
        }
    }
}

/// Waits until there is no reader and no other writer, without blocking new readers.
async fn apply(mut update: Box<dyn IndexUpdate>, key: &Arc<ObjectKey>) {
    let unlocked = update.unlocked();
    loop {
        // An index that is unlocked between the attempt and the wait is noticed, too.
        let mut unlocked = pin!(unlocked.notified());
        unlocked.as_mut().enable();
        if update.try_apply(key) {
            return;
        }
        unlocked.await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Mutex, mpsc};

    use tokio::time::Instant;

    use super::*;
    use crate::index::{Index, Indices};
    use crate::watch::KindIndex;

    struct SizesIndex;

    impl Index for SizesIndex {
        type Key = String;
        type Value = u32;
        const NAME: &'static str = "sizes";
    }

    fn key(name: &str) -> Arc<ObjectKey> {
        Arc::new(ObjectKey {
            kind: KindIndex(0),
            uid: name.into(),
            namespace: None,
            name: name.into(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_waits_for_all_readers_and_does_not_poll() {
        let indices = Indices::default();
        let view = indices.get(SizesIndex);
        let update = indices.update::<SizesIndex>(vec![("x".to_owned(), 1)]);
        let key = key("one");
        let begun = Instant::now();
        let (first, second) = (view.read(), view.read());
        let writer = tokio::spawn(async move { apply(update, &key).await });
        for reader in [first, second] {
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(!writer.is_finished(), "the index is being read");
            drop(reader);
        }
        writer.await.expect("it does not panic");
        assert_eq!(view.get("x"), [1]);
        assert_eq!(begun.elapsed(), Duration::ZERO, "there were no pauses");
    }

    /// The values of a writer that takes its time: a value waits until it may be dropped, which
    /// happens while the index is locked.
    struct SlowIndex;

    struct SlowValue(Option<Mutex<mpsc::Receiver<()>>>);

    impl Index for SlowIndex {
        type Key = u32;
        type Value = SlowValue;
        const NAME: &'static str = "slow";
    }

    impl Drop for SlowValue {
        fn drop(&mut self) {
            if let Some(allowed) = self.0.take() {
                // The index is locked now: say so, and wait.
                let allowed = allowed.into_inner().unwrap();
                allowed.recv().unwrap();
                allowed.recv().unwrap();
            }
        }
    }

    #[tokio::test]
    async fn a_writer_that_finds_another_writer_goes_on_after_it() {
        let indices = Indices::default();
        let (allow, allowed) = mpsc::sync_channel(0);
        let slow = SlowValue(Some(Mutex::new(allowed)));
        apply(indices.update::<SlowIndex>(vec![(1, slow)]), &key("one")).await;
        let removal = indices.update::<SlowIndex>(Vec::new());
        let first = std::thread::spawn(move || {
            let mut removal = removal;
            removal.try_apply(&key("one"))
        });
        // It is taken while the first writer has locked the index.
        allow.send(()).unwrap();
        let second = indices.update::<SlowIndex>(vec![(2, SlowValue(None))]);
        let second = tokio::spawn(async move { apply(second, &key("two")).await });
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!second.is_finished(), "the index is being written");
        allow.send(()).unwrap();
        assert!(first.join().unwrap());
        let ended = tokio::time::timeout(Duration::from_secs(60), second).await;
        ended.expect("the second writer goes on").unwrap();
        assert!(indices.get(SlowIndex).read().contains_key(&2));
    }
}
