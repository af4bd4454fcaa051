//! The files that kopf-gen writes once and the user owns from then on.

use std::collections::BTreeSet;

use askama::Template;

use super::file_imports::FileImports;
use super::hooks;
use super::memo;
use super::method::{TraitMethod, methods};
use super::stub::{NameStyle, stub};
use super::unit_test::UnitTestView;
use crate::dependencies::CrateDependency;
use crate::load::manifest::API_VERSION;
use crate::model::handler::Handler;
use crate::model::hook::Hook;
use crate::model::operator::HandledKind;
use crate::model::phrases::objects;

/// `src/main.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/main.rs")]
pub(super) struct MainView<'a> {
    /// The name of the operator.
    pub name: &'a str,
    /// Whether a handler builds the state.
    pub builds_state: bool,
}

/// `src/handlers.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/handlers.rs")]
pub(super) struct HandlersView<'a> {
    /// The modules of the handlers.
    pub(super) modules: BTreeSet<&'a str>,
}

/// `src/handlers/<kind>.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/kind.rs")]
pub(super) struct KindHandlersView {
    objects: String,
    handlers_trait: String,
    /// The type that implements it.
    state: &'static str,
    imports: Vec<String>,
    /// The declaration of the memo's type.
    memo: Vec<String>,
    stubs: Vec<String>,
    /// What follows the `impl`: functions and tests.
    rest: String,
}

/// `src/handlers/hooks.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/hooks.rs")]
pub(super) struct HooksScaffoldView {
    stubs: Vec<String>,
}

/// `Cargo.toml`.
#[derive(Debug, Template)]
#[template(path = "scaffold/manifest.toml")]
pub(super) struct CargoView<'a> {
    /// The name of the crate.
    pub name: &'a str,
    /// Whether there is a cluster test.
    pub has_cluster_test: bool,
    /// Whether a unit test calls a handler.
    pub has_handler_test: bool,
    /// Whether it has a build profile, which only the root of a workspace may have.
    pub has_profile: bool,
    /// The oldest compiler that builds it.
    pub rust_version: &'a str,
    /// The package of the runtime.
    pub runtime_package: &'static str,
    /// The source of the runtime dependency, as a TOML value.
    pub runtime: String,
    /// The other dependencies.
    pub dependencies: &'static [CrateDependency],
    /// The source of the dependency on the helpers for tests, as a TOML value.
    pub testing: String,
}

/// `.gitignore`.
#[derive(Debug, Template)]
#[template(path = "scaffold/gitignore", escape = "none")]
pub(super) struct GitignoreView;

/// `kopf.yaml` of a new operator.
#[derive(Debug, Template)]
#[template(path = "scaffold/kopf.yaml")]
pub(super) struct ManifestView<'a> {
    api_version: &'static str,
    name: &'a str,
}

// === impl KindHandlersView ===

impl KindHandlersView {
    /// Prepares the user's file for `kind`, with a stub for each method.
    #[must_use]
    pub(super) fn new(kind: &HandledKind) -> Self {
        let methods = methods(kind);
        let imports = FileImports::new(kind, &methods);
        let names = NameStyle::Imported(&imports);
        let stubs: Vec<String> = methods.iter().map(|method| stub(method, names)).collect();
        Self::with_functions(kind, &methods, &imports, &stubs)
    }

    /// The user's file with these functions.
    pub(super) fn with_functions(
        kind: &HandledKind,
        methods: &[TraitMethod],
        imports: &FileImports,
        functions: &[String],
    ) -> Self {
        let mut memo_lines = memo::declaration(kind, NameStyle::Imported(imports));
        if !memo_lines.is_empty() {
            memo_lines.push(String::new());
        }
        Self {
            objects: objects(kind),
            handlers_trait: kind.handlers_trait(),
            state: imports.state(),
            imports: imports.lines(kind, methods),
            memo: memo_lines,
            stubs: memo::in_impl(kind)
                .into_iter()
                .chain(indented(functions))
                .collect(),
            rest: String::new(),
        }
    }

    /// Prepares the user's file for `kind`, with stubs and a unit test of a handler.
    pub(super) fn with_test(kind: &HandledKind, handler: &Handler) -> Self {
        let imports = FileImports::new(kind, &methods(kind));
        let test = UnitTestView::of_handler(kind, handler, &imports);
        let test = test.map_or_else(String::new, |test| test.to_string());
        Self::new(kind).followed_by(test)
    }

    /// The same file with this text at its end.
    pub(super) fn followed_by(self, rest: String) -> Self {
        Self { rest, ..self }
    }
}

/// Functions indented for an `impl` block, with a blank line between them.
fn indented(functions: &[String]) -> Vec<String> {
    let indented = functions.iter().enumerate().map(|(number, text)| {
        let lines = text.lines().map(|line| match line {
            "" => String::new(),
            line => format!("    {line}"),
        });
        let gap = if number > 0 { "\n" } else { "" };
        format!("{gap}{}", lines.collect::<Vec<_>>().join("\n"))
    });
    indented.collect()
}

// === impl HooksScaffoldView ===

impl HooksScaffoldView {
    /// The user's file, with a stub for each method.
    #[must_use]
    pub(super) fn new(hooks: &[Hook]) -> Self {
        let imports = FileImports::default();
        let names = NameStyle::Imported(&imports);
        let methods = hooks::methods(hooks);
        let stubs: Vec<String> = methods.iter().map(|method| stub(method, names)).collect();
        Self {
            stubs: indented(&stubs),
        }
    }
}

// === impl ManifestView ===

impl<'a> ManifestView<'a> {
    /// A manifest for an operator of this name, without resources.
    #[must_use]
    pub(super) fn new(name: &'a str) -> Self {
        Self {
            api_version: API_VERSION,
            name,
        }
    }
}
