//! An operator for tests of health endpoints; objects and variables make it block or fail.
//!
//! `HEALTH_GROUP` is the API group of the widgets. `HEALTH_STUCK_AFTER`, `HEALTH_PROBE_CACHE` and
//! `HEALTH_CONNECT_TIMEOUT` are settings in seconds. While the file `HEALTH_FAILURE_FILE` exists, a probe handler
//! fails. `HEALTH_WEBHOOK` makes the operator serve a webhook, on loopback or, if it is `auto`, on the
//! detected host; `HEALTH_LEASE` names a lease.

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kopf_runtime::admission::{Server, Webhooks};
use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, EventHandler, HookHandler, Hooks, Index, IndexHandler,
    LeaderElectionSettings, On, Operator, ProbeContext, Resource, ResourceHandlers, ResourceSpec,
    Scope, Settings, StatusSubresource, TextTest, TimerHandler, WebhookHandler,
};

/// More tasks than the runtime has threads.
const BLOCKING_TASKS: usize = 16;

/// Widgets by their names.
struct ByName;

impl Index for ByName {
    type Key = String;
    type Value = ();
    const NAME: &'static str = "by_name";
}

struct HealthHandlers {
    failure_file: Option<PathBuf>,
    calls: AtomicU64,
}

impl HealthHandlers {
    /// Waits, blocks or fails as `spec.do` says.
    async fn work(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        let seconds = Duration::from_secs(cx.raw()["spec"]["seconds"].as_u64().unwrap_or(1));
        match cx.raw()["spec"]["do"].as_str() {
            Some("wait") => {
                info!("waiting for ever");
                std::future::pending::<()>().await;
            }
            Some("block") => {
                info!("blocking all threads");
                for _ in 0..BLOCKING_TASKS {
                    tokio::spawn(async move { std::thread::sleep(seconds) });
                }
            }
            Some("fail") if cx.retry() == 0 => {
                return Err(HandlerError::temporary_after(
                    Duration::from_millis(100),
                    "not yet",
                ));
            }
            _ => {}
        }
        cx.patch().status(json!({"done": true}));
        Ok(())
    }

    async fn count(&self, cx: &mut ProbeContext) -> HandlerResult {
        cx.set_result(&self.calls.fetch_add(1, Ordering::Relaxed))?;
        Ok(())
    }

    async fn fail_if_file_exists(&self) -> HandlerResult {
        match &self.failure_file {
            Some(file) if file.exists() => Err(HandlerError::permanent("the failure file exists")),
            _ => Ok(()),
        }
    }
}

fn main() -> ExitCode {
    let group = env::var("HEALTH_GROUP").unwrap_or_else(|_| "health.kopf.test".to_owned());
    let spec = ResourceSpec {
        group: group.leak(),
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let handlers = Arc::new(HealthHandlers {
        failure_file: env::var_os("HEALTH_FAILURE_FILE").map(PathBuf::from),
        calls: AtomicU64::new(0),
    });
    let probes = Hooks::new(&handlers)
        .probe(HookHandler::new("count"), |handlers, cx| {
            Box::pin(handlers.count(cx))
        })
        .probe(HookHandler::new("file_check"), |handlers, _| {
            Box::pin(handlers.fail_if_file_exists())
        });
    let mut webhooks = Webhooks::default().managed(spec.group);
    if env::var("HEALTH_WEBHOOK").is_ok_and(|it| it != "auto") {
        webhooks = webhooks.server(Server::local("localhost"));
    }
    let mut operator = Operator::new("health-operator")
        .resource(widgets(spec, &handlers))
        .webhooks(webhooks)
        .settings(settings())
        .handlers(probes.build());
    if let Ok(lease) = env::var("HEALTH_LEASE") {
        operator = operator.leader_election(LeaderElectionSettings {
            name: Some(lease),
            ..LeaderElectionSettings::default()
        });
    }
    operator.main()
}

/// Widgets with one handler of each kind.
fn widgets(spec: ResourceSpec, handlers: &Arc<HealthHandlers>) -> ResourceHandlers {
    let labelled = ("background", TextTest::Present);
    let mut widgets = Resource::<Value, HealthHandlers>::new(spec, handlers)
        .change(ChangeHandler::new("work", On::create()), |handlers, cx| {
            Box::pin(handlers.work(cx))
        })
        .event(EventHandler::new("observe"), |_, _| {
            Box::pin(async { Ok(()) })
        })
        .index(ByName, IndexHandler::new(), |_, cx| {
            Box::pin(async move { Ok(vec![(cx.name().to_owned(), ())]) })
        })
        .daemon(
            DaemonHandler::new("wait").label(labelled.0, labelled.1.clone()),
            |_, cx| {
                Box::pin(async move {
                    cx.stop().wait().await;
                    Ok(())
                })
            },
        )
        .timer(
            TimerHandler::every("tick", Duration::from_secs(1)).label(labelled.0, labelled.1),
            |_, _| Box::pin(async { Ok(()) }),
        );
    if env::var_os("HEALTH_WEBHOOK").is_some() {
        widgets = widgets.validate::<Value>(WebhookHandler::new("check"), |_, cx| {
            Box::pin(async move {
                match cx.raw()["spec"]["do"].as_str() {
                    Some("refuse") => Err(AdmissionError::denied("no")),
                    _ => Ok(()),
                }
            })
        });
    }
    widgets.build()
}

/// The default settings with the values of environment variables.
fn settings() -> Settings {
    let mut settings = Settings::default();
    let tuned = [
        ("HEALTH_STUCK_AFTER", &mut settings.health.stuck_after),
        ("HEALTH_PROBE_CACHE", &mut settings.health.probe_cache),
        (
            "HEALTH_CONNECT_TIMEOUT",
            &mut settings.networking.connect_timeout,
        ),
    ];
    for (variable, setting) in tuned {
        if let Some(seconds) = env::var(variable).ok().and_then(|it| it.parse().ok()) {
            *setting = Duration::from_secs(seconds);
        }
    }
    settings
}
