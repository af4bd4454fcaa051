//! Lowers `select`: the selector, its name, and notes on its consequences.

use kopf_core::selection::{ResourceName, Selector};

use super::webhook;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::load::crd::Scope;
use crate::load::manifest::{
    KindSelector, Manifest, ResourceSection, SelectSection, Spanned, Tracking,
};
use crate::load::names::{NameRule, QuotedName};
use crate::model::handler::Handler;
use crate::model::identifier::{RustIdent, TypeName};
use crate::model::operator::{HandledKind, KindOrigin};
use crate::model::status_subresource::StatusSubresource;

/// The type of objects whose schema is unknown.
const OBJECT: &str = "DynamicObject";

/// Makes one variant of a name.
type NameConstructor = fn(String) -> ResourceName;

/// Lowers one `select`, and reports what is wrong with it.
struct SelectionLowering<'a> {
    manifest: &'a Manifest,
    diagnostics: &'a mut Diagnostics,
}

/// The selection that an entry of `resources` describes.
pub(super) fn lower(
    manifest: &Manifest,
    section: &ResourceSection,
    select: &SelectSection,
    diagnostics: &mut Diagnostics,
) -> Option<HandledKind> {
    let lowering = SelectionLowering {
        manifest,
        diagnostics,
    };
    lowering.lower(section, select)
}

