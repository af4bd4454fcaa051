//! `src/generated/hooks.rs`: the trait for the hooks of the operator.

use askama::Template;

use super::layout::wrap;
use super::method::{ContextType, DOC_WIDTH, MethodSignature, TraitMethod};
use super::registration::{Registration, param, retry_options};
use crate::model::hook::{Hook, HookKind};

/// The trait that the user's operator implements.
pub const TRAIT: &str = "Hooks";

/// The module of the generated and the user's code.
pub const MODULE: &str = "hooks";

/// The module with the `Hooks` trait.
#[derive(Debug, Template)]
#[template(path = "generated/hooks.rs")]
pub struct HooksView {
    methods: Vec<TraitMethod>,
    registrations: Vec<Registration>,
}

/// The methods of the `Hooks` trait.
#[must_use]
pub fn methods(hooks: &[Hook]) -> Vec<TraitMethod> {
    hooks.iter().map(method).collect()
}

fn method(hook: &Hook) -> TraitMethod {
    let (context, doc) = match hook.moment {
        HookKind::Startup => (
            ContextType::Startup,
            "Called when the operator starts. The operator sends no request to the cluster before this succeeds.",
        ),
        HookKind::Cleanup => (
            ContextType::Cleanup,
            "Called when the operator stops, after all other handlers have ended.",
        ),
        HookKind::Login => (
            ContextType::Login,
            "Called when the operator needs credentials for the cluster, or the API server rejects the current ones.",
        ),
        HookKind::Probe => (
            ContextType::Probe,
            "Called for liveness probes, at most every ten seconds. The probe's response shows the result under the handler's id; a failure fails the probe, and Kubernetes restarts the operator.",
        ),
    };
    TraitMethod {
        name: hook.method.clone(),
        doc: wrap(doc, DOC_WIDTH),
        shape: MethodSignature::Handler { context },
    }
}

fn registration(hook: &Hook) -> Registration {
    let new = format!("kopf_runtime::HookHandler::new({:?})", hook.id);
    Registration {
        register: match hook.moment {
            HookKind::Startup => "startup",
            HookKind::Cleanup => "cleanup",
            HookKind::Login => "login",
            HookKind::Probe => "probe",
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
        Some(Self {
            methods,
            registrations,
        })
    }
}
