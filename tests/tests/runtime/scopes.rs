//! Served namespaces: patterns that apply to namespaces as they are created and deleted.

use k8s_openapi::api::core::v1::Namespace;
use kopf_runtime::{
    EventHandler, NamespacePattern, Namespaces, Operator, ResourceHandlers, Settings,
    WebhookHandler,
};
use kopf_tests::{PeeringObject, TestFailure, TestResult, eventually, try_eventually};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::admission::fixture::{ReviewRecorder, WebhookFixture, rejection};
use crate::fixture::HandlerFixture;

/// Namespaces whose names begin with that of the sandbox.
struct SiblingNamespaces<'a> {
    fixture: &'a HandlerFixture,
    namespaces: Api<Namespace>,
}

impl<'a> SiblingNamespaces<'a> {
    fn of(fixture: &'a HandlerFixture) -> Self {
        let namespaces = Api::all(fixture.sandbox.client());
        Self {
            fixture,
            namespaces,
        }
    }

    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.fixture.sandbox.namespace())
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
        let client = self.fixture.sandbox.client();
        let resource = self.fixture.objects.resource();
        Api::namespaced_with(client, &self.name(suffix), resource)
    }

    async fn create_object(&self, suffix: &str, name: &str, size: u32) -> Result<(), TestFailure> {
        let mut object = DynamicObject::new(name, self.fixture.objects.resource());
        object.data = json!({"spec": {"size": size}});
        let objects = self.objects(suffix);
        objects.create(&PostParams::default(), &object).await?;
        Ok(())
    }
}

fn spy(fixture: &HandlerFixture) -> ResourceHandlers {
    fixture
        .resource()
        .event(EventHandler::new("spy"), |scripts, cx| {
            Box::pin(async move {
                scripts.report_event(cx.name(), cx.event_type(), cx.raw());
                Ok(())
            })
        })
        .build()
}

/// The watch may have started before or after the object was created.
fn assert_reported(seen: &str, name: &str, size: u32) {
    let ways = [
        format!("{name} LISTED {size}"),
        format!("{name} ADDED {size}"),
    ];
    assert!(ways.iter().any(|way| way == seen), "{seen}");
}

#[tokio::test]
async fn namespaces_that_match_are_watched_as_they_are_created_and_deleted() -> TestResult {
    let mut fixture = HandlerFixture::new("glob").await?;
    let identity = fixture.new_user();
    let own = fixture.sandbox.namespace().to_owned();
    let pattern = format!("{own}-*,!*-hidden,*-not-hidden");
    let operator = Operator::new("fixture")
        .resource(spy(&fixture))
        .namespaces(Namespaces::matching([pattern]));
    {
        let siblings = SiblingNamespaces::of(&fixture);
        for suffix in ["early", "hidden", "not-hidden"] {
            siblings.create(suffix).await?;
        }
        siblings.create_object("early", "early", 1).await?;
        siblings.create_object("hidden", "hidden", 2).await?;
    }
    fixture.create("outside", 3).await?;

    let operator = fixture.start_as(identity, operator).await?;
    assert_eq!(fixture.next_report().await, "early LISTED 1");
    SiblingNamespaces::of(&fixture)
        .create_object("not-hidden", "again", 4)
        .await?;
    assert_reported(&fixture.next_report().await, "again", 4);

    SiblingNamespaces::of(&fixture).create("late").await?;
    SiblingNamespaces::of(&fixture)
        .create_object("late", "late", 5)
        .await?;
    assert_reported(&fixture.next_report().await, "late", 5);

    SiblingNamespaces::of(&fixture).remove("late").await?;
    assert_eq!(fixture.next_report().await, "late DELETED 5");
    let late = SiblingNamespaces::of(&fixture).name("late");
    try_eventually("the namespace is gone", async || {
        let namespaces: Api<Namespace> = Api::all(fixture.sandbox.client());
        Ok(namespaces.get_opt(&late).await?.is_none().then_some(()))
    })
    .await?;
    SiblingNamespaces::of(&fixture).create("late").await?;
    SiblingNamespaces::of(&fixture)
        .create_object("late", "namesake", 6)
        .await?;
    assert_reported(&fixture.next_report().await, "namesake", 6);

    operator.stop().await?;
    let siblings = SiblingNamespaces::of(&fixture);
    for suffix in ["early", "hidden", "not-hidden", "late"] {
        siblings.remove(suffix).await?;
    }
    Ok(())
}

