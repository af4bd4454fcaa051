//! Contexts for unit tests of handlers, which need no cluster.

mod refusing_client;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kopf_core::admission::Operation;
use kopf_core::background::stopping::StopReason;
use kopf_core::cause::detect::ObservedChange;
use kopf_core::cause::{Reason, Subject};
use kopf_core::children::reasons::ReconcileReasons;
use kopf_core::handler::HandlerId;
use kopf_core::handler::registry::Registry;
use kopf_core::handler::watch_selectors::WatchSelectors;
use kopf_core::lifecycle::Lifecycle;
use kopf_core::object::ObjectView;
use kopf_core::object::diff::Baseline;
use kopf_core::object::hashed::HashedState;
use kopf_core::object::path::FieldPath;
use kopf_core::persistence::Persistence;
use kopf_core::selection::DiscoveredResource;
use kopf_core::turn::TurnInput;
use kopf_core::turn::sub::SubTurn;
use kube::Client;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use self::refusing_client::refusing_client;
use crate::children::Children;
use crate::children::owner::OwnerChildren;
use crate::client::requests::KindApi;
use crate::client::resource::{KindName, KindSpec, Scope, StatusSubresource};
use crate::context::background::BackgroundInputs;
use crate::context::change::{ChangeContext, ChangeInputs};
use crate::context::daemon::DaemonContext;
use crate::context::event::{EventContext, EventInputs};
use crate::context::field::FieldContext;
use crate::context::filter::{
    FilterContext, FilterMemo, FilterOccasion, FilterResource, FilterScope,
};
use crate::context::index::{IndexContext, IndexInputs};
use crate::context::mutation::MutationContext;
use crate::context::reconcile::{ReconcileContext, ReconcileInputs};
use crate::context::stop::{Signal, StopSignal};
use crate::context::timer::TimerContext;
use crate::context::validation::{Caller, ReviewInputs, ValidationContext};
use crate::coordination::pause::PauseGate;
use crate::events::object_ref::ObjectRef;
use crate::handler::memo::AnyMemo;
use crate::handler::patch::field_path;
use crate::index::{Index, Indices};
use crate::page::journal::PageJournal;
use crate::process::execute::applied_uids::AppliedUids;
use crate::process::execute::handler_scope::{HandlerScope, OperatorServices};
use crate::process::persist::background_write::BackgroundObject;
use crate::settings::Settings;
use crate::watch::latest::LatestState;
use crate::watch::{KindIndex, ObjectKey, WatchEventType};

/// Builds the context with which a unit test calls a handler.
///
/// The handler runs as in an operator, but nothing is written: `cx.draft()` is the object as it
/// would be written, and `cx.changes()` has all changes as one merge patch. Requests of the handler
/// fail, unless the test gives the context a client of its own. Build it inside of a tokio runtime,
/// as in a `#[tokio::test]`.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use kopf_runtime::TestContext;
/// use kopf_runtime::prelude::*;
///
/// async fn greet(cx: &mut ChangeContext<Value>) -> HandlerResult {
///     let greeting = format!("Hello, {}!", cx.name());
///     cx.draft()["status"]["greeting"] = greeting.into();
///     Ok(())
/// }
///
/// let mut cx = TestContext::new(&json!({"metadata": {"name": "one"}})).change();
/// assert!(greet(&mut cx).await.is_ok());
/// assert_eq!(cx.changes(), json!({"status": {"greeting": "Hello, one!"}}));
/// # }
/// ```
#[must_use]
pub struct TestContext {
    object: Value,
    old: FormerState,
    reason: Option<Reason>,
    retry: u32,
    runtime: Duration,
    handler: HandlerId,
    memo: Option<AnyMemo>,
    indices: Indices,
    client: Option<Client>,
    user: String,
    stop: Arc<Signal>,
}

/// The depth to which the hashes of a former state tell fields apart.
const HASH_DEPTH: usize = 4;

/// The state that was handled last.
enum FormerState {
    Absent,
    Known(Value),
    /// Only its hashes were stored.
    Hashed(Value),
}

impl TestContext {
    /// A context for an object: a type of your kind, or JSON, of which all but the name may be
    /// left out.
    ///
    /// # Panics
    /// If the object cannot be turned into JSON.
    pub fn new(object: &impl Serialize) -> Self {
        let mut object = to_json(object);
        for (key, value) in [("name", "test"), ("uid", "test-uid")] {
            let metadata = &mut object["metadata"];
            if metadata.get(key).is_none_or(Value::is_null) {
                metadata[key] = value.into();
            }
        }
        Self {
            object,
            old: FormerState::Absent,
            reason: None,
            retry: 0,
            runtime: Duration::ZERO,
            handler: HandlerId::new("test"),
            memo: None,
            indices: Indices::default(),
            client: None,
            user: String::new(),
            stop: Arc::new(Signal::default()),
        }
    }

