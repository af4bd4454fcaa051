//! The operator under trouble: handlers of all sorts that record each call in the journal.
//!
//! The suite runs it as processes of its own executable, with [`JOURNAL`] in their environment.

pub(crate) mod children;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use children::{CONFIG_MAP, WidgetChildren};
use clap::ValueEnum as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::admission::{Server, Webhooks};
use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, EventHandler, FieldHandler, Index, IndexHandler,
    LeaderElectionSettings, On, Operator, PeeringSettings, ReconcileHandler, Resource,
    ResourceHandlers, ResourceSpec, Scope, StatusSubresource, TextTest, TimerHandler,
    WebhookHandler,
};

use crate::journal::{CallLine, IndexedState, Journal, LoggedStep, OpenCall};
use crate::sabotage::Sabotage;
use crate::state::{DigestedState, GOLD, TIER, number_of};

/// The variable with the path of the journal; a process that has it is the operator.
pub(crate) const JOURNAL: &str = "FAULTS_JOURNAL";

/// The variable with the API group of the objects.
pub(crate) const GROUP: &str = "FAULTS_GROUP";

/// The variable with the name of a lease; without it there is no leader election.
pub(crate) const LEASE: &str = "FAULTS_LEASE";

/// The variable that makes the operator serve gates and their webhooks.
pub(crate) const GATES: &str = "FAULTS_GATES";

/// The variable with the way in which the journal is wrong on purpose.
pub(crate) const SABOTAGE: &str = "FAULTS_SABOTAGE";

/// The handler of creations.
pub(crate) const MADE: &str = "made";
/// The handler of creations and changes.
pub(crate) const CHANGED: &str = "changed";
/// The handler of changes with one label.
pub(crate) const GILDED: &str = "gilded";
/// The handler with sub-handlers.
pub(crate) const PARTS: &str = "parts";
/// The sub-handler of it that has one of its own.
pub(crate) const LEFT: &str = "parts/left";
/// The sub-handlers of all objects.
pub(crate) const SUBS: [&str; 2] = ["parts/left/inner", LEFT];
/// The sub-handlers of objects with one label: the first one is registered for these only, the
/// second one has a filter.
pub(crate) const GOLD_SUBS: [&str; 2] = ["parts/right", "parts/shown"];
/// The handler of the field `spec.size`; its id ends with the field.
pub(crate) const RESIZED: &str = "resized/spec.size";
/// The handler of deletions.
pub(crate) const RELEASED: &str = "released";
/// The handler of objects that exist at a start.
pub(crate) const RESUMED: &str = "resumed";
/// The daemon.
pub(crate) const STEADY: &str = "steady";
/// The timer.
pub(crate) const TICK: &str = "tick";
/// The handler of watch events of gates.
pub(crate) const NOTICED: &str = "noticed";

/// The handler of children.
pub(crate) const RECONCILED: &str = "reconciled";

/// The object whose timer reports what the operator knows and uses.
pub(crate) const PROBE: &str = "probe";

/// The pause between two calls of the timer.
pub(crate) const TICK_EVERY: Duration = Duration::from_secs(2);

/// The lease of the replicas.
pub(crate) const LEASE_DURATION: Duration = Duration::from_secs(8);

/// The time for which a peer trusts the record of another one.
pub(crate) const PEER_LIFETIME: Duration = Duration::from_secs(5);

struct WorkloadHandlers {
    journal: Arc<Journal>,
}

/// The index of all objects: their states by namespace and name.
#[derive(Clone, Copy, Debug)]
struct StatesByName;

impl Index for StatesByName {
    type Key = String;
    type Value = String;
    const NAME: &'static str = "states_by_name";
}

/// How one call goes, decided by the object, the handler and the state.
struct CallPlan {
    duration: Duration,
    /// The number of attempts that fail before the last one.
    retries: u32,
    /// Whether the last attempt fails, too.
    hopeless: bool,
}

/// Whether this process was started as the operator.
pub(crate) fn is_requested() -> bool {
    env::var_os(JOURNAL).is_some()
}

