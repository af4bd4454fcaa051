//! The pipeline of one object: batch of events → cause → selection → execution → persistence.
//!
//! A worker of the queue runs it, for one object at a time. The machine of the core decides each
//! step, and this module performs its effects: it parses states, calls handlers, sends requests,
//! and reports.

pub(crate) mod batch;
mod child_handlers;
mod event_handlers;
pub(crate) mod execute;
mod failed_child_calls;
mod failed_event_calls;
mod handler_call;
pub(crate) mod kind;
pub(crate) mod kinds;
pub(crate) mod persist;
mod reconcile_call;
mod sleeping_state;

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_core::background::desired::ObjectLife;
use kopf_core::machine::memory::ObjectMemory;
use kopf_core::machine::object::{
    BackgroundView, KeptState, NextCall, ObjectEffect, ObjectInput, ObjectMachine, ObjectReport,
    ObjectRules, Rest,
};
use kopf_core::machine::release::ReleaseResult;
use kopf_core::object::ObjectView;
use kopf_core::object::resource_version::ResourceVersion;
use kopf_core::queue::QueueRules;
use kopf_core::turn::{RemainingWork, Turn};
use kopf_core::watch::batch::BatchMode;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, debug, error, info, warn};

use self::batch::{ByteBudget, WaitingEvent, WaitingEvents};
use self::failed_child_calls::FailedChildCalls;
use self::failed_event_calls::FailedEventCalls;
pub(crate) use self::kind::HandledKind;
use self::kinds::HandledKinds;
use self::sleeping_state::SleepingState;
use crate::background::{Background, ObservedObject};
use crate::children::Children;
use crate::children::owner::OwnerChildren;
use crate::client::resource::StatusSubresource;
use crate::client::shown_change::shown_changes;
use crate::coordination::pause::PauseGate;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::EventSeverity;
use crate::handler::memo::Memos;
use crate::process::execute::handler_scope::{HandlerScope, OperatorServices};
use crate::process::execute::report;
use crate::process::persist::object_writer::ObjectWriter;
use crate::queue::Processor;
use crate::settings::Settings;
use crate::task::panic_message;
use crate::watch::{ObjectKey, QueueItem, WatchEventType};

/// The pause after a panic that a panic follows at once.
const PAUSE_AFTER_PANICS: Duration = Duration::from_secs(60);

/// The pause after a child could not be deleted, if the settings have no delays.
const RELEASE_AGAIN: Duration = Duration::from_secs(10);

/// The processor of the queue: handles the objects of all kinds.
pub(crate) struct Pipeline {
    kinds: Arc<HandledKinds>,
    background: Arc<Background>,
    children: Arc<Children>,
    services: Arc<OperatorServices>,
    settings: Arc<Settings>,
    stop: CancellationToken,
    /// The start of the operator.
    origin: Instant,
    budget: ByteBudget,
}

/// The memory of an object between two calls.
#[derive(Default)]
pub(crate) struct PipelineMemory {
    object: ObjectMemory<SleepingState>,
    failed_event_calls: FailedEventCalls,
    failed_child_calls: FailedChildCalls,
}

/// The handling of one object during one call of the pipeline.
struct ObjectHandling<'a> {
    kind: Arc<HandledKind>,
    key: &'a Arc<ObjectKey>,
    background: &'a Background,
    children: &'a Arc<Children>,
    settings: &'a Settings,
    services: &'a Arc<OperatorServices>,
    pause_gate: &'a PauseGate,
    stop: &'a CancellationToken,
    origin: Instant,
    budget: &'a ByteBudget,
    subject: ObjectRef,
}

// === impl Pipeline ===

impl Pipeline {
    pub(crate) fn new(
        kinds: Arc<HandledKinds>,
        background: Arc<Background>,
        children: Arc<Children>,
        services: Arc<OperatorServices>,
        settings: Arc<Settings>,
        stop: CancellationToken,
    ) -> Self {
        let budget = ByteBudget::new(settings.queueing.waiting_bytes);
        Self {
            kinds,
            background,
            children,
            services,
            settings,
            stop,
            origin: Instant::now(),
            budget,
        }
    }

