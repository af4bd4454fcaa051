//! The rules of the simulated API server that operators depend on most.
//!
//! `cargo test -p kopf-tests --test simulation` holds all of them against the real one.

use std::sync::Arc;

use kopf_simulation::server::{
    AdmissionAction, AdmissionRule, AdmissionStage, AnswerBody, ApiAnswer, ApiRequest, ApiServer,
    DeletePreconditions, Endpoint, KindDefinition, KindId, ListOptions, SimulatedPatch, Verb,
    WatchOptions, WatchPoll,
};
use serde_json::{Value, json};

struct Fixture {
    server: ApiServer,
    kind: KindId,
}

impl Fixture {
    fn new() -> Self {
        let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let mut server = ApiServer::new();
        server.create_namespace("default");
        let kind = server.define(KindDefinition::from_crd(&json!({"spec": {
            "group": "kopf.test", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "subresources": {"status": {}}, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": any, "status": any}},
            }}],
        }})));
        Self { server, kind }
    }

    fn send(&mut self, verb: Verb) -> ApiAnswer {
        self.server.handle(&ApiRequest {
            user: "person".into(),
            kind: self.kind,
            namespace: Some("default".into()),
            verb,
        })
    }

    fn create(&mut self, name: &str, metadata: &Value) -> ApiAnswer {
        let mut body = json!({"apiVersion": "kopf.test/v1", "kind": "Widget",
            "metadata": metadata, "spec": {"size": 1}});
        body["metadata"]["name"] = json!(name);
        self.send(Verb::Create { body })
    }

    fn merge(&mut self, name: &str, endpoint: Endpoint, patch: Value) -> ApiAnswer {
        let patch = SimulatedPatch::Merge(patch);
        let name = name.into();
        self.send(Verb::Patch {
            name,
            endpoint,
            patch,
        })
    }

    fn delete(&mut self, name: &str) -> ApiAnswer {
        self.send(Verb::Delete {
            name: name.into(),
            preconditions: DeletePreconditions::default(),
        })
    }

    fn page(&mut self, token: Option<String>) -> ApiAnswer {
        self.send(Verb::List(ListOptions {
            limit: Some(1),
            continue_token: token,
            ..ListOptions::default()
        }))
    }

    /// The events since a version, as type and name.
    fn events(&self, version: u64, labels: Option<&str>) -> Vec<String> {
        let options = WatchOptions {
            resource_version: Some(version.to_string()),
            labels: labels.map(str::to_owned),
            ..WatchOptions::default()
        };
        let namespace: Arc<str> = "default".into();
        let opened = self
            .server
            .watch("person", self.kind, Some(&namespace), &options);
        let mut watch = opened.expect("the watch is opened");
        let mut events = Vec::new();
        while let WatchPoll::Event(event) = self.server.poll(&mut watch) {
            let name = event.object["metadata"]["name"].as_str().unwrap_or("-");
            events.push(format!("{} {name}", event.event_type.name()));
        }
        events
    }
}

fn object(answer: &ApiAnswer) -> &Value {
    answer.as_object().expect("an object")
}

#[test]
fn each_endpoint_writes_its_own_part() {
    let mut fixture = Fixture::new();
    fixture.create("a", &json!({}));
    let both = json!({"spec": {"size": 2}, "status": {"phase": "Ready"}});
    let body = fixture.merge("a", Endpoint::Object, both.clone());
    assert_eq!(object(&body)["spec"]["size"], 2);
    assert_eq!(object(&body)["metadata"]["generation"], 2);
    assert_eq!(object(&body).get("status"), None);
    let status = fixture.merge("a", Endpoint::Status, both);
    assert_eq!(object(&status)["status"]["phase"], "Ready");
    assert_eq!(object(&status)["metadata"]["generation"], 2);
}

#[test]
fn a_write_that_changes_nothing_leaves_no_trace() {
    let mut fixture = Fixture::new();
    fixture.create("a", &json!({}));
    let revision = fixture.server.revision();
    let answer = fixture.merge("a", Endpoint::Object, json!({"spec": {"size": 1}}));
    assert_eq!(answer.code, 200);
    assert_eq!(fixture.server.revision(), revision);
    assert_eq!(fixture.events(revision, None), [""; 0]);
}

