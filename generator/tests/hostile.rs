//! Definitions and manifests that try to break out of the generated code and YAML.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use kopf_gen::diagnostic::{Code, Diagnostics, Severity, Sources};
use kopf_gen::pipeline;
use kopf_gen::plan::{self, CrateEnvironment, InitialHandlers, UserFiles};
use serde_json::json;

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
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
          spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

/// One resource with a handler.
const RESOURCE: &str = "{crd: w.yaml, handlers: [{on: create, fn: create_fn}]}";

/// The files of a new crate by path, or the codes of the errors.
type CrateOutcome = Result<BTreeMap<String, String>, BTreeSet<Code>>;

fn manifest(resources: &str) -> String {
    format!("apiVersion: kopf-gen.dev/v1\noperator: {{name: any}}\nresources: [{resources}]\n")
}

/// A crate made of a manifest, a definition at `w.yaml`, and files of the user.
fn crate_with(manifest: &str, crd: &str, user: &[(&str, &str)]) -> (CrateOutcome, BTreeSet<Code>) {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", manifest);
    let read = |_: &str| io::Result::Ok(crd.as_bytes().to_vec());
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    let mut files = UserFiles::default();
    for (path, text) in user {
        let text = (*text).to_owned();
        if path.ends_with(".yaml") {
            files.add_kustomization(&mut sources, path, &text);
        } else {
            let path = (*path).to_owned().try_into().expect("a path");
            files.add(&mut sources, path, text);
        }
    }
    let planned = operator.map(|operator| {
        let mut planned = plan::operator(&operator, &sources, &files, &mut diagnostics);
        let environment = CrateEnvironment {
            runtime: "\"1\"".to_owned(),
            testing: "\"1\"".to_owned(),
            has_workspace: false,
        };
        planned.extend(plan::new_crate(
            &operator,
            environment,
            InitialHandlers::Stubs,
        ));
        pipeline::formatted(planned)
    });
    let codes = |severity: Severity| {
        let diagnostics = diagnostics.iter().filter(|it| it.severity == severity);
        diagnostics.map(|it| it.code).collect::<BTreeSet<_>>()
    };
    let outcome = match planned {
        Some(planned) if !diagnostics.has_errors() => Ok(planned
            .into_iter()
            .map(|file| (file.path.to_string(), file.content.into_text()))
            .collect()),
        _ => Err(codes(Severity::Error)),
    };
    (outcome, codes(Severity::Warning))
}

fn crate_of(resources: &str, crd: &str) -> CrateOutcome {
    crate_with(&manifest(resources), crd, &[]).0
}

/// Every Rust file parses; returns the files.
fn valid(outcome: CrateOutcome) -> BTreeMap<String, String> {
    let files = outcome.expect("it is accepted");
    for (path, text) in &files {
        if path.ends_with(".rs") {
            let parsed = syn::parse_file(text);
            assert!(parsed.is_ok(), "{path}: {:?}\n{text}", parsed.err());
        }
    }
    files
}

#[test]
fn a_name_cannot_leave_its_place() {
    let json = |text: &str| serde_json::Value::from(text).to_string();
    let plural = "widgets]\n    verbs: [get]\n  - apiGroups: ['*']\n    resources: ['*', z";
    for (old, new) in [
        ("plural: widgets", format!("plural: {}", json(plural))),
        (
            "group: example.com",
            format!("group: {}", json("e\", kind: loop {}, x: \"")),
        ),
        (
            "kind: Widget,",
            format!("kind: {},", json("Widget\"; evil!(); \"")),
        ),
        (
            "kind: Widget,",
            format!("kind: {},", json("Widget\nfn evil() {}")),
        ),
        ("plural: widgets", format!("plural: {}", json("a\"b"))),
        ("name: v1", format!("name: {}", json("v1\""))),
        ("name: v1", format!("name: {}", json("../../v1"))),
        (
            "plural: widgets",
            format!("plural: widgets, singular: {}", json("a\"")),
        ),
        (
            "plural: widgets",
            format!("plural: widgets, listKind: {}", json("a\"")),
        ),
        (
            "plural: widgets",
            format!("plural: widgets, shortNames: [{}]", json("`a\n")),
        ),
        (
            "plural: widgets",
            format!("plural: widgets, categories: [{}]", json("`a\n")),
        ),
    ] {
        let crd = CRD.replacen(old, &new, 1);
        // The name of the definition matches, so that nothing else is wrong with it.
        let crd = match new.strip_prefix("plural: ") {
            Some(plural) if !plural.contains(',') => {
                let text: String = serde_json::from_str(plural).expect("a string");
                let name = json(&format!("{text}.example.com"));
                crd.replacen("name: widgets.example.com", &format!("name: {name}"), 1)
            }
            _ => crd,
        };
        let outcome = crate_of(RESOURCE, &crd);
        let errors = outcome.expect_err(&format!("{new} is refused"));
        assert!(
            errors.iter().any(|code| code.id() == "KG0208"),
            "{new}: {errors:?}"
        );
    }
}