impl SelectionLowering<'_> {
    fn lower(mut self, section: &ResourceSection, select: &SelectSection) -> Option<HandledKind> {
        for (key, misplaced) in [
            ("kind", &section.kind),
            ("group", &section.group),
            ("version", &section.version),
        ] {
            if let Some(misplaced) = misplaced {
                let message = format!("`{key}` of a selection belongs into `select`");
                self.error(Code::Selection, misplaced.span, message, "move it there");
            }
        }
        if let (Some(written), Some(unmanaged)) =
            (section.admission.first(), webhook::unmanaged(self.manifest))
        {
            let message = "only a running operator can configure the webhooks of a selection";
            self.diagnostics.push(
                Diagnostic::error(Code::SelectedWebhook, message)
                    .at(
                        self.manifest.source,
                        written.span,
                        "the cluster knows the kinds",
                    )
                    .at(
                        self.manifest.source,
                        unmanaged,
                        "here the configuration is a file",
                    )
                    .help(
                        "name the kinds with `crd` or `builtin`, or leave the configuration to the operator",
                    ),
            );
        }
        let selector = match select {
            SelectSection::Everything(_) => Selector::everything(),
            SelectSection::Selector(likeness) => self.selector(likeness)?,
        };
        let name = match &section.alias {
            Some(alias) => self.alias(alias)?,
            None => TypeName::new(&suggested_name(&selector)).to_string(),
        };
        Some(HandledKind {
            group: selector.group().unwrap_or_default().to_owned(),
            version: selector.version().unwrap_or_default().to_owned(),
            kind: name.clone(),
            plural: String::new(),
            // A selection can match kinds of both scopes.
            scope: Scope::Namespaced,
            status: StatusSubresource::Present,
            module: RustIdent::of_module(&name).to_string(),
            type_name: OBJECT.to_owned(),
            trait_prefix: name,
            origin: KindOrigin::Selected(selector),
            sample: None,
            tracking: Tracking::Matching,
            children: Vec::new(),
            uses: Vec::new(),
            handlers: Vec::new(),
            webhooks: Vec::new(),
            memo: None,
        })
    }

    fn selector(&mut self, likeness: &KindSelector) -> Option<Selector> {
        let sorts: [(&Option<Spanned<String>>, NameConstructor); 6] = [
            (&likeness.kind, ResourceName::Kind),
            (&likeness.plural, ResourceName::Plural),
            (&likeness.singular, ResourceName::Singular),
            (&likeness.short_name, ResourceName::Short),
            (&likeness.any_name, ResourceName::Any),
            (&likeness.category, ResourceName::Category),
        ];
        let named = sorts.into_iter().filter_map(|(written, name)| {
            let written = written.as_ref()?;
            Some((name(written.value.clone()), written))
        });
        let named: Vec<(ResourceName, &Spanned<String>)> = named.collect();
        if let [(first, _), (second, written), ..] = named.as_slice() {
            let message = format!(
                "`{}` and `{}` exclude each other",
                first.parts().0,
                second.parts().0
            );
            self.diagnostics.push(
                Diagnostic::error(Code::Selection, message)
                    .at(
                        self.manifest.source,
                        written.span,
                        "one of the two is too many",
                    )
                    .help("`any_name` is a kind, plural, singular or short name, whichever it is"),
            );
            return None;
        }
        let name = named.into_iter().next();
        let texts = name
            .iter()
            .map(|(name, written)| (name.parts().0, *written));
        let version = likeness.version.as_ref().map(|it| ("version", it));
        if let Some((key, empty)) = texts.chain(version).find(|(_, it)| it.value.is_empty()) {
            let message = format!("`{key}` is empty");
            self.error(Code::Selection, empty.span, message, "which one?");
            return None;
        }
        self.check_names(likeness)?;
        let name = match name {
            Some((name, _)) => name,
            None if likeness.group.is_some() => ResourceName::Everything,
            None => {
                self.diagnostics.push(
                    Diagnostic::error(Code::Selection, "`select` does not say what is selected")
                        .at(self.manifest.source, likeness.span, "only this")
                        .help("add `group`, `kind` or `category`, or write `select: everything`"),
                );
                return None;
            }
        };
        let mut selector = Selector::new(name);
        if let Some(group) = &likeness.group {
            selector = selector.in_group(&group.value);
        }
        if let Some(version) = &likeness.version {
            selector = selector.in_version(&version.value);
        }
        Some(selector)
    }

    /// Checks the names, which become permissions.
    fn check_names(&mut self, likeness: &KindSelector) -> Option<()> {
        let group = likeness.group.as_ref().filter(|it| !it.value.is_empty());
        let names = [
            ("group", group, NameRule::Subdomain),
            ("version", likeness.version.as_ref(), NameRule::Label),
            ("kind", likeness.kind.as_ref(), NameRule::Kind),
            ("plural", likeness.plural.as_ref(), NameRule::Label),
            ("singular", likeness.singular.as_ref(), NameRule::Label),
            ("short_name", likeness.short_name.as_ref(), NameRule::Label),
            ("any_name", likeness.any_name.as_ref(), NameRule::Kind),
            ("category", likeness.category.as_ref(), NameRule::Label),
        ];
        let mut are_valid = true;
        for (key, name, rule) in names {
            let Some(name) = name else { continue };
            let Some(problem) = rule.problem(&name.value) else {
                continue;
            };
            are_valid = false;
            let message = format!("{} is not a valid `{key}`", QuotedName(&name.value));
            self.diagnostics.push(
                Diagnostic::error(Code::Selection, message)
                    .at(self.manifest.source, name.span, "no kind has it")
                    .help(format!("the reason of the API server: {problem}")),
            );
        }
        are_valid.then_some(())
    }

    fn alias(&mut self, alias: &Spanned<String>) -> Option<String> {
        let suggestion = TypeName::new(&alias.value).to_string();
        if suggestion == alias.value && suggestion != OBJECT {
            return Some(suggestion);
        }
        let message = format!("a selection cannot be called `{}`", alias.value);
        let better = if suggestion == OBJECT {
            "Toys"
        } else {
            &suggestion
        };
        self.diagnostics.push(
            Diagnostic::error(Code::Selection, message)
                .at(
                    self.manifest.source,
                    alias.span,
                    "not a name for a type of your own",
                )
                .help(format!("write it like `{better}`")),
        );
        None
    }

    fn error(&mut self, code: Code, span: Span, message: impl Into<String>, label: &str) {
        self.diagnostics.push(Diagnostic::error(code, message).at(
            self.manifest.source,
            span,
            label,
        ));
    }
}

/// The name of a selection without `as`.
fn suggested_name(selector: &Selector) -> String {
    let group = selector.group();
    let mut words = match (selector.name(), group) {
        (ResourceName::Everything, None) => vec!["everything"],
        (ResourceName::Everything, Some("")) => vec!["core", "group"],
        (ResourceName::Everything, Some(group)) => vec![group, "group"],
        (ResourceName::Category(name), _) => vec![name, "category"],
        (
            ResourceName::Kind(name)
            | ResourceName::Plural(name)
            | ResourceName::Singular(name)
            | ResourceName::Short(name)
            | ResourceName::Any(name),
            _,
        ) => vec![name, "selection"],
    };
    if *selector.name() != ResourceName::Everything {
        words.extend(group);
    }
    words.extend(selector.version());
    words.join(" ")
}

