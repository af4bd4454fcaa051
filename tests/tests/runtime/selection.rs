//! Kinds that are selected rather than named: by what they are, as they come and go.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, DynamicObject, Error, EventHandler, FieldHandler, HandlerError,
    Index, IndexHandler, Memo, Namespaces, On, Operator, Resource, ResourceHandlers, ResourceSpec,
    RunningOperator, Selector, TextTest, TimerHandler, WebhookHandler,
};
use kopf_tests::audit::AuditedRequest;
use kopf_tests::{Failure, Objects, TestResult, try_eventually};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::bench::{Bench, LAST_HANDLED, Stage};

/// Defines a kind with names and categories of its own, in the group of the sandbox or below it.
struct Definition<'a> {
    kind: &'a str,
    below: &'a str,
    short_name: &'a str,
    category: &'a str,
}

impl Definition<'_> {
    async fn apply(&self, bench: &Bench) -> Result<Objects, Failure> {
        let Self {
            kind,
            below,
            short_name,
            category,
        } = self;
        let singular = kind.to_lowercase();
        let group = format!("{below}{}", bench.sandbox.group());
        bench
            .sandbox
            .apply(&format!(
                "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {singular}s.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names:
    kind: {kind}
    plural: {singular}s
    singular: {singular}
    shortNames: [{short_name}]
    categories: [{category}]
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {{status: {{}}}}
      schema:
        openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}
"
            ))
            .await?;
        bench.sandbox.objects(&format!("{group}/v1"), kind).await
    }
}

async fn define(bench: &Bench, kind: &str, category: &str) -> Result<Objects, Failure> {
    let definition = Definition {
        kind,
        below: "",
        short_name: &kind.to_lowercase()[..2],
        category,
    };
    definition.apply(bench).await
}

