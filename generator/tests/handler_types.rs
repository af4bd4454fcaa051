//! Results and parameters of handlers: types in the generated traits, and messages about wrong ones.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.kopf.dev}
spec:
  group: kopf.dev
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer, format: int32}}}
            status:
              type: object
              properties:
                phase: {type: string}
                measure:
                  type: object
                  required: [bytes]
                  properties: {bytes: {type: integer, format: int64}}
                resize/spec.size: {type: string}
                conditions:
                  type: array
                  items:
                    type: object
                    required: [type, status, reason, message, lastTransitionTime]
                    properties:
                      type: {type: string}
                      status: {type: string, enum: ['True', 'False', Unknown]}
                      reason: {type: string}
                      message: {type: string}
                      lastTransitionTime: {type: string, format: date-time}
";

/// Generates an operator with these handlers.
fn generate(folder: &Path, handlers: &str) -> Output {
    let manifest = format!(
        "apiVersion: kopf-gen.dev/v1\noperator: {{name: test}}\nresources:\n  \
         - crd: widgets.yaml\n    handlers:\n{handlers}"
    );
    fs::write(folder.join("kopf.yaml"), manifest).expect("writable");
    fs::write(folder.join("widgets.yaml"), DEFINITION).expect("writable");
    Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
        .args(["generate", "--runtime-version", "0.0.0"])
        .current_dir(folder)
        .output()
        .expect("the program runs")
}

/// The generated module of the kind, without line breaks and indentation.
fn generated(handlers: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let output = generate(folder.path(), handlers);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let text = fs::read_to_string(folder.path().join("src/generated/widget.rs"));
    let text = text.expect("the module of the kind");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn refused(handlers: &str) -> String {
    let folder = TempDir::new().expect("a folder");
    let output = generate(folder.path(), handlers);
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn the_result_has_the_type_of_the_status_under_the_id() {
    let module = generated(
        "      - {on: create, fn: measure}\n      - {on: field, field: spec.size, fn: resize}\n      \
         - {on: update, fn: other}\n",
    );
    for part in [
        "fn measure( &self, cx: &mut ChangeContext<Widget>, ) -> impl Future<Output = \
         HandlerResult<Measure>> + Send;",
        "fn resize( &self, cx: &mut FieldContext<Widget, i32>, ) -> impl Future<Output = \
         HandlerResult<String>> + Send;",
        "fn other( &self, cx: &mut ChangeContext<Widget>, ) -> impl Future<Output = HandlerResult> \
         + Send;",
        "let result = state.measure(cx).await?; cx.set_result(&result)?;",
    ] {
        assert!(module.contains(part), "{part}\n{module}");
    }
}

#[test]
fn the_manifest_names_types_of_results_and_parameters() {
    let module = generated(
        "      - {timer: tick, interval: 1m, result: \"Vec<crate::handlers::Usage>\", param: {a: 1}, \
         param_type: crate::handlers::Limits}\n      - {on: create, fn: greet, param: Hello}\n      \
         - {on: create, fn: scale, param: 2}\n      - {on: resume, fn: scale, id: again, param: 0.5}\n",
    );
    for part in [
        "param: &Limits, ) -> impl Future<Output = HandlerResult<Vec<Usage>>> + Send;",
        "LazyLock::force(&PARAM_0);",
        "state.tick(cx, &PARAM_0).await?",
        "param: &str, ) -> impl Future<Output = HandlerResult> + Send;",
        "Box::pin(state.greet(cx, \"Hello\"))",
        "param: f64, ) -> impl Future<Output = HandlerResult> + Send;",
        "Box::pin(state.scale(cx, 2.0))",
        "Box::pin(state.scale(cx, 0.5))",
    ] {
        assert!(module.contains(part), "{part}\n{module}");
    }
}

#[test]
fn a_kind_with_conditions_can_set_them() {
    let module = generated("      - {on: create, fn: measure}\n");
    for part in [
        "impl HasSpec for Widget",
        "impl HasStatus for Widget { type Status = super::types::widget::v1::WidgetStatus;",
        "impl HasConditions for Widget { const OBSERVED_GENERATION: bool = false; }",
    ] {
        assert!(module.contains(part), "{part}\n{module}");
    }
}

#[test]
fn parameters_of_one_method_have_a_common_type() {
    let message = refused(
        "      - {on: create, fn: scale, param: 2}\n      - {on: resume, fn: scale, id: again, param: two}\n",
    );
    assert!(
        message.contains("`scale` would need two signatures"),
        "{message}"
    );
    assert!(
        message.contains("with an integer as its `param`"),
        "{message}"
    );
    let message = refused("      - {on: create, fn: scale, param_type: u32}\n");
    assert!(message.contains("`param_type` needs `param`"), "{message}");
    let message = refused("      - {on: create, fn: scale, result: Usage}\n");
    assert!(
        message.contains("KG0641") && message.contains("there is no type `Usage`"),
        "{message}"
    );
}

#[test]
fn predicates_take_the_context_and_the_parameter_of_their_handlers() {
    let module = generated(
        "      - {on: create, fn: scale, param: 2, when: is_due, labels: {tier: {predicate: is_paid}}}
      - {on: resume, fn: grow, param: 0.5, when: is_due}
      - {on: field, field: spec.size, fn: resize, new: {predicate: is_large}, param: {most: 9}}
      - {on: update, fn: watch, labels: {tier: {predicate: is_known}}}
      - {on: update, fn: look, param: 5, labels: {tier: {predicate: is_known}}}
",
    );
    for part in [
        "fn is_due(&self, cx: &FilterContext<Widget>, param: f64) -> bool;",
        "fn is_paid( &self, value: Option<&str>, cx: &FilterContext<Widget>, param: i64, ) -> bool;",
        "fn is_known(&self, value: Option<&str>, cx: &FilterContext<Widget>) -> bool;",
        "value: Option<&i32>, cx: &FilterContext<Widget>, param: &Value,",
        "|state, cx| state.is_due(cx, 2.0)",
        "|state, cx| state.is_due(cx, 0.5)",
        "|state, value, cx| state.is_paid(value, cx, 2)",
        "|state, value, cx| state.is_large(value, cx, &PARAM_2)",
        "|state, value, cx| state.is_known(value, cx)",
    ] {
        assert!(module.contains(part), "{part}\n{module}");
    }
}

#[test]
fn a_predicate_decides_about_one_type_of_objects() {
    let message = refused(
        "      - {on: create, fn: scale, when: is_due}\n    admission:\n      \
         - {validate: check, subresource: '*', when: is_due}\n",
    );
    assert!(
        message.contains("`is_due` would need two signatures") && message.contains("JSON"),
        "{message}"
    );
}