/// Reports wide permissions and writes of selections, and ids that overlap.
pub(super) fn check(
    manifest: &Manifest,
    kinds: &[(HandledKind, &ResourceSection)],
    diagnostics: &mut Diagnostics,
) {
    for (at, (kind, section)) in kinds.iter().enumerate() {
        if let (Some(selector), Some(select)) = (kind.selector(), &section.select) {
            let place = |diagnostic: Diagnostic, label: &str| {
                diagnostic.at(manifest.source, select.span(), label)
            };
            if !selector.is_specific() && kind.handlers.iter().any(Handler::writes) {
                note_writes(manifest, kind, section, diagnostics);
            }
            if kind.is_watched() && needs_wide_permissions(selector) {
                let whose = selector.group().map_or_else(
                    || "all groups, Secrets included".to_owned(),
                    |group| format!("the group \"{group}\""),
                );
                let what = if kind.handlers.iter().any(Handler::writes) {
                    "read and change"
                } else {
                    "read"
                };
                let message = format!("the operator is allowed to {what} all kinds of {whose}");
                let note = match selector.group() {
                    Some(_) => Diagnostic::note(Code::WidePermissions, message),
                    None => Diagnostic::warning(Code::WidePermissions, message),
                };
                let help = "`plural` with `group` asks for no more than is used";
                diagnostics.push(place(note, "only the cluster knows the kinds").help(help));
            }
        }
        for (other, first) in &kinds[..at] {
            check_ids(manifest, (other, first), (kind, section), diagnostics);
        }
    }
}

fn needs_wide_permissions(selector: &Selector) -> bool {
    !matches!(selector.name(), ResourceName::Plural(_)) || selector.group().is_none()
}

fn note_writes(
    manifest: &Manifest,
    kind: &HandledKind,
    section: &ResourceSection,
    diagnostics: &mut Diagnostics,
) {
    let tracks_all = kind.tracking == Tracking::Always;
    let unfiltered =
        |handler: &&Handler| handler.writes() && (handler.filters.is_empty() || tracks_all);
    let Some(handler) = kind.handlers.iter().find(unfiltered) else {
        return;
    };
    let written = section.handlers.iter();
    let mut written = written.filter(|it| it.function.value == handler.method);
    let span = written.next().map_or(section.span, |it| it.function.span);
    let what = if handler.holds_deletion() {
        "holds every object with a finalizer"
    } else {
        "keeps its progress on every object"
    };
    let message = format!(
        "`{}` writes to all objects of all these kinds",
        handler.method
    );
    diagnostics.push(
        Diagnostic::warning(Code::WideWrites, message)
            .at(manifest.source, span, what)
            .help("`labels` or `when` restrict it to objects that you mean"),
    );
}

fn check_ids(
    manifest: &Manifest,
    (one, first): (&HandledKind, &ResourceSection),
    (other, second): (&HandledKind, &ResourceSection),
    diagnostics: &mut Diagnostics,
) {
    let selects = one.selector().is_some() || other.selector().is_some();
    if !selects || !one.may_overlap(other) {
        return;
    }
    for handler in &other.handlers {
        let id = handler.full_id();
        if one.handlers.iter().all(|known| known.full_id() != id) {
            continue;
        }
        let message = format!("two handlers `{id}` may handle the same objects");
        diagnostics.push(
            Diagnostic::error(Code::SelectionOverlap, message)
                .at(manifest.source, place(second, &handler.method), "here")
                .at(manifest.source, place(first, &handler.method), "and here")
                .help("give one of them another `fn`, or another `id`"),
        );
    }
}

fn place(section: &ResourceSection, method: &str) -> Span {
    let handlers = section.handlers.iter().map(|it| &it.function);
    let names = handlers.chain(section.indices.iter().map(|it| &it.index));
    let mut named = names.filter(|it| method.starts_with(&it.value));
    named.next().map_or(section.span, |name| name.span)
}
