//! Requests that cover each rule of the API server once.

use std::time::Duration;

use kopf_simulation::server::{KindId, ListOptions, ObjectForm, Verb, WatchOptions};
use kopf_tests::{TestFailure, TestResult};
use serde_json::{Value, json};

use super::pair::Pair;
use super::requests::{
    delete, delete_if, get, json_patch, json_patch_status, list, list_by_fields, list_by_labels,
    merge, merge_status, object, page, put, put_status,
};

/// Sends requests for one kind.
pub(crate) async fn play(
    pair: &mut Pair,
    context: &str,
    kind: KindId,
    verbs: Vec<Verb>,
) -> TestResult {
    for (number, verb) in verbs.into_iter().enumerate() {
        let request = pair.request(kind, verb);
        pair.send(&format!("{context} {number}"), &request).await?;
    }
    Ok(())
}

pub(crate) fn create(pair: &Pair, kind: KindId, name: &str, rest: Value) -> Verb {
    let body = object(pair, kind, name, rest);
    Verb::Create { body }
}

/// A watch from the version of the last list.
fn watch_from_list() -> WatchOptions {
    WatchOptions {
        resource_version: Some("$list".to_owned()),
        ..WatchOptions::default()
    }
}

#[tokio::test]
async fn objects_are_created_changed_and_deleted_alike() -> TestResult {
    let mut pair = Pair::open("sim-objects").await?;
    for kind in [pair.kinds.widgets, pair.kinds.gadgets, pair.kinds.regions] {
        basics(&mut pair, kind).await?;
        preconditions(&mut pair, kind).await?;
        deletions(&mut pair, kind).await?;
        let last = create(&pair, kind, "zz", json!({}));
        play(&mut pair, "last", kind, vec![last]).await?;
        pair.compare_watch("all", kind, &watch_from_list(), Some("zz"))
            .await?;
    }
    pair.finish()
}

async fn basics(pair: &mut Pair, kind: KindId) -> TestResult {
    let spec = json!({"spec": {"size": 1, "any": {"a": null, "b": [1, null]}}});
    let verbs = vec![
        list(),
        get("a"),
        create(pair, kind, "a", spec.clone()),
        create(pair, kind, "a", spec),
        get("a"),
        create(
            pair,
            kind,
            "b",
            json!({"spec": {"size": 2}, "status": {"phase": "Early"}}),
        ),
        create(
            pair,
            kind,
            "c",
            json!({"metadata": {
                "uid": "mine", "generation": 7, "creationTimestamp": "2001-01-01T00:00:00Z",
                "deletionTimestamp": "2001-01-01T00:00:00Z", "finalizers": ["kopf.test/hold"],
                "labels": {"app": "c"}, "annotations": {"note": ""},
            }}),
        ),
        // Nothing changes: no new version.
        merge("a", json!({})),
        merge("a", json!({"spec": {"size": 1}})),
        merge("a", json!({"metadata": {"annotations": {"x": null}}})),
        merge(
            "a",
            json!({"metadata": {"annotations": {}, "labels": null}}),
        ),
        merge("a", json!({"spec": {"unknown": 1}})),
        // The generation counts the spec, and the status where it has no endpoint.
        merge("a", json!({"spec": {"size": 2}})),
        merge("a", json!({"metadata": {"labels": {"app": "a"}}})),
        merge(
            "a",
            json!({"metadata": {"generation": 70, "creationTimestamp": null}}),
        ),
        merge("a", json!({"status": {"phase": "Ready"}})),
        merge_status("a", json!({"status": {"phase": "Running"}})),
        merge_status("a", json!({"status": {"phase": "Running"}})),
        merge_status(
            "a",
            json!({"spec": {"size": 9}, "metadata": {"labels": {"app": "z"}}}),
        ),
        merge_status(
            "a",
            json!({"metadata": {"uid": "other"}, "status": {"n": 1}}),
        ),
        merge("a", json!({"status": null})),
        merge_status("a", json!({"status": null})),
        json_patch(
            "a",
            json!([{"op": "add", "path": "/spec/size", "value": 3}]),
        ),
        json_patch(
            "a",
            json!([{"op": "replace", "path": "/spec/size", "value": 3}]),
        ),
        json_patch("a", json!([{"op": "remove", "path": "/spec/nothing"}])),
        json_patch(
            "a",
            json!([{"op": "replace", "path": "/spec/nothing", "value": 1}]),
        ),
        json_patch("a", json!([{"op": "add", "path": "/spec/x/y", "value": 1}])),
        json_patch(
            "a",
            json!([{"op": "test", "path": "/spec/size", "value": 4}]),
        ),
        json_patch(
            "a",
            json!([{"op": "test", "path": "/spec/size", "value": 3}]),
        ),
        json_patch(
            "a",
            json!([
                {"op": "test", "path": "/metadata/finalizers", "value": null},
                {"op": "add", "path": "/metadata/finalizers", "value": ["kopf.test/hold"]},
            ]),
        ),
        json_patch(
            "a",
            json!([
                {"op": "add", "path": "/metadata/finalizers/-", "value": "kopf.test/more"},
                {"op": "add", "path": "/metadata/finalizers/0", "value": "kopf.test/first"},
            ]),
        ),
        json_patch(
            "a",
            json!([{"op": "remove", "path": "/metadata/finalizers/0"}]),
        ),
        json_patch(
            "a",
            json!([{"op": "move", "from": "/spec/size", "path": "/spec/any/size"}]),
        ),
        json_patch(
            "a",
            json!([{"op": "copy", "from": "/spec/any/size", "path": "/spec/size"}]),
        ),
        json_patch("a", json!([])),
        json_patch("a", json!({"spec": {}})),
        json_patch_status(
            "a",
            json!([{"op": "add", "path": "/status", "value": {"n": 2}}]),
        ),
        merge("a", json!({"metadata": {"finalizers": null}})),
        merge("missing", json!({"spec": {"size": 1}})),
        merge_status("missing", json!({"status": {}})),
        get("a"),
    ];
    play(pair, "basics", kind, verbs).await
}

