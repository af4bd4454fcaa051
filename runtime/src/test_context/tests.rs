//! Unit tests of handlers, as users write them.

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_core::children::options::ChildOptions;
use kube::ResourceExt as _;
use serde_json::json;

use super::*;
use crate::HandlerResult;
use crate::context::Old;
use crate::context::hierarchy::{Adoption, Existing, Naming, OwnerFlags};
use crate::context::memo_context::MemoContext;
use crate::context::object_context::ObjectContext;
use crate::context::reconcile::ChildOf;
use crate::handler::SubHandler;
use crate::handler::memo::Memo;

fn config(name: &str, value: &str) -> ConfigMap {
    let mut config = ConfigMap::default();
    config.metadata.name = Some(name.to_owned());
    config.metadata.namespace = Some("here".to_owned());
    config.data = Some([("key".to_owned(), value.to_owned())].into());
    config
}

async fn relabel(cx: &mut ChangeContext<ConfigMap>) -> HandlerResult {
    let known = |config: &ConfigMap| config.data.clone().unwrap_or_default()["key"].clone();
    let before = cx.old().known().map(known).unwrap_or_default();
    let label = format!("{before}-{}", known(cx.object()));
    let labels = cx.metadata_mut().labels.get_or_insert_default();
    labels.insert("seen".to_owned(), label);
    Ok(())
}

