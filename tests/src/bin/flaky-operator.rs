//! An operator with one quick handler and one that needs a retry, which write the handled size to the
//! status. Environment variables make it block or fail.

use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, HookHandler, Hooks, On, Operator, Resource, ResourceSpec, Scope,
    StatusSubresource,
};

struct FlakyHandlers;

impl FlakyHandlers {
    async fn quick(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        if std::env::var_os("FLAKY_ENDLESS").is_some() {
            info!("the quick handler never ends");
            std::future::pending::<()>().await;
        }
        if std::env::var_os("FLAKY_BLOCKING").is_some() {
            info!("the quick handler blocks its thread");
            std::thread::sleep(Duration::from_secs(3600));
        }
        if let Some(pause) = milliseconds("FLAKY_PAUSE") {
            tokio::time::sleep(pause).await;
            info!("the quick handler is done with {}", cx.name());
        }
        cx.patch()
            .status(json!({"quick": cx.raw()["spec"]["size"]}));
        Ok(())
    }

    async fn flaky(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        if cx.retry() == 0 {
            let delay = milliseconds("FLAKY_DELAY").unwrap_or(Duration::from_millis(300));
            return Err(HandlerError::temporary_after(delay, "not at once"));
        }
        cx.patch()
            .status(json!({"flaky": cx.raw()["spec"]["size"]}));
        Ok(())
    }
}

impl FlakyHandlers {
    async fn prepare(&self, cx: &mut StartupContext) -> HandlerResult {
        if std::env::var_os("FLAKY_FAIL_STARTUP").is_some() {
            return Err(HandlerError::permanent("as requested"));
        }
        if let Some(grace) = milliseconds("FLAKY_GRACE") {
            cx.settings().shutdown.grace = grace;
            cx.settings().shutdown.deadline = grace;
        }
        Ok(())
    }

    async fn tear_down(&self, _: &mut CleanupContext) -> HandlerResult {
        if std::env::var_os("FLAKY_FAIL_CLEANUP").is_some() {
            return Err(HandlerError::permanent("as requested"));
        }
        Ok(())
    }
}

fn milliseconds(variable: &str) -> Option<Duration> {
    let text = std::env::var(variable).ok()?;
    text.parse().ok().map(Duration::from_millis)
}

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: samples.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Sample, plural: samples, singular: sample}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, description: $DESCRIPTION}}
";

fn main() -> ExitCode {
    let group = std::env::var("FLAKY_GROUP").unwrap_or_else(|_| "flaky.kopf.test".to_owned());
    let description = std::env::var("FLAKY_DESCRIPTION").unwrap_or_else(|_| "First".to_owned());
    let definition = DEFINITION
        .replace("$GROUP", &group)
        .replace("$DESCRIPTION", &description);
    let spec = ResourceSpec {
        group: group.leak(),
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let any = || On::create().or(On::update());
    let handlers = Arc::new(FlakyHandlers);
    let hooks = Hooks::new(&handlers)
        .startup(HookHandler::new("prepare"), |handlers, cx| {
            Box::pin(handlers.prepare(cx))
        })
        .cleanup(HookHandler::new("tear_down"), |handlers, cx| {
            Box::pin(handlers.tear_down(cx))
        });
    let resource = Resource::<Value, FlakyHandlers>::new(spec, &handlers)
        .change(ChangeHandler::new("quick", any()), |handlers, cx| {
            Box::pin(handlers.quick(cx))
        })
        .change(ChangeHandler::new("flaky", any()), |handlers, cx| {
            Box::pin(handlers.flaky(cx))
        })
        .build();
    Operator::new("flaky-operator")
        .resource(resource)
        .handlers(hooks.build())
        .crd(definition.leak())
        .main()
}
