//! Names of definitions.

use kopf_tests::{Sandbox, TestFailure, TestResult};
use serde_json::{Value, json};

use crate::judges::difference;

/// Texts that are names by some rules and break others, one at a time.
const TEXTS: &[&str] = &[
    "",
    "w",
    "widgets",
    "Widget",
    "WidgetList",
    "widgetlist",
    "my-widgets",
    "My-Kind",
    "w1",
    "1w",
    "1",
    "-w",
    "w-",
    "w--w",
    "w.w",
    "w_w",
    "w w",
    " w",
    "w ",
    "w\n",
    "w\t",
    "w/w",
    "w:w",
    "w\"w",
    "w'w",
    "w*",
    "*",
    "{w}",
    "v1",
    "V1",
    "v1beta1",
    "v1.0",
    "all",
    "true",
    "null",
    "~",
    "ä",
    "Ä",
    "ß",
    "\u{212a}ind",
    "\u{130}tem",
    "\u{17f}w",
    "w\u{200b}",
    "w\u{202e}",
    "w\0",
    "日本",
    "example.com",
    "a.b",
    "3scale.net",
    "com",
    ".com",
    "a..b",
    "A.b",
    "a_b.c",
    "-a.b",
    "a-.b",
    "a.b-",
    "a.b.",
    "a b.c",
    "a.b\n",
    "*.a",
    "k8s.io",
    "x.k8s.io",
    "xk8s.io",
    "x.kubernetes.io",
    "kubernetes.io",
    "x.k8s.io.example.com",
];

/// Lengths at the limits: of labels, of labels with `List`, of subdomains, and of names of
/// definitions, which have the plural in front.
const LENGTHS: &[usize] = &[
    1, 58, 59, 60, 62, 63, 64, 100, 188, 189, 190, 244, 245, 246, 253, 254,
];

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": ""},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object"}},
            }],
        },
    })
}

/// The definition under the name that its plural and its group make.
fn named(mut definition: Value) -> Value {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str);
    let plural = text("/spec/names/plural").unwrap_or_default();
    let group = text("/spec/group").unwrap_or_default();
    let name = format!("{plural}.{group}");
    definition["metadata"]["name"] = json!(name);
    definition
}

fn texts() -> Vec<String> {
    let long = LENGTHS.iter().flat_map(|length| {
        let plain = "w".repeat(*length);
        // As a group, with a dot.
        let dotted = format!("{}.x", "w".repeat(length.saturating_sub(2)));
        [plain, dotted]
    });
    let texts = TEXTS.iter().map(|text| (*text).to_owned());
    texts.chain(long).collect()
}

/// Texts of a few characters, drawn from those that matter to the rules.
fn drawn() -> Vec<String> {
    let mut random = fastrand::Rng::with_seed(7);
    let alphabet: Vec<char> = "aaaabzAZ019--..__ \u{e4}".chars().collect();
    let mut text = || {
        let length = random.usize(1..7);
        (0..length).map(|_| random.choice(&alphabet)).collect()
    };
    let texts: Vec<Option<String>> = (0..60).map(|_| text()).collect();
    texts.into_iter().flatten().collect()
}

/// Definitions that differ from a valid one in one place.
fn definitions() -> Vec<(String, Value)> {
    let mut list = Vec::new();
    let mut add = |what: String, change: &dyn Fn(&mut Value)| {
        let mut definition = definition();
        change(&mut definition);
        list.push((what, named(definition)));
    };
    for text in texts().iter().chain(&drawn()) {
        add(format!("group {text:?}"), &|it| {
            it["spec"]["group"] = json!(text)
        });
        add(format!("version {text:?}"), &|it| {
            it["spec"]["versions"][0]["name"] = json!(text)
        });
        add(format!("scope {text:?}"), &|it| {
            it["spec"]["scope"] = json!(text)
        });
        for key in ["kind", "plural", "singular", "listKind"] {
            add(format!("{key} {text:?}"), &|it| {
                it["spec"]["names"][key] = json!(text)
            });
        }
        for key in ["shortNames", "categories"] {
            add(format!("{key} {text:?}"), &|it| {
                it["spec"]["names"][key] = json!([text])
            });
        }
        add(format!("kind and listKind {text:?}"), &|it| {
            it["spec"]["names"]["kind"] = json!(text);
            it["spec"]["names"]["listKind"] = json!("Things");
        });
    }
    for value in [Value::Null, json!([]), json!({}), json!(1), json!(true)] {
        for key in [
            "kind",
            "plural",
            "singular",
            "listKind",
            "shortNames",
            "categories",
        ] {
            add(format!("{key} {value}"), &|it| {
                it["spec"]["names"][key] = value.clone()
            });
        }
        for key in ["group", "scope", "versions", "names"] {
            add(format!("{key} {value}"), &|it| {
                it["spec"][key] = value.clone()
            });
        }
        add(format!("version {value}"), &|it| {
            it["spec"]["versions"][0]["name"] = value.clone()
        });
        add(format!("short name {value}"), &|it| {
            it["spec"]["names"]["shortNames"] = json!([value]);
        });
    }
    list
}

