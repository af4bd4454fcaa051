//! Draws definitions and manifests with hostile texts in every place: the result is an error, or a
//! crate whose Rust is valid and whose YAML is exactly what the model asks for.
//!
//! The draws are the same in every run. `KOPF_HOSTILE_CRATES=40 cargo test -p kopf-gen --test
//! hostile_inputs crates_of_hostile_inputs_compile` compiles that many of the crates.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human, json as json_line};
use kopf_gen::format::FormattedFile;
use kopf_gen::load::crd::{self, NameFix};
use kopf_gen::load::yaml::{Dialect, parse};
use kopf_gen::model::operator::Operator;
use kopf_gen::model::rbac::{self, RuleScope};
use kopf_gen::pipeline;
use kopf_gen::plan::{self, CrateEnvironment, InitialHandlers, UserFiles};
use kopf_gen::types::{self, TypesRequest};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

/// The number of drawn inputs.
const CASES: u32 = 400;

/// The number of crates that are compiled unless `KOPF_HOSTILE_CRATES` names another.
const COMPILED: usize = 2;

/// Texts that mean something to Rust, YAML, Markdown, shells and templates.
const TEXTS: &[&str] = &[
    "",
    "\"",
    "\\",
    "\n",
    "\r\n",
    "'",
    "`",
    "}",
    "{",
    "{{ name }}",
    "{% raw %}",
    "{# x #}",
    "*/",
    "/*",
    "//",
    "\"##",
    "\"#",
    "r#\"",
    "#",
    "# x",
    "- x",
    "a: b",
    ": ",
    "---",
    "...",
    "%YAML 1.1",
    "*",
    "&a",
    "!!str",
    "|",
    ">",
    "[",
    "]",
    "yes",
    "null",
    "~",
    "0x1F",
    "1e3",
    "\u{0}",
    "\u{7}",
    "\u{1b}[31m",
    "\u{85}",
    "\u{202e}",
    "\u{2066}",
    "\u{2028}",
    "\u{feff}",
    "\u{200b}",
    "é",
    "ß",
    "İ",
    "日本",
    "type",
    "self",
    "Self",
    "crate",
    "super",
    "async",
    "fn",
    "Option",
    "Vec",
    "String",
    "Arc",
    "Future",
    "Std",
    "Core",
    "Value",
    "Duration",
    "Memo",
    "Box",
    "Ok",
    "None",
    "Result",
    "Resource",
    "Operator",
    "Index",
    "HandlerResult",
    "ChangeContext",
    "SerdeJson",
    "KopfRuntime",
    "status",
    "spec",
    "metadata",
    "kind",
    "apiVersion",
    "name",
    "extra",
    "../../x",
    "/etc/passwd",
    "C:\\x",
    "$(x)",
    "${x}",
    "<script>",
    "[a](b)",
    "```",
    "| a |",
    "x\n\n    fn evil() {}\n//",
    "\"; evil!(); \"",
    "]\n    verbs: ['*']\n  - apiGroups: ['*'",
    "\n---\nkind: Evil\n",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(TEXTS).prop_map(str::to_owned),
        2 => (prop::sample::select(TEXTS), prop::sample::select(TEXTS)).prop_map(|(a, b)| format!("{a}{b}")),
        1 => any::<String>(),
        1 => "[a-z]{1,8}",
        1 => Just("x".repeat(300)),
    ]
}

/// Mostly a good name, sometimes a hostile one.
fn name(good: &'static [&'static str]) -> impl Strategy<Value = String> {
    prop_oneof![
        24 => prop::sample::select(good).prop_map(str::to_owned),
        1 => text(),
    ]
}

fn kind() -> impl Strategy<Value = String> {
    name(&[
        "Widget",
        "Arc",
        "Future",
        "Std",
        "Core",
        "Alloc",
        "SerdeJson",
        "KopfRuntime",
        "Kube",
        "Validation",
        "Mutation",
        "Memo",
        "Duration",
        "Value",
        "Vec",
        "Index",
        "Operation",
        "Selector",
        "Hooks",
        "Scope",
        "Types",
        "Indices",
        "Type",
        "Self",
        "Crate",
        "My-Kind",
        "HTTP",
        "postgresql",
        "V1",
        "Option",
        "Result",
        "Send",
        "Handlers",
        "Operator",
        "Clone",
        "Debug",
        "Default",
        "Display",
        "Predicate",
        "Some",
        "Fn",
        "Box",
        "ConfigMap",
    ])
}

