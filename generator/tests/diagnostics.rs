//! Every diagnostic of reading and mapping definitions.

use std::collections::BTreeSet;

use kopf_gen::diagnostic::{Code, Diagnostics, SourceId, Sources, Style, human, json};
use kopf_gen::load::crd::NameFix;
use kopf_gen::load::input;
use kopf_gen::model::resource::VersionChoice;
use kopf_gen::model::type_options::Options;
use kopf_gen::types::{self, TypesRequest};

const HEAD: &str = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
";

/// A definition with this schema of `spec`.
fn with_spec(schema: &str) -> String {
    let indented: String = schema
        .lines()
        .map(|line| format!("            {line}\n"))
        .collect();
    HEAD.to_owned() + &indented
}

fn sources(texts: &[&str]) -> (Sources, Vec<SourceId>) {
    let mut sources = Sources::new();
    let ids = texts
        .iter()
        .enumerate()
        .map(|(index, text)| sources.add(format!("{}.yaml", ["first", "second"][index]), *text))
        .collect();
    (sources, ids)
}

fn run(texts: &[&str], request: &TypesRequest) -> (Diagnostics, Sources) {
    let (sources, ids) = sources(texts);
    let mut diagnostics = Diagnostics::new();
    let _ = types::resources(&sources, &ids, request, &mut diagnostics);
    (diagnostics, sources)
}

#[test]
fn every_code_is_reported() {
    let plain = TypesRequest::default();
    let named = TypesRequest {
        versions: VersionChoice::Named(BTreeSet::from(["v2".to_owned()])),
        ..TypesRequest::default()
    };
    let fixed = TypesRequest {
        names: NameFix::Correct,
        ..TypesRequest::default()
    };
    let refused = TypesRequest {
        names: NameFix::Refuse,
        ..TypesRequest::default()
    };
    let lost = TypesRequest {
        options: Options {
            names: [("spec.nowhere".to_owned(), "Thing".parse().expect("a name"))].into(),
            ..Options::default()
        },
        ..TypesRequest::default()
    };
    let clash = TypesRequest {
        options: Options {
            names: [("spec".to_owned(), "Widget".parse().expect("a name"))].into(),
            ..Options::default()
        },
        ..TypesRequest::default()
    };
    let good = with_spec("type: object\nproperties: {a: {type: string}}");
    let other = good.replace("a: {type: string}", "b: {type: string}");
    let misnamed = good.replace("name: widgets.example.com", "name: widget");
    let unserved = good.replace("served: true", "served: false");
    let old = "apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec: {group: example.com, version: v1, names: {kind: Widget, plural: widgets}}
";
    let deep = format!("apiVersion: v1\nkind: X\ndata:\n{}", "- ".repeat(300));
    let schema = with_spec(
        "type: object\nrequired: [gone]\nproperties:\n  a: {type: [string]}\n  b: {}\n  c: {$ref: '#/x'}\n  d: {type: string, minimun: 3}\n  e: {type: object, required: a}",
    );
    let broken_crd = good
        .replace("scope: Namespaced", "scope: Galaxy")
        .replace("plural: widgets", "plural: ''");
    let bad_names = good
        .replace(
            "group: example.com",
            "group: \"e\\\", kind: loop {}, x: \\\"\"",
        )
        .replace("kind: Widget,", "kind: \"Wid\\nget\", shortNames: [w, W],")
        .replace("- name: v1", "- name: 1v");
    let rejected = with_spec(
        "type: object
additionalProperties: {type: string}
properties:
  ports: {type: array, x-kubernetes-list-type: map, items: {type: object}}
oneOf:
- {properties: {ports: {type: array}}}
",
    );
    let cases: Vec<(&str, Vec<&str>, &TypesRequest)> = vec![
        ("syntax", vec!["a: [1\nb: 2\n"], &plain),
        (
            "template",
            vec!["{{- if .Values.crds }}\nkind: X\n{{- end }}\n"],
            &plain,
        ),
        ("duplicate_key", vec!["a: 1\na: 2\n"], &plain),
        ("key_not_string", vec!["name: {{ .Values.name }}\n"], &plain),
        ("boolean_key", vec!["kind: X\non: 1\n"], &plain),
        ("bad_alias", vec!["a: &a [*a]\n"], &plain),
        ("too_deep", vec![&deep], &plain),
        (
            "not_a_crd",
            vec!["apiVersion: v1\nkind: Pod\n---\njust: text\n"],
            &plain,
        ),
        ("invalid_crd", vec![&broken_crd], &plain),
        ("invalid_names", vec![&bad_names], &plain),
        ("crd_name", vec![&misnamed], &plain),
        ("crd_name_refused", vec![&misnamed], &refused),
        ("crd_name_fixed", vec![&misnamed], &fixed),
        ("no_version", vec![&good], &named),
        ("no_served_version", vec![&unserved], &plain),
        ("duplicate_crd", vec![&good, &other], &plain),
        ("old_crd", vec![old], &plain),
        ("old_crd_refused", vec![old], &refused),
        ("schema", vec![&schema], &plain),
        ("schema_rejected", vec![&rejected], &refused),
        ("unknown_path", vec![&good], &lost),
        ("name_clash", vec![&good], &clash),
    ];
    // Files that cannot be read, and the comparison with git, are cases of the commands.
    let mut seen = BTreeSet::from([Code::Unreadable, Code::BreakingChange]);
    for (name, texts, request) in cases {
        let (diagnostics, sources) = run(&texts, request);
        assert!(!diagnostics.is_empty(), "{name} reports nothing");
        seen.extend(diagnostics.iter().map(|d| d.code));
        let reports: Vec<String> = diagnostics
            .iter()
            .map(|d| human(d, &sources, Style::Plain))
            .collect();
        insta::assert_snapshot!(name, reports.join("\n\n"));
    }
    let ours = |code: &&Code| code.id() < "KG05";
    let missing: Vec<&Code> = Code::ALL
        .iter()
        .filter(ours)
        .filter(|c| !seen.contains(c))
        .collect();
    assert!(missing.is_empty(), "no report shows {missing:?}");
}