#[test]
fn a_selection_cannot_ask_for_more_than_it_names() {
    for select in [
        "{plural: '*', group: example.com}",
        "{group: '*'}",
        "{plural: \"a]\\n    verbs: ['*\", group: example.com}",
        "{kind: \"A\\\"\"}",
        "{version: \"v1\\n\", kind: A}",
        "{category: \"a b\"}",
        "{short_name: A_B}",
    ] {
        let resource =
            format!("{{select: {select}, as: All, handlers: [{{on: event, fn: seen}}]}}");
        assert!(crate_of(&resource, CRD).is_err(), "{select}");
    }
}

#[test]
fn the_name_of_a_file_stays_a_name() {
    for file in [
        "a\"b.yaml",
        "a\\b.yaml",
        "a:b.yaml",
        "k\")).crd(panic!(\"",
        "a\nb: c.yaml",
        "{{ x }}.yaml",
    ] {
        let crd = serde_json::Value::from(file).to_string();
        let resource = format!("{{crd: {crd}, handlers: [{{on: create, fn: create_fn}}]}}");
        let files = valid(crate_of(&resource, CRD));
        let operator = syn::parse_file(&files["src/generated.rs"]).expect("valid");
        let tokens = quote::quote!(#operator).to_string();
        assert_eq!(tokens.matches(". crd (").count(), 1, "{file}: {tokens}");
        assert!(!tokens.contains("panic !"), "{tokens}");
        let documents = files["deploy/base/crds.yaml"].split("---\n").count();
        assert_eq!(documents, 2, "{}", files["deploy/base/crds.yaml"]);
        for line in files["deploy/base/crds.yaml"].lines() {
            assert!(!line.starts_with("b: c"), "{line}");
        }
    }
}

#[test]
fn numbers_of_any_size_and_strings_of_any_kind_are_valid_parameters() {
    let param = r##"{limit: 5368709120, least: -9223372036854775808, most: 18446744073709551615, text: "\u0007\u202e\"#{}", list: [1.5, null, true]}"##;
    let resource =
        format!("{{crd: w.yaml, handlers: [{{on: create, fn: create_fn, param: {param}}}]}}");
    let files = valid(crate_of(&resource, CRD));
    let module = &files["src/generated/widget.rs"];
    for number in [
        "5368709120i64",
        "-9223372036854775808i64",
        "18446744073709551615u64",
    ] {
        assert!(module.contains(number), "{number}: {module}");
    }
    assert!(!module.contains('\u{202e}'), "{module}");
}

#[test]
fn a_default_of_any_json_is_valid_rust() {
    let large: Vec<serde_json::Value> = (0..200).map(|n| json!({ "n": n })).collect();
    for default in [
        json!({"a": "\u{7}\u{202e}\u{2028}"}),
        json!({"a": 5_368_709_120_i64, "b": -1, "c": 1e300}),
        json!(large),
        json!({"a\"##b": "\"##"}),
    ] {
        let spec = json!({"type": "object", "properties": {"any": {
            "x-kubernetes-preserve-unknown-fields": true,
            "default": default,
        }}});
        let crd = CRD.replace(
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            &spec.to_string(),
        );
        valid(crate_of(RESOURCE, &crd));
    }
}

#[test]
fn a_sample_with_the_end_of_a_raw_string_stays_one_string() {
    let spec = json!({"type": "object", "required": ["a"], "properties": {"a": {
        "type": "string",
        "default": "\"## ; fn evil() {} //\u{202e}",
    }}});
    let crd = CRD.replace(
        "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        &spec.to_string(),
    );
    let files = valid(crate_of(RESOURCE, &crd));
    let test = &files["tests/cluster.rs"];
    let parsed = syn::parse_file(test).expect("valid");
    let functions = parsed.items.iter();
    let functions = functions.filter(|item| matches!(item, syn::Item::Fn(_)));
    assert_eq!(functions.count(), 1, "{test}");
    assert!(!test.contains('\u{202e}'), "rustc rejects it: {test}");
}

#[test]
fn sizes_in_a_schema_cost_nothing() {
    for schema in [
        json!({"type": "array", "minItems": 3_000_000_000_u64, "items": {"type": "string"}}),
        json!({"type": "string", "minLength": 9_000_000_000_u64}),
        (0..40).fold(
            json!({"type": "string"}),
            |inner, _| json!({"type": "array", "minItems": 9, "items": inner}),
        ),
    ] {
        let spec = json!({"type": "object", "required": ["a"], "properties": {"a": schema}});
        let crd = CRD.replace(
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            &spec.to_string(),
        );
        let files = valid(crate_of(RESOURCE, &crd));
        let size: usize = files.values().map(String::len).sum();
        assert!(size < 1_000_000, "{size} bytes");
    }
}

/// The names that a module declares or imports in the namespace of types.
fn declared(text: &str) -> Vec<String> {
    fn imported(tree: &syn::UseTree, names: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => imported(&path.tree, names),
            syn::UseTree::Name(name) => names.push(name.ident.to_string()),
            syn::UseTree::Rename(rename) => names.push(rename.rename.to_string()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|it| imported(it, names)),
            _ => {}
        }
    }
    let mut names = Vec::new();
    for item in syn::parse_file(text).expect("valid").items {
        match item {
            syn::Item::Use(item) => imported(&item.tree, &mut names),
            syn::Item::Mod(item) => names.push(item.ident.to_string()),
            syn::Item::Struct(item) => names.push(item.ident.to_string()),
            syn::Item::Trait(item) => names.push(item.ident.to_string()),
            _ => {}
        }
    }
    names
}

