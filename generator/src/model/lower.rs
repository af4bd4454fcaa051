//! Lowers the manifest to the model: finds kinds, chooses names, resolves the types of fields.

mod child_handler;
mod field;
mod filter_checks;
mod handler;
mod hook;
mod implied_notes;
mod index;
mod kind_finder;
mod kind_handlers;
mod lowering;
mod memo;
mod option_checks;
mod relation_finder;
mod relations;
mod selection;
mod shared_params;
mod tracking;
mod type_options;
mod use_path;
mod webhook;

pub use self::kind_finder::{CrdFiles, LoadedCrds};

use self::kind_finder::KindFinder;
use self::kind_handlers::KindLowering;
use self::relation_finder::{RelationFinder, Relations};
use self::relations::RelationLowering;
use super::common_modules::CommonModule;
use super::coordination;
use super::deploy;
use super::identifier::{RustIdent, TypeName};
use super::operator::{AdmissionOptions, CrdFile, HandledKind, KindOrigin, Operator};
use super::resource::CustomResource;
use super::shared_types;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::crd::Crd;
use crate::load::manifest::{Manifest, OneOrMany, ResourceSection, SettingsSection, TunedSection};
use crate::load::names::{NameRule, QuotedName};
use crate::load::schema::Schema;

/// A kind, and the entry of `resources` that names it.
type FoundKind<'m> = (HandledKind, &'m ResourceSection);

/// Lowers a manifest, and reports everything in it that cannot work.
#[must_use]
pub fn operator(
    manifest: &Manifest,
    crds: &CrdFiles,
    diagnostics: &mut Diagnostics,
) -> Option<Operator> {
    check_name(manifest, diagnostics);
    let mut kinds = find_kinds(manifest, crds, diagnostics);
    disambiguate_modules(&mut kinds);
    let mut relations = RelationFinder {
        finder: KindFinder {
            manifest,
            crds,
            diagnostics,
        },
        kinds: &kinds,
    }
    .find();
    share_types(&mut kinds, &mut relations.types);
    lower_relations(manifest, crds, &mut kinds, &relations, diagnostics);
    lower_handlers(manifest, crds, &mut kinds, diagnostics);
    selection::check(manifest, &kinds, diagnostics);
    let kinds: Vec<HandledKind> = kinds.into_iter().map(|(kind, _)| kind).collect();
    index::check_shared(manifest, &kinds, diagnostics);
    // The definition of a kind that is only a child belongs to those who handle that kind.
    let is_handled = |path: &String| {
        let mut files = manifest.resources.iter().filter_map(|it| it.crd.as_ref());
        files.any(|file| file.value == *path)
    };
    let crd_files = crds
        .iter()
        .filter(|(path, _)| is_handled(path))
        .map(|(path, file)| CrdFile {
            path: path.clone(),
            text: file.text.clone(),
            definitions: file.crds.iter().map(|crd| crd.json.clone()).collect(),
        })
        .collect();
    let (peering, leader_election) = coordination::lower(manifest, diagnostics);
    let deployment = deploy::lower(manifest, leader_election.as_ref(), diagnostics);
    Some(Operator {
        deployment,
        admission: admission(manifest, diagnostics),
        name: manifest.operator.name.value.clone(),
        peering,
        leader_election,
        namespaces: namespaces(manifest),
        settings: settings(manifest),
        hooks: hook::hooks(manifest, diagnostics),
        kinds,
        related_types: relations.types,
        crd_files,
    })
}

