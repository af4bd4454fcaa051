//! The context of filter functions: the object and its change, to be read only.

use std::sync::{Arc, OnceLock};

use http::HeaderMap;
use kopf_core::admission::Operation;
use kopf_core::admission::certificate::Certificate;
use kopf_core::admission::review::{ReviewRequest, UserInfo};
use kopf_core::cause::{Reason, Subject};
use kopf_core::handler::filter::Filters;
use kopf_core::object::diff::{Baseline, Diff};
use kopf_core::selection::DiscoveredResource;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Old;
use super::change::former;
use super::validation::Caller;
use crate::client::resource::ResourceDescription;
use crate::handler::memo::{AnyMemo, Memo, Memos, typed};
use crate::index::{Index, IndexView, Indices};
use crate::watch::WatchEventType;

/// The context of a filter function: the object and its change, as the handler is going to see
/// them.
///
/// A filter decides whether a handler is called. It may be asked at any time and any number of
/// times: it cannot change anything, and has no client.
pub struct FilterContext<'a, K> {
    object: K,
    subject: Subject<'a>,
    old: OnceLock<Box<Old<K>>>,
    diff: OnceLock<Diff>,
    memo: OnceLock<Option<AnyMemo>>,
    resource: OnceLock<Arc<DiscoveredResource>>,
}

/// What the filters of one handler can read beside the object.
pub(crate) struct FilterScope {
    pub(crate) indices: Indices,
    pub(crate) memo: FilterMemo,
    pub(crate) param: Option<Arc<Value>>,
    pub(crate) resource: FilterResource,
}

/// The source of the resource that filters read.
pub(crate) enum FilterResource {
    /// That of all objects which the handler is for, as discovery describes it.
    Described(ResourceDescription),
    /// That of the object.
    Known(Arc<DiscoveredResource>),
    /// That of the request, because requests for several resources arrive.
    OfRequest,
}

/// What happened, if it is more than a change of the object.
pub(crate) enum FilterOccasion {
    /// A watch event, for event handlers.
    Event(WatchEventType),
    /// A request, for webhooks.
    Review {
        request: Arc<ReviewRequest>,
        caller: Arc<Caller>,
        resource: Arc<DiscoveredResource>,
    },
}

/// The source of the memo that filters read.
#[derive(Default)]
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
        if !filters.is_empty() {
            filters.data = Some(Arc::new(self));
        }
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
            resource: OnceLock::new(),
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

    /// The value of `param` of a sub-handler. Filters of a handler in the manifest take its `param`
    /// as an argument.
    pub fn param(&self) -> Option<&Value> {
        self.scope()?.param.as_deref()
    }

    /// The resource of the object as the API server describes it: its names, categories and verbs.
    ///
    /// Until discovery has read it, it is what the operator was generated for.
    pub fn resource(&self) -> &DiscoveredResource {
        let find = || match (self.occasion(), self.scope().map(|it| &it.resource)) {
            (Some(FilterOccasion::Review { resource, .. }), _)
            | (_, Some(FilterResource::Known(resource))) => Arc::clone(resource),
            (_, Some(FilterResource::Described(description))) => description.get(),
            (_, Some(FilterResource::OfRequest) | None) => Arc::default(),
        };
        self.resource.get_or_init(find)
    }

    /// The type of the watch event; none but for filters of event handlers.
    pub fn event_type(&self) -> Option<WatchEventType> {
        match self.occasion()? {
            FilterOccasion::Event(event_type) => Some(*event_type),
            FilterOccasion::Review { .. } => None,
        }
    }

    /// The operation of the request; none but for filters of webhooks.
    pub fn operation(&self) -> Option<Operation> {
        Some(self.request()?.operation)
    }

    /// The subresource of the request of a webhook, such as `status` or `scale`; none for the
    /// object itself.
    pub fn subresource(&self) -> Option<&str> {
        self.request()?.subresource()
    }

    /// The user that made the request; none but for filters of webhooks.
    pub fn user(&self) -> Option<&UserInfo> {
        Some(&self.request()?.user_info)
    }

    /// Returns true if the request of a webhook is a dry run.
    pub fn is_dry_run(&self) -> bool {
        self.request()
            .is_some_and(|request| request.dry_run == Some(true))
    }

    /// The HTTP headers of the admission review; none but for filters of webhooks.
    pub fn headers(&self) -> Option<&HeaderMap> {
        Some(&self.caller()?.headers)
    }

    /// The verified client certificate of the API server, if it sent one to the webhook.
    pub fn client_certificate(&self) -> Option<&Certificate> {
        self.caller()?.certificate.as_deref()
    }

    fn request(&self) -> Option<&ReviewRequest> {
        match self.occasion()? {
            FilterOccasion::Review { request, .. } => Some(request),
            FilterOccasion::Event(_) => None,
        }
    }

    fn caller(&self) -> Option<&Caller> {
        match self.occasion()? {
            FilterOccasion::Review { caller, .. } => Some(caller),
            FilterOccasion::Event(_) => None,
        }
    }

    fn scope(&self) -> Option<&FilterScope> {
        self.subject.handler.downcast_ref()
    }

    fn occasion(&self) -> Option<&FilterOccasion> {
        self.subject.context.downcast_ref()
    }
}