#[test]
fn no_module_declares_a_name_twice() {
    let kinds = [
        "Arc",
        "Future",
        "Std",
        "Core",
        "SerdeJson",
        "KopfRuntime",
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
        "ValidationContext",
        "MutationContext",
        "WebhookHandler",
        "AdmissionResult",
        "Operator",
    ];
    for kind in kinds {
        let crd = CRD
            .replace("kind: Widget", &format!("kind: {kind}"))
            .replace(
                "{type: object, x-kubernetes-preserve-unknown-fields: true}",
                "{type: object, properties: {arc: {type: object, properties: {a: {type: string}}}, \
             duration: {type: object, properties: {b: {type: string}}}}}",
            );
        let resource = "{crd: w.yaml, memo: Mine, admission: [{validate: check}, {mutate: change}], \
            handlers: [{on: create, fn: create_fn, retries: 2, backoff: 1s}, {timer: tick, interval: 1s}, \
            {on: field, field: spec.arc, fn: arc_fn}, {on: field, field: spec.duration, fn: duration_fn}]}";
        let files = valid(crate_of(resource, &crd));
        for (path, text) in files.iter().filter(|(path, _)| path.ends_with(".rs")) {
            let names = declared(text);
            let unique: BTreeSet<&String> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{kind}, {path}: {names:?}");
        }
        let operator = &files["src/generated.rs"];
        for name in declared(operator) {
            let is_crate = ["std", "core", "alloc", "kopf_runtime", "serde_json"];
            assert!(!is_crate.contains(&name.as_str()), "{kind}: mod {name}");
        }
    }
}

#[test]
fn text_in_a_parameter_imports_nothing() {
    let resource = "{crd: w.yaml, handlers: [{on: create, fn: create_fn, param: \"Duration::TextTest::On::\"}]}";
    let files = valid(crate_of(resource, CRD));
    let names = declared(&files["src/generated/widget.rs"]);
    for name in ["Duration", "TextTest"] {
        assert!(!names.iter().any(|it| it == name), "{names:?}");
    }
}

#[test]
fn a_longer_name_is_another_name() {
    let resources = "{crd: w.yaml, memo: Mem, handlers: [{on: create, fn: create_fn}]}";
    let file = "struct MemExt {}\nimpl WidgetHandlers for Operator {}\n";
    let user = [
        ("src/handlers/widget.rs", file),
        (
            "deploy/kustomization.yaml",
            "resources:\n- crds.yaml\n- my-rbac.yaml\n",
        ),
    ];
    let (outcome, warnings) = crate_with(&manifest(resources), CRD, &user);
    assert!(warnings.contains(&Code::DeploymentList), "{warnings:?}");
    let files = outcome.expect("accepted");
    let text = &files["src/handlers/widget.rs"];
    assert!(text.contains("pub struct Mem {}"), "{text}");
}

#[test]
fn a_file_of_the_user_that_nests_without_end_is_an_error() {
    let file = |levels: usize| {
        let (open, close) = ("{".repeat(levels), "}".repeat(levels));
        format!("impl WidgetHandlers for Operator {{}}\nfn deep() {{ {open}{close} }}\n")
    };
    let with = |levels: usize| {
        let text = file(levels);
        let user = [("src/handlers/widget.rs", text.as_str())];
        crate_with(&manifest(RESOURCE), CRD, &user).0
    };
    valid(with(20));
    let errors = with(20_000).expect_err("too deep");
    assert_eq!(errors, BTreeSet::from([Code::UserFileSyntax]));
}

