//! Finds the kinds that `children` and `uses` name.

use std::collections::BTreeSet;

use super::FoundKind;
use super::kind_finder::{KindFinder, report_unknown_builtin};
use crate::diagnostic::{Code, Diagnostic, Span};
use crate::load::crd::{Crd, CrdVersion, ResourceNames, Scope};
use crate::load::manifest::{ChildEntry, KindScope, Manifest, ResourceSection, Spanned, Trigger};
use crate::load::names::{NameRule, QuotedName};
use crate::load::schema::{Schema, SchemaType};
use crate::model::builtin_kinds::{self, BuiltinKind};
use crate::model::identifier::RustIdent;
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::resource::{CustomResource, VersionChoice};
use crate::model::type_options::{OptionPaths, Options};

/// The kinds that the entries of `children` and `uses` mean.
#[derive(Default)]
pub(super) struct Relations {
    /// The custom kinds that the operator does not handle.
    pub(super) types: Vec<CustomResource>,
    /// For each kind, in the order of `children`; none for an entry with an error.
    pub(super) children: Vec<Vec<Option<KindRef>>>,
    /// For each kind, in the order of `uses`.
    pub(super) uses: Vec<Vec<Option<KindRef>>>,
}

/// The place where a kind is described.
#[derive(Clone, Copy)]
pub(super) enum KindRef {
    Builtin(&'static BuiltinKind),
    /// The kind at this place among those with handlers.
    Handled(usize),
    /// The kind at this place among the other types.
    Typed(usize),
}

/// A kind as an entry names it.
struct NamedKind<'a> {
    kind: &'a Spanned<String>,
    plural: Option<&'a Spanned<String>>,
    scope: Option<&'a Spanned<KindScope>>,
}

/// Finds the kinds of all entries.
pub(super) struct RelationFinder<'a, 'm> {
    pub(super) finder: KindFinder<'a>,
    pub(super) kinds: &'a [FoundKind<'m>],
}

impl RelationFinder<'_, '_> {
    pub(super) fn find(mut self) -> Relations {
        let mut found = Relations::default();
        let kinds = self.kinds;
        // Definitions first: an entry without one may name the same kind.
        for (_, section) in kinds {
            let children = section.children.iter();
            let children = children.map(|child| self.defined(child, &mut found.types));
            found.children.push(children.collect());
        }
        for ((owner, section), known) in kinds.iter().zip(&mut found.children) {
            self.refuse_selection(owner, section);
            for (child, known) in section.children.iter().zip(known) {
                let child = child.section();
                if let (None, Some(kind)) = (&child.crd, &child.kind) {
                    for (key, written) in [("group", &child.group), ("version", &child.version)] {
                        let Some(written) = written else { continue };
                        let message = format!("`{key}` belongs to `crd`: `kind` already has it");
                        self.finder
                            .error(Code::ChildOption, written.span, message, "remove it");
                    }
                    let named = NamedKind {
                        kind,
                        plural: child.plural.as_ref(),
                        scope: child.scope.as_ref(),
                    };
                    *known = self.named(&named, &mut found.types);
                }
            }
            let uses = section.uses.iter().map(|used| {
                let named = NamedKind {
                    kind: &used.kind,
                    plural: used.plural.as_ref(),
                    scope: used.scope.as_ref(),
                };
                self.named(&named, &mut found.types)
            });
            found.uses.push(uses.collect());
        }
        separate_modules(kinds, &mut found.types);
        found
    }

    /// Objects of a selection have no type, and no kind of their own.
    fn refuse_selection(&mut self, owner: &HandledKind, section: &ResourceSection) {
        if owner.selector().is_none() {
            return;
        }
        let children = section.children.iter().map(|it| it.section().span);
        let uses = section.uses.iter().map(|it| it.span);
        let handlers = section.handlers.iter().filter_map(|handler| {
            let mut triggers = handler.on.iter().flat_map(|on| on.as_slice());
            let related =
                triggers.find(|it| matches!(it.value, Trigger::Reconcile | Trigger::Child));
            related.map(|trigger| trigger.span)
        });
        for span in children.chain(uses).chain(handlers) {
            self.finder.diagnostics.push(
                Diagnostic::error(Code::ChildKind, "a selection has no children")
                    .at(self.finder.manifest.source, span, "of which kind?")
                    .help("name the owner with `crd` or `builtin`"),
            );
        }
    }

    /// The kind of an entry with `crd`; its types are generated.
    fn defined(&mut self, child: &ChildEntry, types: &mut Vec<CustomResource>) -> Option<KindRef> {
        child.crd()?;
        let child = child.section();
        let section = ResourceSection {
            span: child.span,
            crd: child.crd,
            kind: child.kind,
            group: child.group,
            version: child.version,
            ..ResourceSection::default()
        };
        let kind = self.finder.kind(&section)?;
        for (key, span) in [
            ("plural", child.plural.map(|it| it.span)),
            ("scope", child.scope.map(|it| it.span)),
        ] {
            self.refuse_option(key, span, "the definition has it");
        }
        if let Some(known) = self.known(&kind.group, &kind.version, &kind.kind, types) {
            return Some(known);
        }
        let KindOrigin::Custom(resource) = kind.origin else {
            return None;
        };
        types.push(*resource);
        Some(KindRef::Typed(types.len() - 1))
    }