async fn preconditions(pair: &mut Pair, kind: KindId) -> TestResult {
    let body = |pair: &Pair, name: &str, metadata: Value| {
        object(
            pair,
            kind,
            name,
            json!({"metadata": metadata, "spec": {"size": 5}}),
        )
    };
    let version = |text: &str| json!({"resourceVersion": text});
    let verbs = vec![
        get("b"),
        merge(
            "b",
            json!({"metadata": {"resourceVersion": "$version/b"}, "spec": {"size": 3}}),
        ),
        merge(
            "b",
            json!({"metadata": {"resourceVersion": "$first-version/b"}}),
        ),
        merge(
            "b",
            json!({"metadata": {"resourceVersion": "1"}, "spec": {"size": 4}}),
        ),
        merge(
            "b",
            json!({"metadata": {"resourceVersion": null}, "spec": {"size": 4}}),
        ),
        merge(
            "b",
            json!({"metadata": {"resourceVersion": "0"}, "spec": {"size": 4}}),
        ),
        merge(
            "b",
            json!({"metadata": {"uid": "$uid/b"}, "spec": {"size": 4}}),
        ),
        merge(
            "b",
            json!({"metadata": {"uid": "other"}, "spec": {"size": 5}}),
        ),
        merge("b", json!({"metadata": {"uid": null}, "spec": {"size": 6}})),
        merge(
            "b",
            json!({"metadata": {"uid": "$uid/a", "resourceVersion": "1"}}),
        ),
        merge("b", json!({"metadata": {"name": "other"}})),
        merge_status(
            "b",
            json!({"metadata": {"resourceVersion": "1"}, "status": {"n": 1}}),
        ),
        merge_status(
            "b",
            json!({
                "metadata": {"resourceVersion": "$version/b", "uid": "other"}, "status": {"n": 1},
            }),
        ),
        json_patch(
            "b",
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "$first-version/b"},
                {"op": "replace", "path": "/spec/size", "value": 7},
            ]),
        ),
        json_patch(
            "b",
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "$version/b"},
                {"op": "test", "path": "/metadata/uid", "value": "$uid/b"},
                {"op": "replace", "path": "/spec/size", "value": 7},
            ]),
        ),
        json_patch(
            "b",
            json!([{"op": "replace", "path": "/metadata/resourceVersion", "value": "1"}]),
        ),
        put("b", body(pair, "b", version("$version/b"))),
        put("b", body(pair, "b", version("$version/b"))),
        put("b", body(pair, "b", version("$first-version/b"))),
        put("b", body(pair, "b", json!({}))),
        put(
            "b",
            body(
                pair,
                "b",
                json!({"resourceVersion": "$version/b", "uid": "other"}),
            ),
        ),
        put("b", body(pair, "a", version("$version/b"))),
        put(
            "b",
            body(
                pair,
                "b",
                json!({"resourceVersion": "$version/b", "namespace": "other"}),
            ),
        ),
        put_status("b", body(pair, "b", version("$version/b"))),
        put_status(
            "b",
            object(
                pair,
                kind,
                "b",
                json!({
                    "metadata": {"resourceVersion": "$version/b"}, "status": {"n": 4},
                }),
            ),
        ),
        put("missing", body(pair, "missing", json!({}))),
        put("missing", body(pair, "missing", version("$version/b"))),
        create(
            pair,
            kind,
            "d",
            json!({"metadata": {"resourceVersion": "$version/b"}}),
        ),
        get("b"),
    ];
    play(pair, "preconditions", kind, verbs).await
}