/// Any JSON with hostile texts.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i32>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

/// A schema with hostile names, descriptions, defaults and enums.
fn schema() -> impl Strategy<Value = Value> {
    let leaf = (
        prop::sample::select(vec!["string", "integer", "number", "boolean", "object", "array"]),
        prop::option::of(any_json()),
        prop::collection::btree_set(text(), 0..4),
        text(),
        any::<[bool; 4]>(),
        prop::sample::select(vec![0_u64, 1, 9, 3_000_000_000]),
    )
        .prop_map(|(kind, default, values, description, flags, size)| {
            let mut schema = json!({"type": kind, "description": description, "minItems": size, "pattern": description});
            if let Some(default) = default.filter(|_| flags[0]) {
                schema["default"] = default;
            }
            if flags[1] && !values.is_empty() && kind == "string" {
                schema["enum"] = json!(values);
            }
            if flags[2] {
                schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
            }
            if flags[3] {
                schema["nullable"] = json!(true);
            }
            schema
        });
    leaf.prop_recursive(3, 16, 4, |inner| {
        (
            prop::collection::btree_map(text(), inner.clone(), 0..4),
            prop::option::of(inner),
            any::<bool>(),
            text(),
        )
            .prop_map(|(properties, additional, required, description)| {
                let names: Vec<&String> = properties.keys().collect();
                let mut schema =
                    json!({"type": "object", "description": description, "properties": properties});
                if required {
                    schema["required"] = json!(names);
                }
                if let Some(additional) = additional.filter(|_| properties.is_empty()) {
                    schema["additionalProperties"] = additional;
                }
                schema
            })
    })
}

/// A definition, and the names of the properties of its `spec`.
fn definition() -> impl Strategy<Value = (Value, Vec<String>)> {
    let names = (
        name(&["example.com", "a.b-c.d", "3scale.net"]),
        kind(),
        name(&["widgets", "self", "types", "a-b"]),
        prop::collection::vec(name(&["w", "wd"]), 0..3),
        name(&["v1", "v1beta1", "std", "crd", "serde-json", "a--b"]),
        any::<bool>(),
    );
    let texts = (
        text(),
        text(),
        text(),
        prop::option::of(text()),
        prop::option::of(text()),
    );
    (names, texts, prop::collection::btree_map(text(), schema(), 0..4)).prop_map(
        |((group, kind, plural, short, version, status), (column, path, note, warning, label), properties)| {
            let fields = properties.keys().cloned().collect();
            let mut subresources = json!({"scale": {"specReplicasPath": path, "statusReplicasPath": path}});
            if status {
                subresources["status"] = json!({});
            }
            let mut crd = json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.{group}"), "annotations": {"note": note}},
                "spec": {
                    "group": group,
                    "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "shortNames": short, "categories": ["all"]},
                    "versions": [{
                        "name": version,
                        "served": true,
                        "storage": true,
                        "subresources": subresources,
                        "additionalPrinterColumns": [{"name": column, "type": "string", "jsonPath": path, "description": note}],
                        "selectableFields": [{"jsonPath": path}],
                        "schema": {"openAPIV3Schema": {"type": "object", "description": note, "properties": {
                            "spec": {"type": "object", "required": fields, "properties": properties},
                        }}},
                    }],
                },
            });
            if let Some(label) = label {
                crd["metadata"]["annotations"]["label"] = json!(label);
            }
            if let Some(warning) = warning {
                crd["spec"]["versions"][0]["deprecated"] = json!(true);
                crd["spec"]["versions"][0]["deprecationWarning"] = json!(warning);
            }
            (crd, fields)
        },
    )
}

/// A handler, whose field is one of the schema if there is one.
fn handler(fields: Vec<String>) -> impl Strategy<Value = Value> {
    let fields: Vec<String> = fields.into_iter().chain(["none".to_owned()]).collect();
    (
        name(&["create_fn", "sync", "type", "drop", "clone"]),
        prop::option::weighted(0.3, name(&["Other.id", "a/b", "x"])),
        prop::option::weighted(0.4, prop::sample::select(fields)),
        prop::option::weighted(0.3, name(&["tier", "example.com/a"])),
        name(&["present", "absent", "gold"]),
        prop::option::weighted(0.5, any_json()),
        prop::option::weighted(0.3, name(&["is_due"])),
    )
        .prop_map(|(function, id, field, label, value, param, when)| {
            let mut handler = json!({"on": "create", "fn": function});
            if let Some(field) = field {
                handler["on"] = json!("field");
                handler["field"] = json!(format!("spec.{field}"));
            }
            if let Some(label) = label {
                handler["labels"] = json!({label.as_str(): value});
                handler["annotations"] = json!({label.as_str(): {"predicate": "is_fine"}});
            }
            for (key, value) in [
                ("id", id.map(Value::from)),
                ("param", param),
                ("when", when.map(Value::from)),
            ] {
                if let Some(value) = value.filter(|value| !value.is_null()) {
                    handler[key] = value;
                }
            }
            handler
        })
}