    fn kind(&self, key: &ObjectKey) -> Arc<HandledKind> {
        self.kinds.get(key.kind)
    }

    fn handling<'a>(&'a self, key: &'a Arc<ObjectKey>) -> ObjectHandling<'a> {
        let kind = self.kind(key);
        ObjectHandling {
            key,
            background: &self.background,
            children: &self.children,
            settings: &self.settings,
            services: &self.services,
            pause_gate: &self.services.pause_gate,
            stop: &self.stop,
            origin: self.origin,
            budget: &self.budget,
            subject: kind.subject(key),
            kind,
        }
    }
}

impl QueueRules for Pipeline {
    type Key = Arc<ObjectKey>;
    type Batch = WaitingEvents;
    type Memory = PipelineMemory;

    fn survives_pause(&self, batch: &WaitingEvents) -> bool {
        batch.survives_pause()
    }

    fn drop_plan(&self, memory: &mut Self::Memory) {
        memory.object.drop_plan();
        memory.failed_event_calls.clear();
    }

    fn is_gone(&self, memory: &Self::Memory) -> bool {
        memory.failed_event_calls.is_gone()
    }

    fn is_redundant(&self, key: &Self::Key, memory: &Self::Memory, batch: &WaitingEvents) -> bool {
        let kind = self.kind(key);
        let needs_each_event = kind.batch_mode() == BatchMode::EveryEvent;
        // An event that is ignored ends the wait for the planned call, which has to be planned anew.
        let redundant = memory.failed_child_calls.is_empty()
            && memory
                .object
                .is_redundant(&batch.summary(), needs_each_event);
        if redundant {
            debug!(object = %key, "Ignored: the event is not newer than our last write.");
        }
        redundant
    }
}

impl Processor for Pipeline {
    type QueueItem = QueueItem;

    fn fold(&self, key: &Self::Key, batch: &mut WaitingEvents, item: QueueItem) {
        let watch_event = match item {
            QueueItem::Event(watch_event) => watch_event,
            QueueItem::Requeue => return batch.requeue(),
            QueueItem::Reconcile(reasons) => return batch.requeue_for(reasons),
        };
        let kind = self.kind(key);
        if kind.related().keeps_owners() && watch_event.event_type != WatchEventType::Deleted {
            let version = watch_event.version.clone();
            let handled = &kind.related().handled_children;
            self.children
                .update_owner(key, handled, &watch_event.text, version);
        }
        if !kind.background_handlers().is_empty()
            && watch_event.event_type != WatchEventType::Deleted
        {
            let version = watch_event.version.clone();
            self.background
                .update_latest(key, &watch_event.text, version);
        }
        let mode = kind.batch_mode();
        batch.push(self.budget.admit(watch_event, mode), mode);
    }

    async fn process(
        &self,
        key: &Self::Key,
        memory: &mut Self::Memory,
        batch: WaitingEvents,
    ) -> NextCall {
        let handling = self.handling(key);
        if handling.kind.related().keeps_owners() {
            self.children.begin_handling(key);
        }
        self.services
            .journal
            .handling_begun(&handling.subject.journaled());
        let mut machine = ObjectMachine::new(handling.rules());
        let mut input = ObjectInput::Batch(batch.summary());
        let mut batch = Some(batch);
        let mut driven = Err(());
        // A call that panics is repeated later with the same state, which the machine decides.
        for _ in 0..2 {
            let span = handling.subject.span();
            // The future is large: pinned here, it is not moved.
            let drive = pin!(handling.drive(&mut machine, memory, &mut batch, input));
            match AssertUnwindSafe(drive.instrument(span))
                .catch_unwind()
                .await
            {
                Ok(rest) => {
                    driven = Ok(rest);
                    break;
                }
                Err(payload) => input = ObjectInput::Panicked(panic_message(&*payload)),
            }
        }
        let Ok(Rest { next, keep }) = driven else {
            return NextCall::NotBefore(PAUSE_AFTER_PANICS);
        };
        match keep {
            KeptState::Nothing => {}
            KeptState::Unread => memory.object.plan(SleepingState::Unread),
            KeptState::State(state) => {
                let sleeping = SleepingState::new(&state, &self.budget);
                memory.object.plan(sleeping);
            }
        }
        let next = memory.failed_event_calls.next_call(next);
        let next = memory.failed_child_calls.next_call(next);
        if next == NextCall::Forget {
            for memos in handling.kind.memos() {
                memos.forget(&key.uid);
            }
        }
        next
    }
}