async fn deletions(pair: &mut Pair, kind: KindId) -> TestResult {
    let held = json!({"metadata": {"finalizers": ["kopf.test/one", "kopf.test/two"]}});
    let verbs = vec![
        delete("missing"),
        delete_if("b", Some("other"), None),
        delete_if("b", None, Some("$first-version/b")),
        delete_if("b", Some("$uid/b"), Some("$version/b")),
        get("b"),
        // The same name, another object.
        create(pair, kind, "b", json!({"spec": {"size": 1}})),
        merge(
            "b",
            json!({"metadata": {"uid": "$first-uid/b"}, "spec": {"size": 2}}),
        ),
        merge_status(
            "b",
            json!({"metadata": {"resourceVersion": "$first-version/b"}, "status": {"n": 1}}),
        ),
        create(pair, kind, "held", held),
        delete("held"),
        delete("held"),
        create(pair, kind, "held", json!({})),
        merge("held", json!({"metadata": {"deletionTimestamp": null}})),
        merge("held", json!({"metadata": {"labels": {"seen": "yes"}}})),
        merge("held", json!({"spec": {"size": 3}})),
        merge_status("held", json!({"status": {"phase": "Leaving"}})),
        merge(
            "held",
            json!({"metadata": {"finalizers":
            ["kopf.test/one", "kopf.test/two", "kopf.test/three"]}}),
        ),
        merge(
            "held",
            json!({"metadata": {"finalizers": ["kopf.test/two"]}}),
        ),
        merge(
            "held",
            json!({"metadata": {"finalizers": ["kopf.test/one"]}}),
        ),
        json_patch(
            "held",
            json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": "$version/held"},
                {"op": "replace", "path": "/metadata/finalizers", "value": []},
                {"op": "add", "path": "/metadata/labels", "value": {"last": "change"}},
            ]),
        ),
        get("held"),
        merge("held", json!({"spec": {"size": 4}})),
        create(
            pair,
            kind,
            "held",
            json!({"metadata": {"finalizers": ["kopf.test/one"]}}),
        ),
        merge(
            "held",
            json!({"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}}),
        ),
        delete("held"),
        merge("held", json!({"metadata": {"finalizers": null}})),
        create(pair, kind, "held", json!({})),
        delete("held"),
        merge("c", json!({"metadata": {"finalizers": []}})),
        list(),
    ];
    // The list at the end is not the one that the watch starts from.
    let before_last = verbs.len() - 1;
    play(
        pair,
        "deletions",
        kind,
        verbs.into_iter().take(before_last).collect(),
    )
    .await
}

