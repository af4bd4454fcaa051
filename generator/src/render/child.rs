//! The handlers of the preset `child`: each object gets a ConfigMap that follows its spec.

use askama::Template;

use super::file_imports::FileImports;
use super::layout::signature;
use super::method::methods;
use super::scaffold::KindHandlersView;
use super::stub::{NameStyle, with_body};
use super::unit_test::UnitTestView;
use crate::model::operator::{HandledKind, KindOrigin};
use crate::rust::{RustPath, RustType};

#[derive(Debug, Template)]
#[template(path = "scaffold/child.rs")]
struct ChildHandlerView {
    /// Whether the schema of the status has conditions.
    reports: bool,
}

/// The function that makes a child.
#[derive(Debug, Template)]
#[template(path = "scaffold/child_for.rs")]
struct ChildFunctionView {
    signature: Vec<String>,
    config_map: String,
    spec: &'static str,
}

// === impl KindHandlersView ===

impl KindHandlersView {
    /// Prepares the user's file for `kind`, with a ConfigMap for each of its objects.
    #[must_use]
    pub(super) fn with_children(kind: &HandledKind) -> Self {
        let methods = methods(kind);
        let mut imports = FileImports::new(kind, &methods);
        let object = imports.exports.get(&kind.object_path()).cloned();
        if let Some(name) = object {
            imports.external.reserve(&name);
            imports.from_kind.insert(name);
        }
        let config_map = RustPath::external("k8s_openapi::api::core::v1::ConfigMap");
        let config_map = imports.external.add(&config_map);
        let child = ChildHandlerView {
            reports: has_conditions(kind),
        };
        let body = child.render().expect("writing to a string cannot fail");
        let body: Vec<String> = body.lines().map(str::to_owned).collect();
        let names = NameStyle::Imported(&imports);
        let functions: Vec<String> = methods
            .iter()
            .map(|method| with_body(method, names, body.clone()))
            .collect();
        let object = names.ty(&RustType::named(kind.object_path()));
        let function = ChildFunctionView {
            signature: signature(
                0,
                "fn child_for",
                &[format!("object: &{object}")],
                &format!(" -> {}<{config_map}> {{", names.prelude("HandlerResult")),
            ),
            config_map,
            spec: if has_spec(kind) {
                "serde_json::to_string(&object.spec)?"
            } else {
                "serde_json::to_string(object)?"
            },
        };
        let test = UnitTestView::of_children(kind);
        let test = test.map_or_else(String::new, |test| test.to_string());
        Self::with_functions(kind, &methods, &imports, &functions)
            .followed_by(format!("{function}\n{test}"))
    }
}

/// Whether the Rust type has a `spec`.
fn has_spec(kind: &HandledKind) -> bool {
    match &kind.origin {
        KindOrigin::Builtin(_) | KindOrigin::Selected(_) => false,
        KindOrigin::Custom(resource) => {
            let fields = &resource.main_version().root.body.fields;
            fields.iter().any(|field| field.json == "spec")
        }
    }
}

/// Whether the schema of the status has conditions.
fn has_conditions(kind: &HandledKind) -> bool {
    match &kind.origin {
        KindOrigin::Builtin(_) | KindOrigin::Selected(_) => false,
        KindOrigin::Custom(resource) => {
            let parts = resource.object_parts(resource.main_version());
            parts.conditions.is_some()
        }
    }
}
