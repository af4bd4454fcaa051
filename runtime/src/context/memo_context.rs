//! The memo of an object, as one trait of all contexts that have it.

use super::change::ChangeContext;
use super::child::ChildContext;
use super::daemon::DaemonContext;
use super::event::EventContext;
use super::field::FieldContext;
use super::filter::FilterContext;
use super::index::IndexContext;
use super::mutation::MutationContext;
use super::reconcile::{ReconcileCall, ReconcileContext};
use super::timer::TimerContext;
use super::validation::ValidationContext;
use crate::handler::memo::Memo;

/// A context with the memo of an object of the kind `K`: all contexts of handlers, webhooks, index
/// functions and filters.
pub trait MemoContext<K> {
    /// The memo of the object.
    fn memo<M: Memo<K>>(&self) -> &M;
}

/// Implements the trait by the context's own method.
macro_rules! memo_context {
    ($context:ty) => {
        impl<K> MemoContext<K> for $context {
            fn memo<M: Memo<K>>(&self) -> &M {
                self.memo()
            }
        }
    };
}

memo_context!(ChangeContext<K>);
memo_context!(EventContext<K>);
memo_context!(ReconcileCall<K>);
memo_context!(DaemonContext<K>);
memo_context!(TimerContext<K>);
memo_context!(IndexContext<K>);
memo_context!(ValidationContext<K>);
memo_context!(FilterContext<'_, K>);

impl<K, F> MemoContext<K> for FieldContext<K, F> {
    fn memo<M: Memo<K>>(&self) -> &M {
        (**self).memo()
    }
}

impl<K> MemoContext<K> for MutationContext<K> {
    fn memo<M: Memo<K>>(&self) -> &M {
        (**self).memo()
    }
}

impl<K, C> MemoContext<K> for ReconcileContext<K, C> {
    fn memo<M: Memo<K>>(&self) -> &M {
        (**self).memo()
    }
}

impl<K, T> MemoContext<K> for ChildContext<K, T> {
    fn memo<M: Memo<K>>(&self) -> &M {
        (**self).memo()
    }
}