#[tokio::test]
async fn invalid_content_is_rejected_or_dropped_alike() -> TestResult {
    let mut pair = Pair::open("sim-content").await?;
    let kind = pair.kinds.widgets;
    let spec = |spec: Value| json!({"spec": spec});
    let mut verbs = vec![create(&pair, kind, "ok", spec(json!({"size": 1})))];
    let contents = [
        json!({"size": "large"}),
        json!({"size": 11}),
        json!({"size": -1}),
        json!({"size": 1.5}),
        json!({"size": 2.0}),
        json!({"size": null}),
        json!({"color": "blue"}),
        json!({"color": 1}),
        json!({"short": "x"}),
        json!({"short": "too long"}),
        json!({"list": [{"key": "a"}, {"n": 1}]}),
        json!({"list": [{"key": "a", "more": 1}]}),
        json!({"list": [{"key": "a"}, {"key": "b"}, {"key": "c"}, {"key": "d"}]}),
        json!({"list": "none"}),
        json!({"list": [{"key": null, "n": 1}]}),
        json!({"texts": {"a": "1", "b": null}}),
        json!({"texts": {"a": 1}}),
        json!({"maybe": null, "filled": null}),
        json!({"maybe": "x", "filled": "no"}),
        json!({"port": "http"}),
        json!({"port": 80}),
        json!({"port": true}),
        json!({"any": {"deep": {"er": [1, {"x": null}]}}}),
        json!({"any": "text"}),
        json!({"unknown": {"deep": 1}}),
    ];
    for (number, content) in contents.into_iter().enumerate() {
        let name = format!("content-{number}");
        verbs.push(create(&pair, kind, &name, spec(content.clone())));
        verbs.push(get(&name));
        verbs.push(merge("ok", spec(content)));
    }
    verbs.push(create(&pair, kind, "null-spec", json!({"spec": null})));
    verbs.push(create(&pair, kind, "text-spec", json!({"spec": "text"})));
    verbs.push(create(
        &pair,
        kind,
        "extra",
        json!({"extra": 1, "status": {"phase": 1}}),
    ));
    verbs.push(merge_status("ok", json!({"status": {"phase": 1}})));
    verbs.push(merge_status(
        "ok",
        json!({"status": {"free": {"a": [null]}}}),
    ));
    verbs.push(merge("ok", json!({"kind": "Other"})));
    verbs.push(merge("ok", json!({"kind": null})));
    verbs.push(merge("ok", json!([])));
    play(&mut pair, "content", kind, verbs).await?;
    let body = |pair: &Pair, field: &str, value: Value| {
        let mut body = object(pair, kind, "typed", json!({}));
        body[field] = value;
        Verb::Create { body }
    };
    let verbs = vec![
        body(&pair, "kind", json!("Other")),
        body(&pair, "apiVersion", json!("other/v1")),
        body(&pair, "metadata", json!({"name": "Bad_Name"})),
        body(&pair, "metadata", json!({})),
        body(
            &pair,
            "metadata",
            json!({"name": "typed", "namespace": "elsewhere"}),
        ),
    ];
    play(&mut pair, "types", kind, verbs).await?;
    pair.finish()
}

#[tokio::test]
async fn invalid_metadata_is_rejected_alike() -> TestResult {
    let mut pair = Pair::open("sim-metadata").await?;
    let kind = pair.kinds.widgets;
    let long = "x".repeat(262_144);
    let mut verbs = vec![create(&pair, kind, "ok", json!({}))];
    let contents = [
        json!({"labels": {"a": 1}}),
        json!({"labels": {"a": null}}),
        json!({"labels": {"bad key": "x"}}),
        json!({"labels": {"a": "bad value!"}}),
        json!({"labels": {"a": "x".repeat(64)}}),
        json!({"labels": {"a": ""}}),
        json!({"labels": []}),
        json!({"labels": {"a/b/c": "x"}}),
        json!({"labels": {"/b": "x"}}),
        json!({"labels": {"Bad/b": "x"}}),
        json!({"annotations": {"Upper/b": "any value at all\n"}}),
        json!({"annotations": {"bad key": "x"}}),
        json!({"annotations": {"a": true}}),
        json!({"annotations": {"a": long}}),
        json!({"annotations": {"a": "x".repeat(262_143)}}),
        json!({"finalizers": ["bad finalizer"]}),
        json!({"finalizers": ["kopf.test/a", "kopf.test/a"]}),
        json!({"finalizers": [1]}),
        json!({"finalizers": "kopf.test/a"}),
        json!({"finalizers": null}),
        json!({"unknown": "x"}),
        json!({"ownerReferences": []}),
    ];
    for (number, content) in contents.into_iter().enumerate() {
        let name = format!("meta-{number}");
        verbs.push(create(&pair, kind, &name, json!({"metadata": content})));
        verbs.push(merge("ok", json!({"metadata": content})));
    }
    let large = json!({"spec": {"any": {"text": "x".repeat(1_600_000)}}});
    verbs.push(create(&pair, kind, "large", large.clone()));
    verbs.push(merge("ok", large));
    let huge = json!({"spec": {"any": {"text": "x".repeat(3_200_000)}}});
    verbs.push(merge("ok", huge));
    verbs.push(merge(
        "ok",
        json!({"metadata": {"annotations": null, "finalizers": null}}),
    ));
    play(&mut pair, "metadata", kind, verbs).await?;
    pair.finish()
}

