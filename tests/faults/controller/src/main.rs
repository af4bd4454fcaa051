//! The operator under trouble, as it is written for kube's Controller: one function for each object,
//! with children and a finalizer, and the journal of the other operators.
//!
//! The type has no `derive(CustomResource)`, because each run has an API group of its own.

mod call_log;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use call_log::{CallLog, LoggedEnd};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{
    Api, ApiResource, DeleteParams, GroupVersionKind, ListParams, Object, Patch, PatchParams,
};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::watcher;
use kube::{Client, Resource as _, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The object of the operator.
type ControlledWidget = Object<ControlledSpec, Value>;

/// The reconciliations at once.
const CONCURRENCY: u16 = 16;

/// The finalizer by which the suite recognizes objects that are held.
const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

/// The label by which the suite recognizes children, with the uid of their owner.
const OWNER_LABEL: &str = "kopf-gen.dev/owner-uid";

/// The pause before a call that was asked for.
const NOT_YET: Duration = Duration::from_millis(300);

/// The pause after an error of a request.
const AFTER_ERROR: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct ControlledSpec {
    #[serde(default)]
    edit: u64,
    #[serde(default)]
    size: u64,
    /// What only the trouble with large objects has.
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The reasons why a call comes again.
#[derive(Debug, thiserror::Error)]
enum ReconcileError {
    #[error("not yet")]
    NotYet,
    #[error(transparent)]
    Request(#[from] kube::Error),
    #[error(transparent)]
    Finalizer(#[from] Box<finalizer::Error<ReconcileError>>),
}

struct WatchedContext {
    client: Client,
    resource: ApiResource,
    log: CallLog,
    /// For each handler and object the last state for which it has asked to be called again.
    asked: Mutex<BTreeMap<String, u64>>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let variable = |name| env::var(name).expect("the suite sets the variables of its operator");
    let log = CallLog::open(Path::new(&variable("FAULTS_JOURNAL")));
    let log = log.expect("the suite has made the journal");
    match control(&variable("FAULTS_GROUP"), log).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn control(group: &str, log: CallLog) -> kube::Result<()> {
    let client = Client::try_default().await?;
    let kind = GroupVersionKind::gvk(group, "v1", "Widget");
    let resource = ApiResource::from_gvk_with_plural(&kind, "widgets");
    let widgets: Api<ControlledWidget> = Api::all_with(client.clone(), &resource);
    let maps: Api<ConfigMap> = Api::all(client.clone());
    let context = Arc::new(WatchedContext {
        client,
        resource: resource.clone(),
        log,
        asked: Mutex::default(),
    });
    let controlling = Controller::new_with(widgets, watcher::Config::default(), resource)
        .with_config(controller::Config::default().concurrency(CONCURRENCY))
        .owns(maps, watcher::Config::default().labels(OWNER_LABEL))
        .shutdown_on_signal()
        .run(reconcile, on_error, Arc::clone(&context))
        .for_each(async |result| {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        });
    tokio::select! {
        () = controlling => {}
        () = context.log.probe() => {}
    }
    Ok(())
}

async fn reconcile(
    widget: Arc<ControlledWidget>,
    context: Arc<WatchedContext>,
) -> Result<Action, ReconcileError> {
    let namespace = widget.namespace().unwrap_or_default();
    let widgets = Api::namespaced_with(context.client.clone(), &namespace, &context.resource);
    let handled = finalizer(&widgets, FINALIZER, widget, async |event| match event {
        finalizer::Event::Apply(widget) => {
            context
                .logged("reconciled", &widget, context.apply(&widget))
                .await
        }
        finalizer::Event::Cleanup(widget) => {
            context
                .logged("released", &widget, context.clean_up(&widget))
                .await
        }
    });
    Ok(handled.await.map_err(Box::new)?)
}

fn on_error(_: Arc<ControlledWidget>, error: &ReconcileError, _: Arc<WatchedContext>) -> Action {
    Action::requeue(if error.is_not_yet() {
        NOT_YET
    } else {
        AFTER_ERROR
    })
}

/// The name of a child, as in the other operators.
fn child_name(owner: &ControlledWidget, number: u64) -> String {
    let uid: String = owner.uid().unwrap_or_default().chars().take(8).collect();
    format!("{}-{uid}-{number}", owner.name_any())
}

// === impl ReconcileError ===

impl ReconcileError {
    fn is_not_yet(&self) -> bool {
        match self {
            Self::NotYet => true,
            Self::Request(_) => false,
            Self::Finalizer(error) => match error.as_ref() {
                finalizer::Error::ApplyFailed(error) | finalizer::Error::CleanupFailed(error) => {
                    error.is_not_yet()
                }
                _ => false,
            },
        }
    }
}

// === impl WatchedContext ===

impl WatchedContext {
    /// Writes the begin and the end of a call to the journal.
    async fn logged(
        &self,
        handler: &str,
        widget: &ControlledWidget,
        work: impl Future<Output = Result<Action, ReconcileError>>,
    ) -> Result<Action, ReconcileError> {
        let call = self.log.begin(handler, widget);
        let result = work.await;
        call.end(if result.is_ok() {
            LoggedEnd::Success
        } else {
            LoggedEnd::Retry
        });
        result
    }

    /// Applies the children of the state, and deletes all others.
    async fn apply(&self, widget: &ControlledWidget) -> Result<Action, ReconcileError> {
        let again = self.asks_again("reconciled", widget);
        let namespace = widget.namespace().unwrap_or_default();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), &namespace);
        for number in 0..widget.spec.size {
            // The attempt that fails has applied a part of them, and must not delete the others.
            if number > 0 && again {
                break;
            }
            let child = self.child(widget, number);
            let params = PatchParams::apply("faults-controller").force();
            maps.patch(&child.name_any(), &params, &Patch::Apply(&child))
                .await?;
        }
        self.work(widget).await;
        if again {
            return Err(ReconcileError::NotYet);
        }
        let uid = widget.uid().unwrap_or_default();
        let own = ListParams::default().labels(&format!("{OWNER_LABEL}={uid}"));
        let wanted: Vec<String> = (0..widget.spec.size)
            .map(|number| child_name(widget, number))
            .collect();
        for child in maps.list(&own).await? {
            let name = child.name_any();
            if !wanted.contains(&name) {
                let deleted = maps.delete(&name, &DeleteParams::default()).await;
                if !matches!(&deleted, Err(kube::Error::Api(status)) if status.is_not_found()) {
                    deleted?;
                }
            }
        }
        Ok(Action::await_change())
    }

    async fn clean_up(&self, widget: &ControlledWidget) -> Result<Action, ReconcileError> {
        self.work(widget).await;
        if self.asks_again("released", widget) {
            return Err(ReconcileError::NotYet);
        }
        Ok(Action::await_change())
    }

    fn child(&self, owner: &ControlledWidget, number: u64) -> ConfigMap {
        let mut child = ConfigMap {
            data: Some([("edit".to_owned(), owner.spec.edit.to_string())].into()),
            ..ConfigMap::default()
        };
        child.metadata.name = Some(child_name(owner, number));
        let uid = owner.uid().unwrap_or_default();
        child.labels_mut().insert(OWNER_LABEL.to_owned(), uid);
        let reference = owner.controller_owner_ref(&self.resource);
        child.metadata.owner_references = Some(reference.into_iter().collect());
        child
    }

    async fn work(&self, widget: &ControlledWidget) {
        let number = call_log::number_of("work", widget);
        tokio::time::sleep(Duration::from_millis(1 + number % 40)).await;
    }

    /// Whether this call asks to be called again: for a quarter of the states, the first call does.
    fn asks_again(&self, handler: &str, widget: &ControlledWidget) -> bool {
        let number = call_log::number_of(handler, widget);
        let key = format!("{handler} {}", widget.uid().unwrap_or_default());
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        (number >> 8).is_multiple_of(4) && asked.insert(key, number) != Some(number)
    }
}
