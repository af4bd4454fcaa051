//! An operator for tests of the page: objects make its handlers fail, and it handles Secrets.
//!
//! `PAGE_GROUP` is the API group of the widgets.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, On, Operator, Resource, ResourceHandlers, ResourceSpec, Scope,
    StatusSubresource, TextTest, TimerHandler,
};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

struct PageHandlers;

impl PageHandlers {
    /// Succeeds, waits or fails as `spec.do` says.
    async fn work(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        match cx.raw()["spec"]["do"].as_str() {
            Some("retry") => Err(HandlerError::temporary_after(LONG, "not yet")),
            Some("break") => Err(HandlerError::permanent("it never works")),
            Some("wait") => std::future::pending().await,
            _ => {
                info!("worked hard");
                Ok(())
            }
        }
    }
}

fn main() -> ExitCode {
    let group = env::var("PAGE_GROUP").unwrap_or_else(|_| "page.kopf.test".to_owned());
    let handlers = Arc::new(PageHandlers);
    Operator::new("page-operator")
        .version("1.2.3")
        .resource(widgets(group.leak(), &handlers))
        .resource(secrets(&handlers))
        .main()
}

fn widgets(group: &'static str, handlers: &Arc<PageHandlers>) -> ResourceHandlers {
    let spec = ResourceSpec {
        group,
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let labelled = ("background", TextTest::Present);
    Resource::<Value, PageHandlers>::new(spec, handlers)
        .change(ChangeHandler::new("work", On::create()), |handlers, cx| {
            Box::pin(handlers.work(cx))
        })
        .change(ChangeHandler::new("resize", On::update()), |_, _| {
            Box::pin(async { Ok(()) })
        })
        .daemon(
            DaemonHandler::new("guard").label(labelled.0, labelled.1.clone()),
            |_, cx| {
                Box::pin(async move {
                    cx.stop().wait().await;
                    Ok(())
                })
            },
        )
        .timer(
            TimerHandler::every("tick", LONG).label(labelled.0, labelled.1),
            |_, _| Box::pin(async { Ok(()) }),
        )
        .build()
}

fn secrets(handlers: &Arc<PageHandlers>) -> ResourceHandlers {
    let spec = ResourceSpec {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Absent,
    };
    Resource::<Value, PageHandlers>::new(spec, handlers)
        .change(ChangeHandler::new("store", On::create()), |_, _| {
            Box::pin(async { Ok(()) })
        })
        .change(ChangeHandler::new("rotate", On::update()), |_, _| {
            Box::pin(async { Ok(()) })
        })
        .build()
}
