//! Selectors of kinds: by category, group, name, and as kinds are defined and undefined.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use kopf_runtime::{
    ChangeHandler, DaemonHandler, DynamicObject, Error, EventHandler, FieldHandler, HandlerError,
    Index, IndexHandler, Memo, Namespaces, On, Operator, Resource, ResourceHandlers, ResourceSpec,
    RunningOperator, Selector, TextTest, TimerHandler,
};
use kopf_tests::audit::AuditedRequest;
use kopf_tests::{Objects, TestFailure, TestResult, try_eventually};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts, LAST_HANDLED};

/// Defines a kind with names and categories of its own, in the group of the sandbox or below it.
struct KindDefinition<'a> {
    kind: &'a str,
    below: &'a str,
    short_name: &'a str,
    category: &'a str,
}

impl KindDefinition<'_> {
    async fn apply(&self, fixture: &HandlerFixture) -> Result<Objects, TestFailure> {
        let Self {
            kind,
            below,
            short_name,
            category,
        } = self;
        let singular = kind.to_lowercase();
        let group = format!("{below}{}", fixture.sandbox.group());
        fixture
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
        fixture.sandbox.objects(&format!("{group}/v1"), kind).await
    }
}

async fn define(
    fixture: &HandlerFixture,
    kind: &str,
    category: &str,
) -> Result<Objects, TestFailure> {
    let definition = KindDefinition {
        kind,
        below: "",
        short_name: &kind.to_lowercase()[..2],
        category,
    };
    definition.apply(fixture).await
}

async fn definitions(fixture: &HandlerFixture) -> Result<Api<DynamicObject>, TestFailure> {
    let definitions = fixture
        .sandbox
        .objects("apiextensions.k8s.io/v1", "CustomResourceDefinition");
    Ok(definitions.await?.api().clone())
}

async fn undefine(fixture: &HandlerFixture, plural: &str) -> TestResult {
    let name = format!("{plural}.{}", fixture.sandbox.group());
    let definitions = definitions(fixture).await?;
    definitions.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}

/// An event handler that reports each watch event with the kind of its object.
fn reporting(
    fixture: &HandlerFixture,
    selector: Selector,
    handler: EventHandler,
) -> ResourceHandlers {
    Resource::<DynamicObject, HandlerScripts>::selected(selector, &fixture.scripts)
        .event(handler, |scripts, cx| {
            Box::pin(async move {
                let (plural, kind) = (&cx.resource().plural, &cx.object().types);
                let kind = kind.as_ref().map_or("no kind", |types| &types.kind);
                scripts.report(format!("{} {kind} {plural} {}", cx.event_type(), cx.name()));
                Ok(())
            })
        })
        .build()
}

fn in_sandbox(fixture: &HandlerFixture, operator: Operator) -> Operator {
    operator.namespaces(Namespaces::Only(vec![
        fixture.sandbox.namespace().to_owned(),
    ]))
}

async fn ready(
    fixture: &HandlerFixture,
    resource: ResourceHandlers,
) -> Result<RunningOperator, TestFailure> {
    let operator = in_sandbox(fixture, Operator::new("selecting").resource(resource));
    let running = operator.spawn(fixture.sandbox.client());
    running.ready().await?;
    Ok(running)
}