/// One input: the definition, the path of its file, and the manifest.
#[derive(Clone, Debug)]
struct HostileInput {
    crd: Value,
    file: String,
    manifest: Value,
}

fn inputs() -> impl Strategy<Value = HostileInput> {
    let operator = (
        name(&["any", "a-1"]),
        prop::option::weighted(0.2, name(&["peers"])),
        prop::option::weighted(0.2, name(&["lease.x"])),
        prop::option::weighted(0.2, name(&["auto.kopf.dev"])),
        prop::option::weighted(0.3, name(&["default", "a-*", "b"])),
        any::<bool>(),
        prop::option::weighted(0.3, name(&["registry.example.com:5000/a/b:1", "any"])),
    );
    let file = prop_oneof![
        text().prop_map(|text| format!("crds/{text}.yaml")),
        Just("crds/w.yaml".to_owned())
    ];
    let more = (
        prop::option::weighted(0.2, name(&["Mine", "WidgetMemo"])),
        prop::option::weighted(0.2, (name(&["by_a"]), name(&["String", "(u8, String)"]))),
        prop::option::weighted(
            0.3,
            (
                name(&["check"]),
                name(&["status", "*", "scale"]),
                any::<bool>(),
            ),
        ),
        prop::option::weighted(
            0.2,
            (
                name(&["plural", "kind", "category", "group", "short_name"]),
                name(&["pods", "all", "apps"]),
            ),
        ),
    );
    (definition(), operator, file, more)
        .prop_flat_map(|((crd, fields), operator, file, more)| {
            let handlers = prop::collection::vec(handler(fields), 0..4);
            (Just(crd), Just(operator), Just(file), Just(more), handlers)
        })
        .prop_map(|(crd, operator, file, more, handlers)| HostileInput {
            manifest: manifest(&file, operator, more, &handlers),
            crd,
            file,
        })
}

type OperatorTexts = (
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    bool,
    Option<String>,
);
type MoreTexts = (
    Option<String>,
    Option<(String, String)>,
    Option<(String, String, bool)>,
    Option<(String, String)>,
);

fn manifest(file: &str, operator: OperatorTexts, more: MoreTexts, handlers: &[Value]) -> Value {
    let (name, peering, lease, admission, namespace, cert_manager, image) = operator;
    let mut section = json!({"name": name});
    if let Some(peering) = peering {
        section["peering"] = json!({"name": peering});
    }
    if let Some(lease) = lease {
        section["leader_election"] = json!({"lease": lease});
    }
    if let Some(image) = image {
        section["deploy"] =
            json!({"image": image, "network_policy": true, "alerts": true, "dashboard": true});
    }
    if let Some(namespace) = namespace {
        section["namespaces"] = json!([namespace]);
    }
    section["admission"] =
        json!({"configuration": if cert_manager { "cert-manager" } else { "managed" }});
    if let Some(admission) = admission {
        section["admission"]["name"] = json!(admission);
    }
    let (memo, index, webhook, select) = more;
    let mut resource = json!({"crd": file, "handlers": handlers});
    if let Some(memo) = memo {
        resource["memo"] = json!(memo);
    }
    if let Some((index, keys)) = index {
        resource["indices"] = json!([{"index": index, "keys": keys, "values": keys}]);
    }
    if let Some((function, subresource, mutates)) = webhook {
        let role = if mutates { "mutate" } else { "validate" };
        resource["admission"] =
            json!([{role: function, "subresource": subresource, "id": function}]);
    }
    let mut resources = vec![resource];
    if let Some((key, value)) = select {
        resources.push(json!({"select": {key: value}, "as": "Chosen", "handlers": [{"on": "event", "fn": "seen"}]}));
    }
    json!({"apiVersion": "kopf-gen.dev/v1", "operator": section, "resources": resources})
}