/// Definitions with several names that meet.
fn combinations() -> Vec<(String, Value)> {
    let mut list = Vec::new();
    let mut add = |what: &str, change: &dyn Fn(&mut Value)| {
        let mut definition = definition();
        change(&mut definition);
        list.push((what.to_owned(), named(definition)));
    };
    let version = |name: &str, storage: bool| {
        let mut version = definition()["spec"]["versions"][0].clone();
        version["name"] = json!(name);
        version["storage"] = json!(storage);
        version
    };
    add("a version twice", &|it| {
        it["spec"]["versions"] = json!([version("v1", true), version("v1", false)]);
    });
    add("two versions", &|it| {
        it["spec"]["versions"] = json!([version("v1", true), version("v2", false)]);
    });
    add("two storage versions", &|it| {
        it["spec"]["versions"] = json!([version("v1", true), version("v2", true)]);
    });
    add("no storage version", &|it| {
        it["spec"]["versions"] = json!([version("v1", false)]);
    });
    add("a kind like its list", &|it| {
        it["spec"]["names"]["listKind"] = json!("Widget")
    });
    add("a kind like the list of another", &|it| {
        it["spec"]["names"]["kind"] = json!("WidgetList");
    });
    add("short names twice", &|it| {
        it["spec"]["names"]["shortNames"] = json!(["w", "w"]);
    });
    add("a short name like the plural", &|it| {
        it["spec"]["names"]["shortNames"] = json!(["widgets"]);
    });
    add("a singular like the plural", &|it| {
        it["spec"]["names"]["singular"] = json!("widgets")
    });
    add("an approved group", &|it| {
        it["spec"]["group"] = json!("x.k8s.io");
        let approval = "https://github.com/kubernetes/kubernetes/pull/1";
        it["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": approval});
    });
    add("a group with a strange approval", &|it| {
        it["spec"]["group"] = json!("x.k8s.io");
        it["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "yes"});
    });
    add("an unapproved group", &|it| {
        it["spec"]["group"] = json!("x.k8s.io");
        it["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "unapproved, a test"});
    });
    list
}

async fn differences(definitions: &[(String, Value)]) -> Result<Vec<String>, TestFailure> {
    let sandbox = Sandbox::open("definition-names").await?;
    let mut found = Vec::new();
    for (what, definition) in definitions {
        found.extend(difference(&sandbox.client(), what, definition).await?);
    }
    Ok(found)
}

#[tokio::test]
async fn names_are_judged_as_by_the_api_server() -> TestResult {
    let definitions = definitions();
    assert!(definitions.len() > 1000, "{}", definitions.len());
    let found = differences(&definitions).await?;
    assert!(found.is_empty(), "{}: {}", found.len(), found.join("\n"));
    Ok(())
}

#[tokio::test]
async fn names_that_meet_are_judged_as_by_the_api_server() -> TestResult {
    let found = differences(&combinations()).await?;
    assert!(found.is_empty(), "{}", found.join("\n"));
    Ok(())
}

#[tokio::test]
async fn a_definition_has_the_name_of_its_plural_and_group() -> TestResult {
    let sandbox = Sandbox::open("definition-name").await?;
    for name in [
        "widgets.example.com",
        "widget.example.com",
        "widgets",
        "WIDGETS.example.com",
    ] {
        let mut definition = definition();
        definition["metadata"]["name"] = json!(name);
        let found = difference(&sandbox.client(), name, &definition).await?;
        assert_eq!(found, None);
    }
    Ok(())
}