#[test]
fn a_missing_type_is_reported_once() {
    let (plain, refused) = (NameFix::Report, NameFix::Refuse);
    for (field, names, expected) in [
        ("a: {}", plain, Code::NotStructural),
        ("a: {}", refused, Code::RejectedDefinition),
        ("a: {type: [string]}", plain, Code::InvalidSchema),
        ("a: {type: [string]}", refused, Code::InvalidSchema),
        ("a: {$ref: '#/x'}", plain, Code::NotStructural),
        ("a: {$ref: '#/x'}", refused, Code::NotStructural),
        ("a: {type: array, items: {}}", plain, Code::NotStructural),
        (
            "a: {type: array, items: {}}",
            refused,
            Code::RejectedDefinition,
        ),
    ] {
        let text = with_spec(&format!("type: object\nproperties:\n  {field}"));
        let request = TypesRequest {
            names,
            ..TypesRequest::default()
        };
        let (diagnostics, _) = run(&[&text], &request);
        let codes: Vec<Code> = diagnostics.iter().map(|it| it.code).collect();
        assert_eq!(codes, [expected], "{field}, {names:?}");
    }
}

/// The API server reads null as an absent value.
#[test]
fn parts_of_a_version_that_are_null_are_absent() {
    let good = with_spec("type: object");
    let request = TypesRequest::default();
    for subresources in ["null", "{status: null}", "{status: null, scale: null}"] {
        let text = good.replace(
            "served: true",
            &format!("served: true\n    subresources: {subresources}"),
        );
        let (sources, ids) = sources(&[&text]);
        let mut diagnostics = Diagnostics::new();
        let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{subresources}");
        let version = resources[0].main_version();
        assert!(!version.status && version.scale.is_none(), "{subresources}");
    }
    let start = good.find("openAPIV3Schema:").expect("a schema");
    let without = format!("{}openAPIV3Schema: null\n", &good[..start]);
    let (diagnostics, _) = run(&[&without], &request);
    let codes: Vec<Code> = diagnostics.iter().map(|it| it.code).collect();
    assert_eq!(codes, [Code::InvalidCrd], "{without}");
}