#[tokio::test]
async fn the_kinds_of_a_category_are_watched_as_they_are_defined_and_undefined() -> TestResult {
    let mut fixture = HandlerFixture::new("category").await?;
    let category = fixture.sandbox.namespace().to_owned();
    let dolls = define(&fixture, "Doll", &category).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let operator = ready(
        &fixture,
        reporting(&fixture, selector, EventHandler::new("spy")),
    )
    .await?;
    assert_eq!(fixture.next_report().await, "LISTED Doll dolls ann");

    let kites = define(&fixture, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    let seen = fixture.next_report().await;
    let new = ["LISTED Kite kites red", "ADDED Kite kites red"];
    assert!(new.contains(&&*seen), "{seen}");
    let others = define(&fixture, "Other", "elsewhere").await?;
    others.create("unseen", json!({"spec": {}})).await?;

    undefine(&fixture, "dolls").await?;
    assert_eq!(fixture.next_report().await, "DELETED Doll dolls ann");
    kites.delete("red").await?;
    assert_eq!(fixture.next_report().await, "DELETED Kite kites red");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_is_unwatched_when_it_leaves_the_category_and_watched_when_it_returns() -> TestResult
{
    let mut fixture = HandlerFixture::new("leaves").await?;
    let category = fixture.sandbox.namespace().to_owned();
    let dolls = define(&fixture, "Doll", &category).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let operator = ready(
        &fixture,
        reporting(&fixture, selector, EventHandler::new("spy")),
    )
    .await?;
    assert_eq!(fixture.next_report().await, "LISTED Doll dolls ann");
    let definitions = definitions(&fixture).await?;
    let name = format!("dolls.{}", fixture.sandbox.group());
    let set = async |categories: &[&str]| {
        let patch = json!({"spec": {"names": {"categories": categories}}});
        let params = PatchParams::default();
        definitions
            .patch(&name, &params, &Patch::Merge(patch))
            .await
    };
    set(&[]).await?;
    // The API server may end the first watch of a kind; then it is listed again.
    let mut report = fixture.next_report().await;
    while report == "LISTED Doll dolls ann" {
        report = fixture.next_report().await;
    }
    assert_eq!(report, "DELETED Doll dolls ann");
    set(&[&category]).await?;
    assert_eq!(fixture.next_report().await, "LISTED Doll dolls ann");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn a_kind_is_selected_by_its_short_name_and_handlers_get_its_discovery_data() -> TestResult {
    let mut fixture = HandlerFixture::new("short").await?;
    let short_name = format!("d{}", &fixture.sandbox.namespace()[6..]);
    let definition = KindDefinition {
        kind: "Doll",
        below: "",
        short_name: &short_name,
        category: "toys",
    };
    let dolls = definition.apply(&fixture).await?;
    let selected = Resource::<DynamicObject, HandlerScripts>::selected(
        Selector::short_name(&short_name),
        &fixture.scripts,
    )
    .event(EventHandler::new("spy"), |scripts, cx| {
        Box::pin(async move {
            scripts.report(format!("{:?}", cx.resource()));
            Ok(())
        })
    })
    .build();
    let operator = ready(&fixture, selected).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let seen = fixture.next_report().await;
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
        group: fixture.sandbox.group().to_owned(),
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
async fn handlers_of_a_declared_kind_get_its_discovery_data() -> TestResult {
    let mut fixture = HandlerFixture::new("described").await?;
    let resource = fixture.resource();
    let resource = resource.change(
        ChangeHandler::new("create_fn", On::create()),
        |scripts, cx| {
            Box::pin(async move {
                let resource = cx.resource();
                let (verbs, singular) = (resource.verbs.len(), &resource.singular);
                scripts.report(format!("{singular} {verbs} {}", resource.preferred));
                Ok(())
            })
        },
    );
    let resource = resource.timer(
        TimerHandler::every("tick", Duration::from_secs(3600)),
        |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("ticks for {}", cx.resource().singular));
                Ok(())
            })
        },
    );
    let operator = fixture.start(resource.build()).await?;
    fixture.create("one", 1).await?;
    let mut seen = [fixture.next_report().await, fixture.next_report().await];
    seen.sort();
    assert_eq!(seen, ["ticks for widget", "widget 8 true"]);
    operator.stop().await
}