    /// The object as it was handled last. The reason is an update then, unless it is set.
    ///
    /// # Panics
    /// If the object cannot be turned into JSON.
    pub fn old(mut self, old: &impl Serialize) -> Self {
        self.old = FormerState::Known(to_json(old));
        self
    }

    /// The object as it was handled last, of which only hashes were stored: the handler learns what
    /// changed, but not the former values.
    ///
    /// # Panics
    /// If the object cannot be turned into JSON.
    pub fn old_hashed(mut self, old: &impl Serialize) -> Self {
        self.old = FormerState::Hashed(to_json(old));
        self
    }

    /// The reason of the call; a creation by default, or an update if there is a former state.
    pub fn reason(mut self, reason: Reason) -> Self {
        self.reason = Some(reason);
        self
    }

    /// The number of attempts before this one.
    pub fn retry(mut self, retry: u32) -> Self {
        self.retry = retry;
        self
    }

    /// The time since the first attempt was due.
    pub fn runtime(mut self, runtime: Duration) -> Self {
        self.runtime = runtime;
        self
    }

    /// The id of the handler.
    pub fn handler(mut self, id: &str) -> Self {
        self.handler = HandlerId::new(id);
        self
    }

    /// The memo of the object.
    pub fn memo(mut self, memo: impl Any + Send + Sync) -> Self {
        self.memo = Some(Arc::new(memo));
        self
    }

    /// Adds entries to an index.
    pub fn index<I: Index>(
        self,
        _: I,
        entries: impl IntoIterator<Item = (I::Key, I::Value)>,
    ) -> Self {
        let mut update = self.indices.update::<I>(entries.into_iter().collect());
        // Entries belong to the object that they were made for: each call is one object.
        let uid = format!("index-{}", fastrand::u64(..));
        let key = Arc::new(ObjectKey {
            kind: KindIndex(0),
            uid: uid.into(),
            namespace: None,
            name: "indexed".into(),
        });
        assert!(update.try_apply(&key), "no handler reads the index yet");
        self
    }

    /// The client for requests of the handler. The default one refuses all.
    pub fn client(mut self, client: Client) -> Self {
        self.client = Some(client);
        self
    }

    /// The name of the user that made the request of a webhook.
    pub fn user(mut self, name: &str) -> Self {
        name.clone_into(&mut self.user);
        self
    }

    /// The stop signal of a daemon or timer is set from the start.
    pub fn stopping(self) -> Self {
        self.stop.raise(StopReason::OperatorExiting);
        self
    }

