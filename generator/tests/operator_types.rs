//! The types inside of an operator: shared by its kinds, tolerant, and with the options of its
//! manifest.

use std::collections::BTreeMap;
use std::io;

use kopf_gen::diagnostic::{Diagnostics, Sources, Style, human};
use kopf_gen::format::FileContent;
use kopf_gen::pipeline;
use kopf_gen::plan::{self, UserFiles};

/// A definition with this schema of the spec.
fn definition(kind: &str, spec: &str) -> String {
    let plural = format!("{}s", kind.to_lowercase());
    format!(
        "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {plural}.example.com}}
spec:
  group: example.com
  scope: Namespaced
  names: {{kind: {kind}, plural: {plural}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {spec}
"
    )
}

/// The generated files, or the errors.
fn files(
    resources: &str,
    definitions: &[(&str, String)],
) -> Result<BTreeMap<String, String>, String> {
    let manifest = format!(
        "apiVersion: kopf-gen.dev/v1
operator: {{name: shop}}
resources:
{resources}"
    );
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let source = sources.add("kopf.yaml", manifest);
    let read = |path: &str| {
        let found = definitions.iter().find(|(name, _)| *name == path);
        let found = found.map(|(_, text)| text.as_bytes().to_vec());
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    };
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    let Some(operator) = operator else {
        let texts = diagnostics
            .iter()
            .map(|it| human(it, &sources, Style::Plain));
        return Err(texts.collect::<Vec<_>>().join("\n"));
    };
    let user = UserFiles::default();
    let files = plan::operator(&operator, &sources, &user, &mut diagnostics);
    let files = pipeline::formatted(files).into_iter();
    let generated = files.filter_map(|file| match file.content {
        FileContent::Generated(text) | FileContent::Vendored(text) => {
            Some((file.path.to_string(), text))
        }
        FileContent::Scaffold(_) | FileContent::Splice { .. } => None,
    });
    Ok(generated.collect())
}

/// The text of all types.
fn types(resources: &str, definitions: &[(&str, String)]) -> String {
    let files = files(resources, definitions).unwrap_or_else(|errors| panic!("{errors}"));
    let types = files
        .into_iter()
        .filter(|(path, _)| path.starts_with("src/generated/types/") && path.ends_with(".rs"));
    types.map(|(_, text)| text).collect()
}

const CONDITIONS: &str = "{type: object, properties: {at: {type: string, format: date-time}, \
    ports: {type: array, items: {x-kubernetes-int-or-string: true}}, \
    conditions: {type: array, items: {type: object, \
    required: [lastTransitionTime, message, reason, status, type], properties: { \
    lastTransitionTime: {type: string, format: date-time}, message: {type: string}, \
    reason: {type: string}, status: {type: string, enum: ['True', 'False', Unknown]}, \
    type: {type: string}}}}}}";

#[test]
fn the_kinds_of_an_operator_share_their_types() {
    let definitions = [
        ("a.yaml", definition("Basket", CONDITIONS)),
        ("b.yaml", definition("Checkout", CONDITIONS)),
    ];
    let [first, second] = ["  - crd: a.yaml\n", "  - crd: b.yaml\n"];
    let text = types(&format!("{first}{second}"), &definitions);
    for item in [
        "pub struct Condition {",
        "pub enum ConditionStatus {",
        "pub enum IntOrString {",
        "pub struct Time(",
    ] {
        assert_eq!(text.matches(item).count(), 1, "{item} in\n{text}");
    }
    assert!(
        text.contains("pub use super::super::basket::v1::"),
        "{text}"
    );
    // The order of the manifest does not matter.
    assert_eq!(types(&format!("{second}{first}"), &definitions), text);
}

#[test]
fn stand_ins_convert_to_the_types_of_kubernetes_and_back() {
    let definitions = [("a.yaml", definition("Basket", CONDITIONS))];
    let text = types("  - crd: a.yaml\n", &definitions);
    for conversion in [
        "impl TryFrom<Condition> for v1::Condition",
        "impl TryFrom<v1::Condition> for Condition",
        "impl From<v1::Time> for Time",
        "impl TryFrom<Time> for v1::Time",
        "impl From<MicroTime> for Time",
        "impl TryFrom<Time> for MicroTime",
        "impl From<intstr::IntOrString> for IntOrString",
        "impl TryFrom<IntOrString> for intstr::IntOrString",
    ] {
        assert!(text.contains(conversion), "{conversion} is not in\n{text}");
    }
}

const ENUMS: &str = "{type: object, properties: {mode: {type: string, enum: [Fast, Slow]}, \
    level: {type: integer, enum: [1, 2]}, \
    choice: {type: object, properties: {a: {type: string}, b: {type: integer}}, \
    oneOf: [{required: [a]}, {required: [b]}]}}}";

#[test]
fn a_value_that_a_later_definition_allows_can_be_read() {
    let definitions = [("a.yaml", definition("Basket", ENUMS))];
    let text = types("  - crd: a.yaml\n", &definitions);
    for variant in [
        "Other(String),",
        "Other(i64),",
        "Other(BTreeMap<String, Value>),",
    ] {
        assert!(text.contains(variant), "{variant} is not in\n{text}");
    }
    let closed = types(
        "  - {crd: a.yaml, types: {open_enums: false}}\n",
        &definitions,
    );
    assert!(!closed.contains("Other("), "{closed}");
}

#[test]
fn the_manifest_has_the_options_of_types() {
    let definitions = [("a.yaml", definition("Basket", ENUMS))];
    let text = types(
        "  - crd: a.yaml
    types:
      rename: {spec.mode: Speed}
      replace: {spec.choice: serde_json::Value}
      derive: [std::hash::Hash]
      derive_at: {spec.mode: [PartialOrd, Ord]}
      builders: true
      builtin_types: none
",
        &definitions,
    );
    for part in [
        "pub mode: Option<Speed>",
        "pub choice: Option<Value>",
        "Serialize, Hash, PartialOrd, Ord)]\npub enum Speed {",
        "pub fn with_mode(",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn mistakes_in_type_options_are_shown_at_their_places() {
    let definitions = [("a.yaml", definition("Basket", ENUMS))];
    let errors = files(
        "  - crd: a.yaml
    types:
      rename: {spec.mod: Speed, spec.level: basket, spec.mode: Basket}
      replace: {spec.choice: '&str'}
      derive: [Vec<u8>]
      derive_at: [spec.mode]
      builtin_types: always
      open_enum: true
  - builtin: v1/Pod
    types: {builders: true}
",
        &definitions,
    )
    .expect_err("mistakes");
    insta::assert_snapshot!(errors);
}

#[test]
fn a_path_that_no_type_has_is_shown_with_the_nearest_one() {
    let definitions = [("a.yaml", definition("Basket", ENUMS))];
    let errors = files(
        "  - crd: a.yaml
    types:
      rename: {spec.mod: Speed, spec.mode: Basket}
",
        &definitions,
    )
    .expect_err("mistakes");
    insta::assert_snapshot!(errors);
}

#[test]
fn null_is_a_value_of_its_own_only_beside_a_default() {
    let spec = "{type: object, properties: { \
        optional: {type: string, nullable: true}, \
        known: {type: string, nullable: true, default: x}, \
        unknown: {type: object, nullable: true, default: {a: 1}, \
        properties: {b: {type: string}}}}}";
    let text = types(
        "  - crd: a.yaml\n",
        &[("a.yaml", definition("Basket", spec))],
    );
    for part in [
        "pub optional: Option<String>,",
        "pub known: Option<String>,",
        "pub unknown: Option<Option<Unknown>>,",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_type_of_several_fields_is_named_after_what_their_names_share() {
    let reference = "{type: object, required: [name], properties: {name: {type: string}, \
        key: {type: string}}}";
    let spec = format!(
        "{{type: object, properties: {{acme: {{type: object, properties: {{ \
        privateKeySecretRef: {reference}, solver: {{type: object, properties: {{ \
        apiTokenSecretRef: {reference}}}}}}}}}}}}}"
    );
    let text = types(
        "  - crd: a.yaml\n",
        &[("a.yaml", definition("Issuer", &spec))],
    );
    for part in [
        "pub private_key_secret_ref: Option<SecretRef>,",
        "pub api_token_secret_ref: Option<SecretRef>,",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
