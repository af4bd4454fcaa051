//! The context of filter functions: the object and its change, to be read only.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use kopf_core::admission::Operation;
use kopf_core::admission::certificate::Certificate;
use kopf_core::admission::review::{ReviewRequest, UserInfo};
use kopf_core::cause::{Reason, Subject};
use kopf_core::handler::filter::{Filters, WhenTest};
use kopf_core::object::diff::{Baseline, Diff};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Old;
use super::change::former;
use super::validation::Caller;
use crate::handler::memo::{AnyMemo, Memo, Memos, typed};
use crate::index::{Index, IndexView, Indices};

/// The context of a function that `when` names: the object and its change, as the handler is going
/// to see them.
///
/// A filter decides whether a handler is called. It may be asked at any time and any number of
/// times: it cannot change anything, and has no client.
pub struct FilterContext<'a, K> {
    object: K,
    subject: Subject<'a>,
    old: OnceLock<Box<Old<K>>>,
    diff: OnceLock<Diff>,
    memo: OnceLock<Option<AnyMemo>>,
}

/// The request that a filter of a webhook decides about.
#[derive(Debug, Clone)]
pub struct FilteredRequest {
    pub(crate) request: Arc<ReviewRequest>,
    pub(crate) caller: Arc<Caller>,
}

/// What the filters of one handler can read beside the object.
#[derive(Clone, Default)]
pub(crate) struct FilterScope {
    pub(crate) indices: Indices,
    pub(crate) memo: FilterMemo,
    pub(crate) param: Option<Arc<Value>>,
    /// None outside of webhooks.
    pub(crate) request: Option<FilteredRequest>,
}

/// The source of the memo that filters read.
#[derive(Clone, Default)]
pub(crate) enum FilterMemo {
    /// The kind has no memos.
    #[default]
    None,
    /// The memos of all objects of the kind.
    OfKind(Arc<Memos>),
    /// The memo of the object.
    OfObject(AnyMemo),
}

// === impl FilterMemo ===

impl FilterMemo {
    pub(crate) fn of_kind(memos: Option<&Arc<Memos>>) -> Self {
        memos.map_or(Self::None, |memos| Self::OfKind(Arc::clone(memos)))
    }

    pub(crate) fn of_object(memo: Option<&AnyMemo>) -> Self {
        memo.map_or(Self::None, |memo| Self::OfObject(Arc::clone(memo)))
    }
}

// === impl FilterScope ===

impl FilterScope {
    /// Gives the scope to the filter functions of a handler.
    pub(crate) fn bind(self, filters: &mut Filters) {
        let Some(when) = &filters.when else {
            return;
        };
        let scope = Arc::new(self);
        filters.when = when.try_map(&mut |WhenTest(condition)| {
            let (condition, scope) = (Arc::clone(condition), Arc::clone(&scope));
            Some(WhenTest::new(move |subject| {
                let request = subject.context.downcast_ref::<FilteredRequest>();
                match request {
                    Some(request) => condition(&subject.with_context(&scope.of_request(request))),
                    None => condition(&subject.with_context(&*scope)),
                }
            }))
        });
    }

    fn of_request(&self, request: &FilteredRequest) -> Self {
        Self {
            request: Some(request.clone()),
            ..self.clone()
        }
    }
}

// === impl FilteredRequest ===

impl FilteredRequest {
    /// The operation of the request.
    pub fn operation(&self) -> Operation {
        self.request.operation
    }

    /// The user that made the request.
    pub fn user(&self) -> &UserInfo {
        &self.request.user_info
    }

    /// The subresource of the request, such as `status` or `scale`; none for the object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.request.subresource()
    }

    /// Returns true if the request is a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.request.dry_run == Some(true)
    }

    /// The HTTP headers of the admission review.
    pub fn headers(&self) -> &HeaderMap {
        &self.caller.headers
    }

    /// The verified client certificate of the API server, if it sent one.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.caller.certificate.as_deref()
    }
}

// === impl FilterContext ===