/// Runs the operator.
pub(crate) fn main() -> ExitCode {
    let variable = |name| env::var(name).expect("the suite sets the variables of its operator");
    let sabotage = env::var(SABOTAGE).ok();
    let sabotage = sabotage.and_then(|name| Sabotage::from_str(&name, true).ok());
    let journal = Journal::open(Path::new(&variable(JOURNAL)), sabotage);
    let handlers = Arc::new(WorkloadHandlers {
        journal: Arc::new(journal.expect("the suite has made the folder of the journal")),
    });
    let group: &'static str = variable(GROUP).leak();
    let mut operator = Operator::new("fault-workload")
        .resource(widgets(group, &handlers))
        .peering(PeeringSettings {
            lifetime: PEER_LIFETIME,
            stealth: true,
            ..PeeringSettings::default()
        });
    if env::var_os(GATES).is_some() {
        let webhooks = Webhooks::default()
            .managed(group)
            .server(Server::local("localhost"))
            .resync(Duration::from_secs(2));
        operator = operator
            .resource(gates(group, &handlers))
            .webhooks(webhooks);
    }
    if let Ok(lease) = env::var(LEASE) {
        operator = operator.leader_election(LeaderElectionSettings {
            name: Some(lease),
            lease_duration: LEASE_DURATION,
            renew_deadline: Duration::from_secs(6),
            retry_period: Duration::from_millis(500),
            ..LeaderElectionSettings::default()
        });
    }
    operator.main()
}

fn kind(group: &'static str, kind: &'static str, plural: &'static str) -> ResourceSpec {
    ResourceSpec {
        group,
        version: "v1",
        kind,
        plural,
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    }
}

fn widgets(group: &'static str, handlers: &Arc<WorkloadHandlers>) -> ResourceHandlers {
    let any = || On::create().or(On::update());
    let gold = TextTest::Equals(GOLD.to_owned());
    let widgets =
        Resource::<Value, WorkloadHandlers>::new(kind(group, "Widget", "widgets"), handlers)
            .child::<WidgetChildren, ConfigMap>(CONFIG_MAP);
    let reconciled = ReconcileHandler::new(RECONCILED).backoff(Duration::from_secs(1));
    [
        ChangeHandler::new(MADE, On::create()),
        ChangeHandler::new(CHANGED, any()),
        ChangeHandler::new(GILDED, any()).label(TIER, gold),
        ChangeHandler::new(RELEASED, On::delete()),
        ChangeHandler::new(RESUMED, On::resume()),
    ]
    .into_iter()
    .fold(widgets, |widgets, handler| {
        widgets.change(handler, |handlers, cx| {
            Box::pin(change(&handlers.journal, cx))
        })
    })
    .change(ChangeHandler::new(PARTS, any()), |handlers, cx| {
        Box::pin(handlers.parts(cx))
    })
    .field(
        FieldHandler::new("resized", "spec.size").on(any()),
        |handlers, cx: &mut FieldContext<Value, Value>| Box::pin(change(&handlers.journal, cx)),
    )
    .daemon(
        DaemonHandler::new(STEADY).cancellation_timeout(Duration::from_secs(5)),
        |handlers, cx| Box::pin(handlers.steady(cx)),
    )
    .timer(TimerHandler::every(TICK, TICK_EVERY), |handlers, cx| {
        Box::pin(handlers.tick(cx))
    })
    .reconcile::<WidgetChildren>(reconciled, |handlers, cx| {
        Box::pin(children::reconcile(&handlers.journal, cx))
    })
    .index(StatesByName, IndexHandler::new(), |_, cx| {
        let namespace = cx.namespace().unwrap_or_default();
        let key = format!("{namespace}/{}", cx.name());
        let value = DigestedState::of(cx.raw()).whole;
        Box::pin(async move { Ok(vec![(key, value)]) })
    })
    .build()
}

fn gates(group: &'static str, handlers: &Arc<WorkloadHandlers>) -> ResourceHandlers {
    Resource::<Value, WorkloadHandlers>::new(kind(group, "Gate", "gates"), handlers)
        .event(EventHandler::new(NOTICED), |handlers, cx| {
            Box::pin(async move {
                if cx.event_type() != WatchEventType::Deleted {
                    let call = begin(&handlers.journal, NOTICED, 0, cx.raw());
                    call.end(LoggedStep::Success);
                }
                Ok(())
            })
        })
        .validate(
            WebhookHandler::new("checked").timeout(Duration::from_secs(2)),
            |_, cx: &mut ValidationContext<Value>| {
                Box::pin(async move {
                    match cx.object()["spec"]["denied"].as_bool() {
                        Some(true) => Err(AdmissionError::denied("as requested")),
                        _ => Ok(()),
                    }
                })
            },
        )
        .mutate(
            WebhookHandler::new("completed").timeout(Duration::from_secs(2)),
            |_, cx: &mut MutationContext<Value>| {
                Box::pin(async move {
                    cx.patch().set("spec.completed", true);
                    Ok(())
                })
            },
        )
        .build()
}

