//! `src/generated/hooks.rs`: the trait for the hooks of the operator.

use syn::{Expr, parse_quote};

use super::kind::declaration;
use super::layout::wrap;
use super::method::{ContextType, DOC_WIDTH, MethodSignature, TraitMethod};
use super::registration::{Registration, STATE, retry_options, sort_setup};
use crate::model::common_modules::CommonModule;
use crate::model::hook::{Hook, HookKind, TRAIT};
use crate::rust::{RustItem, RustModule, ident};

/// The methods of the `Hooks` trait.
pub(super) fn methods(hooks: &[Hook]) -> Vec<TraitMethod> {
    hooks.iter().map(method).collect()
}

fn method(hook: &Hook) -> TraitMethod {
    let (context, doc) = match hook.moment {
        HookKind::State => (
            ContextType::State,
            "Builds the state when the operator starts, before all other handlers. It is called again until it succeeds.",
        ),
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
        shape: MethodSignature::Handler {
            context,
            param: hook.param.as_ref().map(|param| param.ty.clone()),
            result: None,
        },
    }
}

fn registration((place, hook): (usize, &Hook)) -> Registration {
    let id = &hook.id;
    let new: Expr = parse_quote!(::kopf_runtime::HookHandler::new(#id));
    let declaration = retry_options(new, &hook.retry);
    let register = match hook.moment {
        HookKind::State => STATE,
        HookKind::Startup => "startup",
        HookKind::Cleanup => "cleanup",
        HookKind::Login => "login",
        HookKind::Probe => "probe",
    };
    Registration::new(register, vec![declaration], &hook.method)
        .with_param(hook.param.as_ref(), place)
}

/// The module for these hooks.
pub(super) fn module(hooks: &[Hook]) -> RustModule {
    let name = ident(TRAIT);
    let builds_state = hooks.iter().any(|hook| hook.moment == HookKind::State);
    let sized: Option<syn::Path> = builds_state.then(|| parse_quote!(::std::marker::Sized));
    let sized = sized.into_iter();
    let methods = methods(hooks);
    let methods = methods.iter().map(declaration);
    let start: Expr = parse_quote!(::kopf_runtime::Hooks::new(state));
    let mut setup = Vec::new();
    let registrations = hooks.iter().enumerate().map(registration);
    let chain = registrations.fold(start, |chain, mut registration| {
        setup.extend(registration.take_setup());
        registration.call_on(chain)
    });
    sort_setup(&mut setup);
    let items = vec![
        RustItem::code(parse_quote! {
            /// The hooks that `kopf.yaml` declares under `operator.handlers`.
            pub trait #name: #(#sized +)* ::std::marker::Send + ::std::marker::Sync + 'static {
                #(#methods)*
            }
        }),
        RustItem::code(parse_quote! {
            /// Registers the methods at the runtime.
            pub(super) fn handlers<S: #name>(
                state: &::kopf_runtime::SharedState<S>,
            ) -> ::kopf_runtime::OperatorHandlers {
                #(#setup)*
                #chain.build()
            }
        }),
    ];
    RustModule {
        docs: vec![
            "The trait for the hooks of the operator, and the registration of its methods."
                .to_owned(),
        ],
        location: CommonModule::Hooks.location(),
        items,
        ..RustModule::default()
    }
}
