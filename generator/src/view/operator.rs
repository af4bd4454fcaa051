//! `src/generated.rs`: the operator, assembled from its kinds.

use std::time::Duration;

use askama::Template;

use super::hooks;
use super::literal;
use crate::load::manifest::{
    ConfigurationOwner, SettingValue, SettingsSection, Ties, TunedSection,
};
use crate::model::coordination::{DEFAULT_PEERING, LeaderElection, Membership, Peering};
use crate::model::operator::{HandledKind, KindOrigin, Operator};

/// The version of the interface between generated code and the runtime.
pub const CODEGEN_ABI: u32 = 2;

/// The root of the generated code.
#[derive(Debug, Template)]
#[template(path = "generated/operator.rs")]
pub struct OperatorView<'a> {
    name: &'a str,
    abi: u32,
    kinds: Vec<KindLine<'a>>,
    has_indices: bool,
    has_hooks: bool,
    /// The traits that the state implements.
    bounds: Vec<String>,
    has_types: bool,
    /// The paths of the CRDs from the generated file, as literals.
    crd_files: Vec<String>,
    /// The settings of the peering, if they differ from the default.
    peering: Option<String>,
    leader_election: Option<String>,
    webhooks: Option<String>,
    /// The settings, if they differ from the default.
    settings: Option<String>,
    /// The scope, if it is not the whole cluster.
    namespaces: Option<String>,
}

#[derive(Debug)]
struct KindLine<'a> {
    module: &'a str,
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
        KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
        KindOrigin::Custom(resource) => Some(resource.module.as_str()),
    })
}

/// The options of the webhook server, if they differ from the default.
fn webhooks(operator: &Operator) -> Option<String> {
    let admission = &operator.admission;
    if !operator.has_webhooks() {
        return None;
    }
    let service = operator.webhook_service();
    match admission.configuration {
        ConfigurationOwner::Managed if admission.is_named => {
            Some(format!(".managed({:?})", admission.name))
        }
        ConfigurationOwner::Managed => None,
        ConfigurationOwner::CertManager => {
            Some(format!(".unmanaged().certificates_in({service:?})"))
        }
    }
}

// === impl OperatorView ===

impl<'a> OperatorView<'a> {
    /// Prepares the root of `operator`.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        let line = |kind: &'a HandledKind| KindLine {
            module: &kind.module,
        };
        let has_hooks = !operator.hooks.is_empty();
        Self {
            name: &operator.name,
            abi: CODEGEN_ABI,
            bounds: operator
                .kinds
                .iter()
                .map(|kind| format!("{}::{}", kind.module, kind.handlers_trait()))
                .chain(has_hooks.then(|| format!("{}::{}", hooks::MODULE, hooks::TRAIT)))
                .collect(),
            kinds: operator.kinds.iter().map(line).collect(),
            has_indices: !operator.indices().is_empty(),
            has_hooks,
            has_types: custom_modules(operator).next().is_some(),
            crd_files: operator
                .crd_files
                .iter()
                .map(|file| literal::string(&format!("../{}", file.path)))
                .collect(),
            peering: peering(&operator.peering),
            leader_election: operator.leader_election.as_ref().map(leader_election),
            webhooks: webhooks(operator),
            settings: settings(&operator.settings),
            namespaces: namespaces(operator),
        }
    }
}

fn settings(sections: &[TunedSection]) -> Option<String> {
    const SETTINGS: &str = "kopf_runtime::Settings";
    let fields: Vec<String> = sections.iter().map(section).collect();
    match fields.len() {
        0 => None,
        SettingsSection::SECTIONS => Some(format!("{SETTINGS} {{ {} }}", fields.join(", "))),
        _ => Some(literal(
            SETTINGS,
            &fields,
            &format!("{SETTINGS}::default()"),
        )),
    }
}

