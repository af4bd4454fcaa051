//! From what is written to what it means: kinds are found, names decided, fields typed.

mod field;
mod filter_checks;
mod handler;
mod hook;
mod implied;
mod index;
mod kind_handlers;
mod memo;
mod option_checks;
mod selection;
mod tracking;
mod webhook;

use std::collections::{BTreeMap, BTreeSet};

use self::kind_handlers::KindLowering;
use super::builtin_kinds;
use super::coordination;
use super::identifier::{RustIdent, TypeName};
use super::operator::{AdmissionOptions, CrdFile, HandledKind, KindOrigin, Operator};
use super::options::Options;
use super::resource::{CustomResource, VersionChoice};
use super::sample_object;
use super::status_subresource::StatusSubresource;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::load::crd::{Crd, CrdVersion};
use crate::load::manifest::{
    Configuration, Manifest, OneOrMany, ResourceSection, SettingsSection, Spanned, Tracking,
    TunedSection,
};
use crate::load::schema::Schema;
use crate::suggest::did_you_mean;

/// The files with definitions that the manifest names.
pub type CrdFiles = BTreeMap<String, LoadedCrds>;

/// A file with definitions.
#[derive(Clone, Debug)]
pub struct LoadedCrds {
    /// What it says.
    pub text: String,
    /// The definitions in it.
    pub crds: Vec<Crd>,
}

/// Gives a manifest its meaning. Everything that makes no sense is reported.
#[must_use]
pub fn operator(
    manifest: &Manifest,
    crds: &CrdFiles,
    diagnostics: &mut Diagnostics,
) -> Option<Operator> {
    check_name(manifest, diagnostics);
    let mut kinds: Vec<(HandledKind, &ResourceSection)> = Vec::new();
    for section in &manifest.resources {
        let Some(kind) = (KindFinder {
            manifest,
            crds,
            diagnostics,
        })
        .kind(section) else {
            continue;
        };
        let same = |known: &HandledKind| match (known.selector(), kind.selector()) {
            (Some(known), Some(selector)) => known == selector,
            (Some(_), None) | (None, Some(_)) => false,
            (None, None) => {
                (&known.group, &known.kind, &known.version)
                    == (&kind.group, &kind.kind, &kind.version)
            }
        };
        if let Some((_, first)) = kinds.iter().find(|(known, _)| same(known)) {
            diagnostics.push(
                Diagnostic::error(Code::DuplicateKind, format!("{} is named twice", kind.kind))
                    .at(manifest.source, section.span, "named again")
                    .at(manifest.source, first.span, "named first here")
                    .help("put all its handlers into one entry"),
            );
            continue;
        }
        let other_version = |known: &HandledKind| {
            let selects = known.selector().is_some() || kind.selector().is_some();
            !selects && (&known.group, &known.kind) == (&kind.group, &kind.kind)
        };
        if let Some((known, first)) = kinds.iter().find(|(known, _)| other_version(known)) {
            let message = format!(
                "{} and {} of {} are the same objects",
                known.version, kind.version, kind.kind
            );
            diagnostics.push(
                Diagnostic::warning(Code::TwoVersions, message)
                    .at(
                        manifest.source,
                        section.span,
                        "every object would be handled twice",
                    )
                    .at(manifest.source, first.span, "once here"),
            );
        }
        kinds.push((kind, section));
    }
    tell_apart(&mut kinds);
    let named: Vec<&HandledKind> = kinds.iter().map(|(kind, _)| kind).collect();
    let kind_types = index::kind_types(&named);
    let kinds: Vec<(HandledKind, &ResourceSection)> = kinds
        .into_iter()
        .map(|(mut kind, section)| {
            (kind.handlers, kind.webhooks) = KindLowering {
                source: manifest.source,
                kind: &kind,
                schema: schema(crds, section, &kind),
                standing_webhooks: standing_webhooks(manifest),
                kind_types: &kind_types,
                diagnostics,
            }
            .lower(section);
            kind.memo = memo::memo(manifest, section, &kind, diagnostics);
            kind.tracking = tracking::tracking(manifest, section, &kind, diagnostics);
            (kind, section)
        })
        .collect();
    selection::check(manifest, &kinds, diagnostics);
    let kinds: Vec<HandledKind> = kinds.into_iter().map(|(kind, _)| kind).collect();
    index::check_shared(manifest, &kinds, diagnostics);
    let crd_files = crds
        .iter()
        .map(|(path, file)| CrdFile {
            path: path.clone(),
            text: file.text.clone(),
        })
        .collect();
    let (peering, leader_election) = coordination::lower(manifest, diagnostics);
    Some(Operator {
        admission: admission(manifest, diagnostics),
        name: manifest.operator.name.value.clone(),
        peering,
        leader_election,
        namespaces: namespaces(manifest),
        settings: settings(manifest),
        hooks: hook::hooks(manifest, diagnostics),
        kinds,
        crd_files,
    })
}