#[test]
fn the_last_finalizer_deletes_the_object() {
    let mut fixture = Fixture::new();
    fixture.create("a", &json!({"finalizers": ["kopf.test/x"]}));
    let revision = fixture.server.revision();
    let deleting = fixture.delete("a");
    assert!(object(&deleting)["metadata"]["deletionTimestamp"].is_string());
    let more = json!({"metadata": {"finalizers": ["kopf.test/x", "kopf.test/y"]}});
    assert_eq!(fixture.merge("a", Endpoint::Object, more).code, 422);
    let none = json!({"metadata": {"finalizers": null}});
    let last = fixture.merge("a", Endpoint::Object, none.clone());
    assert_eq!(
        object(&last)["metadata"]["resourceVersion"],
        object(&deleting)["metadata"]["resourceVersion"],
        "the answer has the old version"
    );
    assert_eq!(fixture.merge("a", Endpoint::Object, none).code, 404);
    assert_eq!(fixture.events(revision, None), ["MODIFIED a", "DELETED a"]);
    let again = fixture.create("a", &json!({}));
    assert_ne!(
        object(&again)["metadata"]["uid"],
        object(&last)["metadata"]["uid"]
    );
}

#[test]
fn an_object_that_leaves_a_selector_is_deleted_for_its_watch() {
    let mut fixture = Fixture::new();
    let revision = fixture.server.revision();
    fixture.create("a", &json!({"labels": {"app": "one"}}));
    for app in ["two", "two", "one"] {
        let patch = json!({"metadata": {"labels": {"app": app}}});
        fixture.merge("a", Endpoint::Object, patch);
    }
    let events = fixture.events(revision, Some("app=one"));
    assert_eq!(events, ["ADDED a", "DELETED a", "ADDED a"]);
}

#[test]
fn pages_show_one_revision_until_it_expires() {
    let mut fixture = Fixture::new();
    for name in ["a", "b", "c"] {
        fixture.create(name, &json!({}));
    }
    let token = |answer: &ApiAnswer| match &answer.body {
        AnswerBody::List(list) => list.continue_token.clone(),
        AnswerBody::Failure(failure) => failure.continue_token.clone(),
        _ => None,
    };
    let names = |answer: &ApiAnswer| match &answer.body {
        AnswerBody::List(list) => list
            .items
            .iter()
            .map(|it| it["metadata"]["name"].clone())
            .collect(),
        _ => Vec::new(),
    };
    let first = fixture.page(None);
    fixture.delete("b");
    let second = fixture.page(token(&first));
    assert_eq!(names(&second), ["b"], "the list is that of the first page");
    fixture.server.compact(0);
    let expired = fixture.page(token(&first));
    assert_eq!(expired.code, 410);
    let rest = fixture.page(token(&expired));
    assert_eq!(
        names(&rest),
        ["c"],
        "the new token continues with the present objects"
    );
    assert_eq!(
        fixture.events(1, None),
        ["ERROR -"],
        "and no watch begins there"
    );
}

#[test]
fn a_webhook_strips_annotations_before_versions_are_compared() {
    let mut fixture = Fixture::new();
    fixture.create("a", &json!({}));
    fixture.server.set_webhooks(vec![AdmissionRule {
        name: "strip.kopf.test".to_owned(),
        stage: AdmissionStage::Mutating,
        kind: fixture.kind,
        endpoint: Endpoint::Object,
        on_create: false,
        action: AdmissionAction::StripAnnotations("kopf.test/".to_owned()),
    }]);
    let revision = fixture.server.revision();
    let patch = json!({"metadata": {"annotations": {"kopf.test/record": "x"}}});
    let answer = fixture.merge("a", Endpoint::Object, patch);
    assert_eq!(object(&answer)["metadata"].get("annotations"), None);
    assert_eq!(
        fixture.server.revision(),
        revision,
        "nothing is left to write"
    );
}