/// The operator and the files of its crate; `None` if the input has an error.
fn crate_of(input: &HostileInput) -> Option<(Operator, Vec<FormattedFile>)> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", input.manifest.to_string());
    let read = |_: &str| io::Result::Ok(input.crd.to_string().into_bytes());
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    let planned = operator.map(|operator| {
        let user = UserFiles::default();
        let mut files = plan::operator(&operator, &sources, &user, &mut diagnostics);
        let path = |folder: &str| format!("{{ path = {:?} }}", repository().join(folder));
        let environment = CrateEnvironment {
            runtime: path("runtime"),
            testing: path("runtime/testing"),
            has_workspace: true,
        };
        files.extend(plan::new_crate(
            &operator,
            environment,
            InitialHandlers::Stubs,
        ));
        let files = pipeline::formatted(files);
        (operator, files)
    });
    for diagnostic in &diagnostics {
        let text = human(diagnostic, &sources, Style::Plain);
        let is_plain = |c: char| c == '\n' || !c.is_control();
        assert!(text.chars().all(is_plain), "{text:?}");
        assert!(!json_line(diagnostic, &sources).to_string().contains('\n'));
    }
    assert!(
        planned.is_some() || diagnostics.has_errors(),
        "refused in silence"
    );
    planned.filter(|_| !diagnostics.has_errors())
}

fn repository() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    folder.canonicalize().expect("a checkout")
}

fn content(file: &FormattedFile) -> &str {
    file.content.text()
}

/// The documents of a file; both dialects of YAML read the same.
fn documents(text: &str) -> Vec<Value> {
    let mut sources = Sources::new();
    let source = sources.add("a.yaml", text);
    let read = |dialect| {
        let mut diagnostics = Diagnostics::new();
        let documents = parse(&sources, source, dialect, &mut diagnostics);
        assert!(!diagnostics.has_errors(), "{diagnostics:?}\n{text}");
        documents.iter().map(|it| it.to_json()).collect::<Vec<_>>()
    };
    let kubernetes = read(Dialect::Kubernetes);
    assert_eq!(kubernetes, read(Dialect::Core), "{text}");
    kubernetes
}

/// The permissions that the model asks for, as objects.
fn expected_rbac(operator: &Operator) -> Vec<Value> {
    let name = &operator.name;
    let rules = rbac::rules(operator);
    let at = |scope: RuleScope| -> Vec<Value> {
        let rules = rules.iter().filter(|rule| rule.scope == scope);
        rules
            .map(|rule| {
                let verbs: Vec<&str> = rule.verbs.iter().map(|grant| grant.verb).collect();
                let mut value = json!({"apiGroups": rule.groups, "resources": rule.resources});
                if !rule.names.is_empty() {
                    value["resourceNames"] = json!(rule.names);
                }
                value["verbs"] = json!(verbs);
                value
            })
            .collect()
    };
    let role = |kind: &str, role: &str, namespace: Option<&str>, rules: Vec<Value>| {
        let mut metadata = json!({"name": role});
        if let Some(namespace) = namespace {
            metadata["namespace"] = json!(namespace);
        }
        let group = "rbac.authorization.k8s.io";
        [
            json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "rules": rules}),
            json!({
                "apiVersion": format!("{group}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": {"apiGroup": group, "kind": kind, "name": role},
                "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": name}],
            }),
        ]
    };
    let mut objects = vec![
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": name}}),
    ];
    let namespaces = operator.fixed_namespaces();
    let cluster = at(RuleScope::Cluster);
    if !cluster.is_empty() || namespaces.is_none() {
        objects.extend(role("ClusterRole", name, None, cluster));
    }
    let served = at(RuleScope::ServedNamespaces);
    for namespace in namespaces
        .into_iter()
        .flatten()
        .filter(|_| !served.is_empty())
    {
        objects.extend(role(
            "Role",
            &format!("{name}-handlers"),
            Some(namespace),
            served.clone(),
        ));
    }
    let own = at(RuleScope::OwnNamespace);
    if !own.is_empty() {
        objects.extend(role("Role", name, Some(name), own));
    }
    objects
}