/// The schema of a custom kind in the version that is handled.
fn schema<'c>(
    crds: &'c CrdFiles,
    section: &ResourceSection,
    kind: &HandledKind,
) -> Option<&'c Schema> {
    let file = crds.get(&section.crd.as_ref()?.value)?;
    let same = |crd: &&Crd| (&crd.group, &crd.names.kind) == (&kind.group, &kind.kind);
    let versions = &file.crds.iter().find(same)?.versions;
    let version = versions.iter().find(|version| version.name == kind.version);
    version.map(|version| &version.schema)
}

/// Where the manifest leaves the webhook configurations to somebody who does not take them away.
fn standing_webhooks(manifest: &Manifest) -> Option<Span> {
    let admission = manifest.operator.admission.as_ref()?;
    let configuration = admission.configuration?;
    (configuration.value == Configuration::CertManager).then_some(configuration.span)
}

fn namespaces(manifest: &Manifest) -> Vec<String> {
    let patterns = manifest.operator.namespaces.as_ref();
    let patterns = patterns.map(OneOrMany::as_slice).unwrap_or_default();
    patterns.iter().map(|it| it.value.clone()).collect()
}

fn settings(manifest: &Manifest) -> Vec<TunedSection> {
    let settings = manifest.operator.settings.as_ref();
    settings.map(SettingsSection::tuned).unwrap_or_default()
}

