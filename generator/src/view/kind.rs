//! `src/generated/<kind>.rs`: the trait of a kind, and the registration of its handlers.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;
use kopf_core::selection::Selector;

use super::imports;
use super::literal;
use super::method::{ContextType, MethodSignature, PredicateArgument, TraitMethod, methods};
use super::registration::{self, Registration};
use crate::load::crd::Scope;
use crate::load::manifest::Tracking;
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::resource::CustomResource;
use crate::model::status_subresource::StatusSubresource;

/// The module of one kind.
#[derive(Debug, Template)]
#[template(path = "generated/kind.rs")]
pub struct KindView {
    summary: String,
    exported: Vec<String>,
    type_name: String,
    title: String,
    noun: String,
    handlers_trait: String,
    memo: bool,
    tracks_all: bool,
    methods: Vec<TraitMethod>,
    /// The names of the resource, as literals.
    group: String,
    version: String,
    kind: String,
    plural: String,
    /// The selector as an expression, unless it is a single kind.
    selector: Option<String>,
    scope: &'static str,
    status: &'static str,
    registrations: Vec<Registration>,
}

// === impl KindView ===

impl KindView {
    /// Prepares the module of `kind`.
    #[must_use]
    pub fn new(kind: &HandledKind) -> Self {
        let webhooks = kind.webhooks.iter().map(registration::webhook);
        let handlers = kind.handlers.iter().map(registration::handler);
        let registrations: Vec<_> = handlers.chain(webhooks).collect();
        let methods = methods(kind);
        Self {
            summary: summary(kind),
            exported: exported(kind, &methods),
            type_name: kind.type_name.clone(),
            title: match kind.selector() {
                Some(_) => format!("`{}`", kind.kind),
                None => kind.type_name.clone(),
            },
            noun: match kind.selector() {
                Some(_) => format!("object of `{}`", kind.kind),
                None => kind.type_name.clone(),
            },
            handlers_trait: kind.handlers_trait(),
            memo: kind.memo.is_some(),
            tracks_all: kind.tracking == Tracking::Always,
            methods,
            group: literal::string(&kind.group),
            version: literal::string(&kind.version),
            kind: literal::string(&kind.kind),
            plural: literal::string(&kind.plural),
            selector: kind.selector().map(selector),
            scope: match kind.scope {
                Scope::Namespaced => "Namespaced",
                Scope::Cluster => "Cluster",
            },
            status: match kind.status {
                StatusSubresource::Present => "Present",
                StatusSubresource::Absent => "Absent",
            },
            registrations,
        }
    }
}

fn selector(selector: &Selector) -> String {
    let (function, name) = selector.name().parts();
    let mut text = match name {
        Some(name) => format!("kopf_runtime::Selector::{function}({name:?})"),
        None => format!("kopf_runtime::Selector::{function}()"),
    };
    if let Some(group) = selector.group() {
        text += &format!(".in_group({group:?})");
    }
    if let Some(version) = selector.version() {
        text += &format!(".in_version({version:?})");
    }
    text
}

fn summary(kind: &HandledKind) -> String {
    if let Some(selector) = kind.selector() {
        return format!(
            "{} (`select: {selector}`): the handler trait, and the registration of its methods.",
            kind.kind
        );
    }
    format!(
        "{} ({}): the type, the handler trait, and the registration of its methods.",
        kind.kind,
        kind.api_version()
    )
}

/// The re-exports of the module: the kind, and the types of the fields that its methods take.
fn exported(kind: &HandledKind, methods: &[TraitMethod]) -> Vec<String> {
    let object = match &kind.origin {
        KindOrigin::Builtin(builtin) if builtin.kind == kind.type_name => builtin.type_path(),
        KindOrigin::Builtin(builtin) => format!("{} as {}", builtin.type_path(), kind.type_name),
        KindOrigin::Custom(resource) => format!("{}::{}", types_module(resource), kind.type_name),
        KindOrigin::Selected(_) => format!("kopf_runtime::{}", kind.type_name),
    };
    let fields = methods.iter().filter_map(|method| match &method.shape {
        MethodSignature::Handler {
            context: ContextType::Field(_, field),
        }
        | MethodSignature::Predicate {
            argument_type: PredicateArgument::Field(field),
            ..
        } => Some(field),
        _ => None,
    });
    let indices = kind
        .indices()
        .map(|index| format!("super::indices::{}", index.type_name));
    let paths = fields
        .flat_map(|field| field.paths.clone())
        .chain(indices)
        .chain([object]);
    let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, name) in paths.filter_map(|path| {
        path.rsplit_once("::")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
    }) {
        modules.entry(module).or_default().insert(name);
    }
    modules
        .iter()
        .flat_map(|(module, names)| {
            imports::declaration("pub use", module, names.iter().map(String::as_str))
        })
        .collect()
}

/// The module with the types of a custom kind, relative to the module of the kind.
fn types_module(resource: &CustomResource) -> String {
    format!(
        "super::types::{}::{}",
        resource.module,
        resource.main_version().module
    )
}