fn check_yaml(
    input: &HostileInput,
    operator: &Operator,
    listed: &[(&str, &str)],
    path: &str,
    text: &str,
) {
    let objects = documents(text);
    let kinds: Vec<&str> = objects
        .iter()
        .filter_map(|it| it["kind"].as_str())
        .collect();
    match path {
        "deploy/base/rbac.yaml" => assert_eq!(objects, expected_rbac(operator), "{text}"),
        "deploy/base/crds.yaml" => assert_eq!(objects, std::slice::from_ref(&input.crd), "{text}"),
        "deploy/base/deployment.yaml" => {
            let all = ["Namespace", "Deployment", "PodDisruptionBudget"];
            let count = if operator.deployment.replicas > 1 {
                3
            } else {
                2
            };
            assert_eq!(kinds, all[..count]);
            assert_eq!(objects[1]["metadata"]["name"], json!(operator.name));
            let container = &objects[1]["spec"]["template"]["spec"]["containers"][0];
            assert_eq!(
                container["image"],
                json!(operator.deployment.image),
                "{text}"
            );
        }
        "crds/kustomization.yaml" => {
            let files = operator.crd_files.iter();
            let names: Vec<_> = files
                .filter_map(|it| it.path.strip_prefix("crds/"))
                .collect();
            assert_eq!(kinds, ["Kustomization"]);
            assert_eq!(objects[0]["resources"], json!(names), "{text}");
        }
        "deploy/kustomization.yaml" | "deploy/base/kustomization.yaml" => {
            assert_eq!(kinds, ["Kustomization"]);
            let folder = path.trim_end_matches("kustomization.yaml");
            let listed: Vec<&str> = listed
                .iter()
                .filter(|(list, _)| *list == folder)
                .map(|(_, entry)| *entry)
                .collect();
            assert_eq!(objects[0]["resources"], json!(listed), "{text}");
        }
        "deploy/base/peering.yaml" => {
            assert!(operator.peering.membership().is_some());
            assert_eq!(kinds, ["CustomResourceDefinition"; 2]);
        }
        "deploy/base/network-policy.yaml" => assert_eq!(kinds, ["NetworkPolicy"]),
        "deploy/base/alerts.yaml" => assert_eq!(kinds, ["PrometheusRule"]),
        "deploy/base/dashboard.yaml" => {
            assert_eq!(kinds, ["ConfigMap"]);
            let name = format!("{}.json", operator.name);
            let dashboard = objects[0]["data"][name].as_str().expect("it is a text");
            let dashboard: Value = serde_json::from_str(dashboard).expect("it is JSON");
            assert_eq!(dashboard["title"], json!(operator.name));
        }
        "deploy/base/monitoring.yaml" => assert_eq!(kinds, ["Service", "ServiceMonitor"]),
        "deploy/base/webhooks.yaml" => {
            assert_eq!(kinds.len(), objects.len());
            let webhooks: usize = operator.kinds.iter().map(|kind| kind.webhooks.len()).sum();
            let entries = objects.iter().filter_map(|it| it["webhooks"].as_array());
            let written: usize = entries.map(Vec::len).sum();
            assert!(written == 0 || written == webhooks, "{text}");
            for name in objects.iter().filter(|it| it.get("webhooks").is_some()) {
                assert_eq!(name["metadata"]["name"], json!(operator.admission.name));
            }
        }
        other => panic!("nothing checks {other}"),
    }
}

/// The files that Kustomizations list if they exist: the folder of the list, and the entry.
const LISTED: &[(&str, &str, &str)] = &[
    ("crds/kustomization.yaml", "deploy/", "../crds"),
    ("deploy/base/kustomization.yaml", "deploy/", "base"),
    ("deploy/base/crds.yaml", "deploy/base/", "crds.yaml"),
    ("deploy/base/peering.yaml", "deploy/base/", "peering.yaml"),
    ("deploy/base/rbac.yaml", "deploy/base/", "rbac.yaml"),
    (
        "deploy/base/deployment.yaml",
        "deploy/base/",
        "deployment.yaml",
    ),
    ("deploy/base/webhooks.yaml", "deploy/base/", "webhooks.yaml"),
    (
        "deploy/base/network-policy.yaml",
        "deploy/base/",
        "network-policy.yaml",
    ),
    (
        "deploy/base/monitoring.yaml",
        "deploy/base/",
        "monitoring.yaml",
    ),
    ("deploy/base/alerts.yaml", "deploy/base/", "alerts.yaml"),
    (
        "deploy/base/dashboard.yaml",
        "deploy/base/",
        "dashboard.yaml",
    ),
];

fn check(input: &HostileInput) -> bool {
    let Some((operator, files)) = crate_of(input) else {
        return false;
    };
    let listed: Vec<(&str, &str)> = LISTED
        .iter()
        .filter(|(path, ..)| files.iter().any(|file| file.path.as_str() == *path))
        .map(|(_, folder, entry)| (*folder, *entry))
        .collect();
    for file in &files {
        let (path, text) = (file.path.as_str(), content(file));
        if path.ends_with(".rs") {
            let parsed = syn::parse_file(text);
            assert!(parsed.is_ok(), "{path}: {:?}\n{text}", parsed.err());
            // rustc rejects them in literals and comments.
            let is_deceptive =
                |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            assert!(!text.contains(is_deceptive), "{path}:\n{text}");
        } else if path.ends_with(".yaml") {
            check_yaml(input, &operator, &listed, path, text);
        }
    }
    true
}

