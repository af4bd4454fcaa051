//! A controller after kube-rs's template: a kind, a finalizer, a status, events, metrics.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{self, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, Resource as _, ResourceExt as _};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The desired state of an exhibit.
#[derive(Clone, CustomResource, Debug, Deserialize, JsonSchema, Serialize)]
#[kube(group = "bench.kopf.dev", version = "v1", kind = "Exhibit", namespaced)]
#[kube(status = "ExhibitStatus")]
pub struct ExhibitSpec {
    /// An arbitrary field.
    pub field: Option<String>,
}

/// The observed state of an exhibit.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct ExhibitStatus {
    /// Whether the controller has reconciled it.
    pub seen: bool,
}

/// The reasons why a reconciliation failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error("cannot talk to the cluster")]
    Kube(#[from] kube::Error),
    /// The finalizer could not be added or removed.
    #[error("cannot keep the finalizer")]
    Finalizer(#[source] Box<finalizer::Error<Error>>),
}

/// The context of every reconciliation.
#[derive(Clone)]
pub struct Context {
    /// The client of the cluster.
    pub client: Client,
    /// Posts events.
    pub recorder: Recorder,
    /// The metrics.
    #[cfg(feature = "extras")]
    pub metrics: Arc<metrics::Metrics>,
}

#[cfg(feature = "extras")]
pub mod metrics {
    //! The metrics.

    use prometheus_client::encoding::text::encode;
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::registry::Registry;

    /// The counters.
    #[derive(Debug, Default)]
    pub struct Metrics {
        registry: Registry,
        /// Calls.
        pub runs: Counter,
        /// Calls that failed.
        pub failures: Counter,
    }

    impl Metrics {
        /// Registers the counters.
        #[must_use]
        pub fn new() -> Self {
            let mut metrics = Self::default();
            let (runs, failures) = (metrics.runs.clone(), metrics.failures.clone());
            metrics.registry.register("runs", "calls", runs);
            metrics
                .registry
                .register("failures", "failed calls", failures);
            metrics
        }

        /// The counters in Prometheus' text format.
        #[must_use]
        pub fn text(&self) -> String {
            let mut text = String::new();
            let _ = encode(&mut text, &self.registry);
            text
        }
    }
}

async fn reconcile(exhibit: Arc<Exhibit>, context: Arc<Context>) -> Result<Action, Error> {
    #[cfg(feature = "extras")]
    context.metrics.runs.inc();
    let namespace = exhibit.namespace().unwrap_or_default();
    let exhibits: Api<Exhibit> = Api::namespaced(context.client.clone(), &namespace);
    let name = "exhibits.bench.kopf.dev/cleanup";
    finalizer(&exhibits, name, exhibit, |event| async {
        match event {
            finalizer::Event::Apply(exhibit) => apply(&exhibit, &exhibits, &context).await,
            finalizer::Event::Cleanup(exhibit) => cleanup(&exhibit, &context).await,
        }
    })
    .await
    .map_err(|error| Error::Finalizer(Box::new(error)))
}

async fn apply(
    exhibit: &Exhibit,
    exhibits: &Api<Exhibit>,
    context: &Context,
) -> Result<Action, Error> {
    let status = Patch::Merge(json!({"status": ExhibitStatus { seen: true }}));
    let name = exhibit.name_any();
    exhibits
        .patch_status(&name, &PatchParams::default(), &status)
        .await?;
    post_event(exhibit, context, "Seen").await?;
    Ok(Action::requeue(Duration::from_secs(300)))
}

async fn cleanup(exhibit: &Exhibit, context: &Context) -> Result<Action, Error> {
    post_event(exhibit, context, "Gone").await?;
    Ok(Action::await_change())
}

async fn post_event(exhibit: &Exhibit, context: &Context, reason: &str) -> Result<(), Error> {
    let event = Event {
        type_: EventType::Normal,
        reason: reason.to_owned(),
        note: Some(format!("it is {reason}")),
        action: "Reconciling".to_owned(),
        secondary: None,
    };
    let reference = exhibit.object_ref(&());
    Ok(context.recorder.publish(&event, &reference).await?)
}

fn error_policy(_exhibit: Arc<Exhibit>, error: &Error, context: Arc<Context>) -> Action {
    tracing::warn!("failed: {error:?}");
    #[cfg(feature = "extras")]
    context.metrics.failures.inc();
    let _ = context;
    Action::requeue(Duration::from_secs(60))
}

/// Reconciles exhibits until the program gets a signal.
pub async fn run(context: Context) {
    let exhibits: Api<Exhibit> = Api::all(context.client.clone());
    Controller::new(exhibits, watcher::Config::default())
        .shutdown_on_signal()
        .run(reconcile, error_policy, Arc::new(context))
        .for_each(|_| futures::future::ready(()))
        .await;
}

/// The context of a program of this name.
#[must_use]
pub fn context(client: Client) -> Context {
    let reporter: Reporter = "controller-template".into();
    Context {
        recorder: Recorder::new(client.clone(), reporter),
        client,
        #[cfg(feature = "extras")]
        metrics: Arc::new(metrics::Metrics::new()),
    }
}