/// Whether a text can name a crate, a Deployment and a ServiceAccount.
#[must_use]
pub fn is_operator_name(name: &str) -> bool {
    name.len() <= 63
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn check_name(manifest: &Manifest, diagnostics: &mut Diagnostics) {
    let name = &manifest.operator.name;
    if !is_operator_name(&name.value) {
        diagnostics.push(
            Diagnostic::error(
                Code::OperatorName,
                format!("`{}` cannot name an operator", name.value),
            )
            .at(
                manifest.source,
                name.span,
                "not a name for a crate and a Deployment",
            )
            .help("use lower-case letters, digits and dashes, starting with a letter"),
        );
    }
}

fn admission(manifest: &Manifest, diagnostics: &mut Diagnostics) -> AdmissionOptions {
    let section = manifest.operator.admission.clone().unwrap_or_default();
    if let Some(name) = &section.name {
        let is_part = |part: &str| is_operator_name(part) || part.parse::<u64>().is_ok();
        if !name.value.contains('.') || !name.value.split('.').all(is_part) {
            diagnostics.push(
                Diagnostic::error(
                    Code::ManifestValue,
                    format!("`{}` cannot name webhook configurations", name.value),
                )
                .at(manifest.source, name.span, "not a name with a dot")
                .help("write it like `auto.kopf.dev`"),
            );
        }
    }
    AdmissionOptions {
        is_named: section.name.is_some(),
        name: section.name.map_or_else(
            || format!("{}.kopf-gen.dev", manifest.operator.name.value),
            |name| name.value,
        ),
        configuration: section
            .configuration
            .map(|configuration| configuration.value)
            .unwrap_or_default(),
    }
}

/// Kinds of the same name get the version, and if need be the group, into theirs.
fn tell_apart(kinds: &mut [(HandledKind, &ResourceSection)]) {
    let names: Vec<_> = kinds.iter().map(|(kind, _)| kind.module.clone()).collect();
    // These modules are next to those of the kinds.
    let clash = |name: &String| {
        matches!(name.as_str(), "hooks" | "indices" | "types")
            || names.iter().filter(|other| *other == name).count() > 1
    };
    let short = |kind: &HandledKind| {
        let group = kind.group.split('.').next().unwrap_or_default();
        format!("{}_{group}_{}", kind.module, kind.version)
    };
    let shorts: Vec<String> = kinds.iter().map(|(kind, _)| short(kind)).collect();
    for (kind, _) in kinds.iter_mut().filter(|(kind, _)| clash(&kind.module)) {
        let short = short(kind);
        let qualified = if shorts.iter().filter(|other| **other == short).count() > 1 {
            format!("{}_{}_{}", kind.module, kind.group, kind.version)
        } else {
            short
        };
        let module = RustIdent::of_module(&qualified);
        kind.module = module.to_string();
        if let KindOrigin::Custom(resource) = &mut kind.origin {
            resource.module = module;
        }
        // The Rust type keeps its name inside the module; only the trait is seen next to others.
        kind.trait_prefix = TypeName::new(&qualified).to_string();
    }
}

/// Finds one kind and gives its handlers their meaning.
struct KindFinder<'a> {
    manifest: &'a Manifest,
    crds: &'a CrdFiles,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> KindFinder<'a> {
    fn kind(&mut self, section: &ResourceSection) -> Option<HandledKind> {
        if let Some(alias) = section.alias.as_ref().filter(|_| section.select.is_none()) {
            let message = "`as` belongs to `select`: other kinds have a name";
            self.error(Code::ManifestValue, alias.span, message, "remove it");
        }
        match (&section.crd, &section.builtin, &section.select) {
            (Some(file), None, None) => self.custom(section, file),
            (None, Some(name), None) => self.standard(section, name),
            (None, None, Some(select)) => self.selected(section, select),
            (Some(_), Some(Spanned { span, .. }), _)
            | (_, Some(Spanned { span, .. }), Some(_))
            | (Some(Spanned { span, .. }), _, Some(_)) => {
                let message = "a resource has one of `crd`, `builtin` and `select`";
                self.error(Code::ManifestValue, *span, message, "one is too many");
                None
            }
            (None, None, None) => {
                let message = "a resource needs `crd`, `builtin` or `select`";
                self.error(
                    Code::ManifestMissing,
                    section.span,
                    message,
                    "which kind is it?",
                );
                None
            }
        }
    }

    fn standard(
        &mut self,
        section: &ResourceSection,
        name: &Spanned<String>,
    ) -> Option<HandledKind> {
        for (key, misplaced) in [("kind", &section.kind), ("version", &section.version)] {
            if let Some(misplaced) = misplaced {
                let message = format!("`{key}` belongs to `crd`: `builtin` says it all");
                self.error(Code::ManifestValue, misplaced.span, message, "remove it");
            }
        }
        let Some(standard) = builtin_kinds::find(&name.value) else {
            let names: Vec<_> = builtin_kinds::ALL
                .iter()
                .map(builtin_kinds::BuiltinKind::name)
                .collect();
            let plain = name.value.rsplit('/').next().unwrap_or_default();
            let by_kind = builtin_kinds::ALL.iter().find(|kind| {
                kind.kind.eq_ignore_ascii_case(plain) || kind.plural.eq_ignore_ascii_case(plain)
            });
            let help = by_kind
                .map(|kind| format!("did you mean `{}`?", kind.name()))
                .or_else(|| did_you_mean(&name.value, names.iter().map(String::as_str)))
                .unwrap_or_else(|| {
                    "write it like `v1/Pod` or `batch/v1/Job`; other kinds need `crd`".to_owned()
                });
            self.diagnostics.push(
                Diagnostic::error(
                    Code::UnknownKind,
                    format!("`{}` is not a kind that every cluster has", name.value),
                )
                .at(self.manifest.source, name.span, "unknown kind")
                .help(help),
            );
            return None;
        };
        Some(HandledKind {
            group: standard.group.to_owned(),
            version: standard.version.to_owned(),
            kind: standard.kind.to_owned(),
            plural: standard.plural.to_owned(),
            scope: standard.scope,
            status: standard.status,
            module: RustIdent::of_module(standard.kind).to_string(),
            type_name: standard.kind.to_owned(),
            trait_prefix: standard.kind.to_owned(),
            origin: KindOrigin::Builtin(standard),
            sample: None,
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memo: None,
            tracking: Tracking::Matching,
        })
    }

    fn custom(&mut self, section: &ResourceSection, file: &Spanned<String>) -> Option<HandledKind> {
        let crd = self.crd(section, file)?;
        let version = self.version(section, crd)?;
        let (status, name) = (version.status, version.name.clone());
        let sample = sample_object::object(&version.schema);
        let versions = VersionChoice::Named(BTreeSet::from([name.clone()]));
        let resource = CustomResource::new(
            crd.clone(),
            &versions,
            &Options::default(),
            &mut BTreeSet::new(),
            self.diagnostics,
        )?;
        Some(HandledKind {
            group: resource.group.clone(),
            version: name,
            kind: resource.names.kind.clone(),
            plural: resource.names.plural.clone(),
            scope: resource.scope,
            status: if status {
                StatusSubresource::Present
            } else {
                StatusSubresource::Absent
            },
            module: resource.module.to_string(),
            type_name: resource.type_name.to_string(),
            trait_prefix: resource.type_name.to_string(),
            origin: KindOrigin::Custom(Box::new(resource)),
            sample: Some(sample),
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memo: None,
            tracking: Tracking::Matching,
        })
    }

    fn crd(&mut self, section: &ResourceSection, file: &Spanned<String>) -> Option<&'a Crd> {
        // A file that could not be read was reported already.
        let crds = &self.crds.get(&file.value)?.crds;
        let names = || crds.iter().map(|crd| crd.names.kind.as_str());
        let found = match &section.kind {
            Some(kind) => crds.iter().find(|crd| crd.names.kind == kind.value),
            None => crds.first().filter(|_| crds.len() == 1),
        };
        if found.is_none() {
            let all = names()
                .map(|name| format!("`{name}`"))
                .collect::<Vec<_>>()
                .join(", ");
            let (span, message, help) = match &section.kind {
                _ if crds.is_empty() => (
                    file.span,
                    format!("{} defines no kind", file.value),
                    "it needs a CustomResourceDefinition".to_owned(),
                ),
                Some(kind) => (
                    kind.span,
                    format!("{} does not define `{}`", file.value, kind.value),
                    did_you_mean(&kind.value, names())
                        .unwrap_or_else(|| format!("it defines {all}")),
                ),
                None => (
                    file.span,
                    format!("{} defines several kinds", file.value),
                    format!("add `kind`, one of {all}"),
                ),
            };
            self.diagnostics.push(
                Diagnostic::error(Code::UnknownKind, message)
                    .at(self.manifest.source, span, "")
                    .help(help),
            );
        }
        found
    }

    fn version<'c>(&mut self, section: &ResourceSection, crd: &'c Crd) -> Option<&'c CrdVersion> {
        let served = || crd.versions.iter().filter(|version| version.served);
        match &section.version {
            None => served()
                .find(|version| version.storage)
                .or_else(|| served().next())
                .or_else(|| {
                    let message = format!("no version of {} is served", crd.names.kind);
                    self.error(Code::NoVersion, section.span, message, "nothing to watch");
                    None
                }),
            Some(wanted) => served()
                .find(|version| version.name == wanted.value)
                .or_else(|| {
                    let names: Vec<_> = served().map(|version| version.name.as_str()).collect();
                    let known = crd
                        .versions
                        .iter()
                        .any(|version| version.name == wanted.value);
                    let what = if known { "not served" } else { "not defined" };
                    self.diagnostics.push(
                        Diagnostic::error(
                            Code::NoVersion,
                            format!("`{}` of {} is {what}", wanted.value, crd.names.kind),
                        )
                        .at(self.manifest.source, wanted.span, what)
                        .help(format!("these are served: {}", names.join(", "))),
                    );
                    None
                }),
        }
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, label: &str) {
        self.diagnostics.push(Diagnostic::error(code, message).at(
            self.manifest.source,
            span,
            label,
        ));
    }
}