/// Schemas of a field with a value of the wrong type.
const WRONG_TYPES: &[&str] = &[
    "{type: integer, maximum: '5'}",
    "{type: integer, maximum: 1e400}",
    "{type: integer, minimum: [1]}",
    "{type: integer, multipleOf: true}",
    "{type: integer, exclusiveMinimum: 5}",
    "{type: string, maxLength: 1.5}",
    "{type: string, maxLength: 99999999999999999999}",
    "{type: string, pattern: 5}",
    "{type: string, title: {}}",
    "{type: array, items: {type: string}, uniqueItems: x}",
    "{type: object, not: 5}",
    "{type: object, not: {minProperties: x}}",
    "{type: object, externalDocs: 5}",
    "{type: string, x-kubernetes-validations: [5]}",
    "{type: string, x-kubernetes-validations: [{rule: 5}]}",
    "{type: string, x-kubernetes-validations: [{rule: 'true', message: 5}]}",
];

/// Parts of a definition, and what takes their places with a value of the wrong type.
const WRONG_PARTS: &[(&str, &str)] = &[
    ("served: true", "served: 'true'"),
    ("served: true", "served: true\n    deprecated: 1"),
    ("served: true", "served: true\n    deprecationWarning: [a]"),
    (
        "served: true",
        "served: true\n    subresources: {scale: {specReplicasPath: 1}}",
    ),
    (
        "served: true",
        "served: true\n    additionalPrinterColumns: [{name: 1}]",
    ),
    (
        "served: true",
        "served: true\n    additionalPrinterColumns: [{name: a, priority: b}]",
    ),
    (
        "served: true",
        "served: true\n    selectableFields: [{jsonPath: 1}]",
    ),
    (
        "scope: Namespaced",
        "scope: Namespaced\n  conversion: {strategy: 1}",
    ),
    (
        "scope: Namespaced",
        "scope: Namespaced\n  preserveUnknownFields: maybe",
    ),
    (
        "{name: widgets.example.com}",
        "{name: widgets.example.com, labels: {a: 1}}",
    ),
    (
        "{name: widgets.example.com}",
        "{name: widgets.example.com, annotations: [a]}",
    ),
    ("\nspec:", "\nstatus: {storedVersions: v1}\nspec:"),
];

/// The API server cannot read it, and neither could the generated code.
#[test]
fn a_definition_with_a_value_of_the_wrong_type_is_refused() {
    let good = with_spec("type: object\nproperties: {a: {type: string}}");
    let fields = WRONG_TYPES.iter().map(|field| {
        let text = with_spec(&format!("type: object\nproperties:\n  a: {field}"));
        (*field, text, Code::InvalidSchema)
    });
    let parts = WRONG_PARTS.iter().map(|(part, wrong)| {
        assert!(good.contains(part), "{part}");
        (*wrong, good.replacen(part, wrong, 1), Code::InvalidCrd)
    });
    for (what, text, expected) in fields.chain(parts) {
        let (diagnostics, _) = run(&[&text], &TypesRequest::default());
        let codes: Vec<Code> = diagnostics.iter().map(|it| it.code).collect();
        assert_eq!(codes, [expected], "{what}");
    }
}

#[test]
fn labels_and_annotations_that_are_null_are_empty_texts() {
    let good = with_spec("type: object");
    let name = "name: widgets.example.com";
    let text = good.replace(
        name,
        &format!("{name}, labels: {{a: null}}, annotations: null"),
    );
    let (sources, ids) = sources(&[&text]);
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest::default();
    let resources = types::resources(&sources, &ids, &request, &mut diagnostics);
    assert!(diagnostics.is_empty());
    let json = resources[0].crd_json.as_deref().unwrap_or_default();
    assert!(
        json.contains(r#""labels":{"a":""},"annotations":null"#),
        "{json}"
    );
}

#[test]
fn unreadable_inputs_are_all_reported() {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let arguments = ["no/such/file.yaml".to_owned(), "no/such/*.yaml".to_owned()];
    let ids = input::read(&arguments, &mut sources, &mut diagnostics);
    assert!(ids.is_empty());
    let messages: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages.len(), 2, "{messages:?}");
    assert!(diagnostics.iter().all(|d| d.code == Code::Unreadable));
}

#[test]
fn diagnostics_are_printed_as_json() {
    let (diagnostics, sources) = run(&["a: 1\na: 2\n"], &TypesRequest::default());
    let first = diagnostics.iter().next().expect("a duplicate key");
    let text = serde_json::to_string_pretty(&json(first, &sources)).expect("JSON");
    insta::assert_snapshot!(text);
}
