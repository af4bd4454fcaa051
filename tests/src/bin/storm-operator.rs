//! An operator for the tests: one quick handler and one that needs a retry, both of which tell in
//! the status what they saw.

use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::prelude::*;
use kopf_runtime::{ChangeHandler, On, Operator, Resource, ResourceSpec, Scope, StatusSubresource};

struct Storm;

impl Storm {
    async fn quick(&self, cx: &mut Change<Value>) -> HandlerResult {
        if std::env::var_os("STORM_ENDLESS").is_some() {
            info!("the quick handler never ends");
            std::future::pending::<()>().await;
        }
        cx.patch()
            .status(json!({"quick": cx.raw()["spec"]["size"]}));
        Ok(())
    }

    async fn flaky(&self, cx: &mut Change<Value>) -> HandlerResult {
        if cx.retry() == 0 {
            return Err(HandlerError::temporary("not at once").after(Duration::from_millis(300)));
        }
        cx.patch()
            .status(json!({"flaky": cx.raw()["spec"]["size"]}));
        Ok(())
    }
}

fn main() -> ExitCode {
    let group = std::env::var("STORM_GROUP").unwrap_or_else(|_| "storm.kopf.test".to_owned());
    let spec = ResourceSpec {
        group: group.leak(),
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let any = || On::create().or(On::update());
    let resource = Resource::<Value, Storm>::new(spec, &Arc::new(Storm))
        .change(ChangeHandler::new("quick", any()), |storm, cx| {
            Box::pin(storm.quick(cx))
        })
        .change(ChangeHandler::new("flaky", any()), |storm, cx| {
            Box::pin(storm.flaky(cx))
        })
        .build();
    Operator::new("storm-operator")
        .resource(resource)
        .crd("kind: CustomResourceDefinition\n")
        .main()
}
