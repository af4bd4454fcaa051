//! `src/generated.rs`: the operator, assembled from its kinds.

use proc_macro2::Literal;
use syn::{Expr, parse_quote};

use super::expression::call;
use super::registration::{duration, number};
use crate::load::manifest::{
    ConfigurationOwner, SettingValue, SettingsSection, Ties, TunedSection,
};
use crate::model::common_modules::{CommonModule, GENERATED};
use crate::model::coordination::{DEFAULT_PEERING, LeaderElection, Membership, Peering};
use crate::model::hook;
use crate::model::operator::Operator;
use crate::rust::{Lint, RustItem, RustModule, RustPath, ident};

/// The version of the interface between generated code and the runtime.
const CODEGEN_ABI: u32 = 4;

/// A crate uses only a part of the generated code.
const UNUSED: Lint = Lint {
    names: &["dead_code"],
    reason: Some("an operator rarely uses every field of every type"),
};

/// The root of the generated code, which declares `modules`.
pub(super) fn module(operator: &Operator, modules: &[&str]) -> RustModule {
    let mut items: Vec<RustItem> = modules.iter().map(|module| declared(module)).collect();
    let abi = Literal::u32_unsuffixed(CODEGEN_ABI);
    items.push(RustItem::code(parse_quote! {
        const _: () = ::kopf_runtime::assert_codegen_abi(#abi);
    }));
    items.push(function(operator));
    RustModule {
        docs: vec![format!(
            "The operator `{}`, generated from `kopf.yaml`: types, handler traits and registration.",
            operator.name
        )],
        allowed: vec![UNUSED],
        location: vec![GENERATED.to_owned()],
        items,
        ..RustModule::default()
    }
}

/// `src/generated/types.rs`: the modules of all custom kinds.
pub(super) fn types_module(modules: &[&str]) -> RustModule {
    RustModule {
        docs: vec!["The types of the custom kinds, generated from their CRDs.".to_owned()],
        items: modules.iter().map(|module| declared(module)).collect(),
        ..RustModule::default()
    }
}

fn declared(module: &str) -> RustItem {
    RustItem::Module {
        name: ident(module),
        // The whole folder has an attribute in `main.rs`.
        keeps_layout: false,
        body: None,
    }
}

/// The function that makes the operator.
fn function(operator: &Operator) -> RustItem {
    let has_hooks = !operator.hooks.is_empty();
    let kinds = operator.kinds.iter();
    let bounds = kinds.map(|kind| (kind.module.as_str(), kind.handlers_trait()));
    let hooks_bound = has_hooks.then(|| (CommonModule::Hooks.name(), hook::TRAIT.to_owned()));
    let bounds: Vec<syn::Path> = bounds
        .chain(hooks_bound)
        .map(|(module, name)| {
            let (module, name) = (ident(module), ident(&name));
            parse_quote!(#module::#name)
        })
        .collect();
    let chain = chain(operator);
    let function = if bounds.is_empty() {
        parse_quote! {
            /// The operator, with the methods of `state` as its handlers.
            pub fn operator<S>(_state: S) -> ::kopf_runtime::Operator {
                #chain
            }
        }
    } else if operator.builds_state() {
        parse_quote! {
            /// The operator, with the methods of `S` as its handlers. One of them builds the `S`
            /// when the operator starts.
            pub fn operator<S>() -> ::kopf_runtime::Operator
            where
                S: #(#bounds)+*,
            {
                let state = ::kopf_runtime::SharedState::<S>::to_be_built();
                #chain
            }
        }
    } else {
        parse_quote! {
            /// The operator, with the methods of `state` as its handlers.
            pub fn operator<S>(state: S) -> ::kopf_runtime::Operator
            where
                S: #(#bounds)+*,
            {
                let state = ::kopf_runtime::SharedState::new(state);
                #chain
            }
        }
    };
    RustItem::code(function)
}

fn chain(operator: &Operator) -> Expr {
    let name = &operator.name;
    let mut chain: Expr = parse_quote!(
        ::kopf_runtime::Operator::new(#name).version(env!("CARGO_PKG_VERSION"))
    );
    let options = [
        ("namespaces", namespaces(operator)),
        ("peering", peering(&operator.peering)),
        (
            "leader_election",
            operator.leader_election.as_ref().map(leader_election),
        ),
        ("settings", settings(&operator.settings)),
    ];
    for (method, option) in options {
        if let Some(option) = option {
            chain = call(chain, method, [option]);
        }
    }
    if !operator.hooks.is_empty() {
        let hooks = ident(CommonModule::Hooks.name());
        chain = call(chain, "handlers", [parse_quote!(#hooks::handlers(&state))]);
    }
    for kind in &operator.kinds {
        let module = ident(&kind.module);
        chain = call(chain, "resource", [parse_quote!(#module::resource(&state))]);
    }
    if let Some(webhooks) = webhooks(operator) {
        chain = call(chain, "webhooks", [webhooks]);
    }
    for file in &operator.crd_files {
        let path = format!("../{}", file.path);
        chain = call(chain, "crd", [parse_quote!(include_str!(#path))]);
    }
    chain
}

/// The options of the webhook server, if they differ from the default.
fn webhooks(operator: &Operator) -> Option<Expr> {
    let admission = &operator.admission;
    if !operator.has_webhooks() {
        return None;
    }
    let service = operator.webhook_service();
    let default: Expr = parse_quote!(::kopf_runtime::admission::Webhooks::default());
    match admission.configuration {
        ConfigurationOwner::Managed if admission.is_named => {
            let name = &admission.name;
            Some(parse_quote!(#default.managed(#name)))
        }
        ConfigurationOwner::Managed => None,
        ConfigurationOwner::CertManager => {
            Some(parse_quote!(#default.unmanaged().certificates_in(#service)))
        }
    }
}

fn settings(sections: &[TunedSection]) -> Option<Expr> {
    const SETTINGS: &str = "kopf_runtime::Settings";
    let fields: Vec<syn::FieldValue> = sections.iter().map(section).collect();
    match fields.len() {
        0 => None,
        SettingsSection::SECTIONS => Some(parse_quote!(::kopf_runtime::Settings { #(#fields),* })),
        _ => Some(tuned(SETTINGS, &fields, None)),
    }
}

fn section(section: &TunedSection) -> syn::FieldValue {
    let field = ident(section.field);
    let fields = section.fields.iter();
    let fields: Vec<syn::FieldValue> = fields
        .map(|(field, value)| self::field(field, &setting(value)))
        .collect();
    let name = format!("kopf_runtime::{}", section.type_name);
    let value = if section.is_complete {
        let path = RustPath::external(&name);
        parse_quote!(#path { #(#fields),* })
    } else {
        tuned(&name, &fields, None)
    };
    let value = match section.conversion {
        Some(method) => call(value, method, []),
        None => value,
    };
    parse_quote!(#field: #value)
}

fn field(name: &str, value: &Expr) -> syn::FieldValue {
    let name = ident(name);
    parse_quote!(#name: #value)
}

fn setting(value: &SettingValue) -> Expr {
    match value {
        SettingValue::Duration(time) => duration(*time),
        SettingValue::Durations(times) => {
            let times = times.iter().copied().map(duration);
            parse_quote!(vec![#(#times),*])
        }
        SettingValue::Flag(flag) => parse_quote!(#flag),
        SettingValue::Count(count) => number((*count).into()),
        SettingValue::Limit(count) => {
            let count = number((*count).into());
            parse_quote!(::std::option::Option::Some(#count))
        }
        SettingValue::Text(text) => parse_quote!(#text.to_owned()),
        SettingValue::Texts(texts) => parse_quote!(vec![#(#texts.to_owned()),*]),
        SettingValue::Variant(variant) => {
            let path = runtime_path(variant);
            parse_quote!(#path)
        }
        SettingValue::TextVariant(variant, text) => {
            let path = runtime_path(variant);
            parse_quote!(#path(#text.to_owned()))
        }
        SettingValue::ListVariant(variant, values) => {
            let path = runtime_path(variant);
            let values = values.iter().map(setting);
            parse_quote!(#path(vec![#(#values),*]))
        }
    }
}

fn runtime_path(variant: &str) -> RustPath {
    RustPath::external(&format!("kopf_runtime::{variant}"))
}

fn namespaces(operator: &Operator) -> Option<Expr> {
    let patterns = &operator.namespaces;
    (!patterns.is_empty())
        .then(|| parse_quote!(::kopf_runtime::Namespaces::matching([#(#patterns),*])))
}

fn peering(peering: &Peering) -> Option<Expr> {
    const SETTINGS: &str = "kopf_runtime::PeeringSettings";
    let (membership, base) = match peering {
        Peering::Standalone => {
            return Some(parse_quote!(::kopf_runtime::PeeringSettings::standalone()));
        }
        Peering::Auto(membership) if *membership == Membership::default() => return None,
        Peering::Auto(membership) => (membership, None),
        Peering::Mandatory(membership) => {
            let name = membership.peering();
            let named = parse_quote!(::kopf_runtime::PeeringSettings::created(#name));
            (membership, Some(named))
        }
    };
    let mut fields: Vec<syn::FieldValue> = Vec::new();
    if matches!(peering, Peering::Auto(_)) && membership.peering() != DEFAULT_PEERING {
        let name = membership.peering();
        fields.push(parse_quote!(name: #name.to_owned()));
    }
    if membership.clusterwide {
        fields.push(parse_quote!(clusterwide: true));
    }
    if membership.priority != 0 {
        let priority = super::default_value::integer(membership.priority.into());
        fields.push(parse_quote!(priority: #priority));
    }
    if let Some(lifetime) = membership.lifetime {
        fields.push(field("lifetime", &duration(lifetime)));
    }
    if membership.stealth {
        fields.push(parse_quote!(stealth: true));
    }
    if membership.ties == Ties::FirstIdentity {
        fields.push(parse_quote!(ties: ::kopf_runtime::Ties::FirstIdentity));
    }
    Some(tuned(SETTINGS, &fields, base))
}

fn leader_election(election: &LeaderElection) -> Expr {
    let times = [
        ("lease_duration", election.lease_duration),
        ("renew_deadline", election.renew_deadline),
        ("retry_period", election.retry_period),
    ];
    let times = times
        .into_iter()
        .filter_map(|(name, time)| Some(field(name, &duration(time?))));
    let lease = &election.lease;
    let name: syn::FieldValue = parse_quote!(name: ::std::option::Option::Some(#lease.to_owned()));
    let fields: Vec<syn::FieldValue> = [name].into_iter().chain(times).collect();
    tuned("kopf_runtime::LeaderElectionSettings", &fields, None)
}

/// A struct with these fields, and the others from `base` or else from its default.
fn tuned(path: &str, fields: &[syn::FieldValue], base: Option<Expr>) -> Expr {
    let path = RustPath::external(path);
    let base = base.unwrap_or_else(|| parse_quote!(#path::default()));
    if fields.is_empty() {
        base
    } else {
        parse_quote!(#path { #(#fields,)* ..#base })
    }
}
