//! Entries of webhook configurations.

use std::time::Duration;

use super::*;
use crate::{
    admission::WebhookEndpoint,
    handler::filter::{Combined, TextTest},
};

fn webhook(spec: &WebhookSpec) -> ConfiguredWebhook<'_> {
    ConfiguredWebhook {
        kinds: ReviewedKinds::One {
            group: "kopf.dev",
            version: "v1",
            plural: "kopfexamples",
        },
        spec,
    }
}

fn client(address: Address) -> ClientConfig {
    ClientConfig {
        address,
        ca_bundle: Some("PEM".to_owned()),
    }
}

fn url() -> ClientConfig {
    client(Address::Url("https://localhost:9443/".to_owned()))
}

fn everywhere() -> WebhookNamespaces {
    WebhookNamespaces::AllBut(vec!["kube-system".to_owned()])
}

#[test]
fn all_options_of_a_webhook_are_in_its_entry() {
    let mut spec = WebhookSpec::new("check_size", WebhookRole::Mutating);
    spec.operations = vec![Operation::Create, Operation::Update];
    spec.endpoint = WebhookEndpoint::Subresource("status".to_owned());
    spec.side_effects = SideEffects::NoneOnDryRun;
    spec.on_failure = FailurePolicy::Ignore;
    spec.timeout = Duration::from_secs(5);
    let matches = TextTest::Matches(Arc::new(|_, _| true));
    spec.filters.labels = vec![
        ("a".to_owned(), TextTest::Equals("1".to_owned()).into()),
        ("b".to_owned(), TextTest::Present.into()),
        ("c".to_owned(), TextTest::Absent.into()),
        ("d".to_owned(), Combined::One(matches)),
    ];
    let service = client(Address::Service {
        namespace: "ns".to_owned(),
        name: "svc".to_owned(),
        port: 443,
        path: String::new(),
    });
    let made = entries(
        WebhookRole::Mutating,
        "auto.kopf.dev",
        &[webhook(&spec)],
        &service,
        &everywhere(),
    );
    assert_eq!(
        made.expect("it can be named"),
        [json!({
            "name": "check-size.auto.kopf.dev",
            "admissionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": {
                "service": {
                    "namespace": "ns", "name": "svc", "port": 443,
                    "path": "/mutate/kopf.dev/kopfexamples/check_size",
                },
                "caBundle": "UEVN",
            },
            "failurePolicy": "Ignore",
            "matchPolicy": "Equivalent",
            "namespaceSelector": {"matchExpressions": [{
                "key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"],
            }]},
            "objectSelector": {"matchExpressions": [
                {"key": "a", "operator": "In", "values": ["1"]},
                {"key": "b", "operator": "Exists"},
                {"key": "c", "operator": "DoesNotExist"},
            ]},
            "rules": [{
                "apiGroups": ["kopf.dev"], "apiVersions": ["v1"],
                "resources": ["kopfexamples/status"],
                "operations": ["CREATE", "UPDATE"], "scope": "*",
            }],
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 5,
            "reinvocationPolicy": "Never",
        })]
    );
}

#[test]
fn the_two_roles_have_separate_entries_even_with_one_id() {
    let (validating, mutating) = (
        WebhookSpec::new("both", WebhookRole::Validating),
        WebhookSpec::new("both", WebhookRole::Mutating),
    );
    let webhooks = [webhook(&validating), webhook(&mutating)];
    for (role, path) in [
        (WebhookRole::Validating, "validate"),
        (WebhookRole::Mutating, "mutate"),
    ] {
        let made = entries(role, "auto.kopf.dev", &webhooks, &url(), &everywhere());
        let made = made.expect("they can be named");
        assert_eq!(made.len(), 1);
        assert_eq!(
            made[0]["clientConfig"]["url"],
            format!("https://localhost:9443/{path}/kopf.dev/kopfexamples/both")
        );
    }
}

#[test]
fn kinds_that_share_an_id_appear_in_the_names() {
    let spec = WebhookSpec::new("check/spec.Größe", WebhookRole::Validating);
    let one = webhook(&spec);
    let other = ConfiguredWebhook {
        kinds: ReviewedKinds::One {
            group: "",
            version: "v1",
            plural: "pods",
        },
        spec: &spec,
    };
    let label = "check.spec.grc3b6c39fe";
    assert_eq!(
        names("auto.kopf.dev", std::slice::from_ref(&one)),
        Ok(vec![format!("{label}.auto.kopf.dev")])
    );
    assert_eq!(
        names("auto.kopf.dev", &[one.clone(), other]),
        Ok(vec![
            format!("{label}.kopfexamples.kopf.dev.auto.kopf.dev"),
            format!("{label}.pods.auto.kopf.dev"),
        ])
    );
    assert_eq!(
        one.path(),
        "/validate/kopf.dev/kopfexamples/check/spec.Gr%C3%B6%C3%9Fe"
    );
    assert_eq!(
        names("auto.kopf.dev", &[one.clone(), one.clone()]),
        Err(ConfigurationError::Twice(format!(
            "{label}.kopfexamples.kopf.dev.auto.kopf.dev"
        )))
    );
    assert!(matches!(
        names("Auto", std::slice::from_ref(&one)),
        Err(ConfigurationError::Configuration(_))
    ));
}

