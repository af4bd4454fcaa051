//! `src/generated.rs`: the whole operator from its kinds.

use askama::Template;

use crate::load::manifest::Configuration;
use crate::model::operator::{HandledKind, Operator, Origin};

/// The version of the seam between generated code and the runtime.
pub const CODEGEN_ABI: u32 = 1;

/// The root of the generated code.
#[derive(Debug, Template)]
#[template(path = "generated/operator.rs")]
pub struct OperatorView<'a> {
    name: &'a str,
    abi: u32,
    kinds: Vec<KindLine<'a>>,
    has_types: bool,
    crd_files: Vec<&'a str>,
    webhooks: Option<String>,
}

#[derive(Debug)]
struct KindLine<'a> {
    module: &'a str,
    handlers_trait: String,
}

/// `src/generated/types.rs`: the modules of all custom kinds.
#[derive(Debug, Template)]
#[template(path = "generated/types.rs")]
pub struct TypesView<'a> {
    modules: Vec<&'a str>,
}

// === impl TypesView ===

impl<'a> TypesView<'a> {
    /// Declares a module for each custom kind; `None` if there is no such kind.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Option<Self> {
        let modules: Vec<_> = custom_modules(operator).collect();
        (!modules.is_empty()).then_some(Self { modules })
    }
}

fn custom_modules(operator: &Operator) -> impl Iterator<Item = &str> {
    operator.kinds.iter().filter_map(|kind| match &kind.origin {
        Origin::Standard(_) => None,
        Origin::Custom(resource) => Some(resource.module.as_str()),
    })
}

/// How webhooks are served, if not as usual.
fn webhooks(operator: &Operator) -> Option<String> {
    let admission = &operator.admission;
    if !operator.has_webhooks() {
        return None;
    }
    let service = operator.webhook_service();
    match admission.configuration {
        Configuration::Managed if admission.is_named => {
            Some(format!(".managed({:?})", admission.name))
        }
        Configuration::Managed => None,
        Configuration::CertManager => Some(format!(".unmanaged().certificates_in({service:?})")),
    }
}

// === impl OperatorView ===

impl<'a> OperatorView<'a> {
    /// Prepares the root of `operator`.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        let line = |kind: &'a HandledKind| KindLine {
            module: &kind.module,
            handlers_trait: kind.handlers_trait(),
        };
        Self {
            name: &operator.name,
            abi: CODEGEN_ABI,
            kinds: operator.kinds.iter().map(line).collect(),
            has_types: custom_modules(operator).next().is_some(),
            crd_files: operator
                .crd_files
                .iter()
                .map(|file| file.path.as_str())
                .collect(),
            webhooks: webhooks(operator),
        }
    }
}
