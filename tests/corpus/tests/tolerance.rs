//! The types of an operator read values that only a later version of the definition allows, and
//! write them as they were.

use kopf_corpus::definition;
use kopf_corpus::generated::DEPENDENCIES;
use kopf_corpus::roundtrip::{RoundtripCase, RoundtripProgram};
use kopf_corpus::scratch_crate::{GeneratedModule, ModuleFile, ScratchCrate};
use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::type_options::Options;
use kopf_gen::pipeline;
use kopf_gen::plan;
use kopf_gen::types::{self, TypesRequest};
use serde_json::{Value, json};

const DEFINITION: &str = "
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
          spec:
            type: object
            properties:
              mode: {type: string, enum: [Fast, Slow]}
              modes: {type: array, items: {type: string, enum: [Fast, Slow]}}
              level: {type: integer, enum: [1, 2]}
              choice:
                type: object
                properties: {a: {type: string}, b: {type: integer}}
                oneOf: [{required: [a]}, {required: [b]}]
              either: {oneOf: [{type: string}, {type: boolean}]}
";

#[test]
fn values_that_a_later_definition_allows_are_read_and_kept() {
    let mut sources = Sources::new();
    let id = sources.add("widgets.yaml", DEFINITION);
    let request = TypesRequest {
        options: Options {
            open_enums: true,
            ..Options::default()
        },
        ..TypesRequest::default()
    };
    let resources = types::resources(&sources, &[id], &request, &mut Diagnostics::new());
    let [resource] = resources.as_slice() else {
        panic!("there is one definition");
    };
    let files = pipeline::formatted(plan::resource_types(resource, &sources)).into_iter();
    let files = files.map(|file| ModuleFile {
        path: file.path.to_string(),
        text: file.content.into_text(),
    });
    let module = GeneratedModule {
        name: resource.module.to_string(),
        files: files.collect(),
    };
    let definition = serde_json::from_str(resource.crd_json.as_deref().unwrap_or_default())
        .expect("the generator wrote it");
    let case = RoundtripCase {
        stem: "widgets".to_owned(),
        version: definition::versions(&definition).remove(0),
        path: "widget::v1::Widget".to_owned(),
        objects: Vec::new(),
    };
    let scratch = ScratchCrate::create("tolerance", &DEPENDENCIES).expect("a folder");
    let program =
        RoundtripProgram::build(&scratch, &[module], vec![case.clone()]).expect("it compiles");
    let mut process = program.start().expect("it starts");
    let specs: [Value; 8] = [
        json!({"mode": "Fast", "modes": ["Slow", "Warp"]}),
        json!({"mode": "Warp"}),
        json!({"level": 3}),
        json!({"choice": {"a": "x"}}),
        json!({"choice": {"c": {"d": [1]}}}),
        json!({"choice": {"a": "x", "b": 1}}),
        json!({"either": true}),
        json!({"either": {"f": 1.5}}),
    ];
    for spec in specs {
        let object = json!({
            "apiVersion": "example.com/v1",
            "kind": "Widget",
            "metadata": {"name": "one"},
            "spec": spec,
        });
        let passed = process.pass(&case, &object).expect("the program runs");
        assert_eq!(passed, Ok(object));
    }
}
