//! `src/generated/hooks.rs` and the user's side of it: the handlers of the operator as a whole.

use std::collections::BTreeSet;

use askama::Template;

use super::layout::wrap;
use super::method::{ContextType, DOC_WIDTH, MethodSignature, TraitMethod};
use super::registration::{Registration, param, retry_options};
use crate::model::hook::{Hook, Moment};

/// The trait that the user's operator implements.
pub const TRAIT: &str = "Hooks";

/// The module of the generated and the user's code.
pub const MODULE: &str = "hooks";

/// The module with the trait of the operator as a whole.
#[derive(Debug, Template)]
#[template(path = "generated/hooks.rs")]
pub struct HooksView {
    uses_duration: bool,
    runtime_names: Vec<&'static str>,
    methods: Vec<TraitMethod>,
    registrations: Vec<Registration>,
}

/// Every method of the operator as a whole.
#[must_use]
pub fn methods(hooks: &[Hook]) -> Vec<TraitMethod> {
    hooks.iter().map(method).collect()
}

fn method(hook: &Hook) -> TraitMethod {
    let (context, doc) = match hook.moment {
        Moment::Startup => (
            ContextType::Startup,
            "Called when the operator starts: nothing is asked of the cluster before it has succeeded.",
        ),
        Moment::Cleanup => (
            ContextType::Cleanup,
            "Called when the operator stops, after all other handlers have ended.",
        ),
        Moment::Login => (
            ContextType::Login,
            "Called when credentials for the cluster are needed, or those in use do not work any more.",
        ),
        Moment::Probe => (
            ContextType::Probe,
            "Called when Kubernetes asks whether the operator is alive, but not more often than every ten seconds; its result is shown under its id, and its failure makes Kubernetes restart the operator.",
        ),
    };
    TraitMethod {
        name: hook.method.clone(),
        doc: wrap(doc, DOC_WIDTH),
        shape: MethodSignature::Handler { context },
    }
}

fn registration(hook: &Hook) -> Registration {
    let new = format!("HookHandler::new({:?})", hook.id);
    Registration {
        register: match hook.moment {
            Moment::Startup => "startup",
            Moment::Cleanup => "cleanup",
            Moment::Login => "login",
            Moment::Probe => "probe",
        },
        declaration: new + &retry_options(&hook.retry) + &param(hook.param.as_ref()),
        method: hook.method.clone(),
    }
}

// === impl HooksView ===

impl HooksView {
    /// The module for these handlers; `None` if there are none.
    #[must_use]
    pub fn new(hooks: &[Hook]) -> Option<Self> {
        if hooks.is_empty() {
            return None;
        }
        let methods = methods(hooks);
        let registrations: Vec<Registration> = hooks.iter().map(registration).collect();
        let text = |part: &str| {
            registrations
                .iter()
                .any(|registration| registration.declaration.contains(part))
        };
        let mut names = BTreeSet::from(["HookHandler", "OperatorHandlers"]);
        for method in &methods {
            if let MethodSignature::Handler { context } = &method.shape {
                names.extend([context.runtime_type(), context.result()]);
            }
        }
        names.extend(text("ErrorMode::").then_some("ErrorMode"));
        Some(Self {
            uses_duration: text("Duration::"),
            runtime_names: names.into_iter().collect(),
            methods,
            registrations,
        })
    }
}