#[tokio::test]
async fn a_change_handler_is_tested_with_values() {
    let mut cx = TestContext::new(&config("one", "a")).change();
    assert_eq!((cx.reason(), cx.retry()), (Reason::Create, 0));
    assert_eq!((cx.name(), cx.namespace()), ("one", Some("here")));
    assert!(relabel(&mut cx).await.is_ok());
    assert_eq!(cx.draft().labels()["seen"], "-a");

    let updated = TestContext::new(&config("one", "b")).old(&config("one", "a"));
    let mut cx = updated.retry(2).handler("relabel").change();
    assert_eq!((cx.reason(), cx.retry()), (Reason::Update, 2));
    assert_eq!(cx.handler_id(), "relabel");
    assert_eq!(cx.diff().to_string(), r#"change data.key: "a" -> "b""#);
    assert!(relabel(&mut cx).await.is_ok());
    let changes = json!({"metadata": {"labels": {"seen": "a-b"}}});
    assert_eq!(cx.changes(), changes);
}

#[tokio::test]
async fn a_former_state_can_be_unknown() {
    let cx = TestContext::new(&config("one", "b")).old_hashed(&config("one", "a"));
    let cx = cx.field::<ConfigMap, String>("data.key");
    assert_eq!(cx.old_value(), Old::Unknown);
    assert_eq!(cx.new_value().map(String::as_str), Some("b"));
    assert!(matches!(cx.old(), Old::Unknown));
}

#[tokio::test]
async fn changes_contain_patches_and_edits() {
    let cx = TestContext::new(&json!({"status": {"list": [1]}})).change::<Value>();
    cx.patch().set("status.phase", "New");
    cx.edit(|object| object["status"]["list"] = json!([1, 2]));
    let changes = json!({"status": {"phase": "New", "list": [1, 2]}});
    assert_eq!(cx.changes(), changes);
}

#[tokio::test]
async fn memos_and_indices_are_those_of_the_test() {
    #[derive(Default)]
    struct Seen(u32);
    impl Memo<Value> for Seen {}
    struct ByName;
    impl Index for ByName {
        type Key = String;
        type Value = u32;
        const NAME: &'static str = "by_name";
    }
    let context = TestContext::new(&json!({})).memo(Seen(3));
    let context = context.index(ByName, [("a".to_owned(), 1)]);
    let cx = context
        .index(ByName, [("a".to_owned(), 2)])
        .change::<Value>();
    assert_eq!(cx.memo::<Seen>().0, 3);
    let mut values = cx.index(ByName).get("a");
    values.sort_unstable();
    assert_eq!(values, [1, 2]);
}

#[tokio::test]
async fn without_a_client_every_request_fails() {
    let cx = TestContext::new(&config("one", "a")).change::<ConfigMap>();
    let error = cx.apply(ConfigMap::default()).await.unwrap_err();
    let message = "a unit test without a client sends no requests: \
                   GET /api/v1/namespaces/here/configmaps/one";
    assert!(error.to_string().contains(message), "{error}");
    let cx = TestContext::new(&config("one", "a")).timer::<ConfigMap>();
    cx.patch().label("a", "b");
    let error = cx.write().await.unwrap_err();
    assert!(error.to_string().contains("sends no requests"), "{error}");
}

#[tokio::test]
async fn all_contexts_can_be_built() {
    let context = || TestContext::new(&config("one", "a"));
    let event = context().event::<ConfigMap>(WatchEventType::Added);
    assert_eq!(event.event_type(), WatchEventType::Added);
    let mut timer = context().timer::<ConfigMap>();
    timer.draft().immutable = Some(true);
    assert_eq!(timer.changes(), json!({"immutable": true}));
    let daemon = context().stopping().daemon::<ConfigMap>();
    assert!(!daemon.sleep(Duration::from_secs(60)).await);
    assert_eq!(daemon.object().name_any(), "one");
    let indexing = context().indexing::<ConfigMap>();
    assert_eq!(indexing.object().name_any(), "one");
    let validation = context().old(&config("one", "b")).validation::<ConfigMap>();
    assert_eq!(validation.operation(), Operation::Update);
    let mut mutation = context().mutation::<ConfigMap>();
    mutation.draft().immutable = Some(true);
    assert_eq!(mutation.operation(), Operation::Create);
    assert_eq!(mutation.changes(), json!({"immutable": true}));
}

/// The marker of a kind with ConfigMaps as children.
enum ConfigChildren {}

impl ChildOf<ConfigChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

#[tokio::test]
async fn a_child_in_another_namespace_is_refused_before_a_request() {
    let mut elsewhere = ConfigMap::default();
    elsewhere.metadata.namespace = Some("there".to_owned());
    let cx = TestContext::new(&config("one", "a")).change::<ConfigMap>();
    let error = cx.apply(elsewhere.clone()).await.unwrap_err();
    let message = "the ConfigMap one in the namespace there cannot have an owner in here";
    assert!(error.to_string().contains(message), "{error}");

    let cluster_scoped = json!({"metadata": {"name": "one", "uid": "u"}});
    let cx = TestContext::new(&cluster_scoped).change::<Value>();
    let error = cx.apply(elsewhere).await.unwrap_err();
    assert!(error.to_string().contains("sends no requests"), "{error}");
}

/// Applies two ConfigMaps, and reports one of them.
async fn keep_two(cx: &mut ReconcileContext<ConfigMap, ConfigChildren>) -> HandlerResult {
    cx.apply(ConfigMap::default()).await?;
    let applied = cx.apply(config("other", "b")).await?;
    cx.metadata_mut().labels = Some([("made".to_owned(), applied.name_any())].into());
    cx.call_again_after(Duration::from_secs(1));
    Ok(())
}

#[tokio::test]
async fn a_reconcile_function_is_tested_with_values() {
    let mut cx = TestContext::new(&config("one", "a")).reconcile();
    assert!(cx.children::<ConfigMap>().is_empty() && cx.reasons().is_empty());
    assert!(keep_two(&mut cx).await.is_ok());
    let applied = cx.applied();
    let names: Vec<_> = applied.iter().map(|it| &it["metadata"]["name"]).collect();
    assert_eq!(names, ["one", "other"]);
    assert_eq!(applied[1]["kind"], "ConfigMap");
    assert_eq!(cx.next_call_after(), Some(Duration::from_secs(1)));
    assert_eq!(applied[1]["data"], json!({"key": "b"}));
    let changes = json!({"metadata": {"labels": {"made": "other"}}});
    assert_eq!(cx.changes(), changes);
}

#[tokio::test]
async fn sub_handlers_run_in_a_test_too() {
    let mut cx = TestContext::new(&json!({})).change::<Value>();
    for item in ["a", "b"] {
        cx.sub(SubHandler::new(item), move |cx| {
            Box::pin(async move {
                cx.draft()["status"][item] = true.into();
                Ok(())
            })
        });
    }
    assert!(cx.run_subs().await.is_ok());
    assert_eq!(cx.changes(), json!({"status": {"a": true, "b": true}}));
}

#[tokio::test]
async fn blocking_work_runs_in_every_context() {
    let cx = TestContext::new(&json!({})).change::<Value>();
    assert_eq!(cx.blocking(|| 1 + 1).await.ok(), Some(2));
    let panicked: HandlerResult = cx.blocking(|| panic!("no way")).await;
    assert_eq!(panicked.unwrap_err().to_string(), "panicked: no way");
}

#[tokio::test]
async fn a_filter_sees_the_object_its_change_and_its_memo() {
    #[derive(Default)]
    struct Seen(u32);
    impl Memo<Value> for Seen {}

    let old = json!({"metadata": {"name": "one"}, "spec": {"size": 1}});
    let new = json!({"metadata": {"name": "one", "labels": {"tier": "gold"}}, "spec": {"size": 2}});
    let cx = || TestContext::new(&new).memo(Seen(7));
    assert!(cx().old(&old).filter(|cx: &FilterContext<'_, Value>| {
        assert_eq!((cx.name(), cx.label("tier")), (Some("one"), Some("gold")));
        assert_eq!(cx.reason(), Some(Reason::Update));
        assert_eq!(cx.memo::<Seen>().0, 7);
        assert_eq!(cx.param(), None);
        let size = |object: &Value| object["spec"]["size"].as_u64();
        assert_eq!(cx.old().known().and_then(size), Some(1));
        !cx.diff().is_empty() && size(cx.object()) == Some(2)
    }));
    let is_mine = |cx: &FilterContext<'_, Value>| {
        let is_me = cx.user().is_some_and(|user| user.username == "me");
        is_me && cx.operation() == Some(Operation::Update)
    };
    assert!(cx().old(&old).user("me").filter_review(is_mine));
    assert!(!cx().user("me").filter_review(is_mine), "it is a creation");
    assert!(!cx().old(&old).filter(is_mine), "it is no webhook");
    let is_new = |cx: &FilterContext<'_, Value>| cx.old() == Old::Absent;
    assert!(cx().filter(is_new));
    assert!(!cx().old(&old).filter(is_new));
    assert!(!cx().old_hashed(&old).filter(is_new));
}