#[tokio::test]
async fn lists_and_watches_select_alike() -> TestResult {
    let mut pair = Pair::open("sim-lists").await?;
    let kind = pair.kinds.widgets;
    let label = |value: &str| json!({"metadata": {"labels": {"app": value}}});
    let mut verbs = vec![list()];
    for (name, app) in [
        ("a", "one"),
        ("b", "two"),
        ("c", "one"),
        ("d", "two"),
        ("e", "three"),
    ] {
        verbs.push(create(&pair, kind, name, label(app)));
    }
    play(&mut pair, "objects", kind, verbs).await?;
    let starts = Start::remember(&mut pair).await?;
    let mut verbs = vec![
        merge("a", json!({"spec": {"size": 1}})),
        merge("a", label("two")),
        merge("a", json!({"spec": {"size": 2}})),
        merge("a", label("one")),
        merge("b", json!({"metadata": {"labels": null}})),
        delete("c"),
        delete("d"),
        create(&pair, kind, "d", label("one")),
    ];
    for selector in [
        "app=one",
        "app==two",
        "app!=one",
        "app",
        "!app",
        "app in (one,three)",
        "app notin (one)",
        "app=one,app!=two",
        "other",
        "app in (",
        "app===one",
        "a b",
    ] {
        verbs.push(list_by_labels(selector));
    }
    for selector in [
        "metadata.name=a",
        "metadata.name!=a",
        "metadata.namespace=nowhere",
        "spec.size=1",
        "bad",
    ] {
        verbs.push(list_by_fields(selector));
    }
    verbs.push(Verb::List(ListOptions {
        form: ObjectForm::Metadata,
        ..ListOptions::default()
    }));
    verbs.extend([
        page(2, None),
        page(2, Some("$token")),
        page(10, Some("$token")),
    ]);
    verbs.extend([
        page(1, None),
        delete("a"),
        merge("e", label("four")),
        page(10, Some("$token")),
    ]);
    verbs.extend([page(100, None), page(0, None), page(1, Some("nonsense"))]);
    verbs.push(Verb::List(ListOptions {
        labels: Some("app".to_owned()),
        limit: Some(1),
        ..ListOptions::default()
    }));
    verbs.push(create(&pair, kind, "zz", label("one")));
    play(&mut pair, "lists", kind, verbs).await?;
    compare_watches(&mut pair, kind, &starts).await?;
    pair.finish()
}

/// The version that watches start from, under a name that later lists do not overwrite.
struct Start {
    marker: String,
}

impl Start {
    async fn remember(pair: &mut Pair) -> Result<Self, TestFailure> {
        let kind = pair.kinds.gadgets;
        let marker = "start".to_owned();
        let create = create(pair, kind, &marker, json!({}));
        play(pair, "start", kind, vec![create]).await?;
        Ok(Self { marker })
    }

    fn watch(&self) -> WatchOptions {
        WatchOptions {
            resource_version: Some(format!("$first-version/{}", self.marker)),
            ..WatchOptions::default()
        }
    }
}

async fn compare_watches(pair: &mut Pair, kind: KindId, start: &Start) -> TestResult {
    let plain = start.watch();
    pair.compare_watch("plain", kind, &plain, Some("zz"))
        .await?;
    for selector in ["app=one", "app!=two", "app", "app notin (two)"] {
        let options = WatchOptions {
            labels: Some(selector.to_owned()),
            ..plain.clone()
        };
        pair.compare_watch("labels", kind, &options, Some("zz"))
            .await?;
    }
    let options = WatchOptions {
        fields: Some("metadata.name=a".to_owned()),
        ..plain.clone()
    };
    pair.compare_watch("fields", kind, &options, None).await?;
    let options = WatchOptions {
        form: ObjectForm::Metadata,
        ..plain.clone()
    };
    pair.compare_watch("metadata", kind, &options, Some("zz"))
        .await?;
    for version in ["1", "nonsense"] {
        let options = WatchOptions {
            resource_version: Some(version.to_owned()),
            ..WatchOptions::default()
        };
        pair.compare_watch("version", kind, &options, None).await?;
    }
    for version in [None, Some("0".to_owned())] {
        let options = WatchOptions {
            resource_version: version,
            labels: Some("app=one".to_owned()),
            ..WatchOptions::default()
        };
        pair.compare_watch("no version", kind, &options, Some("zz"))
            .await?;
    }
    let options = WatchOptions {
        fields: Some("metadata.name=b".to_owned()),
        bookmarks: true,
        timeout: Some(Duration::from_secs(4)),
        ..plain
    };
    pair.compare_watch("bookmark", kind, &options, None).await
}