    /// The context of a change handler.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn change<K: DeserializeOwned>(self) -> ChangeContext<K> {
        let object = decode(&self.object);
        ChangeContext::new(object, self.change_inputs())
    }

    /// The context of a handler of a field, by its path, such as `spec.size`.
    ///
    /// # Panics
    /// If the object or the field does not fit its type.
    pub fn field<K: DeserializeOwned, F: DeserializeOwned>(self, path: &str) -> FieldContext<K, F> {
        let field = field_path(path);
        let inputs = ChangeInputs {
            field,
            ..self.change_inputs()
        };
        fitting(FieldContext::new(inputs))
    }

    /// The context of an event handler.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn event<K: DeserializeOwned>(self, event_type: WatchEventType) -> EventContext<K> {
        let inputs = EventInputs {
            scope: self.scope(),
            event_type,
            handler: self.handler,
            param: None,
            retry: self.retry,
            started: Timestamp::now(),
            runtime: Duration::ZERO,
            raw: Arc::new(self.object),
        };
        EventContext::new(decode(&inputs.raw), inputs)
    }

    /// The context of `reconcile`: its children are not sent, and
    /// [`applied`](ReconcileContext::applied) returns them.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn reconcile<K: DeserializeOwned, C>(self) -> ReconcileContext<K, C> {
        let scope = self.scope();
        let raw = Arc::new(self.object);
        let client = scope.services.client.clone();
        let children = Children::new(client, "test".into(), []);
        // Objects of tests mostly have no uid.
        let view = ObjectView::new(&raw);
        let key = Arc::new(ObjectKey {
            kind: KindIndex(0),
            uid: view.uid().unwrap_or_default().into(),
            namespace: view.namespace().map(Box::from),
            name: view.name().unwrap_or_default().into(),
        });
        let children = OwnerChildren::noting(children, key, Arc::clone(&raw));
        let inputs = ReconcileInputs {
            scope,
            reasons: ReconcileReasons::default(),
            children: Arc::new(children),
            handler: self.handler,
            param: None,
            retry: self.retry,
            started: Timestamp::now(),
            runtime: self.runtime,
            raw,
        };
        ReconcileContext::new(decode(&inputs.raw), inputs)
    }

    /// The context of a timer.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn timer<K: DeserializeOwned>(self) -> TimerContext<K> {
        fitting(TimerContext::new(self.background_inputs()))
    }

    /// The context of a daemon.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn daemon<K: DeserializeOwned>(self) -> DaemonContext<K> {
        fitting(DaemonContext::new(self.background_inputs()))
    }

    /// The context of an index function.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn indexing<K: DeserializeOwned>(self) -> IndexContext<K> {
        let object = decode(&self.object);
        let inputs = IndexInputs {
            scope: self.scope(),
            raw: Arc::new(self.object),
            handler: self.handler,
            param: None,
            retry: self.retry,
            started: Timestamp::now(),
            runtime: self.runtime,
        };
        IndexContext::new(object, inputs)
    }

    /// The context of a validating webhook, for the creation of the object, or for its change if
    /// there is a former state.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn validation<K: DeserializeOwned>(self) -> ValidationContext<K> {
        let object = decode(&self.object);
        ValidationContext::new(object, self.review_inputs())
    }

    /// The context of a mutating webhook, as [`validation`](Self::validation).
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn mutation<K: DeserializeOwned>(self) -> MutationContext<K> {
        MutationContext::new(self.validation())
    }

    /// Calls a filter function with its context, and returns its answer.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn filter<K: DeserializeOwned>(
        self,
        condition: impl FnOnce(&FilterContext<'_, K>) -> bool,
    ) -> bool {
        let inputs = self.change_inputs();
        let cause = inputs.situation.cause();
        let subject = Subject::change(&cause);
        self.filtered(&subject, condition)
    }

    /// Calls a filter function of an event handler with its context, and returns its answer.
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn filter_event<K: DeserializeOwned>(
        self,
        event_type: WatchEventType,
        condition: impl FnOnce(&FilterContext<'_, K>) -> bool,
    ) -> bool {
        let occasion = FilterOccasion::Event(event_type);
        let subject = Subject::object(ObjectView::new(&self.object)).with_context(&occasion);
        self.filtered(&subject, condition)
    }

    /// Calls a filter function of a webhook with its context, and returns its answer. The request
    /// is as for [`validation`](Self::validation).
    ///
    /// # Panics
    /// If the object does not fit its type.
    pub fn filter_review<K: DeserializeOwned>(
        self,
        condition: impl FnOnce(&FilterContext<'_, K>) -> bool,
    ) -> bool {
        let review = self.review_inputs();
        let occasion = FilterOccasion::Review {
            request: review.request,
            caller: review.caller,
            resource: review.resource,
        };
        let inputs = self.change_inputs();
        let cause = inputs.situation.cause();
        let subject = Subject::change(&cause).with_context(&occasion);
        self.filtered(&subject, condition)
    }

    fn filtered<K: DeserializeOwned>(
        &self,
        subject: &Subject<'_>,
        condition: impl FnOnce(&FilterContext<'_, K>) -> bool,
    ) -> bool {
        let handler = FilterScope {
            indices: self.indices.clone(),
            memo: FilterMemo::of_object(self.memo.as_ref()),
            param: None,
            resource: FilterResource::Known(self.scope().resource),
        };
        condition(&fitting(FilterContext::new(
            &subject.with_handler(&handler),
        )))
    }

    fn change_inputs(&self) -> ChangeInputs {
        let mut settings = Settings::default();
        // An operator would call the handler again for the next sub-handler.
        settings.execution.lifecycle = Lifecycle::AllAtOnce;
        let registry = Arc::new(Registry::new([]).expect("there are no handlers to conflict"));
        let persistence = Persistence::default();
        let rules = registry.essence_rules(&[]);
        let essence = |object: &Value| persistence.essence(ObjectView::new(object), &rules);
        let new = essence(&self.object);
        let old = match &self.old {
            FormerState::Absent => Baseline::Absent,
            FormerState::Known(old) => Baseline::Known(essence(old)),
            FormerState::Hashed(old) => {
                let old = essence(old);
                Baseline::Hashed(HashedState::new(old.as_value(), "test", HASH_DEPTH))
            }
        };
        let diff = old.diff(&new);
        let change = Arc::new(ObservedChange {
            reason: self.reason.unwrap_or(match self.old {
                FormerState::Absent => Reason::Create,
                FormerState::Known(_) | FormerState::Hashed(_) => Reason::Update,
            }),
            initial: false,
            diff: diff.clone(),
            old,
            new,
        });
        let body = Arc::new(self.object.clone());
        let situation = TurnInput::new(body, change, registry, Arc::new(persistence));
        let now = Timestamp::now();
        ChangeInputs {
            scope: self.scope(),
            execution: settings.execution,
            subs: Arc::new(SubTurn::of(situation.clone(), self.handler.clone(), now)),
            situation,
            diff: Arc::new(diff),
            handler: self.handler.clone(),
            field: FieldPath::root(),
            changing: false,
            param: None,
            retry: self.retry,
            started: now,
            runtime: self.runtime,
        }
    }

    fn background_inputs(&self) -> BackgroundInputs {
        let scope = self.scope();
        let (group, version) = match self.kind_name().api_version.split_once('/') {
            Some((group, version)) => (group.into(), version.into()),
            None => ("".into(), self.kind_name().api_version.into()),
        };
        let kind = self.kind_name().kind;
        let spec = KindSpec {
            group,
            version,
            plural: format!("{}s", kind.to_lowercase()).into(),
            kind: kind.into(),
            scope: if self.key().namespace.is_some() {
                Scope::Namespaced
            } else {
                Scope::Cluster
            },
            status: StatusSubresource::Present,
        };
        let text = to_raw_value(&self.object).expect("JSON can be written as JSON");
        let object = BackgroundObject {
            api: Arc::new(KindApi::new(
                scope.services.client.clone(),
                spec,
                WatchSelectors::default(),
            )),
            key: Arc::new(self.key()),
            status: StatusSubresource::Present,
            latest: Arc::new(LatestState::new(text.into(), None)),
            pause_gate: scope.services.pause_gate.clone(),
        };
        BackgroundInputs {
            scope,
            object,
            stop: StopSignal::new(Arc::clone(&self.stop) as _),
            alive: Arc::new(()),
            handler: self.handler.clone(),
            param: None,
            retry: self.retry,
            started: Timestamp::now(),
            runtime: self.runtime,
        }
    }

    fn review_inputs(&self) -> ReviewInputs {
        let scope = self.scope();
        let (operation, old) = match &self.old {
            FormerState::Known(old) => (Operation::Update, Some(old)),
            FormerState::Absent | FormerState::Hashed(_) => (Operation::Create, None),
        };
        let request = json!({
            "uid": "review",
            "resource": {"group": "", "version": "", "resource": ""},
            "name": self.object["metadata"]["name"],
            "namespace": self.object["metadata"]["namespace"],
            "operation": operation.to_string(),
            "userInfo": {"username": self.user},
            "object": self.object,
            "oldObject": old,
        });
        let request = serde_json::from_value(request).expect("a review has these fields");
        ReviewInputs {
            request: Arc::new(request),
            caller: Arc::new(Caller::default()),
            client: scope.services.client.clone(),
            indices: self.indices.clone(),
            handler: self.handler.clone(),
            param: None,
            states: None,
            memo: self.memo.clone(),
            resource: scope.resource,
        }
    }

    fn scope(&self) -> HandlerScope {
        let kind = self.kind_name();
        let client = self.client.clone();
        HandlerScope {
            services: Arc::new(OperatorServices {
                client: client.unwrap_or_else(refusing_client),
                field_manager: "test".into(),
                poster: None,
                pause_gate: PauseGate::always(),
                indices: self.indices.clone(),
                applied: AppliedUids::default(),
                journal: PageJournal::default(),
            }),
            resource: Arc::new(DiscoveredResource {
                kind: kind.kind.clone(),
                ..DiscoveredResource::default()
            }),
            subject: ObjectRef::handled(Arc::new(kind), Arc::new(self.key())),
            memo: self.memo.clone(),
        }
    }

    fn kind_name(&self) -> KindName {
        let text = |key: &str| self.object[key].as_str().unwrap_or_default().to_owned();
        KindName {
            api_version: text("apiVersion"),
            kind: text("kind"),
        }
    }

    fn key(&self) -> ObjectKey {
        let text = |key: &str| self.object["metadata"][key].as_str();
        ObjectKey {
            kind: KindIndex(0),
            uid: text("uid").unwrap_or_default().into(),
            namespace: text("namespace").map(Into::into),
            name: text("name").unwrap_or_default().into(),
        }
    }
}

fn to_json(object: &impl Serialize) -> Value {
    serde_json::to_value(object).expect("the object can be turned into JSON")
}

fn decode<T: DeserializeOwned>(value: &Value) -> T {
    fitting(T::deserialize(value))
}

fn fitting<T>(decoded: Result<T, serde_json::Error>) -> T {
    decoded.unwrap_or_else(|error| panic!("the object does not fit its type: {error}"))
}

#[cfg(test)]
mod tests;
