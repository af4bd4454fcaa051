//! The handlers of the preset `child`: each object gets a ConfigMap that follows its spec.

use askama::Template;

use super::file_imports::FileImports;
use super::layout::macro_call;
use super::method::methods;
use super::scaffold::KindHandlersView;
use super::stub::{INDENT, NameStyle, with_body};
use crate::model::operator::{HandledKind, KindOrigin};
use crate::rust::RustPath;

/// The name of the handler in `kopf.yaml`.
pub const HANDLER: &str = "sync_child";

#[derive(Debug, Template)]
#[template(path = "scaffold/child.rs")]
struct ChildView {
    name: Vec<String>,
    config_map: String,
    patch: String,
    patch_params: String,
    spec: &'static str,
    /// Whether the schema of the status has a field for the handler's result.
    reports: bool,
}

// === impl KindHandlersView ===

impl KindHandlersView {
    /// Prepares the user's file for `kind`, with a ConfigMap for each of its objects.
    #[must_use]
    pub fn with_children(kind: &HandledKind) -> Self {
        let methods = methods(kind);
        let mut imports = FileImports::new(kind, &methods);
        let mut import = |path| imports.external.add(&RustPath::external(path));
        let child = ChildView {
            name: macro_call(
                2 * INDENT,
                "let name = format!",
                &[
                    format!("\"{}-{{}}\"", kind.kind.to_ascii_lowercase()),
                    "cx.name()".to_owned(),
                ],
                ";",
            ),
            config_map: import("k8s_openapi::api::core::v1::ConfigMap"),
            patch: import("kube::api::Patch"),
            patch_params: import("kube::api::PatchParams"),
            spec: if has_spec(kind) {
                "serde_json::to_string(&cx.object().spec)?"
            } else {
                "cx.raw().to_string()"
            },
            reports: keeps_results(kind),
        };
        let body = child.render().expect("writing to a string cannot fail");
        let body: Vec<String> = body.lines().map(str::to_owned).collect();
        let names = NameStyle::Imported(&imports);
        let functions: Vec<String> = methods
            .iter()
            .map(|method| with_body(method, names, body.clone()))
            .collect();
        Self::with_functions(kind, &methods, &imports, &functions)
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

/// Whether the schema of the status has a field for the handler's result.
fn keeps_results(kind: &HandledKind) -> bool {
    match &kind.origin {
        KindOrigin::Builtin(_) | KindOrigin::Selected(_) => false,
        KindOrigin::Custom(resource) => resource
            .field(resource.main_version(), &["status", HANDLER])
            .is_ok_and(|field| field.json),
    }
}