#[tokio::test]
async fn literal_namespaces_are_served_without_permission_to_list_namespaces() -> TestResult {
    let mut fixture = HandlerFixture::new("blind").await?;
    let user = fixture.sandbox.user("blind");
    fixture
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
    fixture.create("one", 1).await?;
    let own = fixture.sandbox.namespace().to_owned();
    let operator = Operator::new("fixture")
        .resource(spy(&fixture))
        .namespaces(Namespaces::matching([own, "everything-*".to_owned()]));
    let operator = fixture.start_as(user, operator).await?;
    assert_eq!(fixture.next_report().await, "one LISTED 1");
    operator.stop().await
}

/// The peering `default` of a namespace.
struct NamespacePeering {
    api: Api<DynamicObject>,
}

impl NamespacePeering {
    fn new(fixture: &HandlerFixture, namespace: &str) -> Self {
        let kind = GroupVersionKind::gvk("kopf.dev", "v1", "KopfPeering");
        let kind = ApiResource::from_gvk(&kind);
        Self {
            api: Api::namespaced_with(fixture.sandbox.client(), namespace, &kind),
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
async fn peerings_of_all_matching_namespaces_are_used_also_of_new_ones() -> TestResult {
    let mut fixture = HandlerFixture::new("glob-peers").await?;
    let identity = fixture.new_user();
    let outside = PeeringObject::create(&fixture.sandbox, "default").await?;
    let pattern = format!("{}-*", fixture.sandbox.namespace());
    let operator = Operator::new("fixture")
        .identity("me")
        .resource(spy(&fixture))
        .namespaces(Namespaces::matching([pattern]));
    let (early, late) = {
        let siblings = SiblingNamespaces::of(&fixture);
        siblings.create("early").await?;
        let early = siblings.name("early");
        outside.create_beside(&early).await?;
        (early, siblings.name("late"))
    };
    let operator = fixture.start_as(identity, operator).await?;
    let first = NamespacePeering::new(&fixture, &early);
    first.wait_for("me").await?;
    SiblingNamespaces::of(&fixture)
        .create_object("early", "one", 1)
        .await?;
    assert_reported(&fixture.next_report().await, "one", 1);

    SiblingNamespaces::of(&fixture).create("late").await?;
    outside.create_beside(&late).await?;
    let second = NamespacePeering::new(&fixture, &late);
    second.wait_for("me").await?;
    let peer = json!({"someone": {
        "priority": 100, "lifetime": 600, "lastseen": jiff::Timestamp::now().to_string(),
    }});
    // A higher priority in one served namespace pauses the operator in all; others do not count.
    outside.write(peer.clone()).await?;
    SiblingNamespaces::of(&fixture)
        .create_object("early", "two", 2)
        .await?;
    assert_reported(&fixture.next_report().await, "two", 2);
    second.write(peer).await?;
    let missed = eventually("the operator pauses", async || {
        let probe = format!("probe-{}", fastrand::u32(..));
        let siblings = SiblingNamespaces::of(&fixture);
        siblings.create_object("early", &probe, 0).await.ok()?;
        let paused = fixture
            .next_report_within(std::time::Duration::from_secs(2))
            .await
            .is_none();
        paused.then_some(probe)
    })
    .await?;
    second.write(json!({"someone": null})).await?;
    while !fixture.next_report().await.starts_with(&missed) {}

    let records = outside.records().await?;
    assert_eq!(
        records.keys().collect::<Vec<_>>(),
        ["someone"],
        "not served"
    );
    operator.stop().await?;
    let left = first.api.get("default").await?;
    assert!(left.data["status"]["me"].is_null(), "its record is removed");
    let siblings = SiblingNamespaces::of(&fixture);
    for suffix in ["early", "late"] {
        siblings.remove(suffix).await?;
    }
    Ok(())
}

#[tokio::test]
async fn webhooks_are_called_in_matching_namespaces_also_in_new_ones() -> TestResult {
    let webhooks = WebhookFixture::new("glob-hooks").await?;
    let namespaces: Api<Namespace> = Api::all(webhooks.sandbox.client());
    let name = |suffix: &str| format!("{}-{suffix}", webhooks.sandbox.namespace());
    let create = async |suffix: &str| -> TestResult {
        let body = serde_json::from_value(json!({"metadata": {"name": name(suffix)}}))?;
        namespaces.create(&PostParams::default(), &body).await?;
        Ok(())
    };
    let create_object = async |suffix: &str, widget: &str| {
        let resource = webhooks.widgets.resource();
        let client = webhooks.sandbox.client();
        let widgets: Api<DynamicObject> = Api::namespaced_with(client, &name(suffix), resource);
        let mut object = DynamicObject::new(widget, resource);
        object.data = json!({"spec": {"deny": "no"}});
        widgets.create(&PostParams::default(), &object).await
    };
    create("early").await?;
    create("early-pr-1").await?;
    let resource = webhooks.resource().validate(
        WebhookHandler::new("check"),
        |recorder: &ReviewRecorder, cx| Box::pin(recorder.check(cx)),
    );
    let operator = Operator::new("webhooks")
        .resource(resource.build())
        .namespaces(Namespaces::matching([format!("{},!*-pr-*", name("*"))]))
        .webhooks(webhooks.local_server());
    let (stop, stopped) = oneshot::channel::<()>();
    let running = tokio::spawn(operator.run(webhooks.sandbox.client(), async {
        let _ = stopped.await;
    }));
    eventually("the API server calls the webhook", async || {
        create_object("early", &format!("probe-{}", fastrand::u32(..)))
            .await
            .err()
    })
    .await?;
    create("late").await?;
    for suffix in ["early", "late"] {
        let refused = rejection(create_object(suffix, suffix).await);
        assert!(
            refused.message.ends_with("denied the request: no"),
            "{refused:?}"
        );
    }
    create_object("early-pr-1", "excluded").await?;
    let elsewhere = json!({"spec": {"deny": "no"}});
    webhooks.widgets.create("outside", elsewhere).await?;
    assert!(
        webhooks.recorder.reviews_of("excluded").is_empty()
            && webhooks.recorder.reviews_of("outside").is_empty()
    );
    drop(stop);
    running.await.expect("the operator does not panic")?;
    for suffix in ["early", "early-pr-1", "late"] {
        namespaces
            .delete(&name(suffix), &DeleteParams::default())
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn namespaces_are_served_by_a_regular_expression() -> TestResult {
    let mut fixture = HandlerFixture::new("regex").await?;
    let user = fixture.new_user();
    let expression = format!("{}-(dev|test)-[0-9]+", fixture.sandbox.namespace());
    let namespaces = Namespaces::matching([NamespacePattern::regex(&expression)?]);
    let operator = Operator::new("scopes")
        .resource(spy(&fixture))
        .namespaces(namespaces);
    let operator = fixture.start_as(user, operator).await?;
    {
        let siblings = SiblingNamespaces::of(&fixture);
        for suffix in ["dev-1", "dev-x", "test-22"] {
            siblings.create(suffix).await?;
        }
        siblings.create_object("dev-x", "not-served", 1).await?;
        siblings.create_object("dev-1", "first", 1).await?;
    }
    assert_reported(&fixture.next_report().await, "first", 1);
    SiblingNamespaces::of(&fixture)
        .create_object("test-22", "second", 2)
        .await?;
    assert_reported(&fixture.next_report().await, "second", 2);
    operator.stop().await?;
    let siblings = SiblingNamespaces::of(&fixture);
    for suffix in ["dev-1", "dev-x", "test-22"] {
        siblings.remove(suffix).await?;
    }
    Ok(())
}

#[tokio::test]
async fn without_scanning_only_named_namespaces_are_served_and_none_are_listed() -> TestResult {
    let mut fixture = HandlerFixture::new("no-scanning").await?;
    let identity = fixture.new_user();
    let own = fixture.sandbox.namespace().to_owned();
    let mut settings = Settings::default();
    settings.scanning.disabled = true;
    let operator = Operator::new("fixture")
        .resource(spy(&fixture))
        .settings(settings)
        .namespaces(Namespaces::matching([own.clone(), format!("{own}-*")]));
    let siblings = SiblingNamespaces::of(&fixture);
    siblings.create("near").await?;
    siblings.create_object("near", "near", 1).await?;
    let operator = fixture.start_as(identity, operator).await?;
    fixture.create("one", 2).await?;
    assert_reported(&fixture.next_report().await, "one", 2);
    fixture.create("two", 3).await?;
    assert_reported(&fixture.next_report().await, "two", 3);
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let scanned = requests.iter().filter(|it| {
        let resource = it.resource.as_deref().unwrap_or_default();
        ["namespaces", "customresourcedefinitions"].contains(&resource)
    });
    assert_eq!(scanned.count(), 0, "{requests:?}");
    operator.stop().await
}
