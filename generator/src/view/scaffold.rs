//! The files that kopf-gen writes once and the user owns from then on.

use std::collections::BTreeSet;

use askama::Template;

use super::hooks;
use super::imports::{self, ImportList};
use super::literal;
use super::memo;
use super::method::{ContextType, JSON, MethodSignature, PredicateArgument, TraitMethod, methods};
use super::phrases::objects;
use super::stub::{NameStyle, stub};
use crate::load::manifest::API_VERSION;
use crate::model::hook::Hook;
use crate::model::operator::{HandledKind, KindOrigin, Operator};

/// `src/main.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/main.rs")]
pub struct MainView<'a> {
    /// The name of the operator.
    pub name: &'a str,
}

/// `tests/operator.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/tests.rs")]
pub struct TestsView<'a> {
    name: &'a str,
    /// The names of the CRDs, as literals.
    definitions: Vec<String>,
}

/// `src/handlers.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/handlers.rs")]
pub struct HandlersView<'a> {
    modules: BTreeSet<&'a str>,
}

/// `src/handlers/<kind>.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/kind.rs")]
pub struct KindHandlersView {
    objects: String,
    handlers_trait: String,
    imports: Vec<String>,
    /// The declaration of the memo's type.
    memo: Vec<String>,
    stubs: Vec<String>,
}

/// `src/handlers/hooks.rs`.
#[derive(Debug, Template)]
#[template(path = "scaffold/hooks.rs")]
pub struct HooksScaffoldView {
    stubs: Vec<String>,
}

/// `Cargo.toml`.
#[derive(Debug, Template)]
#[template(path = "scaffold/Cargo.toml")]
pub struct CargoView<'a> {
    /// The name of the crate.
    pub name: &'a str,
    /// Whether there is a cluster test.
    pub has_cluster_test: bool,
    /// Whether it has a build profile, which only the root of a workspace may have.
    pub has_profile: bool,
    /// The oldest compiler that builds it.
    pub rust_version: &'a str,
    /// The source of the runtime dependency, as a TOML value.
    pub runtime: String,
    /// The source of the dependency on the helpers for tests, as a TOML value.
    pub testing: String,
}

/// `.gitignore`.
#[derive(Debug, Template)]
#[template(path = "scaffold/gitignore", escape = "none")]
pub struct GitignoreView;

/// `kopf.yaml` of a new operator.
#[derive(Debug, Template)]
#[template(path = "scaffold/kopf.yaml")]
pub struct ManifestView<'a> {
    api_version: &'static str,
    name: &'a str,
}

// === impl TestsView ===

impl<'a> TestsView<'a> {
    /// A first test of `operator`; `None` if it has no custom kinds.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Option<Self> {
        let definitions: Vec<_> = operator
            .kinds
            .iter()
            .filter_map(|kind| match &kind.origin {
                KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
                KindOrigin::Custom(resource) => Some(literal::string(&resource.crd_name)),
            })
            .collect();
        (!definitions.is_empty()).then_some(Self {
            name: &operator.name,
            definitions,
        })
    }
}

// === impl HandlersView ===

impl<'a> HandlersView<'a> {
    /// Declares a module for each kind.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        Self {
            modules: operator
                .kinds
                .iter()
                .map(|kind| kind.module.as_str())
                .chain((!operator.hooks.is_empty()).then_some(hooks::MODULE))
                .collect(),
        }
    }
}

// === impl KindHandlersView ===

impl KindHandlersView {
    /// Prepares the user's file for `kind`, with a stub for each method.
    #[must_use]
    pub fn new(kind: &HandledKind) -> Self {
        let methods = methods(kind);
        let imported = imported_names(kind, &methods);
        let own = hiding(&imported);
        let names = NameStyle::Imported { own: &own };
        let methods_stubs = indented_stubs(&methods, names);
        let mut memo_lines = memo::declaration(kind, names);
        if !memo_lines.is_empty() {
            memo_lines.push(String::new());
        }
        Self {
            objects: objects(kind),
            handlers_trait: kind.handlers_trait(),
            imports: imports(kind, &methods, &imported),
            memo: memo_lines,
            stubs: memo::in_impl(kind)
                .into_iter()
                .chain(methods_stubs)
                .collect(),
        }
    }