#[tokio::test]
async fn built_in_kinds_are_written_alike() -> TestResult {
    let mut pair = Pair::open("sim-built-in").await?;
    let (leases, config_maps) = (pair.kinds.leases, pair.kinds.config_maps);
    let spec = |holder: &str, time: &str| {
        json!({"spec": {
            "holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": time,
        }})
    };
    let time = "2026-01-01T00:00:00.000000Z";
    let verbs = vec![
        list(),
        create(&pair, leases, "l", spec("one", time)),
        create(&pair, leases, "l", spec("two", time)),
        create(
            &pair,
            leases,
            "bad-time",
            spec("two", "2026-01-01T00:00:00Z"),
        ),
        create(
            &pair,
            leases,
            "bad-type",
            json!({"spec": {"leaseDurationSeconds": "15"}}),
        ),
        create(
            &pair,
            leases,
            "bad-value",
            json!({"spec": {"leaseDurationSeconds": 0}}),
        ),
        create(
            &pair,
            leases,
            "extra",
            json!({"spec": {"other": 1}, "status": {"x": 1}}),
        ),
        merge("l", json!({"spec": {"holderIdentity": "two"}})),
        merge(
            "l",
            json!({"metadata": {"resourceVersion": "$first-version/l"}, "spec": {"leaseTransitions": 1}}),
        ),
        merge(
            "l",
            json!({"metadata": {"resourceVersion": "$version/l"}, "spec": {"leaseTransitions": 1}}),
        ),
        merge("l", json!({"spec": {"leaseTransitions": -1}})),
        merge("l", json!({"spec": {"renewTime": "yesterday"}})),
        merge(
            "l",
            json!({"spec": {"holderIdentity": null, "leaseDurationSeconds": 1}}),
        ),
        merge("l", json!({"spec": {"holderIdentity": null}})),
        merge("l", json!({"metadata": {"labels": {"a": 1}}})),
        merge_status("l", json!({"status": {}})),
        put("created", object(&pair, leases, "created", spec("x", time))),
        put("l", object(&pair, leases, "l", spec("x", time))),
        get("l"),
        list(),
        delete("l"),
        delete("l"),
    ];
    play(&mut pair, "leases", leases, verbs).await?;
    let data = |value: Value| json!({"data": {"key": value}});
    let verbs = vec![
        create(&pair, config_maps, "m", data(json!("text"))),
        create(&pair, config_maps, "bad", data(json!(1))),
        merge("m", data(json!("other"))),
        merge("m", data(json!("other"))),
        merge("m", data(json!(2))),
        merge("m", json!({"metadata": {"finalizers": ["kopf.test/hold"]}})),
        put("m", object(&pair, config_maps, "m", data(json!("third")))),
        put("none", object(&pair, config_maps, "none", data(json!("x")))),
        merge(
            "m",
            json!({"metadata": {"finalizers": ["kopf.test/hold"]}, "more": 1}),
        ),
        merge("m", json!({"metadata": {"uid": "other"}})),
        delete("m"),
        merge("m", json!({"data": null})),
        merge("m", json!({"metadata": {"finalizers": null}})),
        get("m"),
    ];
    play(&mut pair, "config maps", config_maps, verbs).await?;
    pair.finish()
}

#[tokio::test]
async fn objects_need_their_namespace() -> TestResult {
    let mut pair = Pair::open("sim-namespaces").await?;
    let (namespaces, widgets) = (pair.kinds.namespaces, pair.kinds.widgets);
    let mut create_elsewhere = pair.request(widgets, create(&pair, widgets, "a", json!({})));
    create_elsewhere.namespace = Some("nowhere".into());
    pair.send("no namespace", &create_elsewhere).await?;
    let mut list_elsewhere = pair.request(widgets, list());
    list_elsewhere.namespace = Some("nowhere".into());
    pair.send("no namespace", &list_elsewhere).await?;
    list_elsewhere.namespace = None;
    pair.send("all namespaces", &list_elsewhere).await?;
    let own = pair.namespace(widgets).unwrap_or_default();
    let verbs = vec![get(&own), get("missing"), delete("missing")];
    play(&mut pair, "namespaces", namespaces, verbs).await?;
    let verbs = vec![create(
        &pair,
        widgets,
        "held",
        json!({"metadata": {"finalizers": ["kopf.test/hold"]}}),
    )];
    play(&mut pair, "before", widgets, verbs).await?;
    play(&mut pair, "deleted", namespaces, vec![delete(&own)]).await?;
    let verbs = vec![
        create(&pair, widgets, "late", json!({})),
        merge("held", json!({"spec": {"size": 1}})),
    ];
    play(&mut pair, "after", widgets, verbs).await?;
    pair.finish()
}
