//! The types for each form of schema: one fixture and one snapshot per form.

#[path = "shapes/definition.rs"]
mod definition;

use std::fs;
use std::path::Path;

use definition::definition;

use kopf_gen::diagnostic::{Diagnostics, Severity, Sources, Style, human};
use kopf_gen::format::FormattedFile;
use kopf_gen::model::type_options::{Builtins, Options};
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};

fn generate(text: &str, options: Options) -> String {
    let mut sources = Sources::new();
    let id = sources.add("widgets.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let request = TypesRequest {
        options,
        ..TypesRequest::default()
    };
    let resources = types::resources(&sources, &[id], &request, &mut diagnostics);
    let mut output: Vec<String> = diagnostics
        .iter()
        .filter(|d| d.severity != Severity::Info)
        .map(|d| human(d, &sources, Style::Plain))
        .collect();
    for resource in &resources {
        let files = pipeline::formatted(plan::resource_types(resource, &sources));
        let is_version = |file: &FormattedFile| file.path.as_str().ends_with("/v1.rs");
        for file in files.into_iter().filter(is_version) {
            let text = file.content.into_text();
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            output.push(text);
        }
    }
    output.join("\n")
}

/// The types after the root type, which is the same for all.
fn types_of(properties: &str, options: Options) -> String {
    let output = generate(&definition("Widget", properties), options);
    let header = output.find("// @generated").expect("a header");
    let end = output
        .find("        map.end()\n    }\n}\n")
        .expect("the root is serialized by hand");
    let types: Vec<&str> = output[end..].lines().skip(4).collect();
    output[..header].to_owned() + &types.join("\n")
}

#[test]
fn every_shape() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes");
    let mut names: Vec<_> = fs::read_dir(folder)
        .expect("the folder of fixtures")
        .map(|entry| entry.expect("a fixture").path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "yaml")
        })
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for path in names {
        let text = fs::read_to_string(&path).expect("a fixture");
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        insta::assert_snapshot!(name, types_of(&text, Options::default()));
    }
}

#[test]
fn whole_module() {
    let text = definition(
        "Widget",
        "spec: {type: object, properties: {size: {type: integer}}}",
    );
    insta::assert_snapshot!(generate(&text, Options::default()));
}

#[test]
fn open_enums_keep_unknown_values() {
    let schema = "spec:
  type: object
  properties:
    mode: {type: string, enum: [Fast, Slow]}
    level: {type: integer, enum: [1, 2]}";
    let options = Options {
        open_enums: true,
        ..Options::default()
    };
    insta::assert_snapshot!(types_of(schema, options));
}

#[test]
fn no_builtin_types() {
    let schema = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes/builtin_types.yaml"),
    )
    .expect("a fixture");
    let options = Options {
        builtins: Builtins::None,
        ..Options::default()
    };
    insta::assert_snapshot!(types_of(&schema, options));
}

/// The names of all types, in the order of the text.
fn type_names(properties: &str) -> Vec<String> {
    let text = types_of(properties, Options::default());
    let names = text.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("pub struct ")
            .or(line.strip_prefix("pub enum "))?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    names.collect()
}

#[test]
fn type_names_stay_when_other_fields_are_added() {
    let before = "spec:
  type: object
  properties:
    server: {type: object, properties: {tls: {type: object, properties: {key: {type: string}}}}}
";
    let added = "    proxy:
      type: object
      properties:
        upstream: {type: object, properties: {tls: {type: object, properties: {ca: {type: string}}}}}
        server: {type: object, properties: {port: {type: integer}}}
";
    let old = type_names(before);
    let new = type_names(&(before.to_owned() + added));
    assert_eq!(old, ["WidgetSpec", "Server", "Tls"]);
    for name in old {
        assert!(new.contains(&name), "{name} is not among {new:?}");
    }
    assert!(new.contains(&"UpstreamTls".to_owned()), "{new:?}");
    assert!(new.contains(&"ProxyServer".to_owned()), "{new:?}");
}

#[test]
fn kinds_named_like_types_of_their_own_fields_make_room() {
    let properties = fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shapes/builtin_types.yaml"),
    )
    .expect("a fixture");
    for kind in ["Condition", "IntOrString", "Quantity"] {
        let text = generate(&definition(kind, &properties), Options::default());
        let defined: Vec<&str> = text
            .lines()
            .filter_map(|line| {
                line.strip_prefix("pub struct ")
                    .or(line.strip_prefix("pub enum "))
            })
            .collect();
        let distinct: std::collections::BTreeSet<&&str> = defined.iter().collect();
        assert_eq!(defined.len(), distinct.len(), "{kind}: {defined:?}");
        assert!(
            defined.contains(&format!("{kind} {{").as_str()),
            "{kind}: {defined:?}"
        );
    }
}