    /// The file with other functions, and with their imports.
    pub(super) fn with_functions(mut self, functions: &[String], imports: &ImportList) -> Self {
        self.stubs = indented(functions);
        let (mut around, ours): (Vec<String>, Vec<String>) = std::mem::take(&mut self.imports)
            .into_iter()
            .partition(|line| line.starts_with("use kopf_runtime"));
        around.extend(imports.lines());
        around.sort();
        around.extend(ours);
        self.imports = around;
        self
    }
}

/// A stub for each method, indented for a new file.
fn indented_stubs(methods: &[TraitMethod], names: NameStyle<'_>) -> Vec<String> {
    let stubs = methods.iter().map(|method| stub(method, names));
    indented(&stubs.collect::<Vec<_>>())
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

fn imports(kind: &HandledKind, methods: &[TraitMethod], names: &BTreeSet<String>) -> Vec<String> {
    let mut lines = Vec::new();
    let handles = methods
        .iter()
        .any(|method| matches!(method.shape, MethodSignature::Handler { .. }));
    if handles || kind.memo.is_some() {
        lines.extend(["use kopf_runtime::prelude::*;".to_owned(), String::new()]);
    }
    lines.push("use super::Operator;".to_owned());
    let module = format!("crate::generated::{}", kind.module);
    lines.extend(imports::declaration(
        "use",
        &module,
        names.iter().map(String::as_str),
    ));
    lines.push(String::new());
    lines
}

/// Those of the imported names that hide another one of the prelude.
pub(super) fn hiding(imported: &BTreeSet<String>) -> BTreeSet<String> {
    // No kind is called `Value`: it is the same type as in the prelude.
    let names = imported.iter().filter(|name| *name != "Value");
    names.cloned().collect()
}

/// The names that the user's file imports from the module of the kind.
pub(super) fn imported_names(kind: &HandledKind, methods: &[TraitMethod]) -> BTreeSet<String> {
    let mut names = BTreeSet::from([kind.handlers_trait()]);
    names.extend(kind.memo.as_ref().map(|_| kind.type_name.clone()));
    for method in methods {
        let (object, field) = match &method.shape {
            MethodSignature::Handler {
                context:
                    ContextType::Change(object)
                    | ContextType::Event(object)
                    | ContextType::Validation(object)
                    | ContextType::Mutation(object)
                    | ContextType::Daemon(object)
                    | ContextType::Timer(object)
                    | ContextType::Index(object, _),
            } => (Some(object), None),
            MethodSignature::Handler {
                context: ContextType::Field(object, field),
            } => (Some(object), Some(field)),
            MethodSignature::Delay {
                object: PredicateArgument::Object(object),
            }
            | MethodSignature::Predicate {
                argument_type: PredicateArgument::Object(object),
                ..
            } => (Some(object), None),
            MethodSignature::Predicate {
                argument_type: PredicateArgument::Field(field),
                ..
            } => (None, Some(field)),
            MethodSignature::Handler {
                context:
                    ContextType::Startup
                    | ContextType::Cleanup
                    | ContextType::Login
                    | ContextType::Probe,
            }
            | MethodSignature::Delay { .. }
            | MethodSignature::Predicate {
                argument_type: PredicateArgument::Text,
                ..
            } => (None, None),
        };
        if let MethodSignature::Handler { context } = &method.shape {
            names.extend(context.index().map(str::to_owned));
        }
        names.extend(object.filter(|object| *object != JSON).cloned());
        let paths = field.into_iter().flat_map(|field| &field.paths);
        names.extend(
            paths
                .filter_map(|path| path.rsplit("::").next())
                .map(str::to_owned),
        );
    }
    names
}

// === impl HooksScaffoldView ===

impl HooksScaffoldView {
    /// The user's file, with a stub for each method.
    #[must_use]
    pub fn new(hooks: &[Hook]) -> Self {
        Self {
            stubs: indented_stubs(
                &hooks::methods(hooks),
                NameStyle::Imported {
                    own: &BTreeSet::new(),
                },
            ),
        }
    }
}

// === impl ManifestView ===

impl<'a> ManifestView<'a> {
    /// A manifest for an operator of this name, without resources.
    #[must_use]
    pub fn new(name: &'a str) -> Self {
        Self {
            api_version: API_VERSION,
            name,
        }
    }
}