#[tokio::test]
async fn a_filter_of_an_event_handler_sees_the_type_of_the_event() {
    let cx = || TestContext::new(&json!({"kind": "Widget"}));
    assert!(
        cx().filter_event(WatchEventType::Deleted, |cx: &FilterContext<'_, Value>| {
            assert_eq!((cx.reason(), cx.operation()), (None, None));
            assert_eq!(cx.resource().kind, "Widget");
            cx.event_type() == Some(WatchEventType::Deleted)
        })
    );
    assert!(cx().filter(|cx: &FilterContext<'_, Value>| cx.event_type().is_none()));
}

#[tokio::test]
async fn a_filter_of_a_webhook_sees_its_request() {
    let cx = || TestContext::new(&json!({"kind": "Widget"})).user("admin");
    let reviews = |operation| {
        move |cx: &FilterContext<'_, Value>| {
            assert_eq!((cx.event_type(), cx.subresource()), (None, None));
            assert_eq!(cx.resource().kind, "Widget");
            assert!(!cx.is_dry_run() && cx.client_certificate().is_none());
            assert!(cx.headers().is_some_and(|headers| headers.is_empty()));
            assert_eq!(cx.user().map(|user| user.username.as_str()), Some("admin"));
            cx.operation() == Some(operation)
        }
    };
    assert!(cx().filter_review(reviews(Operation::Create)));
    let old = json!({"kind": "Widget", "spec": {}});
    assert!(cx().old(&old).filter_review(reviews(Operation::Update)));
    assert!(cx().filter(|cx: &FilterContext<'_, Value>| cx.user().is_none()));
}

/// The owner of the children in the tests of hierarchies.
fn owner() -> TestContext {
    TestContext::new(&json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "metadata": {
            "name": "one",
            "namespace": "here",
            "uid": "u",
            "labels": {"app": "x"},
        },
    }))
}