fn runner() -> TestRunner {
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::with_cases(CASES)
    };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Runs a test with a stack that is large enough to draw nested values in a debug build.
fn with_stack(test: impl FnOnce() + Send + 'static) {
    let builder = std::thread::Builder::new().stack_size(32 << 20);
    let thread = builder.spawn(test).expect("a thread");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn hostile_inputs_are_refused_or_become_what_the_model_asks_for() {
    with_stack(draw_inputs);
}

fn draw_inputs() {
    let accepted = std::cell::Cell::new(0_u32);
    let outcome = runner().run(&inputs(), |input| {
        accepted.set(accepted.get() + u32::from(check(&input)));
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
    let accepted = accepted.get();
    assert!(
        accepted > CASES / 20,
        "only {accepted} of {CASES} are accepted"
    );
}

#[test]
fn types_of_hostile_definitions_are_valid_rust() {
    with_stack(draw_definitions);
}

fn draw_definitions() {
    let outcome = runner().run(&(definition(), text()), |((crd, _), file)| {
        let mut sources = Sources::new();
        let id = sources.add(file, crd.to_string());
        let mut diagnostics = Diagnostics::new();
        let request = TypesRequest::default();
        let resources = types::resources(&sources, &[id], &request, &mut diagnostics);
        if !diagnostics.has_errors() {
            let text = pipeline::text(plan::types_module(&resources, &sources));
            prop_assert!(syn::parse_file(&text).is_ok(), "{text}");
            let mut ignored = Diagnostics::new();
            let crds = crd::read(&sources, id, NameFix::Refuse, &mut ignored);
            let embedded: Value = serde_json::from_str(&crds[0].json).expect("JSON");
            prop_assert_eq!(&embedded, &crd);
            // The generated code reads it.
            let read = serde_json::from_value::<CustomResourceDefinition>(embedded);
            prop_assert!(read.is_ok(), "{read:?}");
        }
        Ok(())
    });
    assert!(outcome.is_ok(), "{}", outcome.unwrap_err());
}

#[test]
fn crates_of_hostile_inputs_compile() {
    with_stack(compile_crates);
}

fn compile_crates() {
    let wanted = std::env::var("KOPF_HOSTILE_CRATES").ok();
    let wanted: usize = wanted.map_or(COMPILED, |number| number.parse().expect("a number"));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    let _ = fs::remove_dir_all(folder.join("cases"));
    let mut runner = TestRunner::deterministic();
    let inputs = inputs();
    let mut made: BTreeMap<String, HostileInput> = BTreeMap::new();
    while made.len() < wanted {
        let mut input = inputs.new_tree(&mut runner).expect("an input").current();
        let name = format!("case-{}", made.len());
        input.manifest["operator"]["name"] = json!(name);
        let Some((_, files)) = crate_of(&input) else {
            continue;
        };
        let place = folder.join("cases").join(&name);
        let definition = place.join(&input.file);
        if definition.strip_prefix(&place).is_err()
            || input.file.contains("..")
            || input.file.contains('\0')
        {
            continue;
        }
        let _ = fs::remove_dir_all(&place);
        for file in &files {
            put(&file.path.below(&place), content(file));
        }
        if fs::create_dir_all(definition.parent().expect("a folder")).is_err()
            || fs::write(&definition, input.crd.to_string()).is_err()
        {
            continue;
        }
        put(&place.join("kopf.yaml"), &input.manifest.to_string());
        made.insert(name, input);
    }
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"cases/case-*\"]\n\n[profile.dev]\ndebug = false\n";
    put(&folder.join("Cargo.toml"), workspace);
    let lock = fs::read_to_string(repository().join("Cargo.lock")).expect("a lock");
    put(&folder.join("Cargo.lock"), &lock);
    let output = Command::new(env!("CARGO"))
        .args([
            "--offline",
            "check",
            "--quiet",
            "--workspace",
            "--all-targets",
            "--keep-going",
        ])
        .current_dir(&folder)
        .env("CARGO_TARGET_DIR", folder.join("../manifests/target"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
    fs::write(path, text).expect("writable");
}