async fn definitions(bench: &Bench) -> Result<Api<DynamicObject>, Failure> {
    let definitions = bench
        .sandbox
        .objects("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    Ok(definitions.await?.api().clone())
}

async fn undefine(bench: &Bench, plural: &str) -> TestResult {
    let name = format!("{plural}.{}", bench.sandbox.group());
    let definitions = definitions(bench).await?;
    definitions.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// Tells of each event what and whose it is.
fn spying(bench: &Bench, selector: Selector, handler: EventHandler) -> ResourceHandlers {
    Resource::<DynamicObject, Stage>::selected(selector, &bench.stage)
        .event(handler, |stage, cx| {
            Box::pin(async move {
                let (plural, kind) = (&cx.resource().plural, &cx.object().types);
                let kind = kind.as_ref().map_or("no kind", |types| &types.kind);
                stage.tell(format!("{} {kind} {plural} {}", cx.event_type(), cx.name()));
                Ok(())
            })
        })
        .build()
}

fn here(bench: &Bench, operator: Operator) -> Operator {
    operator.namespaces(Namespaces::Only(vec![bench.sandbox.namespace().to_owned()]))
}

async fn ready(bench: &Bench, resource: ResourceHandlers) -> Result<RunningOperator, Failure> {
    let operator = here(bench, Operator::new("selecting").resource(resource));
    let running = operator.spawn(bench.sandbox.client());
    running.ready().await?;
    Ok(running)
}

#[tokio::test]
async fn the_kinds_of_a_category_are_served_as_they_come_and_go() -> TestResult {
    let mut bench = Bench::new("category").await?;
    let category = bench.sandbox.namespace().to_owned();
    let dolls = define(&bench, "Doll", &category).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let operator = ready(&bench, spying(&bench, selector, EventHandler::new("spy"))).await?;
    assert_eq!(bench.seen().await, "LISTED Doll dolls ann");

    let kites = define(&bench, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    let seen = bench.seen().await;
    let new = ["LISTED Kite kites red", "ADDED Kite kites red"];
    assert!(new.contains(&&*seen), "{seen}");
    let others = define(&bench, "Other", "elsewhere").await?;
    others.create("unseen", json!({"spec": {}})).await?;

    undefine(&bench, "dolls").await?;
    assert_eq!(bench.seen().await, "DELETED Doll dolls ann");
    kites.delete("red").await?;
    assert_eq!(bench.seen().await, "DELETED Kite kites red");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_that_leaves_the_category_is_let_go_and_returns() -> TestResult {
    let mut bench = Bench::new("leaves").await?;
    let category = bench.sandbox.namespace().to_owned();
    let dolls = define(&bench, "Doll", &category).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let operator = ready(&bench, spying(&bench, selector, EventHandler::new("spy"))).await?;
    assert_eq!(bench.seen().await, "LISTED Doll dolls ann");
    let definitions = definitions(&bench).await?;
    let name = format!("dolls.{}", bench.sandbox.group());
    let set = async |categories: &[&str]| {
        let patch = json!({"spec": {"names": {"categories": categories}}});
        let params = PatchParams::default();
        definitions
            .patch(&name, &params, &Patch::Merge(patch))
            .await
    };
    set(&[]).await?;
    assert_eq!(bench.seen().await, "DELETED Doll dolls ann");
    set(&[&category]).await?;
    assert_eq!(bench.seen().await, "LISTED Doll dolls ann");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_resource_is_found_by_its_short_name_and_described() -> TestResult {
    let mut bench = Bench::new("short").await?;
    let short_name = format!("d{}", &bench.sandbox.namespace()[6..]);
    let definition = Definition {
        kind: "Doll",
        below: "",
        short_name: &short_name,
        category: "toys",
    };
    let dolls = definition.apply(&bench).await?;
    let selected =
        Resource::<DynamicObject, Stage>::selected(Selector::short_name(&short_name), &bench.stage)
            .event(EventHandler::new("spy"), |stage, cx| {
                Box::pin(async move {
                    stage.tell(format!("{:?}", cx.resource()));
                    Ok(())
                })
            })
            .build();
    let operator = ready(&bench, selected).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let seen = bench.seen().await;
    let set = |words: &[&str]| -> BTreeSet<String> { words.iter().map(|&it| it.into()).collect() };
    let verbs = [
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    ];
    let expected = kopf_runtime::DiscoveredResource {
        group: bench.sandbox.group().to_owned(),
        version: "v1".to_owned(),
        kind: "Doll".to_owned(),
        plural: "dolls".to_owned(),
        singular: "doll".to_owned(),
        short_names: set(&[&short_name]),
        categories: set(&["toys"]),
        subresources: set(&["status"]),
        verbs: set(&verbs),
        namespaced: true,
        preferred: true,
    };
    assert_eq!(seen, format!("{expected:?}"));
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_declared_kind_is_described_as_well() -> TestResult {
    let mut bench = Bench::new("described").await?;
    let resource = bench.resource();
    let resource = resource.change(
        ChangeHandler::new("create_fn", On::create()),
        |stage, cx| {
            Box::pin(async move {
                let resource = cx.resource();
                let (verbs, singular) = (resource.verbs.len(), &resource.singular);
                stage.tell(format!("{singular} {verbs} {}", resource.preferred));
                Ok(())
            })
        },
    );
    let resource = resource.timer(
        TimerHandler::every("tick", Duration::from_secs(3600)),
        |stage, cx| {
            Box::pin(async move {
                stage.tell(format!("ticks for {}", cx.resource().singular));
                Ok(())
            })
        },
    );
    let operator = bench.start(resource.build()).await?;
    bench.create("one", 1).await?;
    let mut seen = [bench.seen().await, bench.seen().await];
    seen.sort();
    assert_eq!(seen, ["ticks for widget", "widget 8 true"]);
    operator.stop().await
}

#[tokio::test]
async fn everything_is_seen_but_events_where_labels_match() -> TestResult {
    let mut bench = Bench::new("all-kinds").await?;
    let label = json!({"metadata": {"labels": {"only-this": "yes"}}});
    let handler = EventHandler::new("spy").label("only-this", TextTest::Present);
    let operator = ready(&bench, spying(&bench, Selector::everything(), handler)).await?;
    let event = json!({
        "metadata": label["metadata"],
        "involvedObject": {"namespace": bench.sandbox.namespace(), "name": "one", "kind": "Widget"},
    });
    let events = bench.sandbox.objects("v1", "Event").await?;
    events.create("never", event).await?;
    let maps = bench.sandbox.objects("v1", "ConfigMap").await?;
    maps.create("map", label.clone()).await?;
    assert_eq!(bench.seen().await, "ADDED ConfigMap configmaps map");
    let accounts = bench.sandbox.objects("v1", "ServiceAccount").await?;
    accounts.create("account", label.clone()).await?;
    assert_eq!(
        bench.seen().await,
        "ADDED ServiceAccount serviceaccounts account"
    );
    bench.objects.create("one", label).await?;
    assert_eq!(bench.seen().await, "ADDED Widget widgets one");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ambiguity_and_absence_are_reported_until_they_end() -> TestResult {
    let mut bench = Bench::new("ambiguous").await?;
    let kind = format!("Doll{}", &bench.sandbox.namespace()[10..]);
    let twin = |below| Definition {
        kind: &kind,
        below,
        short_name: "dl",
        category: "toys",
    };
    let selected = spying(&bench, Selector::kind(&kind), EventHandler::new("spy"));
    let operator = here(&bench, Operator::new("selecting").resource(selected));
    let operator = operator.spawn(bench.sandbox.client());
    let problem = async |text: &str| {
        try_eventually(text, async || {
            let problems = operator.problems().join("; ");
            Ok(problems.contains(text).then_some(()))
        })
        .await
    };
    problem(&format!(
        "the selection {{kind: {kind}}}: the API server serves no such resource"
    ))
    .await?;
    let first = twin("").apply(&bench).await?;
    operator.ready().await?;
    let second = twin("other.").apply(&bench).await?;
    let plural = format!("{}s", kind.to_lowercase());
    let group = bench.sandbox.group();
    problem(&format!(
        "it could be any of {plural}.{group}, {plural}.other.{group}, so that none is served"
    ))
    .await?;
    second.create("unseen", json!({"spec": {}})).await?;
    undefine(&bench, &plural).await?;
    let _ = first;
    operator.ready().await?;
    let seen = bench.seen().await;
    assert_eq!(seen, format!("LISTED {kind} {plural} unseen"));
    operator.stop().await?;
    Ok(())
}

/// What is remembered of each Widget by handlers of the one declaration.
#[derive(Default)]
struct Own(std::sync::atomic::AtomicU32);

/// The same of the other.
#[derive(Default)]
struct Theirs(std::sync::atomic::AtomicU32);

impl Memo<Value> for Own {}
impl Memo<DynamicObject> for Theirs {}

#[tokio::test]
async fn one_stream_serves_a_declared_kind_and_a_selection_of_it() -> TestResult {
    use std::sync::atomic::Ordering::Relaxed;
    let mut bench = Bench::new("both").await?;
    let declared = bench
        .resource()
        .memo::<Own>()
        .change(ChangeHandler::new("declared", On::create()), |stage, cx| {
            Box::pin(async move {
                cx.memo::<Own>().0.fetch_add(1, Relaxed);
                cx.set_result(&"declared")?;
                stage.tell(format!("declared {}", cx.memo::<Own>().0.load(Relaxed)));
                Ok(())
            })
        })
        .build();
    let group = Selector::everything().in_group(bench.sandbox.group());
    let selected = Resource::<DynamicObject, Stage>::selected(group, &bench.stage)
        .memo::<Theirs>()
        .change(ChangeHandler::new("selected", On::create()), |stage, cx| {
            Box::pin(async move {
                cx.memo::<Theirs>().0.fetch_add(10, Relaxed);
                cx.set_result(&"selected")?;
                stage.tell(format!("selected {}", cx.memo::<Theirs>().0.load(Relaxed)));
                Ok(())
            })
        })
        .build();
    let operator = Operator::new("both").resource(declared).resource(selected);
    let operator = bench.start_operator(operator).await?;
    bench.create("one", 1).await?;
    assert_eq!(bench.seen().await, "declared 1");
    assert_eq!(bench.seen().await, "selected 10");
    let one = bench.handled("one", 1).await?;
    let results = json!({"declared": "declared", "selected": "selected"});
    assert_eq!(one.data["status"], results);
    let requests = bench.sandbox.requests_of(&operator.identity).await?;
    let watches =
        |it: &&AuditedRequest| it.verb == "watch" && it.resource.as_deref() == Some("widgets");
    let lists =
        |it: &&AuditedRequest| it.verb == "list" && it.resource.as_deref() == Some("widgets");
    assert_eq!(requests.iter().filter(lists).count(), 1);
    assert!(requests.iter().filter(watches).count() <= 1);
    operator.stop().await
}

#[tokio::test]
async fn a_declared_kind_that_comes_later_is_served_by_both_at_once() -> TestResult {
    let mut bench = Bench::new("later").await?;
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..bench.spec()
    };
    let declared = Resource::<Value, Stage>::new(spec, &bench.stage)
        .event(EventHandler::new("declared"), |stage, cx| {
            Box::pin(async move {
                stage.tell(format!("declared {}", cx.name()));
                Ok(())
            })
        })
        .build();
    let group = Selector::everything().in_group(bench.sandbox.group());
    let selected = spying(&bench, group, EventHandler::new("spy"));
    let operator = Operator::new("both").resource(declared).resource(selected);
    let operator = here(&bench, operator).spawn(bench.sandbox.client());
    try_eventually("the declared kind is missed", async || {
        let missed = "Gizmo: the API server serves no such resource (yet)".to_owned();
        Ok(operator.problems().contains(&missed).then_some(()))
    })
    .await?;
    let gizmos = bench.sandbox.define("Gizmo").await?;
    operator.ready().await?;
    gizmos.create("one", json!({"spec": {}})).await?;
    let seen = [bench.seen().await, bench.seen().await];
    assert_eq!(seen, ["declared one", "ADDED Gizmo gizmos one"]);
    undefine(&bench, "gizmos").await?;
    let seen = [bench.seen().await, bench.seen().await];
    assert_eq!(seen, ["declared one", "DELETED Gizmo gizmos one"]);
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn ids_that_objects_could_not_tell_apart_are_refused() -> TestResult {
    let mut bench = Bench::new("shared-ids").await?;
    let declared = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let selected = |selector: Selector| {
        Resource::<DynamicObject, Stage>::selected(selector, &bench.stage)
            .change(
                ChangeHandler::new("create_fn", On::create()),
                |stage, cx| Box::pin(async move { stage.report(cx) }),
            )
            .build()
    };
    let overlapping = selected(Selector::category("toys"));
    let operator = Operator::new("shared")
        .resource(declared)
        .resource(overlapping);
    let refused = operator
        .run(bench.sandbox.client(), std::future::pending())
        .await;
    let error = refused.expect_err("the ids are the same");
    assert!(matches!(error, Error::SharedId { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "Widget and the selection {category: toys} may be about the same objects, \
         and both have a handler `create_fn`"
    );

    let declared = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let elsewhere = selected(Selector::everything().in_group("elsewhere.kopf.test"));
    let operator = Operator::new("apart")
        .resource(declared)
        .resource(elsewhere);
    let operator = bench.start_operator(operator).await?;
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    operator.stop().await
}

/// The names of objects by their kinds.
#[derive(Clone, Copy)]
struct ByKind;

impl Index for ByKind {
    type Key = String;
    type Value = String;
    const NAME: &'static str = "by_kind";
}

#[tokio::test]
async fn all_sorts_of_handlers_work_on_selections() -> TestResult {
    let mut bench = Bench::new("sorts").await?;
    let category = bench.sandbox.namespace().to_owned();
    let dolls = define(&bench, "Doll", &category).await?;
    let kites = define(&bench, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let resource = Resource::<DynamicObject, Stage>::selected(selector, &bench.stage)
        .index(ByKind, IndexHandler::new(), |_, cx| {
            Box::pin(async move { Ok(vec![(cx.resource().kind.clone(), cx.name().to_owned())]) })
        })
        .change(
            ChangeHandler::new("changed", On::create().or(On::delete())),
            |stage, cx| {
                Box::pin(async move {
                    let kind = &cx.resource().kind;
                    let kites = cx.index(ByKind).get("Kite").len();
                    stage.tell(format!("{kind} {} with {kites} kites", cx.reason()));
                    Ok(())
                })
            },
        )
        .field::<Value>(FieldHandler::new("sized", "spec.size"), |stage, cx| {
            Box::pin(async move {
                stage.tell(format!("size {:?}", cx.new_value()));
                Ok(())
            })
        })
        .daemon(
            DaemonHandler::new("follow").label("followed", TextTest::Present),
            |stage, cx| {
                Box::pin(async move {
                    stage.tell(format!("follows {}", cx.resource().singular));
                    cx.stop().wait().await;
                    Ok(())
                })
            },
        )
        .build();
    let operator = ready(&bench, resource).await?;
    assert_eq!(bench.seen().await, "Kite create with 1 kites");
    let body = json!({"metadata": {"labels": {"followed": "yes"}}, "spec": {"size": {"any": 1}}});
    dolls.create("ann", body).await?;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        seen.insert(bench.seen().await);
    }
    let expected = [
        "Doll create with 1 kites",
        "follows doll",
        "size Some(Object {\"any\": Number(1)})",
    ];
    assert_eq!(seen, expected.map(str::to_owned).into());
    let handled = |it: &DynamicObject| it.annotations().contains_key(LAST_HANDLED);
    let ann = dolls.wait_until("ann", "it is handled", handled).await?;
    assert_eq!(ann.finalizers().len(), 1);
    dolls.delete("ann").await?;
    assert_eq!(bench.seen().await, "Doll delete with 1 kites");
    dolls.wait_gone("ann").await?;
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn objects_of_a_kind_that_is_being_undefined_are_handled_to_the_end() -> TestResult {
    let mut bench = Bench::new("undefined-held").await?;
    let category = bench.sandbox.namespace().to_owned();
    let dolls = define(&bench, "Doll", &category).await?;
    let selector = Selector::category(&category);
    let resource = Resource::<DynamicObject, Stage>::selected(selector, &Arc::clone(&bench.stage))
        .change(ChangeHandler::new("deleted", On::delete()), |stage, cx| {
            Box::pin(async move {
                let released = stage.released().now_or_never();
                let Some(()) = released else {
                    return Err(HandlerError::temporary("not yet").after(Duration::from_secs(1)));
                };
                stage.tell(format!("{} {}", cx.reason(), cx.name()));
                Ok(())
            })
        })
        .event(EventHandler::new("spy"), |stage, cx| {
            Box::pin(async move {
                if cx.resource().kind == "Kite" {
                    stage.tell(format!("sees {}", cx.name()));
                }
                Ok(())
            })
        })
        .build();
    let operator = ready(&bench, resource).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let held = |it: &DynamicObject| !it.finalizers().is_empty();
    dolls.wait_until("ann", "it is held", held).await?;
    undefine(&bench, "dolls").await?;
    let group_version = format!("{}/v1", bench.sandbox.group());
    try_eventually("the server says that the kind ends", async || {
        let client = bench.sandbox.client();
        let list = client.list_api_group_resources(&group_version).await?;
        let dolls = list.resources.into_iter().find(|it| it.name == "dolls");
        let ends = dolls.is_some_and(|it| !it.verbs.contains(&"patch".to_owned()));
        Ok(ends.then_some(()))
    })
    .await?;
    // Whoever has noticed this one has asked the server what it serves.
    let kites = define(&bench, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    assert_eq!(bench.seen().await, "sees red");
    bench.stage.release();
    let mut seen = bench.seen().await;
    while seen == "sees red" {
        seen = bench.seen().await;
    }
    assert_eq!(seen, "delete ann");
    let definitions = definitions(&bench).await?;
    let name = format!("dolls.{}", bench.sandbox.group());
    try_eventually("the definition is gone", async || {
        Ok(definitions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn missing_permissions_are_named_and_concern_nobody_else() -> TestResult {
    let mut bench = Bench::new("forbidden").await?;
    let category = bench.sandbox.namespace().to_owned();
    let dolls = define(&bench, "Doll", &category).await?;
    define(&bench, "Kite", &category).await?;
    let user = bench.sandbox.user("forbidden");
    bench
        .sandbox
        .apply(&format!(
            "apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: forbidden}}
rules: [{{apiGroups: [$GROUP], resources: [dolls], verbs: [list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: forbidden}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: forbidden}}
subjects: [{{apiGroup: rbac.authorization.k8s.io, kind: User, name: {}}}]
",
            user.name()
        ))
        .await?;
    let selected = spying(
        &bench,
        Selector::category(&category),
        EventHandler::new("spy"),
    );
    let operator = here(&bench, Operator::new("selecting").resource(selected));
    let operator = operator.spawn(bench.sandbox.control_plane().client(&user).await?);
    dolls.create("ann", json!({"spec": {}})).await?;
    let seen = bench.seen().await;
    assert!(seen.ends_with("Doll dolls ann"), "{seen}");
    let group = bench.sandbox.group();
    let kites = format!(
        "kites.{group} in {}: listing failed",
        bench.sandbox.namespace()
    );
    let problems = try_eventually("the missing permission is named", async || {
        let problems = operator.problems();
        Ok(problems.into_iter().find(|it| it.starts_with(&kites)))
    })
    .await?;
    assert!(problems.contains("is forbidden"), "{problems}");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_selection_with_webhooks_is_refused() -> TestResult {
    let bench = Bench::new("reviewed").await?;
    let selected = Resource::<DynamicObject, Stage>::selected(Selector::everything(), &bench.stage)
        .validate::<DynamicObject>(WebhookHandler::new("check"), |_, _| {
            Box::pin(async { Ok(()) })
        })
        .build();
    let operator = Operator::new("reviewing").resource(selected);
    let refused = operator.run(bench.sandbox.client(), std::future::pending());
    let error = refused
        .await
        .expect_err("nobody knows what it is asked about");
    assert!(matches!(error, Error::SelectedWebhook { .. }), "{error}");
    assert_eq!(error.exit_code(), 3);
    Ok(())
}

#[tokio::test]
async fn many_streams_of_a_kind_ask_once_what_it_is() -> TestResult {
    let mut bench = Bench::new("asked").await?;
    let names: Vec<String> = (0..8).map(|number| format!("none-{number}")).collect();
    let identity = bench.identity();
    let resource = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("asking").resource(resource);
    let operator = operator.namespaces(Namespaces::Only(names));
    let operator = bench.start_as(identity, operator).await?;
    let requests = try_eventually("all streams have listed", async || {
        let requests = bench.sandbox.requests_of(&operator.identity).await?;
        let lists = requests.iter().filter(|it| it.verb == "list");
        Ok((lists.count() >= 8).then_some(requests))
    })
    .await?;
    let path = format!("/apis/{}/v1", bench.sandbox.group());
    let asked = requests.iter().filter(|it| it.uri == path);
    assert_eq!(asked.count(), 1, "{requests:#?}");
    operator.stop().await
}