    /// The kind of an entry without a definition of its own.
    fn named(&mut self, named: &NamedKind<'_>, types: &mut Vec<CustomResource>) -> Option<KindRef> {
        let name = named.kind;
        let parts: Vec<&str> = name.value.split('/').collect();
        if let Some(builtin) = builtin_kinds::find(&name.value) {
            self.refuse_option(
                "plural",
                named.plural.map(|it| it.span),
                "every cluster has it",
            );
            self.refuse_option(
                "scope",
                named.scope.map(|it| it.span),
                "every cluster has it",
            );
            return Some(KindRef::Builtin(builtin));
        }
        let [group, version, kind] = parts[..] else {
            report_unknown_builtin(name, self.finder.manifest, self.finder.diagnostics);
            return None;
        };
        if let Some(known) = self.known(group, version, kind, types) {
            return Some(known);
        }
        let Some(plural) = named.plural else {
            let message = format!("nothing defines {}", QuotedName(&name.value));
            let help = "name its definition with `crd`, or add `plural` and, for a kind without \
                        namespaces, `scope: Cluster`";
            self.finder.diagnostics.push(
                Diagnostic::error(Code::UnknownKind, message)
                    .at(self.finder.manifest.source, name.span, "unknown kind")
                    .help(help),
            );
            return None;
        };
        let names = [
            (name, group, NameRule::CustomGroup),
            (name, version, NameRule::Label),
            (name, kind, NameRule::Kind),
            (plural, plural.value.as_str(), NameRule::Label),
        ];
        let mut bad = names
            .into_iter()
            .filter(|(_, text, rule)| !rule.accepts(text));
        if let Some((written, text, _)) = bad.next() {
            let message = format!("no kind can have {} in its name", QuotedName(text));
            self.finder.diagnostics.push(
                Diagnostic::error(Code::UnknownKind, message)
                    .at(self.finder.manifest.source, written.span, "not a name")
                    .help("write it like `example.com/v1/Gadget`, with `plural: gadgets`"),
            );
            return None;
        }
        let scope = match named.scope.map(|scope| scope.value) {
            Some(KindScope::Cluster) => Scope::Cluster,
            Some(KindScope::Namespaced) | None => Scope::Namespaced,
        };
        let crd = undefined(
            self.finder.manifest,
            name.span,
            (group, version, kind),
            &plural.value,
            scope,
        );
        let mut resource = CustomResource::new(
            crd,
            &VersionChoice::Storage,
            &Options::default(),
            &mut OptionPaths::default(),
            self.finder.diagnostics,
        )?;
        resource.crd_json = None;
        types.push(resource);
        Some(KindRef::Typed(types.len() - 1))
    }

    fn known(
        &self,
        group: &str,
        version: &str,
        kind: &str,
        types: &[CustomResource],
    ) -> Option<KindRef> {
        let is_handled = |it: &HandledKind| {
            it.selector().is_none()
                && (it.group == group && it.version == version && it.kind == kind)
        };
        let handled = self.kinds.iter().position(|(it, _)| is_handled(it));
        let is_typed = |it: &CustomResource| {
            it.group == group && it.names.kind == kind && it.main_version().name == version
        };
        let typed = || types.iter().position(is_typed).map(KindRef::Typed);
        handled.map(KindRef::Handled).or_else(typed)
    }

    fn refuse_option(&mut self, key: &str, span: Option<Span>, why: &str) {
        let Some(span) = span else { return };
        let message = format!("`{key}` is for a custom kind without a definition");
        let error = Diagnostic::error(Code::ChildOption, message);
        let error = error.at(self.finder.manifest.source, span, why.to_owned());
        self.finder.diagnostics.push(error.help("remove it"));
    }
}

/// A definition for a kind of which only the names are known: its objects can have any fields.
fn undefined(
    manifest: &Manifest,
    span: Span,
    (group, version, kind): (&str, &str, &str),
    plural: &str,
    scope: Scope,
) -> Crd {
    Crd {
        source: manifest.source,
        span,
        name: format!("{plural}.{group}"),
        group: group.to_owned(),
        names: ResourceNames {
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            singular: kind.to_lowercase(),
            list_kind: format!("{kind}List"),
            ..ResourceNames::default()
        },
        scope,
        versions: vec![CrdVersion {
            name: version.to_owned(),
            span,
            served: true,
            storage: true,
            deprecated: None,
            schema: Schema {
                kind: Some(SchemaType::Object),
                preserve_unknown: true,
                ..Schema::default()
            },
            status: false,
            scale: None,
            columns: Vec::new(),
            selectable_fields: Vec::new(),
        }],
        json: String::new(),
        is_corrected: false,
    }
}

/// Gives each custom kind a module of its own among the types.
fn separate_modules(kinds: &[FoundKind<'_>], types: &mut [CustomResource]) {
    let handled = kinds.iter().filter_map(|(kind, _)| match &kind.origin {
        KindOrigin::Custom(resource) => Some(resource.module.clone()),
        KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
    });
    let mut taken: BTreeSet<RustIdent> = handled.collect();
    for resource in types {
        let group = resource.group.split('.').next().unwrap_or_default();
        let version = &resource.main_version().name;
        let short = resource.module.clone();
        let module = if taken.contains(&short) {
            RustIdent::of_module(&format!("{short}_{group}_{version}"))
        } else {
            short
        };
        resource.module = module.or_numbered(&mut taken);
    }
}
