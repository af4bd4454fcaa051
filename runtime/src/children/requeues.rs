//! The owners that are to be handled again: each one once, with all reasons, however much happens.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kopf_core::children::reasons::{ReconcileReason, ReconcileReasons};
use tokio::sync::Notify;

use crate::watch::ObjectKey;

/// An owner to be handled again, with the reason for which `reconcile` is to be called, if any.
pub(super) type OwnerRequeue = (Arc<ObjectKey>, Option<ReconcileReason>);

/// The owners that wait for a place in the queue. There are never more of them than owners.
#[derive(Default)]
pub(crate) struct OwnerRequeues {
    /// Never held across an await.
    waiting: Mutex<WaitingOwners>,
    filled: Notify,
}

#[derive(Default)]
struct WaitingOwners {
    order: VecDeque<Arc<ObjectKey>>,
    reasons: HashMap<Arc<ObjectKey>, ReconcileReasons>,
    /// Those that are put here again after a time.
    planned: HashSet<Arc<ObjectKey>>,
}

// === impl OwnerRequeues ===

impl OwnerRequeues {
    /// Adds an owner, or a reason to one that waits already.
    pub(super) fn push(&self, (key, reason): OwnerRequeue) {
        let mut waiting = self.waiting();
        let WaitingOwners { order, reasons, .. } = &mut *waiting;
        let known = reasons.entry(key).or_insert_with_key(|key| {
            order.push_back(Arc::clone(key));
            ReconcileReasons::default()
        });
        if let Some(reason) = reason {
            known.add(reason);
        }
        drop(waiting);
        self.filled.notify_one();
    }

    /// Takes the owner that has waited longest.
    pub(crate) fn take(&self) -> Option<(Arc<ObjectKey>, ReconcileReasons)> {
        let mut waiting = self.waiting();
        let key = waiting.order.pop_front()?;
        let reasons = waiting.reasons.remove(&key).unwrap_or_default();
        Some((key, reasons))
    }

    /// Waits until an owner waits. Only one task may do so.
    pub(crate) async fn filled(&self) {
        while self.waiting().order.is_empty() {
            self.filled.notified().await;
        }
    }

    /// Notes that an owner is put here after a time; returns whether that was not known.
    pub(super) fn plan(&self, key: &Arc<ObjectKey>) -> bool {
        self.waiting().planned.insert(Arc::clone(key))
    }

    /// Puts a planned owner here.
    pub(super) fn push_planned(&self, key: Arc<ObjectKey>) {
        self.waiting().planned.remove(&key);
        self.push((key, None));
    }

    fn waiting(&self) -> MutexGuard<'_, WaitingOwners> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::KindIndex;

    fn key(name: &str) -> Arc<ObjectKey> {
        Arc::new(ObjectKey {
            kind: KindIndex(0),
            uid: name.into(),
            namespace: None,
            name: name.into(),
        })
    }

    #[tokio::test]
    async fn an_owner_waits_once_with_all_reasons_in_the_order_of_arrival() {
        let requeues = OwnerRequeues::default();
        for _ in 0..10_000 {
            requeues.push((key("a"), Some(ReconcileReason::Asked)));
            requeues.push((key("b"), None));
        }
        requeues.push((key("a"), Some(ReconcileReason::Interval)));
        requeues.filled().await;
        let (first, reasons) = requeues.take().expect("it waits");
        assert_eq!(&*first.name, "a");
        let reasons: Vec<_> = reasons.iter().cloned().collect();
        assert_eq!(reasons, [ReconcileReason::Asked, ReconcileReason::Interval]);
        let (second, reasons) = requeues.take().expect("it waits, too");
        assert!(&*second.name == "b" && reasons.is_empty());
        assert!(requeues.take().is_none());
        requeues.push((key("a"), None));
        requeues.filled().await;
        assert!(requeues.take().is_some(), "it may wait again");
    }

    #[test]
    fn an_owner_is_planned_once() {
        let requeues = OwnerRequeues::default();
        assert!(requeues.plan(&key("a")));
        assert!(!requeues.plan(&key("a")));
        requeues.push_planned(key("a"));
        assert!(requeues.plan(&key("a")));
    }
}