fn section(section: &TunedSection) -> String {
    let TunedSection {
        field,
        type_name,
        conversion,
        ..
    } = section;
    let fields = section.fields.iter();
    let fields: Vec<String> = fields
        .map(|(field, value)| format!("{field}: {}", setting(value)))
        .collect();
    let name = format!("kopf_runtime::{type_name}");
    if section.is_complete {
        format!("{field}: {name} {{ {} }}{conversion}", fields.join(", "))
    } else {
        let default = format!("{name}::default()");
        let tuned = literal(&name, &fields, &default);
        format!("{field}: {tuned}{conversion}")
    }
}

fn setting(value: &SettingValue) -> String {
    match value {
        SettingValue::Duration(time) => duration(*time),
        SettingValue::Durations(times) => {
            let times: Vec<String> = times.iter().copied().map(duration).collect();
            format!("vec![{}]", times.join(", "))
        }
        SettingValue::Flag(flag) => flag.to_string(),
        SettingValue::Count(number) => number.to_string(),
        SettingValue::Limit(number) => format!("Some({number})"),
        SettingValue::Text(text) => owned(text),
        SettingValue::Texts(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| owned(text)).collect();
            format!("vec![{}]", texts.join(", "))
        }
        SettingValue::Variant(variant) => format!("kopf_runtime::{variant}"),
    }
}

fn owned(text: &str) -> String {
    format!("{text:?}.to_owned()")
}

fn namespaces(operator: &Operator) -> Option<String> {
    let patterns: Vec<String> = operator
        .namespaces
        .iter()
        .map(|it| format!("{it:?}"))
        .collect();
    let patterns = patterns.join(", ");
    (!patterns.is_empty()).then(|| format!("kopf_runtime::Namespaces::matching([{patterns}])"))
}

fn peering(peering: &Peering) -> Option<String> {
    const SETTINGS: &str = "kopf_runtime::PeeringSettings";
    let (membership, base) = match peering {
        Peering::Standalone => return Some(format!("{SETTINGS}::standalone()")),
        Peering::Auto(membership) if *membership == Membership::default() => return None,
        Peering::Auto(membership) => (membership, format!("{SETTINGS}::default()")),
        Peering::Mandatory(membership) => {
            let name = membership.peering();
            (membership, format!("{SETTINGS}::named({name:?})"))
        }
    };
    let mut fields = Vec::new();
    if matches!(peering, Peering::Auto(_)) && membership.peering() != DEFAULT_PEERING {
        fields.push(format!("name: {:?}.to_owned()", membership.peering()));
    }
    if membership.priority != 0 {
        fields.push(format!("priority: {}", membership.priority));
    }
    if let Some(lifetime) = membership.lifetime {
        fields.push(format!("lifetime: {}", duration(lifetime)));
    }
    if membership.stealth {
        fields.push("stealth: true".to_owned());
    }
    if membership.ties == Ties::FirstIdentity {
        fields.push("ties: kopf_runtime::Ties::FirstIdentity".to_owned());
    }
    Some(literal(SETTINGS, &fields, &base))
}

fn leader_election(election: &LeaderElection) -> String {
    const SETTINGS: &str = "kopf_runtime::LeaderElectionSettings";
    let times = [
        ("lease_duration", election.lease_duration),
        ("renew_deadline", election.renew_deadline),
        ("retry_period", election.retry_period),
    ];
    let times = times
        .into_iter()
        .filter_map(|(field, time)| Some(format!("{field}: {}", duration(time?))));
    let fields: Vec<String> = [format!("name: Some({:?}.to_owned())", election.lease)]
        .into_iter()
        .chain(times)
        .collect();
    literal(SETTINGS, &fields, &format!("{SETTINGS}::default()"))
}

/// A struct with these fields, and the others from `base`.
fn literal(name: &str, fields: &[String], base: &str) -> String {
    if fields.is_empty() {
        return base.to_owned();
    }
    format!("{name} {{ {}, ..{base} }}", fields.join(", "))
}

fn duration(duration: Duration) -> String {
    if duration.subsec_nanos() == 0 {
        format!("std::time::Duration::from_secs({})", duration.as_secs())
    } else {
        format!("std::time::Duration::from_millis({})", duration.as_millis())
    }
}