// === impl ObjectHandling ===

impl ObjectHandling<'_> {
    fn rules(&self) -> ObjectRules<'_> {
        let related = self.kind.related();
        ObjectRules {
            uid: &self.key.uid,
            registry: self.kind.registry(),
            persistence: self.kind.persistence(),
            status_endpoint: self.kind.spec().status == StatusSubresource::Present,
            selective: self.kind.api().is_selective(),
            needs_each_event: self.kind.batch_mode() == BatchMode::EveryEvent
                || !related.child_handlers.is_empty(),
            has_background: !self.kind.background_handlers().is_empty() || related.keeps_owners(),
            reconcile: related.reconcile.as_ref(),
            lifecycle: &self.settings.execution.lifecycle,
            default_backoff: self.settings.execution.default_backoff,
            error_delays: &self.settings.queueing.error_delays,
        }
    }

    /// Steps through a call up to its end.
    async fn drive(
        &self,
        machine: &mut ObjectMachine<'_, SleepingState>,
        memory: &mut PipelineMemory,
        batch: &mut Option<WaitingEvents>,
        mut input: ObjectInput,
    ) -> Rest {
        let mut reconciled: Option<Arc<OwnerChildren>> = None;
        loop {
            machine.step(&mut memory.object, input, &self.writer().now());
            if machine.has_begun_turns() {
                // Handlers may take long, and other objects need the byte budget.
                *batch = None;
            }
            input = match machine.effect() {
                ObjectEffect::Rest(rest) => {
                    report::report_rest(rest.next, machine.left());
                    let journal = &self.services.journal;
                    journal.rested(&self.subject.journaled(), rest.next);
                    return rest.clone();
                }
                ObjectEffect::CallEventHandlers => {
                    let failed = &mut memory.failed_event_calls;
                    let called = self.call_event_handlers(batch.as_ref(), failed).await;
                    let failed = &mut memory.failed_child_calls;
                    let called = self.with_child_handlers(called, failed).await;
                    ObjectInput::EventHandlersCalled(called)
                }
                ObjectEffect::CallReconcile(attempt) => {
                    let (called, children) = self.call_reconcile(attempt).await;
                    reconciled = children;
                    called
                }
                ObjectEffect::PruneChildren => self.prune(reconciled.as_deref()).await,
                effect @ ObjectEffect::Send(_) => {
                    report::report_finalizer(machine.finalizer_change());
                    self.perform(effect, batch.as_ref()).await
                }
                effect => self.perform(effect, batch.as_ref()).await,
            };
        }
    }

    async fn perform(
        &self,
        effect: ObjectEffect<'_, SleepingState>,
        batch: Option<&WaitingEvents>,
    ) -> ObjectInput {
        match effect {
            ObjectEffect::ParseEvent => {
                let newest = batch.and_then(WaitingEvents::newest);
                ObjectInput::Parsed(newest.map_or(Ok(None), |newest| self.read(newest)))
            }
            ObjectEffect::ParseKept(kept) => ObjectInput::Parsed(Ok(kept.parse().map(Arc::new))),
            ObjectEffect::ParseLatest => {
                let latest = self.background.latest(self.key);
                let latest = latest.or_else(|| {
                    let text = self.children.latest_owner(self.key)?;
                    self.kind.api().read(&text).ok()
                });
                ObjectInput::Parsed(Ok(latest.map(Arc::new)))
            }
            ObjectEffect::Send(request) => {
                let answer = self.writer().send(&request).await;
                self.note_unkept_conditions(&request, &answer);
                ObjectInput::Answer(answer)
            }
            ObjectEffect::Wait(pause) => match self.writer().wait(pause).await {
                Some(answer) => ObjectInput::Answer(answer),
                None => ObjectInput::Continue,
            },
            ObjectEffect::Reconcile(view) => ObjectInput::Reconciled {
                holds: self.reconcile_background(view) | self.tend_children(view).await,
            },
            ObjectEffect::Call {
                turn,
                spec,
                attempt,
            } => self.call(turn, spec, attempt).await,
            effect => {
                self.report(&effect);
                ObjectInput::Continue
            }
        }
    }

    /// Performs an effect that has no result.
    fn report(&self, effect: &ObjectEffect<'_, SleepingState>) {
        match effect {
            ObjectEffect::ReportRequest(report) => self.writer().report(report),
            ObjectEffect::ReportTurn(turn) => {
                report::report_turn(turn, self.kind.api().name());
                self.journal_turn(turn);
            }
            ObjectEffect::ReportCall(call) => self.report_call(call),
            ObjectEffect::ReportCycleEnd { reason, outcome } => {
                report::report_cycle_end(*reason, outcome, &self.handler_scope(None));
                let journal = &self.services.journal;
                journal.cycle_ended(&self.subject.journaled(), *reason, outcome);
                if outcome.remaining == RemainingWork::FollowUp {
                    debug!("changed while it was handled: an update follows");
                }
            }
            ObjectEffect::ShowLatest {
                object,
                replaces_newer: false,
            } => {
                self.background.update_written(self.key, object);
                self.show_owner(object, false);
            }
            ObjectEffect::ShowLatest {
                object,
                replaces_newer: true,
            } => {
                self.background.replace_latest(self.key, object);
                self.show_owner(object, true);
            }
            ObjectEffect::StopBackground => {
                self.background.object_gone(self.key);
                self.children.forget_owner(self.key);
            }
            ObjectEffect::Report(report) => self.report_problem(report),
            ObjectEffect::ParseEvent
            | ObjectEffect::ParseKept(_)
            | ObjectEffect::ParseLatest
            | ObjectEffect::Send(_)
            | ObjectEffect::Wait(_)
            | ObjectEffect::CallEventHandlers
            | ObjectEffect::Reconcile(_)
            | ObjectEffect::CallReconcile(_)
            | ObjectEffect::PruneChildren
            | ObjectEffect::Call { .. }
            | ObjectEffect::Rest(_) => {}
        }
    }

    /// Logs and posts that the runtime itself cannot go on with the object for now.
    fn report_problem(&self, report: &ObjectReport) {
        match report {
            ObjectReport::Trouble { error, delay } => {
                error!("{error}; trying again in {delay:?}");
                self.post_error("Handling", &error.to_string());
            }
            ObjectReport::DeletionNotHandled(error) => {
                error!("the deletion is not handled: {error}");
            }
            ObjectReport::Unreadable { reason, release } => {
                let consequence = match release {
                    ReleaseResult::Released => "it is deleted without its handlers".to_owned(),
                    ReleaseResult::Left => {
                        "its handlers are not called until it changes".to_owned()
                    }
                    ReleaseResult::Rejected(reason) => {
                        format!("the finalizer cannot be removed: {reason}")
                    }
                };
                let message = format!("the object cannot be read: {reason}; {consequence}");
                error!("{message}");
                self.post_error("Handling", &message);
            }
            ObjectReport::EventPatchRejected(rejected) => {
                warn!("the API server rejects the patch of an event handler: {rejected}");
                self.post_error("Patching", &rejected.to_string());
            }
            ObjectReport::ProgressWritten => info!("the progress of the handlers is written now"),
        }
    }

    /// Reports to the journal which handlers are called, and for which change.
    fn journal_turn(&self, turn: &Turn) {
        let journal = &self.services.journal;
        if journal.is_kept() {
            let changes = shown_changes(self.kind.api().name(), &turn.input().change.diff);
            journal.turn_begun(&self.subject.journaled(), turn, changes);
        }
    }

    /// Starts and stops daemons and timers; returns whether the object must wait for any of them.
    fn reconcile_background(&self, view: BackgroundView<'_>) -> bool {
        for memos in self.kind.memos() {
            memos.recall(&self.key.uid);
        }
        self.background.reconcile(&ObservedObject {
            key: self.key,
            handlers: self.kind.background_handlers(),
            object: view.object,
            essence: view.essence,
            life: view.life,
            listed: view.listed,
        })
    }

    /// Keeps the newest state of an owner, for calls that its children cause.
    fn show_owner(&self, object: &Value, replaces_newer: bool) {
        if !self.kind.related().keeps_owners() {
            return;
        }
        let Ok(text) = serde_json::value::to_raw_value(object) else {
            return;
        };
        let text = text.into();
        let handled = &self.kind.related().handled_children;
        if replaces_newer {
            self.children.replace_owner(self.key, handled, &text);
        } else {
            let version = ObjectView::new(object).resource_version();
            let version = version.map(ResourceVersion::new);
            self.children
                .update_owner(self.key, handled, &text, version);
        }
        // It may have been forgotten since its handling began.
        self.children.begin_handling(self.key);
    }

    /// Notes what an owner refers to, and deletes the children that Kubernetes does not delete
    /// together with it; returns whether any of them holds it.
    async fn tend_children(&self, view: BackgroundView<'_>) -> bool {
        let related = self.kind.related();
        if !related.keeps_owners() {
            return false;
        }
        self.children
            .set_uses(self.key, &related.referred, view.object);
        match view.life {
            ObjectLife::Alive { .. } => self.children.hold(self.key, &related.owned),
            ObjectLife::Deleting if self.pause_gate.is_running() => {
                let released = self.children.release(self.key, &related.owned);
                let (holds, has_failed) = released.await;
                if has_failed {
                    let delays = &self.settings.queueing.error_delays;
                    let delay = delays.last().copied().unwrap_or(RELEASE_AGAIN);
                    self.children.requeue_after(self.key, delay);
                }
                holds
            }
            ObjectLife::Deleting => self.children.hold(self.key, &related.owned),
        }
    }

    fn read(&self, watch_event: &WaitingEvent) -> Result<Option<Arc<Value>>, String> {
        let Some(text) = &watch_event.text else {
            return Ok(None);
        };
        let object = self.kind.api().read(&text.text);
        let object = object.map_err(|error| error.to_string())?;
        Ok(Some(Arc::new(object)))
    }

    fn writer(&self) -> ObjectWriter<'_> {
        ObjectWriter {
            api: self.kind.api(),
            key: self.key,
            pause_gate: self.pause_gate,
            stop: Some(self.stop),
            origin: self.origin,
        }
    }

    fn handler_scope(&self, memos: Option<&Memos>) -> HandlerScope {
        HandlerScope {
            services: Arc::clone(self.services),
            subject: self.subject.clone(),
            memo: memos.map(|memos| memos.recall(&self.key.uid)),
            resource: self.kind.api().description().get(),
        }
    }

    fn post_error(&self, reason: &str, message: &str) {
        let journal = &self.services.journal;
        journal.problem(&self.subject.journaled(), message);
        if let Some(poster) = &self.services.poster {
            poster.post(&self.subject, &EventSeverity::Error, reason, message);
        }
    }
}