#[test]
fn a_webhook_on_a_selection_has_a_rule_for_each_kind() {
    let mut spec = WebhookSpec::new("check", WebhookRole::Validating);
    spec.lifetime = ConfigurationLifetime::Persistent;
    let selector = Selector::category("Toys").in_group("");
    let resource = |group: &str, plural: &str| {
        Arc::new(DiscoveredResource {
            group: group.to_owned(),
            version: "v1".to_owned(),
            plural: plural.to_owned(),
            ..DiscoveredResource::default()
        })
    };
    let selected = |resources: Vec<_>| ConfiguredWebhook {
        kinds: ReviewedKinds::Selected {
            selector: &selector,
            resources,
        },
        spec: &spec,
    };
    let role = WebhookRole::Validating;
    let none = [selected(Vec::new()), webhook(&spec)];
    let made = entries(role, "auto.kopf.dev", &none, &url(), &everywhere());
    let made = made.expect("they can be named");
    assert_eq!(made.len(), 1, "no kind, no entry");
    assert_eq!(made[0]["name"], "check.kopfexamples.kopf.dev.auto.kopf.dev");
    assert_eq!(persistent(&made, &none, role), made);

    let two = [
        selected(vec![resource("", "dolls"), resource("kopf.dev", "kites")]),
        webhook(&spec),
    ];
    let made = entries(role, "auto.kopf.dev", &two, &url(), &everywhere());
    let made = made.expect("they can be named");
    assert_eq!(
        made[0]["name"],
        "check.category.toys.group.core.auto.kopf.dev"
    );
    assert_eq!(
        made[0]["clientConfig"]["url"],
        "https://localhost:9443/validate/selections/category.Toys.group.core/check"
    );
    let rules = made[0]["rules"].as_array().expect("rules");
    let named = rules
        .iter()
        .map(|it| (&it["apiGroups"][0], &it["resources"][0]));
    assert_eq!(
        named.collect::<Vec<_>>(),
        [
            (&json!(""), &json!("dolls")),
            (&json!("kopf.dev"), &json!("kites"))
        ]
    );
    assert_eq!(persistent(&made, &two, role).len(), 2);
}

#[test]
fn defaults_of_the_api_server_are_ignored_in_the_comparison() {
    let spec = WebhookSpec::new("check", WebhookRole::Validating);
    let wanted = entries(
        WebhookRole::Validating,
        "auto.kopf.dev",
        &[webhook(&spec)],
        &url(),
        &everywhere(),
    )
    .expect("it can be named");
    let mut present = json!({"webhooks": wanted});
    present["webhooks"][0]["matchConditions"] = json!([]);
    assert!(is_in_sync(&present, &wanted));
    assert!(!is_in_sync(&json!({}), &wanted));
    assert!(is_in_sync(&json!({}), &[]));
    present["webhooks"][0]["failurePolicy"] = json!("Ignore");
    assert!(!is_in_sync(&present, &wanted));
}

#[test]
fn only_persistent_webhooks_stay() {
    let (temporary, mut persistent_spec) = (
        WebhookSpec::new("temporary", WebhookRole::Validating),
        WebhookSpec::new("persistent", WebhookRole::Validating),
    );
    persistent_spec.lifetime = ConfigurationLifetime::Persistent;
    let webhooks = [webhook(&temporary), webhook(&persistent_spec)];
    let all = entries(
        WebhookRole::Validating,
        "auto.kopf.dev",
        &webhooks,
        &url(),
        &everywhere(),
    );
    let all = all.expect("they can be named");
    let left = persistent(&all, &webhooks, WebhookRole::Validating);
    assert_eq!(left, all[1..]);
}

#[test]
fn namespaces_are_the_same_in_the_selector_and_in_the_check() {
    let only = WebhookNamespaces::Only(vec!["a".to_owned()]);
    assert!(only.includes("a") && !only.includes("b"));
    assert!(everywhere().includes("a") && !everywhere().includes("kube-system"));
    assert_eq!(
        only.to_json()["matchExpressions"][0]["operator"],
        json!("In")
    );
}