/// The kinds of the manifest, still without handlers; a kind that is named twice is reported.
fn find_kinds<'m>(
    manifest: &'m Manifest,
    crds: &CrdFiles,
    diagnostics: &mut Diagnostics,
) -> Vec<FoundKind<'m>> {
    let mut kinds: Vec<FoundKind<'m>> = Vec::new();
    for section in &manifest.resources {
        let mut finder = KindFinder {
            manifest,
            crds,
            diagnostics,
        };
        let Some(kind) = finder.kind(section) else {
            continue;
        };
        if let Some((_, first)) = kinds.iter().find(|(known, _)| is_same_kind(known, &kind)) {
            diagnostics.push(
                Diagnostic::error(Code::DuplicateKind, format!("{} is named twice", kind.kind))
                    .at(manifest.source, section.span, "named again")
                    .at(manifest.source, first.span, "named first here")
                    .help("put all its handlers into one entry"),
            );
            continue;
        }
        let mut others = kinds.iter();
        if let Some((known, first)) = others.find(|(known, _)| is_other_version(known, &kind)) {
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
    kinds
}

fn is_same_kind(known: &HandledKind, kind: &HandledKind) -> bool {
    match (known.selector(), kind.selector()) {
        (Some(known), Some(selector)) => known == selector,
        (Some(_), None) | (None, Some(_)) => false,
        (None, None) => {
            (&known.group, &known.kind, &known.version) == (&kind.group, &kind.kind, &kind.version)
        }
    }
}

fn is_other_version(known: &HandledKind, kind: &HandledKind) -> bool {
    let selects = known.selector().is_some() || kind.selector().is_some();
    !selects && (&known.group, &known.kind) == (&kind.group, &kind.kind)
}

/// Defines each type once for all custom kinds, whatever their order in the manifest.
fn share_types(kinds: &mut [FoundKind<'_>], related: &mut [CustomResource]) {
    let origins = kinds.iter_mut().map(|(kind, _)| &mut kind.origin);
    let mut resources: Vec<&mut CustomResource> = origins
        .filter_map(|origin| match origin {
            KindOrigin::Custom(resource) => Some(&mut **resource),
            KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
        })
        .chain(related)
        .collect();
    resources.sort_by(|a, b| {
        let order = (&a.group, &a.names.kind).cmp(&(&b.group, &b.names.kind));
        order.then_with(|| a.module.cmp(&b.module))
    });
    shared_types::across(&mut resources);
}

/// Fills in the children of each kind, and what its objects refer to.
fn lower_relations(
    manifest: &Manifest,
    crds: &CrdFiles,
    kinds: &mut [FoundKind<'_>],
    relations: &Relations,
    diagnostics: &mut Diagnostics,
) {
    let lowered: Vec<_> = (0..kinds.len())
        .map(|place| {
            let (kind, section) = &kinds[place];
            let schema = schema(crds, section, kind);
            let mut lowering = RelationLowering {
                manifest,
                kinds,
                relations,
                diagnostics,
            };
            lowering.lower(place, schema)
        })
        .collect();
    for ((kind, _), (children, uses)) in kinds.iter_mut().zip(lowered) {
        (kind.children, kind.uses) = (children, uses);
    }
}

/// Fills in the handlers, webhooks, memo and tracking of each kind.
fn lower_handlers(
    manifest: &Manifest,
    crds: &CrdFiles,
    kinds: &mut [FoundKind<'_>],
    diagnostics: &mut Diagnostics,
) {
    let named: Vec<&HandledKind> = kinds.iter().map(|(kind, _)| kind).collect();
    let kind_types = index::kind_types(&named);
    for (kind, section) in kinds {
        let lowering = KindLowering {
            source: manifest.source,
            kind,
            schema: schema(crds, section, kind),
            unmanaged_webhooks: webhook::unmanaged(manifest),
            kind_types: &kind_types,
            diagnostics,
        };
        (kind.handlers, kind.webhooks) = lowering.lower(section);
        kind.memo = memo::memo(manifest, section, kind, diagnostics);
        kind.tracking = tracking::tracking(manifest, section, kind, diagnostics);
    }
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
    NameRule::Label.accepts(name)
}

fn check_name(manifest: &Manifest, diagnostics: &mut Diagnostics) {
    let name = &manifest.operator.name;
    if !is_operator_name(&name.value) {
        diagnostics.push(
            Diagnostic::error(
                Code::OperatorName,
                format!("{} cannot name an operator", QuotedName(&name.value)),
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
    if let Some(name) = &section.name
        && !NameRule::CustomGroup.accepts(&name.value)
    {
        let message = format!(
            "{} cannot name webhook configurations",
            QuotedName(&name.value)
        );
        diagnostics.push(
            Diagnostic::error(Code::ManifestValue, message)
                .at(manifest.source, name.span, "not a name with a dot")
                .help("write it like `auto.kopf.dev`"),
        );
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

/// Adds the version, and if needed the group, to the modules and traits of kinds with equal names.
fn disambiguate_modules(kinds: &mut [FoundKind<'_>]) {
    let names: Vec<_> = kinds.iter().map(|(kind, _)| kind.module.clone()).collect();
    let is_common = |name: &str| CommonModule::ALL.iter().any(|it| it.name() == name);
    let clash =
        |name: &String| is_common(name) || names.iter().filter(|other| *other == name).count() > 1;
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
        // The Rust type keeps its name inside the module; only the traits share a scope.
        kind.trait_prefix = TypeName::new(&qualified).to_string();
    }
}
