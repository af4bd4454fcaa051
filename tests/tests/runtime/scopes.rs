//! Which namespaces are served: patterns, followed as namespaces come and go.

use k8s_openapi::api::core::v1::Namespace;
use kopf_runtime::{EventHandler, Namespaces, Operator, ResourceHandlers, WebhookHandler};
use kopf_tests::{PeeringObject, TestFailure, TestResult, eventually, try_eventually};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::admission::hall::{Gate, Hall, refusal};
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

    async fn put(&self, suffix: &str, name: &str, size: u32) -> Result<(), TestFailure> {
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
    try_eventually("the namespace is gone", async || {
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

/// The peering `default` of a namespace.
struct Meeting {
    api: Api<DynamicObject>,
}

impl Meeting {
    fn new(bench: &Bench, namespace: &str) -> Self {
        let kind = GroupVersionKind::gvk("kopf.dev", "v1", "KopfPeering");
        let kind = ApiResource::from_gvk(&kind);
        Self {
            api: Api::namespaced_with(bench.sandbox.client(), namespace, &kind),
        }
    }

    async fn wait_for(&self, identity: &str) -> TestResult {
        eventually("the operator is in the peering", async || {
            let peering = self.api.get("default").await.ok()?;
            peering.data["status"][identity].is_object().then_some(())
        })
        .await
    }

    async fn write(&self, records: Value) -> TestResult {
        let patch = Patch::Merge(json!({"status": records}));
        let params = PatchParams::default();
        self.api.patch("default", &params, &patch).await?;
        Ok(())
    }
}

#[tokio::test]
async fn peerings_of_all_namespaces_that_match_count_as_these_come() -> TestResult {
    let mut bench = Bench::new("glob-peers").await?;
    let identity = bench.identity();
    let outside = PeeringObject::create(&bench.sandbox, "default").await?;
    let pattern = format!("{}-*", bench.sandbox.namespace());
    let operator = Operator::new("bench")
        .identity("me")
        .resource(spy(&bench))
        .namespaces(Namespaces::matching([pattern]));
    let (early, late) = {
        let neighbours = Neighbours::of(&bench);
        neighbours.create("early").await?;
        let early = neighbours.name("early");
        outside.create_beside(&early).await?;
        (early, neighbours.name("late"))
    };
    let operator = bench.start_as(identity, operator).await?;
    let first = Meeting::new(&bench, &early);
    first.wait_for("me").await?;
    Neighbours::of(&bench).put("early", "one", 1).await?;
    assert_came(&bench.seen().await, "one", 1);

    Neighbours::of(&bench).create("late").await?;
    outside.create_beside(&late).await?;
    let second = Meeting::new(&bench, &late);
    second.wait_for("me").await?;
    let ahead = json!({"someone": {
        "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
    }});
    // Whoever goes ahead in one namespace goes ahead in all; who is elsewhere does not count.
    outside.write(ahead.clone()).await?;
    Neighbours::of(&bench).put("early", "two", 2).await?;
    assert_came(&bench.seen().await, "two", 2);
    second.write(ahead).await?;
    let unseen = eventually("the operator pauses", async || {
        let probe = format!("probe-{}", fastrand::u32(..));
        let neighbours = Neighbours::of(&bench);
        neighbours.put("early", &probe, 0).await.ok()?;
        let paused = bench
            .seen_within(std::time::Duration::from_secs(2))
            .await
            .is_none();
        paused.then_some(probe)
    })
    .await?;
    second.write(json!({"someone": null})).await?;
    while !bench.seen().await.starts_with(&unseen) {}

    let records = outside.records().await?;
    assert_eq!(
        records.keys().collect::<Vec<_>>(),
        ["someone"],
        "not served"
    );
    operator.stop().await?;
    let left = first.api.get("default").await?;
    assert!(left.data["status"]["me"].is_null(), "it has left");
    let neighbours = Neighbours::of(&bench);
    for suffix in ["early", "late"] {
        neighbours.remove(suffix).await?;
    }
    Ok(())
}

#[tokio::test]
async fn webhooks_are_asked_in_namespaces_that_match_also_in_those_that_come_later() -> TestResult {
    let hall = Hall::new("glob-hooks").await?;
    let namespaces: Api<Namespace> = Api::all(hall.sandbox.client());
    let name = |suffix: &str| format!("{}-{suffix}", hall.sandbox.namespace());
    let create = async |suffix: &str| -> TestResult {
        let body = serde_json::from_value(json!({"metadata": {"name": name(suffix)}}))?;
        namespaces.create(&PostParams::default(), &body).await?;
        Ok(())
    };
    let put = async |suffix: &str, widget: &str| {
        let resource = hall.widgets.resource();
        let client = hall.sandbox.client();
        let widgets: Api<DynamicObject> = Api::namespaced_with(client, &name(suffix), resource);
        let mut object = DynamicObject::new(widget, resource);
        object.data = json!({"spec": {"deny": "no"}});
        widgets.create(&PostParams::default(), &object).await
    };
    create("early").await?;
    create("early-pr-1").await?;
    let resource = hall
        .resource()
        .validate(WebhookHandler::new("check"), |gate: &Gate, cx| {
            Box::pin(gate.check(cx))
        });
    let operator = Operator::new("hall")
        .resource(resource.build())
        .namespaces(Namespaces::matching([format!("{},!*-pr-*", name("*"))]))
        .webhooks(hall.local());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.run(hall.sandbox.client(), async {
        let _ = stopped.await;
    }));
    eventually("the webhook is asked", async || {
        put("early", &format!("probe-{}", fastrand::u32(..)))
            .await
            .err()
    })
    .await?;
    create("late").await?;
    for suffix in ["early", "late"] {
        let refused = refusal(put(suffix, suffix).await);
        assert!(
            refused.message.ends_with("denied the request: no"),
            "{refused:?}"
        );
    }
    put("early-pr-1", "excluded").await?;
    let elsewhere = json!({"spec": {"deny": "no"}});
    hall.widgets.create("outside", elsewhere).await?;
    assert!(hall.gate.of("excluded").is_empty() && hall.gate.of("outside").is_empty());
    drop(stop);
    running.await.expect("the operator does not panic")?;
    for suffix in ["early", "early-pr-1", "late"] {
        namespaces
            .delete(&name(suffix), &DeleteParams::default())
            .await?;
    }
    Ok(())
}
