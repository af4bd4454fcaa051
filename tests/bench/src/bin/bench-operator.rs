//! The Rust operators of the benchmarks: ours, and kube's Controller with defaults and tuned.

use std::env;
use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kopf_runtime::admission::{Certificates, Server, Webhooks};
use kopf_runtime::{
    AdmissionError, ChangeHandler, HandlerError, On, Operator, Resource, ResourceHandlers,
    ResourceSpec, Scope, StatusSubresource, TimerHandler, ValidationContext, WebhookHandler,
};
use kube::api::{Api, ApiResource, GroupVersionKind, Object, Patch, PatchParams};
use kube::runtime::controller::{self, Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A widget for the Controller.
type Widget = Object<WidgetSpec, WidgetStatus>;

#[derive(Clone, Debug, Deserialize, Serialize)]
struct WidgetSpec {
    size: i64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct WidgetStatus {
    create_fn: Option<CreateResult>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
struct CreateResult {
    size: i64,
}

/// A widget for the webhook.
#[derive(Clone, Debug, Deserialize)]
struct ReviewedWidget {
    spec: ReviewedSpec,
}

#[derive(Clone, Debug, Deserialize)]
struct ReviewedSpec {
    size: i64,
    #[expect(dead_code, reason = "the peers decode it, too")]
    items: Vec<String>,
}

struct ControllerContext {
    client: Client,
    resource: ApiResource,
    status: StatusSubresource,
}

fn main() -> ExitCode {
    let variable =
        |name| env::var(name).expect("the benchmark sets PEER, WORK, GROUP and NAMESPACE");
    let status = match env::var("STATUS").as_deref() {
        Ok("field") => StatusSubresource::Absent,
        _ => StatusSubresource::Present,
    };
    let group = variable("GROUP");
    let concurrency = match variable("PEER").as_str() {
        "ours" => {
            let widgets = ResourceSpec {
                group: group.leak(),
                version: "v1",
                kind: "Widget",
                plural: "widgets",
                scope: Scope::Namespaced,
                status,
            };
            let handlers = match variable("WORK").as_str() {
                "admission" => {
                    let webhooks = webhooks(&variable("PORT"), &variable("CERTS"));
                    let operator = Operator::new("bench-operator").resource(admission(widgets));
                    return operator.webhooks(webhooks).main();
                }
                "storm" => edit_storm(widgets),
                "timers" => {
                    let interval = variable("INTERVAL").parse().expect("whole seconds");
                    timers(widgets, Duration::from_secs(interval))
                }
                "draft" => cold_start_with_draft(widgets),
                _ => cold_start(widgets),
            };
            return Operator::new("bench-operator").resource(handlers).main();
        }
        "controller" => 0,
        _ => 16,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .expect("the system gives threads");
    match runtime.block_on(control(&group, &variable("NAMESPACE"), status, concurrency)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

// === ours ===

fn edit_storm(widgets: ResourceSpec) -> ResourceHandlers {
    let any = || On::create().or(On::update());
    Resource::<Value, ()>::new(widgets, &Arc::new(()))
        .change(ChangeHandler::new("quick", any()), |(), cx| {
            Box::pin(async move {
                let line = format!("SAW {} {}\n", cx.name(), cx.object()["spec"]["value"]);
                io::stdout().lock().write_all(line.as_bytes())?;
                Ok(())
            })
        })
        .change(ChangeHandler::new("flaky", any()), |(), cx| {
            Box::pin(async move {
                if cx.retry() == 0 {
                    let soon = Duration::from_secs(1);
                    return Err(HandlerError::temporary_after(soon, "not at once"));
                }
                Ok(())
            })
        })
        .build()
}

fn admission(widgets: ResourceSpec) -> ResourceHandlers {
    Resource::<ReviewedWidget, ()>::new(widgets, &Arc::new(()))
        .validate(
            WebhookHandler::new("check"),
            |(), cx: &mut ValidationContext<ReviewedWidget>| {
                Box::pin(async move {
                    if cx.object().spec.size > 100 {
                        return Err(AdmissionError::denied("too large"));
                    }
                    Ok(())
                })
            },
        )
        .build()
}

fn webhooks(port: &str, certificates: &str) -> Webhooks {
    let file = |name: &str| std::path::Path::new(certificates).join(name);
    let certificates = Certificates::Files {
        certificate: file("tls.crt"),
        key: file("tls.key"),
        authority: None,
    };
    let server = Server::local("localhost")
        .port(port.parse().expect("a port"))
        .certificates(certificates);
    Webhooks::default().unmanaged().server(server)
}

fn cold_start(widgets: ResourceSpec) -> ResourceHandlers {
    Resource::<Widget, ()>::new(widgets, &Arc::new(()))
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(async move {
                let size = cx.object().spec.size;
                Ok(cx.set_result(&CreateResult { size })?)
            })
        })
        .build()
}

/// The same work, with a typed draft of the object instead of a result.
fn cold_start_with_draft(widgets: ResourceSpec) -> ResourceHandlers {
    Resource::<Widget, ()>::new(widgets, &Arc::new(()))
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(async move {
                let size = cx.object().spec.size;
                let status = cx.draft().status.get_or_insert_default();
                status.create_fn = Some(CreateResult { size });
                Ok(())
            })
        })
        .build()
}

fn timers(widgets: ResourceSpec, interval: Duration) -> ResourceHandlers {
    Resource::<Widget, ()>::new(widgets, &Arc::new(()))
        .timer(TimerHandler::every("tick", interval), |(), _| {
            Box::pin(async { Ok(()) })
        })
        .build()
}

// === kube's Controller ===

async fn control(
    group: &str,
    namespace: &str,
    status: StatusSubresource,
    concurrency: u16,
) -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::try_default().await?;
    let resource =
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", "Widget"), "widgets");
    let widgets: Api<Widget> = Api::namespaced_with(client.clone(), namespace, &resource);
    let context = ControllerContext {
        client,
        resource: resource.clone(),
        status,
    };
    Controller::new_with(widgets, watcher::Config::default(), resource)
        .with_config(controller::Config::default().concurrency(concurrency))
        .run(reconcile, on_error, Arc::new(context))
        .for_each(|_| async {})
        .await;
    Ok(())
}

async fn reconcile(
    widget: Arc<Widget>,
    context: Arc<ControllerContext>,
) -> Result<Action, kube::Error> {
    let done = widget
        .status
        .as_ref()
        .is_some_and(|it| it.create_fn.is_some());
    if !done {
        let namespace = widget.namespace().unwrap_or_default();
        let widgets: Api<Widget> =
            Api::namespaced_with(context.client.clone(), &namespace, &context.resource);
        let result = json!({"status": {"create_fn": {"size": widget.spec.size}}});
        let (name, params) = (widget.name_any(), PatchParams::default());
        match context.status {
            StatusSubresource::Present => {
                widgets
                    .patch_status(&name, &params, &Patch::Merge(result))
                    .await?
            }
            StatusSubresource::Absent => {
                widgets.patch(&name, &params, &Patch::Merge(result)).await?
            }
        };
    }
    Ok(Action::await_change())
}

fn on_error(_: Arc<Widget>, _: &kube::Error, _: Arc<ControllerContext>) -> Action {
    Action::requeue(Duration::from_secs(1))
}
