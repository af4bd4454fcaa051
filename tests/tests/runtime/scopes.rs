//! Which namespaces are served: patterns, followed as namespaces come and go.

use k8s_openapi::api::core::v1::Namespace;
use kopf_runtime::{EventHandler, Namespaces, Operator, ResourceHandlers};
use kopf_tests::{Failure, TestResult};
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use serde_json::json;

use crate::bench::Bench;

/// Namespaces beside that of the sandbox, whose names begin with it.
struct Neighbours<'a> {
    bench: &'a Bench,
    namespaces: Api<Namespace>,
}

impl<'a> Neighbours<'a> {
    fn of(bench: &'a Bench) -> Self {
        let namespaces = Api::all(bench.sandbox.client());
        Self { bench, namespaces }
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.bench.sandbox.namespace())
    }

    async fn create(&self, suffix: &str) -> TestResult {
        let body = serde_json::from_value(json!({"metadata": {"name": self.name(suffix)}}))?;
        self.namespaces
            .create(&PostParams::default(), &body)
            .await?;
        Ok(())
    }

    async fn remove(&self, suffix: &str) -> TestResult {
        let name = self.name(suffix);
        self.namespaces
            .delete(&name, &DeleteParams::default())
            .await?;
        Ok(())
    }

    fn objects(&self, suffix: &str) -> Api<DynamicObject> {
        let client = self.bench.sandbox.client();
        let resource = self.bench.objects.resource();
        Api::namespaced_with(client, &self.name(suffix), resource)
    }

    async fn put(&self, suffix: &str, name: &str, size: u32) -> Result<(), Failure> {
        let mut object = DynamicObject::new(name, self.bench.objects.resource());
        object.data = json!({"spec": {"size": size}});
        let objects = self.objects(suffix);
        objects.create(&PostParams::default(), &object).await?;
        Ok(())
    }
}

fn spy(bench: &Bench) -> ResourceHandlers {
    bench
        .resource()
        .event(EventHandler::new("spy"), |stage, cx| {
            Box::pin(async move {
                stage.see(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build()
}

/// The stream may have begun before the object was there, or after.
fn assert_came(seen: &str, name: &str, size: u32) {
    let ways = [
        format!("{name} LISTED {size}"),
        format!("{name} ADDED {size}"),
    ];
    assert!(ways.iter().any(|way| way == seen), "{seen}");
}

#[tokio::test]
async fn namespaces_are_followed_as_they_come_and_go() -> TestResult {
    let mut bench = Bench::new("glob").await?;
    let identity = bench.identity();
    let own = bench.sandbox.namespace().to_owned();
    let pattern = format!("{own}-*,!*-hidden,*-not-hidden");
    let operator = Operator::new("bench")
        .resource(spy(&bench))
        .namespaces(Namespaces::matching([pattern]));
    {
        let neighbours = Neighbours::of(&bench);
        for suffix in ["early", "hidden", "not-hidden"] {
            neighbours.create(suffix).await?;
        }
        neighbours.put("early", "early", 1).await?;
        neighbours.put("hidden", "hidden", 2).await?;
    }
    bench.create("outside", 3).await?;

    let operator = bench.start_as(identity, operator).await?;
    assert_eq!(bench.seen().await, "early LISTED 1");
    Neighbours::of(&bench).put("not-hidden", "again", 4).await?;
    assert_came(&bench.seen().await, "again", 4);

    Neighbours::of(&bench).create("late").await?;
    Neighbours::of(&bench).put("late", "late", 5).await?;
    assert_came(&bench.seen().await, "late", 5);

    Neighbours::of(&bench).remove("late").await?;
    assert_eq!(bench.seen().await, "late DELETED 5");
    let late = Neighbours::of(&bench).name("late");
    bench
        .eventually("the namespace is gone", async || {
            let namespaces: Api<Namespace> = Api::all(bench.sandbox.client());
            Ok(namespaces.get_opt(&late).await?.is_none().then_some(()))
        })
        .await?;
    Neighbours::of(&bench).create("late").await?;
    Neighbours::of(&bench).put("late", "namesake", 6).await?;
    assert_came(&bench.seen().await, "namesake", 6);

    operator.stop().await?;
    let neighbours = Neighbours::of(&bench);
    for suffix in ["early", "hidden", "not-hidden", "late"] {
        neighbours.remove(suffix).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_the_permission_to_list_namespaces_names_are_served() -> TestResult {
    let mut bench = Bench::new("blind").await?;
    let user = bench.sandbox.user("blind");
    bench
        .sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: blind}}
rules: [{{apiGroups: [$GROUP], resources: [widgets], verbs: [list, watch, patch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: blind}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: blind}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;
    bench.create("one", 1).await?;
    let own = bench.sandbox.namespace().to_owned();
    let operator = Operator::new("bench")
        .resource(spy(&bench))
        .namespaces(Namespaces::matching([own, "everything-*".to_owned()]));
    let operator = bench.start_as(user, operator).await?;
    assert_eq!(bench.seen().await, "one LISTED 1");
    operator.stop().await
}