#[tokio::test]
async fn selecting_everything_watches_all_kinds_but_events() -> TestResult {
    let mut fixture = HandlerFixture::new("all-kinds").await?;
    let label = json!({"metadata": {"labels": {"only-this": "yes"}}});
    let handler = EventHandler::new("spy").label("only-this", TextTest::Present);
    let operator = ready(
        &fixture,
        reporting(&fixture, Selector::everything(), handler),
    )
    .await?;
    let event = json!({
        "metadata": label["metadata"],
        "involvedObject": {"namespace": fixture.sandbox.namespace(), "name": "one", "kind": "Widget"},
    });
    let events = fixture.sandbox.objects("v1", "Event").await?;
    events.create("never", event).await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    maps.create("map", label.clone()).await?;
    assert_eq!(
        fixture.next_report().await,
        "ADDED ConfigMap configmaps map"
    );
    let accounts = fixture.sandbox.objects("v1", "ServiceAccount").await?;
    accounts.create("account", label.clone()).await?;
    assert_eq!(
        fixture.next_report().await,
        "ADDED ServiceAccount serviceaccounts account"
    );
    fixture.objects.create("one", label).await?;
    assert_eq!(fixture.next_report().await, "ADDED Widget widgets one");
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_ambiguous_or_missing_selection_is_reported_until_resolved() -> TestResult {
    let mut fixture = HandlerFixture::new("ambiguous").await?;
    let kind = format!("Doll{}", &fixture.sandbox.namespace()[10..]);
    let twin = |below| KindDefinition {
        kind: &kind,
        below,
        short_name: "dl",
        category: "toys",
    };
    let selected = reporting(&fixture, Selector::kind(&kind), EventHandler::new("spy"));
    let operator = in_sandbox(&fixture, Operator::new("selecting").resource(selected));
    let operator = operator.spawn(fixture.sandbox.client());
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
    let first = twin("").apply(&fixture).await?;
    operator.ready().await?;
    let second = twin("other.").apply(&fixture).await?;
    let plural = format!("{}s", kind.to_lowercase());
    let group = fixture.sandbox.group();
    problem(&format!(
        "it could be any of {plural}.{group}, {plural}.other.{group}, so that none is served"
    ))
    .await?;
    second.create("unseen", json!({"spec": {}})).await?;
    undefine(&fixture, &plural).await?;
    let _ = first;
    operator.ready().await?;
    let seen = fixture.next_report().await;
    assert_eq!(seen, format!("LISTED {kind} {plural} unseen"));
    operator.stop().await?;
    Ok(())
}

/// The memo of the declared kind.
#[derive(Default)]
struct DeclaredMemo(std::sync::atomic::AtomicU32);

/// The memo of the selection.
#[derive(Default)]
struct SelectedMemo(std::sync::atomic::AtomicU32);

impl Memo<Value> for DeclaredMemo {}
impl Memo<DynamicObject> for SelectedMemo {}

#[tokio::test]
async fn one_watch_serves_a_declared_kind_and_a_selection_of_it() -> TestResult {
    use std::sync::atomic::Ordering::Relaxed;
    let mut fixture = HandlerFixture::new("both").await?;
    let declared = fixture
        .resource()
        .memo::<DeclaredMemo>()
        .change(
            ChangeHandler::new("declared", On::create()),
            |scripts, cx| {
                Box::pin(async move {
                    cx.memo::<DeclaredMemo>().0.fetch_add(1, Relaxed);
                    cx.set_result(&"declared")?;
                    scripts.report(format!(
                        "declared {}",
                        cx.memo::<DeclaredMemo>().0.load(Relaxed)
                    ));
                    Ok(())
                })
            },
        )
        .build();
    let group = Selector::everything().in_group(fixture.sandbox.group());
    let selected = Resource::<DynamicObject, HandlerScripts>::selected(group, &fixture.scripts)
        .memo::<SelectedMemo>()
        .change(
            ChangeHandler::new("selected", On::create()),
            |scripts, cx| {
                Box::pin(async move {
                    cx.memo::<SelectedMemo>().0.fetch_add(10, Relaxed);
                    cx.set_result(&"selected")?;
                    scripts.report(format!(
                        "selected {}",
                        cx.memo::<SelectedMemo>().0.load(Relaxed)
                    ));
                    Ok(())
                })
            },
        )
        .build();
    let operator = Operator::new("both").resource(declared).resource(selected);
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "declared 1");
    assert_eq!(fixture.next_report().await, "selected 10");
    let one = fixture.wait_until_handled("one", 1).await?;
    let results = json!({"declared": "declared", "selected": "selected"});
    assert_eq!(one.data["status"], results);
    let requests = fixture.sandbox.requests_of(&operator.user).await?;
    let watches =
        |it: &&AuditedRequest| it.verb == "watch" && it.resource.as_deref() == Some("widgets");
    let lists =
        |it: &&AuditedRequest| it.verb == "list" && it.resource.as_deref() == Some("widgets");
    assert_eq!(requests.iter().filter(lists).count(), 1);
    assert!(requests.iter().filter(watches).count() <= 1);
    operator.stop().await
}