/// Calls all helpers for children on a context, and returns a child for each call.
fn children(cx: &impl ObjectContext<Value>) -> Result<Value, serde_json::Error> {
    let of = |call: &dyn Fn(&mut Value) -> Result<(), serde_json::Error>| {
        let named = json!({"metadata": {"name": "own"}, "spec": {"template": {}}});
        let mut both = [json!({}), named];
        both.iter_mut().try_for_each(call)?;
        Ok::<_, serde_json::Error>(json!(both))
    };
    let flags = OwnerFlags::default();
    Ok(json!({
        "owner": cx.owner_reference(),
        "adopted": of(&|child| cx.adopt(child))?,
        "adopted_as": of(&|child| {
            let adoption = Adoption {
                naming: Naming::Strict,
                existing: Existing::Replaced,
                ..Adoption::default()
            };
            cx.adopt_as(child, &adoption)
        })?,
        "appended": of(&|child| cx.append_owner_reference(child, flags))?,
        "removed": of(&|child| {
            cx.append_owner_reference(child, flags)?;
            cx.remove_owner_reference(child)
        })?,
        "labelled": of(&|child| cx.label(child, Existing::Kept, &["spec.template"]))?,
        "named": of(&|child| cx.harmonize_naming(child, Existing::Kept, Naming::Strict))?,
        "renamed": of(&|child| cx.harmonize_naming(child, Existing::Replaced, Naming::Generated))?,
        "placed": of(&|child| cx.adjust_namespace(child, Existing::Kept))?,
    }))
}

#[tokio::test]
async fn the_helpers_for_children_are_the_same_on_all_contexts() -> Result<(), serde_json::Error> {
    let expected = children(&owner().change::<Value>())?;
    let reference = json!({
        "apiVersion": "kopf.dev/v1",
        "kind": "KopfExample",
        "name": "one",
        "uid": "u",
        "controller": true,
        "blockOwnerDeletion": true,
    });
    assert_eq!(expected["owner"], reference);
    assert_eq!(
        expected["adopted"][0]["metadata"],
        json!({
            "generateName": "one-",
            "namespace": "here",
            "labels": {"app": "x"},
            "ownerReferences": [reference],
        })
    );
    assert_eq!(expected["adopted"][1]["metadata"]["name"], "own");
    assert_eq!(expected["adopted_as"][1]["metadata"]["name"], "one");
    let appended = &expected["appended"][0]["metadata"]["ownerReferences"];
    assert_eq!(*appended, json!([reference]));
    assert!(
        expected["removed"][0]["metadata"]["ownerReferences"]
            .get(0)
            .is_none()
    );
    let labelled = &expected["labelled"][1];
    assert_eq!(labelled["metadata"]["labels"], json!({"app": "x"}));
    let template = &labelled["spec"]["template"]["metadata"];
    assert_eq!(template["labels"], json!({"app": "x"}));
    assert_eq!(expected["named"][0]["metadata"]["name"], "one");
    assert_eq!(expected["named"][1]["metadata"]["name"], "own");
    assert_eq!(expected["renamed"][1]["metadata"]["generateName"], "one-");
    assert_eq!(expected["placed"][0]["metadata"]["namespace"], "here");

    let event = owner().event::<Value>(WatchEventType::Added);
    assert_eq!(children(&event)?, expected);
    assert_eq!(
        children(&owner().field::<Value, Value>("metadata"))?,
        expected
    );
    assert_eq!(children(&owner().daemon::<Value>())?, expected);
    assert_eq!(children(&owner().timer::<Value>())?, expected);
    Ok(())
}

#[tokio::test]
async fn the_memo_is_the_same_in_all_contexts() {
    #[derive(Default)]
    struct Seen(u32);
    impl Memo<Value> for Seen {}

    fn seen(cx: &impl MemoContext<Value>) -> u32 {
        cx.memo::<Seen>().0
    }

    let cx = || TestContext::new(&json!({})).memo(Seen(7));
    assert_eq!(seen(&cx().change::<Value>()), 7);
    assert_eq!(seen(&cx().field::<Value, Value>("metadata")), 7);
    assert_eq!(seen(&cx().event::<Value>(WatchEventType::Added)), 7);
    assert_eq!(seen(&cx().daemon::<Value>()), 7);
    assert_eq!(seen(&cx().timer::<Value>()), 7);
    assert_eq!(seen(&cx().indexing::<Value>()), 7);
    assert_eq!(seen(&cx().validation::<Value>()), 7);
    assert_eq!(seen(&cx().mutation::<Value>()), 7);
    assert!(cx().filter(|cx: &FilterContext<'_, Value>| seen(cx) == 7));
    assert!(cx().filter_review(|cx: &FilterContext<'_, Value>| seen(cx) == 7));
    let event = WatchEventType::Added;
    assert!(cx().filter_event(event, |cx: &FilterContext<'_, Value>| seen(cx) == 7));
}
