//! The Rust operators of the benchmark of children: one ConfigMap for each Widget, by our runtime and
//! by kube's Controller.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::{
    ChildOf, ChildOptions, Operator, ReconcileHandler, Resource, ResourceHandlers, ResourceSpec,
    Scope, StatusSubresource,
};
use kube::api::{Api, ApiResource, GroupVersionKind, Object, Patch, PatchParams};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Resource as _, ResourceExt as _};
use serde::{Deserialize, Serialize};

/// The owner.
type OwnerWidget = Object<OwnerSpec, ()>;

/// The reconciliations at once of the Controller.
const CONCURRENCY: u16 = 16;

/// The label of the Controller's children.
const CHILD_LABEL: (&str, &str) = ("bench", "child");

const CONFIG_MAP: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

#[derive(Clone, Debug, Deserialize, Serialize)]
struct OwnerSpec {
    size: i64,
}

/// The marker of our kind.
enum BenchChildren {}

impl ChildOf<BenchChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

struct OwnerContext {
    client: Client,
    resource: ApiResource,
    /// The children, if they are compared before they are applied.
    children: Option<Store<ConfigMap>>,
}

fn main() -> ExitCode {
    let variable = |name| env::var(name).expect("the benchmark sets PEER, GROUP and NAMESPACE");
    let group = variable("GROUP");
    let compares = match variable("PEER").as_str() {
        "ours" => {
            return Operator::new("bench-children")
                .resource(widgets(group.leak()))
                .main();
        }
        peer => peer == "controller-store",
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the system gives threads");
    match runtime.block_on(control(&group, &variable("NAMESPACE"), compares)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn child_of(widget: &OwnerWidget) -> ConfigMap {
    let size = widget.spec.size.to_string();
    ConfigMap {
        data: Some([("size".to_owned(), size)].into()),
        ..ConfigMap::default()
    }
}

// === ours ===

fn widgets(group: &'static str) -> ResourceHandlers {
    let widgets = ResourceSpec {
        group,
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Absent,
    };
    Resource::<OwnerWidget, ()>::new(widgets, &Arc::new(()))
        .child::<BenchChildren, ConfigMap>(CONFIG_MAP)
        .reconcile::<BenchChildren>(ReconcileHandler::new("reconcile"), |(), cx| {
            Box::pin(async move {
                cx.apply(child_of(cx.object())).await?;
                Ok(())
            })
        })
        .build()
}

// === kube's Controller ===

async fn control(
    group: &str,
    namespace: &str,
    compares: bool,
) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Widget"), "widgets");
    let owners: Api<OwnerWidget> = Api::namespaced_with(client.clone(), namespace, &resource);
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let (name, value) = CHILD_LABEL;
    let selected = watcher::Config::default().labels(&format!("{name}={value}"));
    let (store, writer) = reflector::store();
    let context = OwnerContext {
        client,
        resource: resource.clone(),
        children: compares.then_some(store),
    };
    let controller = Controller::new_with(owners, watcher::Config::default(), resource)
        .with_config(controller::Config::default().concurrency(CONCURRENCY));
    let controller = if compares {
        let children = watcher(maps, selected)
            .default_backoff()
            .modify(|child| child.metadata.managed_fields = None)
            .reflect(writer)
            .touched_objects();
        controller.owns_stream(children)
    } else {
        controller.owns(maps, selected)
    };
    controller
        .run(reconcile, on_error, Arc::new(context))
        .for_each(|_| async {})
        .await;
    Ok(())
}

async fn reconcile(
    widget: Arc<OwnerWidget>,
    context: Arc<OwnerContext>,
) -> Result<Action, kube::Error> {
    let (name, namespace) = (widget.name_any(), widget.namespace().unwrap_or_default());
    let mut child = child_of(&widget);
    child.metadata.name = Some(name.clone());
    let (label, value) = CHILD_LABEL;
    child
        .labels_mut()
        .insert(label.to_owned(), value.to_owned());
    let owner = widget.controller_owner_ref(&context.resource);
    child.metadata.owner_references = Some(owner.into_iter().collect());
    if let Some(known) = &context.children {
        let known = known.get(&ObjectRef::new(&name).within(&namespace));
        let is_same = |known: &ConfigMap| {
            let (meta, wanted) = (&known.metadata, &child.metadata);
            known.data == child.data
                && meta.labels == wanted.labels
                && meta.owner_references == wanted.owner_references
        };
        if known.is_some_and(|known| is_same(&known)) {
            return Ok(Action::await_change());
        }
    }
    let maps: Api<ConfigMap> = Api::namespaced(context.client.clone(), &namespace);
    let params = PatchParams::apply("bench-children").force();
    maps.patch(&name, &params, &Patch::Apply(&child)).await?;
    Ok(Action::await_change())
}

fn on_error(_: Arc<OwnerWidget>, _: &kube::Error, _: Arc<OwnerContext>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
