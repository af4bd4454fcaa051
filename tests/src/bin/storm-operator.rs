//! An operator for the tests: one quick handler and one that needs a retry, both of which tell in
//! the status what they saw. Variables of the environment make it misbehave.

use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, HookHandler, Hooks, On, Operator, Resource, ResourceSpec, Scope,
    StatusSubresource,
};

struct Storm;

impl Storm {
    async fn quick(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        if std::env::var_os("STORM_ENDLESS").is_some() {
            info!("the quick handler never ends");
            std::future::pending::<()>().await;
        }
        if std::env::var_os("STORM_BLOCKING").is_some() {
            info!("the quick handler blocks its thread");
            std::thread::sleep(Duration::from_secs(3600));
        }
        if let Some(pause) = milliseconds("STORM_PAUSE") {
            tokio::time::sleep(pause).await;
            info!("the quick handler is done with {}", cx.name());
        }
        cx.patch()
            .status(json!({"quick": cx.raw()["spec"]["size"]}));
        Ok(())
    }

    async fn flaky(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        if cx.retry() == 0 {
            return Err(HandlerError::temporary("not at once").after(Duration::from_millis(300)));
        }
        cx.patch()
            .status(json!({"flaky": cx.raw()["spec"]["size"]}));
        Ok(())
    }
}

impl Storm {
    async fn prepare(&self, cx: &mut StartupContext) -> HandlerResult {
        if std::env::var_os("STORM_NO_START").is_some() {
            return Err(HandlerError::permanent("told to"));
        }
        if let Some(grace) = milliseconds("STORM_GRACE") {
            cx.settings().shutdown.grace = grace;
            cx.settings().shutdown.deadline = grace;
        }
        Ok(())
    }

    async fn tear_down(&self, _: &mut CleanupContext) -> HandlerResult {
        if std::env::var_os("STORM_NO_END").is_some() {
            return Err(HandlerError::permanent("told to"));
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
metadata: {name: storms.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Storm, plural: storms, singular: storm}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, description: $DESCRIPTION}}
";

fn main() -> ExitCode {
    let group = std::env::var("STORM_GROUP").unwrap_or_else(|_| "storm.kopf.test".to_owned());
    let description = std::env::var("STORM_DESCRIPTION").unwrap_or_else(|_| "Wind".to_owned());
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
    let storm = Arc::new(Storm);
    let hooks = Hooks::new(&storm)
        .startup(HookHandler::new("prepare"), |storm, cx| {
            Box::pin(storm.prepare(cx))
        })
        .cleanup(HookHandler::new("tear_down"), |storm, cx| {
            Box::pin(storm.tear_down(cx))
        });
    let resource = Resource::<Value, Storm>::new(spec, &storm)
        .change(ChangeHandler::new("quick", any()), |storm, cx| {
            Box::pin(storm.quick(cx))
        })
        .change(ChangeHandler::new("flaky", any()), |storm, cx| {
            Box::pin(storm.flaky(cx))
        })
        .build();
    Operator::new("storm-operator")
        .resource(resource)
        .handlers(hooks.build())
        .crd(definition.leak())
        .main()
}
