//! What the watches and our own requests make of the store.

use kopf_core::children::OWNER_LABEL;
use kopf_core::children::options::ChildContents;
use serde_json::json;

use super::*;
use crate::children::RelatedRole;
use crate::client::resource::{ResourceSpec, Scope, StatusSubresource};

const OWNER: &str = "u-owner";

fn kind() -> WatchedKind {
    let spec = ResourceSpec {
        group: "",
        version: "v1",
        kind: "ConfigMap",
        plural: "configmaps",
        scope: Scope::Namespaced,
        status: StatusSubresource::Absent,
    };
    WatchedKind::new(
        KindIndex(0),
        spec,
        RelatedRole::Child(ChildContents::Metadata),
    )
}

fn child(version: &str) -> Value {
    json!({"metadata": {
        "name": "a", "namespace": "n", "uid": "u-child", "resourceVersion": version,
        "labels": {OWNER_LABEL: OWNER},
    }})
}

fn identity() -> ChildIdentity {
    ChildIdentity {
        kind: KindIndex(0),
        namespace: Some("n".into()),
        name: "a".into(),
    }
}

fn owner() -> Arc<ObjectKey> {
    Arc::new(ObjectKey {
        kind: KindIndex(1),
        uid: OWNER.into(),
        namespace: Some("n".into()),
        name: "one".into(),
    })
}

/// An event of the owner comes; `handled` are the kinds of children with handlers.
fn note_owner(store: &mut ChildStore, handled: &[KindIndex]) {
    let text: Box<RawValue> = serde_json::from_str("{}").unwrap();
    store.update_owner(&owner(), &handled.into(), &text.into(), None);
}

/// A store that has just applied a child.
fn applied() -> ChildStore {
    let mut store = ChildStore::default();
    note_owner(&mut store, &[]);
    store.begin_handling(OWNER);
    store.begin_apply(OWNER, &identity());
    let child = StoredChild::read(&kind(), &child("5").to_string(), "m")
        .unwrap()
        .0;
    store.end_apply(OWNER, &kind(), &identity(), Some((child, "digest")));
    store
}

/// The watch sends an event of the child; returns the number of owners to be handled.
fn watch(store: &mut ChildStore, event_type: WatchEventType, version: &str) -> usize {
    let text = serde_json::value::to_raw_value(&child(version)).unwrap();
    let key = ObjectKey {
        kind: KindIndex(0),
        uid: "u-child".into(),
        namespace: Some("n".into()),
        name: "a".into(),
    };
    let watch_event = WatchEvent {
        event_type,
        version: Some(ResourceVersion::new(version)),
        text: text.into(),
    };
    store.observe_child(&kind(), &key, &watch_event, "m").len()
}

fn news(store: &mut ChildStore) -> Vec<bool> {
    let news = store.take_news(OWNER).into_iter();
    news.map(|it| it.deleted).collect()
}

#[test]
fn a_child_that_a_list_lacks_before_the_watch_knew_it_calls_for_its_owner() {
    let mut store = applied();
    assert_eq!(store.drop_unlisted(&kind(), Some("other")).len(), 0);
    assert_eq!(store.drop_unlisted(&kind(), None).len(), 1);
    assert!(store.child(OWNER, &identity()).is_none());
}

/// The answer to an application arrives; returns whether the owner is to be handled.
fn answer(store: &mut ChildStore, version: &str) -> bool {
    let child = StoredChild::read(&kind(), &child(version).to_string(), "m")
        .unwrap()
        .0;
    let requeue = store.end_apply(OWNER, &kind(), &identity(), Some((child, "digest")));
    requeue.is_some()
}

#[test]
fn a_child_that_is_deleted_before_the_answer_to_its_application_comes_is_gone() {
    let mut store = applied();
    store.begin_apply(OWNER, &identity());
    watch(&mut store, WatchEventType::Modified, "6");
    watch(&mut store, WatchEventType::Deleted, "7");
    assert!(answer(&mut store, "6"), "the owner makes it anew");
    assert!(store.child(OWNER, &identity()).is_none());
}

#[test]
fn a_child_that_a_list_lacks_before_the_answer_to_its_application_comes_may_be_gone() {
    let mut store = applied();
    store.drop_unlisted(&kind(), None);
    store.begin_apply(OWNER, &identity());
    store.drop_unlisted(&kind(), None);
    assert!(answer(&mut store, "6"), "the owner looks for it");
    assert!(store.child(OWNER, &identity()).is_none());
}

#[test]
fn a_child_that_was_deleted_and_is_wanted_again_is_made_anew_once_it_is_gone() {
    let mut store = applied();
    watch(&mut store, WatchEventType::Added, "5");
    let (owner, identity) = (OWNER, identity());
    assert!(store.is_in_sync(owner, &identity, "digest", &Value::Null));
    store.note_ending(owner, &identity, "u-child", ChildEnding::Pruned);
    assert!(!store.is_in_sync(owner, &identity, "digest", &Value::Null));
    let calls = watch(&mut store, WatchEventType::Deleted, "6");
    assert_eq!(calls, 1, "its end calls for the owner");
}

#[test]
fn a_child_that_the_watch_knows_stays_until_the_watch_tells_of_its_end() {
    for version in ["4", "5"] {
        let mut store = applied();
        watch(&mut store, WatchEventType::Listed, version);
        assert_eq!(store.drop_unlisted(&kind(), None).len(), 0, "{version}");
    }
}

#[test]
fn events_are_kept_for_kinds_of_children_with_handlers_only() {
    for (handled, kept) in [
        (vec![], vec![]),
        (vec![KindIndex(7)], vec![]),
        (vec![KindIndex(0)], vec![false, false, true]),
    ] {
        let mut store = ChildStore::default();
        note_owner(&mut store, &handled);
        watch(&mut store, WatchEventType::Added, "5");
        watch(&mut store, WatchEventType::Modified, "6");
        watch(&mut store, WatchEventType::Deleted, "7");
        assert_eq!(news(&mut store), kept, "{handled:?}");
    }
}

#[test]
fn children_that_come_before_their_owner_are_its_news_once() {
    let mut store = ChildStore::default();
    watch(&mut store, WatchEventType::Listed, "5");
    watch(&mut store, WatchEventType::Modified, "6");
    assert!(news(&mut store).is_empty(), "its owner is not known");
    for expected in [vec![false], vec![]] {
        note_owner(&mut store, &[KindIndex(0)]);
        assert_eq!(news(&mut store), expected);
    }
}

#[test]
fn children_that_a_list_brings_before_their_owner_is_handled_do_not_call_for_it() {
    let mut store = ChildStore::default();
    note_owner(&mut store, &[KindIndex(0)]);
    assert_eq!(watch(&mut store, WatchEventType::Listed, "5"), 0);
    assert_eq!(news(&mut store), [false], "its own event brings them");
    store.begin_handling(OWNER);
    assert_eq!(watch(&mut store, WatchEventType::Modified, "6"), 1);
}
