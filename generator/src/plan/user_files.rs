//! Plans additions to the user's files: stubs for new handlers and modules for new kinds.

use std::collections::{BTreeMap, BTreeSet};

use super::addition::{HandlerTrait, MemoAddition, UserAddition};
use super::crd_files;
use super::deployment::UserKustomizations;
use super::file::{FileOwner, PlannedFile};
use super::inside;
use super::source::{FileSource, HandlerBodies, ScaffoldSource};
use crate::crate_path::CratePath;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::model::common_modules::CommonModule;
use crate::model::operator::{MEMO_TYPE, Operator};
use crate::splice::{TraitImpl, UserSource};

/// The user's files, as read from disk.
#[derive(Clone, Debug, Default)]
pub struct UserFiles {
    files: BTreeMap<CratePath, UserFile>,
    pub(super) kustomizations: UserKustomizations,
    /// The version of the crate, if it has one.
    pub version: Option<String>,
}

#[derive(Clone, Debug)]
struct UserFile {
    source: SourceId,
    text: String,
}

/// The additions per file, and new files.
struct Additions<'a> {
    user: &'a UserFiles,
    changed: BTreeMap<CratePath, Vec<UserAddition<'a>>>,
    new: Vec<PlannedFile<'a>>,
}

enum ImplLocation<'a> {
    /// This file implements the trait.
    Found(CratePath, UserSource<'a>),
    /// No file implements the trait, and its default file does not exist.
    Missing,
    /// No file implements the trait, but its default file exists, or a file is not valid Rust.
    Unclear,
}

/// Plans the additions that `operator` needs.
#[must_use]
pub(super) fn additions<'a>(
    operator: &'a Operator,
    user: &'a UserFiles,
    diagnostics: &mut Diagnostics,
) -> Vec<PlannedFile<'a>> {
    let mut additions = Additions {
        user,
        changed: BTreeMap::new(),
        new: Vec::new(),
    };
    let mut new_traits = Vec::new();
    let hooks = (!operator.hooks.is_empty()).then_some(HandlerTrait::Hooks(&operator.hooks));
    let kinds = operator.kinds.iter().map(HandlerTrait::Kind);
    for handler_trait in kinds.chain(hooks) {
        match user.find_impl(handler_trait, diagnostics) {
            ImplLocation::Found(path, source) => {
                let members = user.missing_members(handler_trait, &path, &source, diagnostics);
                if let Some(members) = members {
                    additions.change(path, members);
                }
            }
            ImplLocation::Missing => new_traits.push(handler_trait),
            ImplLocation::Unclear => {}
        }
    }
    additions.add_traits(operator, &new_traits, diagnostics);
    additions.finish()
}

/// The modules with the handlers of an operator.
pub(super) fn handler_modules(operator: &Operator) -> BTreeSet<&str> {
    let kinds = operator.kinds.iter().map(|kind| kind.module.as_str());
    let hooks = (!operator.hooks.is_empty()).then_some(CommonModule::Hooks.name());
    kinds.chain(hooks).collect()
}

fn handlers_file() -> CratePath {
    inside("src/handlers.rs")
}

// === impl UserFiles ===

impl UserFiles {
    /// Adds a file that belongs to the user.
    pub fn add(&mut self, sources: &mut Sources, path: CratePath, text: String) {
        let source = sources.add(path.as_str(), text.clone());
        self.files.insert(path, UserFile { source, text });
    }

    /// The Rust files.
    pub fn texts(&self) -> impl Iterator<Item = (&CratePath, &str)> {
        let files = self.files.iter();
        files.map(|(path, file)| (path, file.text.as_str()))
    }

