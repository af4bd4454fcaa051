//! Options change the types at the paths that they name, and no others.

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::field_lookup::UnknownField;
use kopf_gen::model::generated_types::ExistingType;
use kopf_gen::model::resource::CustomResource;
use kopf_gen::model::type_options::{Builtins, Options};
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::rust::{RustPath, RustType};
use kopf_gen::types::{self, TypesRequest};

const CRD: &str = r#"
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
        required: [spec]
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, format: int32}
              created: {type: string, format: date-time}
              replicas: {type: integer, default: 1}
              labels: {type: object, additionalProperties: {type: string}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              note: {type: string, nullable: true}
              rules:
                type: array
                items: {type: object, properties: {host: {type: string}, mode: {type: string, enum: [A, B]}}}
              resources:
                type: object
                properties:
                  limits: &quantities
                    type: object
                    additionalProperties:
                      pattern: ^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$
                      x-kubernetes-int-or-string: true
                  requests: *quantities
                  claims: {type: array, items: {type: object, required: [name], properties: {name: {type: string}, request: {type: string}}}}
"#;

fn resource(options: Options) -> (CustomResource, String) {
    let mut sources = Sources::new();
    let id = sources.add("widgets.yaml", CRD);
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest {
        options,
        ..TypesRequest::default()
    };
    let mut resources = types::resources(&sources, &[id], &request, &mut diagnostics);
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    let text = pipeline::text(plan::types_module(&resources, &sources));
    (resources.remove(0), text)
}

fn contains(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

#[test]
fn types_are_renamed_replaced_and_derived_by_path() {
    let (_, text) = resource(Options {
        names: [(
            "spec.rules[]".to_owned(),
            "HostRule".parse().expect("a name"),
        )]
        .into(),
        replacements: [(
            "spec.created".to_owned(),
            ExistingType {
                rust: RustType::external("k8s_openapi::apimachinery::pkg::apis::meta::v1::Time"),
                default: false,
            },
        )]
        .into(),
        derives: [(
            "spec.rules[].mode".to_owned(),
            vec![RustPath::parse("Hash").expect("a path")],
        )]
        .into(),
        ..Options::default()
    });
    contains(
        &text,
        &[
            "pub rules: Option<Vec<HostRule>>",
            "pub struct HostRule {",
            "pub created: Option<Time>",
            "#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, Hash)]\n    pub enum RuleMode",
        ],
    );
    assert_eq!(text.matches("Hash").count(), 1);
}

#[test]
fn builders_and_derives_for_all() {
    let (_, text) = resource(Options {
        builders: true,
        derives_everywhere: vec![RustPath::external("schemars::JsonSchema")],
        ..Options::default()
    });
    contains(
        &text,
        &[
            "pub fn with_size(mut self, value: impl Into<i32>) -> Self",
            "pub fn with_note(mut self, value: impl Into<String>) -> Self",
            "#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]\n    pub struct WidgetSpec",
        ],
    );
}

/// Otherwise they would be implemented twice.
#[test]
fn traits_that_are_written_out_are_not_derived() {
    for serialize in ["serde::Serialize", "Serialize"] {
        for default in ["std::default::Default", "Default"] {
            let derives = [serialize, default].map(|it| RustPath::parse(it).expect("a path"));
            let (_, text) = resource(Options {
                derives_everywhere: derives.into(),
                ..Options::default()
            });
            let items: Vec<&str> = text.split("#[derive(").skip(1).collect();
            assert!(!items.is_empty());
            for item in items {
                let (derives, rest) = item.split_once(")]").expect("the end of the derives");
                let mut words = rest
                    .split_whitespace()
                    .skip_while(|word| !["struct", "enum"].contains(word));
                let name = words.nth(1).unwrap_or_default();
                // `struct Time(pub String);`
                let name = name.split('(').next().unwrap_or_default();
                for written in ["Serialize", "Default"] {
                    let is_written = text.contains(&format!("impl {written} for {name} {{"));
                    let count = derives.split(',').filter(|it| it.trim() == written).count();
                    assert_eq!(
                        count + usize::from(is_written),
                        1,
                        "{written} for {name}: {derives}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_default_for_all_types_is_the_first_value_of_enums() {
    let (_, text) = resource(Options {
        derives_everywhere: vec![RustPath::parse("Default").expect("a path")],
        ..Options::default()
    });
    contains(
        &text,
        &[
            "PartialEq, Eq, Deserialize, Serialize, Default)]\n    pub enum RuleMode {\n        #[default]\n        A,\n        B,",
            "impl Default for Quantity {",
            "Self::String(String::new())",
        ],
    );
    assert_eq!(text.matches("#[default]").count(), 1, "{text}");
}

#[test]
fn builtin_types_follow_the_option() {
    let (_, exact) = resource(Options::default());
    contains(
        &exact,
        &[
            "pub created: Option<Time>",
            "pub struct Time(pub String);",
            "pub resources: Option<Resources>",
            "impl TryFrom<Resources> for ResourceRequirements",
            "impl TryFrom<ResourceRequirements> for Resources",
        ],
    );
    let (_, compatible) = resource(Options {
        builtins: Builtins::Compatible,
        ..Options::default()
    });
    assert!(!compatible.contains("pub struct Time("), "{compatible}");
    contains(
        &compatible,
        &[
            "pub created: Option<Time>",
            "pub resources: Option<ResourceRequirements>",
        ],
    );
}

#[test]
fn fields_are_found_by_path() {
    let (resource, _) = resource(Options::default());
    let version = resource.main_version();
    let field = |path: &[&str]| {
        let found = resource.field(version, path).expect("a field");
        (found.rust.to_string(), found.optional, found.json)
    };
    let is = |rust: &str, optional, json| (rust.to_owned(), optional, json);
    assert_eq!(
        field(&[]),
        is("crate::generated::types::widget::v1::Widget", false, false)
    );
    assert_eq!(
        field(&["spec"]),
        is(
            "crate::generated::types::widget::v1::WidgetSpec",
            false,
            false
        )
    );
    assert_eq!(field(&["spec", "size"]), is("i32", false, false));
    assert_eq!(field(&["spec", "replicas"]), is("i64", false, false));
    assert_eq!(field(&["spec", "note"]), is("String", true, false));
    assert_eq!(field(&["spec", "labels", "app"]), is("String", true, false));
    assert_eq!(
        field(&["spec", "free", "a", "b"]),
        is("serde_json::Value", true, true)
    );
    assert_eq!(
        field(&["spec", "rules"]),
        is(
            "Vec<crate::generated::types::widget::v1::Rule>",
            true,
            false
        )
    );
    assert_eq!(
        field(&["metadata", "labels"]),
        is("std::collections::BTreeMap<String, String>", true, false)
    );
    assert_eq!(
        resource.field(version, &["spec", "sizes"]),
        Err(UnknownField {
            name: "sizes".to_owned(),
            parent: "spec".to_owned(),
            similar: vec!["size".to_owned()],
        })
    );
    assert!(
        resource
            .field(version, &["metadata", "lables"])
            .is_err_and(|e| e.similar[0] == "labels")
    );
    assert!(
        resource
            .field(version, &["spec", "size", "deeper"])
            .is_err()
    );
}
