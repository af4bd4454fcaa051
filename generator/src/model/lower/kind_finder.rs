//! Finds the kind that an entry of `resources` names: in a CRD file, among the builtin kinds, or
//! by a selection.

use std::collections::{BTreeMap, BTreeSet};

use super::{selection, type_options};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::load::crd::{Crd, CrdVersion};
use crate::load::manifest::{Manifest, ResourceSection, Spanned, Tracking};
use crate::load::names::QuotedName;
use crate::model::builtin_kinds;
use crate::model::identifier::RustIdent;
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::resource::{CustomResource, VersionChoice};
use crate::model::sample_object;
use crate::model::status_subresource::StatusSubresource;
use crate::model::type_options::OptionPaths;
use crate::suggest::did_you_mean;

/// The CRD files that the manifest names, by path.
pub type CrdFiles = BTreeMap<String, LoadedCrds>;

/// A file with CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct LoadedCrds {
    /// The content.
    pub text: String,
    /// The definitions in it.
    pub crds: Vec<Crd>,
    /// Whether the file has errors, so that some of its definitions may be missing.
    pub has_errors: bool,
}

/// Finds the kind of one entry; the handlers are filled in later.
pub(super) struct KindFinder<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) crds: &'a CrdFiles,
    pub(super) diagnostics: &'a mut Diagnostics,
}