#[tokio::test]
async fn a_declared_kind_that_is_defined_later_is_handled_by_declaration_and_selection()
-> TestResult {
    let mut fixture = HandlerFixture::new("later").await?;
    let spec = ResourceSpec {
        kind: "Gizmo",
        plural: "gizmos",
        ..fixture.spec()
    };
    let declared = Resource::<Value, HandlerScripts>::new(spec, &fixture.scripts)
        .event(EventHandler::new("declared"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("declared {}", cx.name()));
                Ok(())
            })
        })
        .build();
    let group = Selector::everything().in_group(fixture.sandbox.group());
    let selected = reporting(&fixture, group, EventHandler::new("spy"));
    let operator = Operator::new("both").resource(declared).resource(selected);
    let operator = in_sandbox(&fixture, operator).spawn(fixture.sandbox.client());
    try_eventually("the missing declared kind is reported", async || {
        let missed = "Gizmo: the API server serves no such resource (yet)".to_owned();
        Ok(operator.problems().contains(&missed).then_some(()))
    })
    .await?;
    let gizmos = fixture.sandbox.define("Gizmo").await?;
    operator.ready().await?;
    gizmos.create("one", json!({"spec": {}})).await?;
    let seen = [fixture.next_report().await, fixture.next_report().await];
    assert_eq!(seen, ["declared one", "ADDED Gizmo gizmos one"]);
    undefine(&fixture, "gizmos").await?;
    let seen = [fixture.next_report().await, fixture.next_report().await];
    assert_eq!(seen, ["declared one", "DELETED Gizmo gizmos one"]);
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn equal_handler_ids_of_overlapping_declarations_are_rejected() -> TestResult {
    let mut fixture = HandlerFixture::new("shared-ids").await?;
    let declared = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let selected = |selector: Selector| {
        Resource::<DynamicObject, HandlerScripts>::selected(selector, &fixture.scripts)
            .change(
                ChangeHandler::new("create_fn", On::create()),
                |scripts, cx| Box::pin(async move { scripts.report_call(cx) }),
            )
            .build()
    };
    let overlapping = selected(Selector::category("toys"));
    let operator = Operator::new("shared")
        .resource(declared)
        .resource(overlapping);
    let refused = operator
        .run(fixture.sandbox.client(), std::future::pending())
        .await;
    let error = refused.expect_err("the ids are the same");
    assert!(matches!(error, Error::SharedId { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "Widget and the selection {category: toys} may match the same objects, \
         and both have a handler `create_fn`"
    );

    let declared = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let elsewhere = selected(Selector::everything().in_group("elsewhere.kopf.test"));
    let operator = Operator::new("apart")
        .resource(declared)
        .resource(elsewhere);
    let operator = fixture.start_operator(operator).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
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
async fn all_kinds_of_handlers_work_on_selections() -> TestResult {
    let mut fixture = HandlerFixture::new("sorts").await?;
    let category = fixture.sandbox.namespace().to_owned();
    let dolls = define(&fixture, "Doll", &category).await?;
    let kites = define(&fixture, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    let selector = Selector::category(&category);
    let resource = Resource::<DynamicObject, HandlerScripts>::selected(selector, &fixture.scripts)
        .index(ByKind, IndexHandler::new(), |_, cx| {
            Box::pin(async move { Ok(vec![(cx.resource().kind.clone(), cx.name().to_owned())]) })
        })
        .change(
            ChangeHandler::new("changed", On::create().or(On::delete())),
            |scripts, cx| {
                Box::pin(async move {
                    let kind = &cx.resource().kind;
                    let kites = cx.index(ByKind).get("Kite").len();
                    scripts.report(format!("{kind} {} with {kites} kites", cx.reason()));
                    Ok(())
                })
            },
        )
        .field::<Value>(FieldHandler::new("sized", "spec.size"), |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("size {:?}", cx.new_value()));
                Ok(())
            })
        })
        .daemon(
            DaemonHandler::new("follow").label("followed", TextTest::Present),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report(format!("follows {}", cx.resource().singular));
                    cx.stop().wait().await;
                    Ok(())
                })
            },
        )
        .build();
    let operator = ready(&fixture, resource).await?;
    assert_eq!(fixture.next_report().await, "Kite create with 1 kites");
    let body = json!({"metadata": {"labels": {"followed": "yes"}}, "spec": {"size": {"any": 1}}});
    dolls.create("ann", body).await?;
    let mut seen = BTreeSet::new();
    for _ in 0..3 {
        seen.insert(fixture.next_report().await);
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
    assert_eq!(fixture.next_report().await, "Doll delete with 1 kites");
    dolls.wait_gone("ann").await?;
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn objects_of_a_kind_that_is_being_deleted_are_handled_to_the_end() -> TestResult {
    let mut fixture = HandlerFixture::new("undefined-held").await?;
    let category = fixture.sandbox.namespace().to_owned();
    let dolls = define(&fixture, "Doll", &category).await?;
    let selector = Selector::category(&category);
    let resource = Resource::<DynamicObject, HandlerScripts>::selected(
        selector,
        &Arc::clone(&fixture.scripts),
    )
    .change(
        ChangeHandler::new("deleted", On::delete()),
        |scripts, cx| {
            Box::pin(async move {
                let released = scripts.wait_for_release().now_or_never();
                let Some(()) = released else {
                    return Err(HandlerError::temporary_after(
                        Duration::from_secs(1),
                        "not yet",
                    ));
                };
                scripts.report(format!("{} {}", cx.reason(), cx.name()));
                Ok(())
            })
        },
    )
    .event(EventHandler::new("spy"), |scripts, cx| {
        Box::pin(async move {
            if cx.resource().kind == "Kite" {
                scripts.report(format!("sees {}", cx.name()));
            }
            Ok(())
        })
    })
    .build();
    let operator = ready(&fixture, resource).await?;
    dolls.create("ann", json!({"spec": {}})).await?;
    let held = |it: &DynamicObject| !it.finalizers().is_empty();
    dolls.wait_until("ann", "it is held", held).await?;
    undefine(&fixture, "dolls").await?;
    let group_version = format!("{}/v1", fixture.sandbox.group());
    try_eventually(
        "discovery shows that the kind is being deleted",
        async || {
            let client = fixture.sandbox.client();
            let list = client.list_api_group_resources(&group_version).await?;
            let dolls = list.resources.into_iter().find(|it| it.name == "dolls");
            let ends = dolls.is_some_and(|it| !it.verbs.contains(&"patch".to_owned()));
            Ok(ends.then_some(()))
        },
    )
    .await?;
    // After this event the operator has repeated discovery.
    let kites = define(&fixture, "Kite", &category).await?;
    kites.create("red", json!({"spec": {}})).await?;
    assert_eq!(fixture.next_report().await, "sees red");
    fixture.scripts.release();
    let mut seen = fixture.next_report().await;
    while seen == "sees red" {
        seen = fixture.next_report().await;
    }
    assert_eq!(seen, "delete ann");
    let definitions = definitions(&fixture).await?;
    let name = format!("dolls.{}", fixture.sandbox.group());
    try_eventually("the definition is gone", async || {
        Ok(definitions.get_opt(&name).await?.is_none().then_some(()))
    })
    .await?;
    operator.stop().await?;
    Ok(())
}

#[tokio::test]
async fn missing_permissions_for_one_kind_are_reported_and_do_not_stop_others() -> TestResult {
    let mut fixture = HandlerFixture::new("forbidden").await?;
    let category = fixture.sandbox.namespace().to_owned();
    let dolls = define(&fixture, "Doll", &category).await?;
    define(&fixture, "Kite", &category).await?;
    let user = fixture.sandbox.user("forbidden");
    fixture
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
    let selected = reporting(
        &fixture,
        Selector::category(&category),
        EventHandler::new("spy"),
    );
    let operator = in_sandbox(&fixture, Operator::new("selecting").resource(selected));
    let operator = operator.spawn(fixture.sandbox.control_plane().client(&user).await?);
    dolls.create("ann", json!({"spec": {}})).await?;
    let seen = fixture.next_report().await;
    assert!(seen.ends_with("Doll dolls ann"), "{seen}");
    let group = fixture.sandbox.group();
    let kites = format!(
        "kites.{group} in {}: listing failed",
        fixture.sandbox.namespace()
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
async fn many_watches_of_a_kind_share_one_discovery_request() -> TestResult {
    let mut fixture = HandlerFixture::new("discovery-requests").await?;
    let names: Vec<String> = (0..8).map(|number| format!("none-{number}")).collect();
    let identity = fixture.new_user();
    let resource = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("asking").resource(resource);
    let operator = operator.namespaces(Namespaces::Only(names));
    let operator = fixture.start_as(identity, operator).await?;
    let requests = try_eventually("all streams have listed", async || {
        let requests = fixture.sandbox.requests_of(&operator.user).await?;
        // Other tests define peerings, which are listed, too.
        let widgets = requests
            .iter()
            .filter(|it| it.resource.as_deref() == Some("widgets"));
        let lists = widgets.filter(|it| it.verb == "list");
        Ok((lists.count() >= 8).then_some(requests))
    })
    .await?;
    let path = format!("/apis/{}/v1", fixture.sandbox.group());
    let discovery = requests.iter().filter(|it| it.uri == path);
    assert_eq!(discovery.count(), 1, "{requests:#?}");
    operator.stop().await
}