    /// The Rust files with the places of their texts.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (SourceId, &str)> {
        let files = self.files.values();
        files.map(|file| (file.source, file.text.as_str()))
    }

    /// Adds a Kustomization, unless kopf-gen owns it or does not ask for it.
    pub fn add_kustomization(&mut self, sources: &mut Sources, path: &str, text: &str) {
        self.kustomizations.add(sources, path, text);
    }

    /// The first generated file in a Kustomization that names each of them.
    #[must_use]
    pub fn flat_deployment(&self) -> Option<(SourceId, Span)> {
        self.kustomizations.flat_entry()
    }

    /// The entry for copies of CRDs in the Kustomization of a crate from an earlier version.
    #[must_use]
    pub fn copied_crds(&self, operator: &Operator) -> Option<(SourceId, Span)> {
        let copies = self.kustomizations.copies()?;
        (!crd_files::bases(operator).is_empty()).then_some(copies)
    }

    fn source(&self, path: &CratePath) -> SourceId {
        self.files[path].source
    }

    fn find_impl(
        &self,
        handler_trait: HandlerTrait<'_>,
        diagnostics: &mut Diagnostics,
    ) -> ImplLocation<'_> {
        let wanted = &handler_trait.name();
        let mut unreadable = false;
        for (path, file) in &self.files {
            if !file.text.contains(wanted) {
                continue;
            }
            match UserSource::parse(&file.text) {
                Ok(source) if !source.impls_of(wanted).is_empty() => {
                    return ImplLocation::Found(path.clone(), source);
                }
                Ok(_) => {}
                Err(error) => {
                    unreadable = true;
                    diagnostics.push(
                        Diagnostic::error(
                            Code::UserFileSyntax,
                            format!("{path} is not valid Rust: {error}"),
                        )
                        .at(
                            file.source,
                            Span::new(error.offset, error.offset),
                            "the parser stopped here",
                        )
                        .help(
                            "stubs can only be added to a file that parses; fix it and run again",
                        ),
                    );
                }
            }
        }
        if unreadable {
            return ImplLocation::Unclear;
        }
        let usual = handler_trait.file();
        let Some(file) = self.files.get(&usual) else {
            return ImplLocation::Missing;
        };
        let message = format!(
            "no file implements `{wanted}`, which has the handlers of {}",
            handler_trait.subject()
        );
        diagnostics.push(
            Diagnostic::error(Code::NoHandlersImpl, message)
                .at(
                    file.source,
                    Span::default(),
                    "looked for it here and in all other files below src/",
                )
                .help(format!(
                    "add `impl {wanted} for Operator {{}}` where it belongs; the next run fills it"
                )),
        );
        ImplLocation::Unclear
    }

    /// What the `impl` of a trait lacks; `None` if it lacks nothing.
    fn missing_members<'a>(
        &self,
        handler_trait: HandlerTrait<'a>,
        path: &CratePath,
        source: &UserSource<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<UserAddition<'a>> {
        let blocks = source.impls_of(&handler_trait.name());
        let methods = handler_trait.methods();
        let present: BTreeSet<_> = blocks
            .iter()
            .flat_map(|block| &block.methods)
            .map(|method| method.name.as_str())
            .collect();
        for left_over in blocks.iter().flat_map(|block| &block.methods) {
            if methods.iter().any(|method| bare(method) == left_over.name) {
                continue;
            }
            let (start, name) = (left_over.offset, &left_over.name);
            let span = Span::new(start, start + name.len());
            diagnostics.push(
                Diagnostic::warning(
                    Code::LeftOverHandler,
                    format!(
                        "`{name}` is not a handler of {} any more",
                        handler_trait.owner()
                    ),
                )
                .at(
                    self.source(path),
                    span,
                    "nothing in kopf.yaml names it",
                )
                .help(
                    "delete it, or move what is worth keeping; the crate does not compile until then",
                ),
            );
        }
        let missing = methods.into_iter();
        let missing: Vec<&str> = missing.filter(|it| !present.contains(bare(it))).collect();
        let memo = self.missing_memo(handler_trait, &blocks);
        let is_complete = missing.is_empty() && memo == MemoAddition::Nothing;
        (!is_complete).then_some(UserAddition::Members {
            of: handler_trait,
            methods: missing,
            memo,
        })
    }

    fn missing_memo(&self, handler_trait: HandlerTrait<'_>, blocks: &[TraitImpl]) -> MemoAddition {
        let is_named = |block: &TraitImpl| block.types.iter().any(|it| it == MEMO_TYPE);
        match handler_trait.memo() {
            Some(_) if blocks.iter().any(is_named) => MemoAddition::Nothing,
            Some(name) if self.declares_type(name) => MemoAddition::Association,
            Some(_) => MemoAddition::AssociationAndType,
            None => MemoAddition::Nothing,
        }
    }

    /// Whether a file of the user declares a type.
    fn declares_type(&self, name: &str) -> bool {
        let declares = |file: &UserFile| {
            let may_declare = file.text.contains(name);
            may_declare && UserSource::parse(&file.text).is_ok_and(|it| it.declares_type(name))
        };
        self.files.values().any(declares)
    }
}

// === impl Additions ===

impl<'a> Additions<'a> {
    fn change(&mut self, path: CratePath, addition: UserAddition<'a>) {
        self.changed.entry(path).or_default().push(addition);
    }

    fn add_traits(
        &mut self,
        operator: &'a Operator,
        traits: &[HandlerTrait<'a>],
        diagnostics: &mut Diagnostics,
    ) {
        for handler_trait in traits {
            self.new.push(new_file(*handler_trait));
        }
        if traits.is_empty() {
            return;
        }
        let parents = [handlers_file(), inside("src/handlers/mod.rs")].into_iter();
        let mut found = parents.filter_map(|path| Some((self.user.files.get(&path)?, path)));
        let Some((file, parent)) = found.next() else {
            let modules = handler_modules(operator);
            let source = ScaffoldSource::Handlers { modules };
            self.new
                .push(PlannedFile::scaffold(handlers_file().as_str(), source));
            return;
        };
        let parsed = UserSource::parse(&file.text);
        for handler_trait in traits {
            match &parsed {
                Ok(source) if source.declares_module(handler_trait.module()) => {}
                Ok(_) => {
                    let module = UserAddition::Module(handler_trait.module());
                    self.change(parent.clone(), module);
                }
                Err(error) => {
                    diagnostics.push(
                        Diagnostic::error(
                            Code::UserFileSyntax,
                            format!("{parent} is not valid Rust: {error}"),
                        )
                        .at(
                            file.source,
                            Span::new(error.offset, error.offset),
                            "the parser stopped here",
                        )
                        .help(format!(
                            "`mod {};` has to be added; fix the file and run again",
                            handler_trait.module()
                        )),
                    );
                    return;
                }
            }
        }
    }

    fn finish(self) -> Vec<PlannedFile<'a>> {
        let changed = self.changed.into_iter().map(|(path, additions)| {
            let before = self.user.files[&path].text.as_str();
            PlannedFile {
                path,
                owner: FileOwner::Splice {
                    before: before.into(),
                },
                source: FileSource::Additions { before, additions },
            }
        });
        self.new.into_iter().chain(changed).collect()
    }
}

/// The first file for the handlers of a trait.
fn new_file(handler_trait: HandlerTrait<'_>) -> PlannedFile<'_> {
    let source = match handler_trait {
        HandlerTrait::Kind(kind) => ScaffoldSource::KindHandlers {
            kind,
            bodies: HandlerBodies::Stubs,
        },
        HandlerTrait::Hooks(hooks) => ScaffoldSource::HookHandlers(hooks),
    };
    PlannedFile::scaffold(handler_trait.file().as_str(), source)
}

fn bare(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}