impl<'a> KindFinder<'a> {
    pub(super) fn kind(&mut self, section: &ResourceSection) -> Option<HandledKind> {
        if let Some(alias) = section.alias.as_ref().filter(|_| section.select.is_none()) {
            let message = "`as` belongs to `select`: other kinds have a name";
            self.error(Code::ManifestValue, alias.span, message, "remove it");
        }
        if let Some(types) = section.types.as_ref().filter(|_| section.crd.is_none()) {
            let message = "`types` belongs to `crd`: the types of other kinds are not generated";
            self.error(Code::ManifestValue, types.span, message, "remove it");
        }
        match (&section.crd, &section.builtin, &section.select) {
            (Some(file), None, None) => self.custom(section, file),
            (None, Some(name), None) => self.builtin(section, name),
            (None, None, Some(select)) => {
                selection::lower(self.manifest, section, select, self.diagnostics)
            }
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

    fn builtin(
        &mut self,
        section: &ResourceSection,
        name: &Spanned<String>,
    ) -> Option<HandledKind> {
        for (key, misplaced) in [
            ("kind", &section.kind),
            ("group", &section.group),
            ("version", &section.version),
        ] {
            if let Some(misplaced) = misplaced {
                let message = format!("`{key}` belongs to `crd`: `builtin` already names it");
                self.error(Code::ManifestValue, misplaced.span, message, "remove it");
            }
        }
        let Some(builtin) = builtin_kinds::find(&name.value) else {
            report_unknown_builtin(name, self.manifest, self.diagnostics);
            return None;
        };
        Some(HandledKind {
            group: builtin.group.to_owned(),
            version: builtin.version.to_owned(),
            kind: builtin.kind.to_owned(),
            plural: builtin.plural.to_owned(),
            scope: builtin.scope,
            status: builtin.status,
            module: RustIdent::of_module(builtin.kind).to_string(),
            type_name: builtin.kind.to_owned(),
            trait_prefix: builtin.kind.to_owned(),
            origin: KindOrigin::Builtin(builtin),
            sample: None,
            children: Vec::new(),
            uses: Vec::new(),
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
        let options = type_options::options(self.manifest, section, self.diagnostics);
        let mut paths = OptionPaths::default();
        let resource = CustomResource::new(
            crd.clone(),
            &versions,
            &options,
            &mut paths,
            self.diagnostics,
        )?;
        options.report_unknown_paths(&paths, self.diagnostics);
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
            sample,
            children: Vec::new(),
            uses: Vec::new(),
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memo: None,
            tracking: Tracking::Matching,
        })
    }

    fn crd(&mut self, section: &ResourceSection, file: &Spanned<String>) -> Option<&'a Crd> {
        // A file that could not be read is already reported, and so are bad definitions.
        let loaded = self.crds.get(&file.value)?;
        let crds = &loaded.crds;
        if crds.is_empty() && loaded.has_errors {
            return None;
        }
        let is = |wanted: &Option<Spanned<String>>, name: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.value == name)
        };
        let of_kind: Vec<&Crd> = crds
            .iter()
            .filter(|crd| is(&section.kind, &crd.names.kind))
            .collect();
        let mut found = of_kind
            .iter()
            .copied()
            .filter(|crd| is(&section.group, &crd.group));
        match (found.next(), found.next()) {
            (Some(crd), None) => return Some(crd),
            (None, _) => self.report_unknown(section, file, crds, &of_kind),
            (Some(_), Some(_)) => self.report_ambiguous(section, file, &of_kind),
        }
        None
    }

    /// Reports an entry for which the file has no definition.
    fn report_unknown(
        &mut self,
        section: &ResourceSection,
        file: &Spanned<String>,
        crds: &[Crd],
        of_kind: &[&Crd],
    ) {
        let path = QuotedName(&file.value);
        let (span, message, help) = match (&section.kind, &section.group) {
            _ if crds.is_empty() => (
                file.span,
                format!("{path} defines no kind"),
                "it needs a CustomResourceDefinition".to_owned(),
            ),
            (Some(kind), _) if of_kind.is_empty() => {
                let names = || crds.iter().map(|crd| crd.names.kind.as_str());
                let message = format!("{path} does not define {}", QuotedName(&kind.value));
                let help = did_you_mean(&kind.value, names());
                let help = help.unwrap_or_else(|| format!("it defines {}", listed(names())));
                (kind.span, message, help)
            }
            (_, group) => {
                let span = group.as_ref().map_or(file.span, |group| group.span);
                let group = group.as_ref().map_or("", |group| &group.value);
                let groups = || of_kind.iter().map(|crd| crd.group.as_str());
                let message = format!("{path} defines nothing in the group {}", QuotedName(group));
                let help = did_you_mean(group, groups());
                let help = help.unwrap_or_else(|| format!("there is {}", listed(groups())));
                (span, message, help)
            }
        };
        self.diagnostics.push(
            Diagnostic::error(Code::UnknownKind, message)
                .at(self.manifest.source, span, "")
                .help(help),
        );
    }

    /// Reports an entry that several definitions of the file fit.
    fn report_ambiguous(
        &mut self,
        section: &ResourceSection,
        file: &Spanned<String>,
        of_kind: &[&Crd],
    ) {
        let path = QuotedName(&file.value);
        let kinds: BTreeSet<&str> = of_kind.iter().map(|crd| crd.names.kind.as_str()).collect();
        let groups: BTreeSet<&str> = of_kind.iter().map(|crd| crd.group.as_str()).collect();
        let span = section.kind.as_ref().map_or(file.span, |kind| kind.span);
        let (message, help) = if kinds.len() > 1 {
            let help = format!("add `kind`, one of {}", listed(kinds.into_iter()));
            (format!("{path} defines several kinds"), help)
        } else if groups.len() > 1 && section.group.is_none() {
            let kind = listed(kinds.into_iter());
            let help = format!("add `group`, one of {}", listed(groups.into_iter()));
            (format!("{path} defines {kind} in several groups"), help)
        } else {
            let kind = listed(kinds.into_iter());
            let help = "remove one of the definitions".to_owned();
            (format!("{path} defines {kind} twice"), help)
        };
        self.diagnostics.push(
            Diagnostic::error(Code::UnknownKind, message)
                .at(self.manifest.source, span, "")
                .help(help),
        );
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

    pub(super) fn error(
        &mut self,
        code: Code,
        span: Span,
        message: impl Into<String>,
        label: &str,
    ) {
        self.diagnostics.push(Diagnostic::error(code, message).at(
            self.manifest.source,
            span,
            label,
        ));
    }
}

/// Reports a name that is none of a built-in kind.
pub(super) fn report_unknown_builtin(
    name: &Spanned<String>,
    manifest: &Manifest,
    diagnostics: &mut Diagnostics,
) {
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
    diagnostics.push(
        Diagnostic::error(
            Code::UnknownKind,
            format!("`{}` is not a kind that every cluster has", name.value),
        )
        .at(manifest.source, name.span, "unknown kind")
        .help(help),
    );
}

fn listed<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.join(", ")
}
