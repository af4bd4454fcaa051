//! `kopf-gen validate` and the kinds that handlers apply.

use std::fs;
use std::process::Command;

const WEBSITE: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Website, plural: websites}
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}
";

const MANIFEST: &str = "
apiVersion: kopf-gen.dev/v1
operator: {name: sites}
resources:
  - crd: crds/websites.yaml
    children: [v1/ConfigMap]
    handlers:
      - {on: create, fn: create_fn}
";

const IMPORTS: &str = "
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service as Exposed};
use k8s_openapi::api::networking::v1 as net;
use kopf_runtime::prelude::*;
use crate::generated::website::{Website, WebsiteHandlers};
";

/// Validates a crate with these functions; returns the lines of notes about applied kinds, each as
/// the kind that the help names and the line of the call.
fn notes(functions: &str) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it is in the folder")).expect("writable");
        fs::write(path, text).expect("writable");
    };
    write("kopf.yaml", MANIFEST);
    write("crds/websites.yaml", WEBSITE);
    let text = format!("{IMPORTS}{functions}");
    write("src/handlers/website.rs", &text);
    let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
        .args(["validate", "--format", "json"])
        .current_dir(folder.path())
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "a note is no error");
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = printed.lines().filter(|line| line.contains("KG0704"));
    printed
        .map(|line| {
            let note: serde_json::Value = serde_json::from_str(line).expect("JSON");
            let help = note["help"].as_str().expect("help");
            let kind = help.split('`').nth(1).expect("it names the kind");
            let number = note["labels"][0]["start"]["line"].as_u64().expect("a line");
            let line = text.lines().nth(usize::try_from(number).unwrap() - 1);
            format!("{kind}: {}", line.unwrap_or_default().trim())
        })
        .collect()
}

/// The same for the body of one handler.
fn notes_of_body(body: &str) -> Vec<String> {
    notes(&format!(
        "impl WebsiteHandlers for Operator {{
             async fn create_fn(&self, cx: &mut ChangeContext<Website>) -> HandlerResult {{
                 {body}
                 Ok(())
             }}
         }}
         fn pod_for(site: &Website) -> Pod {{ Pod::default() }}
         fn exposed() -> HandlerResult<Exposed> {{ Ok(Exposed::default()) }}"
    ))
}

#[test]
fn an_undeclared_kind_is_reported_at_the_call() {
    let call = "let pod = cx.apply(Pod::default()).await?;";
    assert_eq!(notes_of_body(call), [format!("v1/Pod: {call}")]);
}

#[test]
fn a_declared_kind_is_not_reported() {
    let nothing: [&str; 0] = [];
    assert_eq!(
        notes_of_body("cx.apply(ConfigMap::default()).await?;"),
        nothing
    );
}

#[test]
fn the_type_follows_from_variables_functions_and_paths() {
    for (body, kind) in [
        (
            "let mut it = Deployment::default();\ncx.apply(it).await?;",
            "apps/v1/Deployment",
        ),
        (
            "let it: Pod = serde_json::from_value(x)?;\ncx.apply(it).await?;",
            "v1/Pod",
        ),
        (
            "let it = Pod { spec: None, ..Pod::default() };\ncx.apply(it.clone()).await?;",
            "v1/Pod",
        ),
        ("cx.apply(pod_for(cx.object())).await?;", "v1/Pod"),
        ("cx.apply(exposed()?).await?;", "v1/Service"),
        (
            "cx.apply(net::Ingress::default()).await?;",
            "networking.k8s.io/v1/Ingress",
        ),
        (
            "cx.apply(k8s_openapi::api::batch::v1::Job::default()).await?;",
            "batch/v1/Job",
        ),
        ("cx.apply::<Pod>(x.parse()?).await?;", "v1/Pod"),
        (
            "for x in 0..3 { if true { cx.apply(Pod::default()).await?; } }",
            "v1/Pod",
        ),
    ] {
        let found = notes_of_body(body);
        assert_eq!(found.len(), 1, "{body}: {found:?}");
        let line = body.lines().last().unwrap_or_default();
        assert_eq!(found[0], format!("{kind}: {line}"));
    }
}

#[test]
fn what_the_text_does_not_say_is_not_reported() {
    for body in [
        "cx.apply(something()?).await?;",
        "let it = Pod::default();\nlet it = other(it);\ncx.apply(it).await?;",
        "let it = Pod::default();\nlet (it, _) = other();\ncx.apply(it).await?;",
        "other.apply(Pod::default()).await?;",
        "cx.apply(Default::default()).await?;",
        "cx.apply(Website::default()).await?; // which cannot be declared",
    ] {
        let nothing: [&str; 0] = [];
        assert_eq!(notes_of_body(body), nothing, "{body}");
    }
}

#[test]
fn every_context_and_helpers_with_one_count() {
    for parameter in [
        "cx: &mut EventContext<Website>",
        "cx: &mut TimerContext<Website>",
        "cx: &mut DaemonContext<Website>",
        "cx: &mut FieldContext<Website, i64>",
        "cx: &mut ChildContext<Website, ConfigMap>",
        "cx: &impl ObjectContext<Website>",
    ] {
        let found = notes(&format!(
            "async fn helper({parameter}) {{\ncx.apply(Pod::default()).await;\n}}"
        ));
        let expected = ["v1/Pod: cx.apply(Pod::default()).await;"];
        assert_eq!(found, expected, "{parameter}");
    }
    let generic =
        "async fn helper<C: ObjectContext<Website>>(cx: &C, pod: Pod) {\ncx.apply(pod).await;\n}";
    assert_eq!(notes(generic), ["v1/Pod: cx.apply(pod).await;"]);
}

#[test]
fn reconcile_unit_tests_and_files_with_errors_are_left_to_the_compiler() {
    for text in [
        "async fn reconcile(cx: &mut WebsiteReconcile) {\ncx.apply(Pod::default()).await;\n}",
        "#[cfg(test)]\nmod tests {\nfn t(cx: &mut EventContext<Website>) {\ncx.apply(Pod::default());\n}\n}",
        "fn broken(cx: &mut EventContext<Website>) {\ncx.apply(Pod::default());\n",
    ] {
        let nothing: [&str; 0] = [];
        assert_eq!(notes(text), nothing, "{text}");
    }
}