#[test]
fn a_rejected_definition_is_the_only_error() {
    let crd = CRD.replace("group: example.com", "group: example..com");
    let errors = crate_of(RESOURCE, &crd).expect_err("a bad group");
    assert!(errors.contains(&Code::InvalidName), "{errors:?}");
    assert!(!errors.contains(&Code::UnknownKind), "{errors:?}");
}

#[test]
fn a_namespace_that_cannot_exist_is_an_error() {
    let with = |name: &str| {
        let namespaces = format!("{{name: any, namespaces: [{name:?}]}}");
        crate_with(
            &manifest(RESOURCE).replace("{name: any}", &namespaces),
            CRD,
            &[],
        )
        .0
    };
    for name in ["--all", "a.b", "-a", "a-", &"x".repeat(64)] {
        let errors = with(name).expect_err(name);
        assert_eq!(errors, BTreeSet::from([Code::ManifestValue]), "{name}");
    }
    for name in ["a", "1a", "a-*", "!a", &"x".repeat(63)] {
        valid(with(name));
    }
}

#[test]
fn a_kustomization_without_its_base_is_a_warning() {
    let with = |tool: &str, list: &str| {
        let manifest = manifest(RESOURCE).replace(
            "{name: any}",
            &format!("{{name: any, deploy: {{tool: {tool}}}}}"),
        );
        let user = [("deploy/kustomization.yaml", list)];
        let (outcome, warnings) = crate_with(&manifest, CRD, &user);
        valid(outcome);
        warnings.contains(&Code::DeploymentList)
    };
    assert!(with("helm", "resources:\n- base\n"));
    assert!(with("helm", "resources:\n- ./base\n"));
    assert!(with("helm", "resources:\n- ../crds\n- mine.yaml\n"));
    assert!(!with("helm", "resources:\n- mine.yaml\n"));
    assert!(!with("both", "resources:\n- base\n"));
}

#[test]
fn field_names_cannot_leave_a_comment() {
    let spec = json!({"type": "object", "properties": {"a\nfn evil() {}\n//": {"type": "string"}}});
    let crd = CRD.replace(
        "{type: object, x-kubernetes-preserve-unknown-fields: true}",
        &spec.to_string(),
    );
    let resource = "{crd: w.yaml, handlers: [{on: field, field: \"spec.a\\nfn evil() {}\\n//\", fn: f}, \
        {on: create, fn: g, labels: {a: {predicate: p}}}]}";
    let Ok(files) = crate_of(resource, &crd) else {
        return;
    };
    for (path, text) in valid(Ok(files)) {
        for line in text.lines() {
            assert!(!line.trim_start().starts_with("fn evil"), "{path}: {text}");
        }
    }
}

#[test]
fn webhooks_that_would_share_a_name_are_refused() {
    let resource = "{crd: w.yaml, admission: [{validate: a, id: x_y}, {validate: b, id: x-y}]}";
    let errors = crate_of(resource, CRD).expect_err("the names are equal");
    assert!(errors.contains(&Code::DuplicateHandler), "{errors:?}");
}

#[test]
fn deep_values_are_refused_before_a_reader_of_json_stops() {
    for depth in [
        90, 100, 110, 115, 118, 119, 120, 121, 127, 128, 129, 200, 5000,
    ] {
        let value = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let any = format!(
            "{{type: object, properties: {{any: {{x-kubernetes-preserve-unknown-fields: true, default: {value}}}}}}}"
        );
        let crd = CRD.replace(
            "{type: object, x-kubernetes-preserve-unknown-fields: true}",
            &any,
        );
        if let Ok(files) = crate_of(RESOURCE, &crd) {
            let files = valid(Ok(files));
            let json = &files["src/generated/types/widget/crd.json"];
            let parsed = serde_json::from_str::<serde_json::Value>(json);
            assert!(parsed.is_ok(), "{depth} levels");
        }
    }
}

#[test]
fn an_index_keeps_types_and_nothing_else() {
    for bad in [
        "String // comment\n",
        "[u8; { loop {} }]",
        "[u8; evil()]",
        "String /* */",
        "evil!{}",
    ] {
        let keys = serde_json::Value::from(bad).to_string();
        let resource = format!("{{crd: w.yaml, indices: [{{index: by_a, keys: {keys}}}]}}");
        let errors = crate_of(&resource, CRD).expect_err(bad);
        assert!(errors.contains(&Code::IndexType), "{bad}: {errors:?}");
    }
}

#[test]
fn definitions_are_files_of_the_crate() {
    let errors = crate_of("{crd: /etc/w.yaml, handlers: []}", CRD).expect_err("it is elsewhere");
    assert!(errors.contains(&Code::ManifestValue), "{errors:?}");
}
