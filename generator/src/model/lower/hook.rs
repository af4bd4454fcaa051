//! Lowers the hooks of the operator, and reports names that are used twice.

use std::collections::BTreeMap;

use super::lowering::{LimitsCheck, Lowering};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::manifest::{HookKind, HookSection, Manifest, Spanned};
use crate::model::handler::RetryOptions;
use crate::model::hook::Hook;
use crate::model::param::Param;

/// The hooks of the operator.
pub(super) fn hooks(manifest: &Manifest, diagnostics: &mut Diagnostics) -> Vec<Hook> {
    let mut hooks: Vec<(Hook, &Spanned<String>)> = Vec::new();
    for section in &manifest.operator.handlers {
        let Some((moment, name)) = section.function() else {
            continue;
        };
        if moment == HookKind::Probe {
            let repeated = [
                ("retries", section.retries.as_ref().map(|it| it.span)),
                ("backoff", section.backoff.as_ref().map(|it| it.span)),
            ];
            for (key, span) in repeated {
                let Some(span) = span else { continue };
                let message = format!("`{key}` makes no sense for a probe");
                let error = Diagnostic::error(Code::ManifestValue, message)
                    .at(manifest.source, span, "a probe is not repeated")
                    .help("the kubelet calls a probe again by itself: remove the key");
                diagnostics.push(error);
            }
        }
        let mut lowering = Lowering {
            source: manifest.source,
            schema: None,
            limits: LimitsCheck::Enforced,
            resolve: &|_, _, _| None,
            in_status: &|_| None,
            kind_types: &BTreeMap::new(),
            children: &[],
            diagnostics,
        };
        let Some(method) = lowering.identifier(name, key(moment)) else {
            continue;
        };
        let hook = hook(section, moment, name, method);
        let builds_state = |kind: HookKind| kind == HookKind::State;
        let mut others = hooks.iter();
        if let Some((_, first)) =
            others.find(|(it, _)| builds_state(it.moment) && builds_state(moment))
        {
            let error = Diagnostic::error(
                Code::ManifestValue,
                "an operator has one function that builds its state",
            );
            diagnostics.push(
                error
                    .at(manifest.source, name.span, "a second one")
                    .at(manifest.source, first.span, "the first one")
                    .help("build the whole state in one function, or make this one a `startup`"),
            );
            continue;
        }
        if let Some((_, first)) = hooks.iter().find(|(other, _)| other.method == hook.method) {
            diagnostics.push(
                Diagnostic::error(
                    Code::DuplicateHandler,
                    format!("`{}` is named twice", name.value),
                )
                .at(manifest.source, name.span, "named again")
                .at(manifest.source, first.span, "first named here")
                .help("give one of them another name"),
            );
            continue;
        }
        hooks.push((hook, name));
    }
    hooks.into_iter().map(|(hook, _)| hook).collect()
}

fn hook(section: &HookSection, moment: HookKind, name: &Spanned<String>, method: String) -> Hook {
    Hook {
        id: section.id.as_ref().unwrap_or(name).value.clone(),
        method,
        moment,
        retry: RetryOptions {
            errors: section.errors.map(|errors| errors.value),
            timeout: section.timeout.map(|timeout| timeout.value.0),
            retries: section.retries.map(|retries| retries.value),
            backoff: section.backoff.map(|backoff| backoff.value.0),
        },
        param: section
            .param
            .as_ref()
            .map(|param| Param::of_literal(param.value.clone())),
    }
}

fn key(moment: HookKind) -> &'static str {
    match moment {
        HookKind::State => "`state`",
        HookKind::Startup => "`startup`",
        HookKind::Cleanup => "`cleanup`",
        HookKind::Login => "`login`",
        HookKind::Probe => "`probe`",
    }
}