impl<'a, K: DeserializeOwned> FilterContext<'a, K> {
    /// The context of an object; an error if the object cannot be decoded.
    pub(crate) fn new(subject: &Subject<'a>) -> Result<Self, serde_json::Error> {
        Ok(Self {
            object: K::deserialize(subject.body.body())?,
            subject: *subject,
            old: OnceLock::new(),
            diff: OnceLock::new(),
            memo: OnceLock::new(),
        })
    }

    /// The object as it was handled last; for webhooks, as it was before the request. It is absent
    /// for filters of event handlers, daemons, timers and index functions, which know no change.
    pub fn old(&self) -> Old<&K> {
        let read = || {
            Box::new(match self.old_raw() {
                Old::Absent => Old::Absent,
                Old::Known(essence) => former(essence, self.raw()).map_or(Old::Unknown, Old::Known),
                Old::Unknown => Old::Unknown,
            })
        };
        self.old.get_or_init(read).as_ref().as_ref()
    }
}

impl<K> FilterContext<'_, K> {
    /// The object.
    pub fn object(&self) -> &K {
        &self.object
    }

    /// The object as the API server sent it.
    pub fn raw(&self) -> &Value {
        self.subject.body.body()
    }

    /// The name of the object; none if the API server is going to generate one.
    pub fn name(&self) -> Option<&str> {
        self.subject.body.name()
    }

    /// The namespace of the object; none for cluster-scoped kinds.
    pub fn namespace(&self) -> Option<&str> {
        self.subject.body.namespace()
    }

    /// The uid of the object; none in webhooks of creations.
    pub fn uid(&self) -> Option<&str> {
        self.subject.body.uid()
    }

    /// The value of a label.
    pub fn label(&self, key: &str) -> Option<&str> {
        self.raw()["metadata"]["labels"][key].as_str()
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.raw()["metadata"]["annotations"][key].as_str()
    }

    /// The reason of the change; none for filters of event handlers, daemons, timers and index
    /// functions.
    pub fn reason(&self) -> Option<Reason> {
        self.subject.cause.map(|cause| cause.reason)
    }

    /// The differences to the last handled state, or those that a request makes; none for filters
    /// that know no change.
    pub fn diff(&self) -> &Diff {
        let compare = || {
            let change = self.subject.cause;
            change.map_or_else(Diff::default, |change| change.old.diff(change.new))
        };
        match self.subject.cause {
            Some(change) if !change.diff.is_empty() => change.diff,
            _ => self.diff.get_or_init(compare),
        }
    }

    /// The state of the object as it was handled last, as JSON.
    pub fn old_raw(&self) -> Old<&Value> {
        match self.subject.cause.map(|change| change.old) {
            None | Some(Baseline::Absent) => Old::Absent,
            Some(Baseline::Known(essence)) => Old::Known(essence.as_value()),
            Some(Baseline::Hashed(_)) => Old::Unknown,
        }
    }

    /// An index of the operator. Each lookup reads the current entries.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        match self.scope() {
            Some(scope) => scope.indices.get(index),
            None => Indices::default().get(index),
        }
    }

    /// The memo of the object. `memo` in the manifest names the type.
    pub fn memo<M: Memo<K>>(&self) -> &M {
        let find = || match (&self.scope()?.memo, self.uid()) {
            (FilterMemo::None, _) => None,
            (FilterMemo::OfKind(memos), Some(uid)) => Some(memos.find(uid)),
            (FilterMemo::OfKind(memos), None) => Some(memos.fresh()),
            (FilterMemo::OfObject(memo), _) => Some(Arc::clone(memo)),
        };
        typed::<K, M>(self.memo.get_or_init(find).as_ref())
    }

    /// The value of `param` of the handler in the manifest.
    pub fn param(&self) -> Option<&Value> {
        self.scope()?.param.as_deref()
    }

    /// The request that a webhook reviews: its operation and its user; none for other handlers.
    pub fn request(&self) -> Option<&FilteredRequest> {
        self.scope()?.request.as_ref()
    }

    fn scope(&self) -> Option<&FilterScope> {
        self.subject.context.downcast_ref()
    }
}