// === impl WorkloadHandlers ===

impl WorkloadHandlers {
    /// Has sub-handlers that follow the object.
    async fn parts(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        let journal = Arc::clone(&self.journal);
        cx.sub(SubHandler::new("left"), move |cx| {
            Box::pin(async move {
                add_sub(&journal, cx, SubHandler::new("inner"));
                with_subs(&journal, cx).await
            })
        });
        if DigestedState::of(cx.raw()).gold {
            add_sub(&self.journal, cx, SubHandler::new("right"));
        }
        let gold = TextTest::Equals(GOLD.to_owned());
        add_sub(
            &self.journal,
            cx,
            SubHandler::new("shown").label(TIER, gold),
        );
        with_subs(&self.journal, cx).await
    }

    /// Runs until the operator stops it.
    async fn steady(&self, cx: &mut DaemonContext<Value>) -> HandlerResult {
        let call = begin(&self.journal, STEADY, cx.retry(), &cx.raw());
        cx.stop().wait().await;
        call.end(LoggedStep::Success);
        Ok(())
    }

    async fn tick(&self, cx: &mut TimerContext<Value>) -> HandlerResult {
        let call = begin(&self.journal, TICK, cx.retry(), cx.object());
        if cx.name() == PROBE {
            let index = cx.index(StatesByName);
            let index = index.read();
            let entries = index.iter().map(|(key, values)| {
                let values: Vec<&str> = values.map(String::as_str).collect();
                (key.clone(), IndexedState::Digest(values.join(" ")))
            });
            let tasks = tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks();
            let entries: BTreeMap<String, IndexedState> = entries.collect();
            self.journal.probe(tasks, entries);
        }
        call.end(LoggedStep::Success);
        Ok(())
    }
}

fn add_sub(journal: &Arc<Journal>, cx: &mut ChangeContext<Value>, handler: SubHandler) {
    let journal = Arc::clone(journal);
    cx.sub(handler, move |cx| {
        Box::pin(async move { change(&journal, cx).await })
    });
}

/// Succeeds when the sub-handlers have ended.
async fn with_subs(journal: &Arc<Journal>, cx: &mut ChangeContext<Value>) -> HandlerResult {
    let handler = cx.handler_id().to_owned();
    let call = begin(journal, &handler, cx.retry(), cx.raw());
    let result = cx.run_subs().await;
    call.end(if result.is_ok() {
        LoggedStep::Success
    } else {
        LoggedStep::Retry
    });
    result
}

/// Works for a moment, fails or succeeds as the plan of the call says, and writes to the status.
async fn change(journal: &Arc<Journal>, cx: &mut ChangeContext<Value>) -> HandlerResult {
    let handler = cx.handler_id().to_owned();
    let call = begin(journal, &handler, cx.retry(), cx.raw());
    let state = DigestedState::of(cx.raw());
    let plan = CallPlan::of(cx.uid(), &handler, &state);
    tokio::time::sleep(plan.duration).await;
    if cx.retry() < plan.retries {
        call.end(LoggedStep::Retry);
        let delay = Duration::from_millis(300);
        return Err(HandlerError::temporary_after(delay, "not yet"));
    }
    if plan.hopeless {
        call.end(LoggedStep::Failure);
        return Err(HandlerError::permanent("never"));
    }
    cx.patch()
        .status(json!({handler.replace(['/', '.'], "-"): state.edit}));
    call.end(LoggedStep::Success);
    Ok(())
}

fn begin(journal: &Arc<Journal>, handler: &str, retry: u32, object: &Value) -> OpenCall {
    let metadata = &object["metadata"];
    let text = |key: &str| metadata[key].as_str().unwrap_or_default().to_owned();
    journal.begin(CallLine {
        at: 0,
        pid: 0,
        born: 0,
        call: 0,
        step: LoggedStep::Begin,
        handler: handler.to_owned(),
        retry,
        uid: text("uid"),
        name: text("name"),
        version: text("resourceVersion").parse().unwrap_or_default(),
        state: DigestedState::of(object),
    })
}

// === impl CallPlan ===

impl CallPlan {
    fn of(uid: &str, handler: &str, state: &DigestedState) -> Self {
        let number = number_of(&format!("{uid} {handler} {}", state.whole));
        Self {
            duration: Duration::from_millis(1 + number % 40),
            retries: u32::from((number >> 8).is_multiple_of(4)),
            // An object whose deletion fails for good would be gone without a success.
            hopeless: handler != RELEASED && (number >> 16).is_multiple_of(20),
        }
    }
}
