//! Plans additions to the user's files: stubs for new handlers and modules for new kinds.

use std::collections::{BTreeMap, BTreeSet};

use super::deployment::UserKustomizations;
use super::file::{CratePath, PlannedFile, inside, text};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::model::operator::{HandledKind, Operator};
use crate::rust::RustPath;
use crate::splice::{TraitImpl, UserSource, with_items};
use crate::view::crds;
use crate::view::exports::exports;
use crate::view::hooks;
use crate::view::memo;
use crate::view::method::{TraitMethod, methods};
use crate::view::phrases::article;
use crate::view::scaffold::{HandlersView, HooksScaffoldView, KindHandlersView};
use crate::view::stub::{NameStyle, stub};

/// The user's files, as read from disk.
#[derive(Clone, Debug, Default)]
pub struct UserFiles {
    files: BTreeMap<CratePath, UserFile>,
    pub(super) kustomizations: UserKustomizations,
}

#[derive(Clone, Debug)]
struct UserFile {
    source: SourceId,
    text: String,
}

/// The additions per file; several additions to one file are made one after another.
struct Additions<'a> {
    user: &'a UserFiles,
    changed: BTreeMap<CratePath, String>,
    new: Vec<PlannedFile>,
}

/// A trait that the user's operator implements, in a module of its own.
struct HandlerTrait {
    trait_name: String,
    module: String,
    methods: Vec<TraitMethod>,
    /// What its generated module re-exports.
    exports: BTreeMap<RustPath, String>,
    /// The kind, if it has a memo.
    memo_kind: Option<HandledKind>,
    /// The objects of its methods: "a Pod".
    subject: String,
    /// The owner of its methods: "Pod".
    owner: String,
    /// The text of a new file for it.
    scaffold: String,
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
pub(super) fn additions(
    operator: &Operator,
    user: &UserFiles,
    diagnostics: &mut Diagnostics,
) -> Vec<PlannedFile> {
    let mut additions = Additions {
        user,
        changed: BTreeMap::new(),
        new: Vec::new(),
    };
    let mut new_traits = Vec::new();
    let hooks = (!operator.hooks.is_empty()).then(|| HandlerTrait::of_hooks(operator));
    for handler_trait in operator
        .kinds
        .iter()
        .map(HandlerTrait::of_kind)
        .chain(hooks)
    {
        match additions.find_impl(&handler_trait, diagnostics) {
            ImplLocation::Found(path, source) => {
                let after = additions.with_stubs(&handler_trait, &path, &source, diagnostics);
                additions.changed.extend(after.map(|after| (path, after)));
            }
            ImplLocation::Missing => new_traits.push(handler_trait),
            ImplLocation::Unclear => {}
        }
    }
    additions.add_traits(operator, &new_traits, diagnostics);
    additions.finish()
}

fn handlers_file() -> CratePath {
    inside("src/handlers.rs")
}

// === impl HandlerTrait ===

impl HandlerTrait {
    fn of_kind(kind: &HandledKind) -> Self {
        let methods = methods(kind);
        Self {
            trait_name: kind.handlers_trait(),
            module: kind.module.clone(),
            exports: exports(kind, &methods),
            methods,
            memo_kind: kind.memo.is_some().then(|| kind.clone()),
            subject: format!("{} {}", article(&kind.type_name), kind.type_name),
            owner: kind.kind.clone(),
            scaffold: text(&KindHandlersView::new(kind)),
        }
    }

    fn of_hooks(operator: &Operator) -> Self {
        Self {
            trait_name: hooks::TRAIT.to_owned(),
            module: hooks::MODULE.to_owned(),
            methods: hooks::methods(&operator.hooks),
            exports: BTreeMap::new(),
            memo_kind: None,
            subject: "the operator".to_owned(),
            owner: "the operator".to_owned(),
            scaffold: text(&HooksScaffoldView::new(&operator.hooks)),
        }
    }

    fn file(&self) -> CratePath {
        inside(&format!("src/handlers/{}.rs", self.module))
    }
}

// === impl UserFiles ===

impl UserFiles {
    /// Adds a file that belongs to the user.
    pub fn add(&mut self, sources: &mut Sources, path: CratePath, text: String) {
        let source = sources.add(path.as_str(), text.clone());
        self.files.insert(path, UserFile { source, text });
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
        (!crds::bases(operator).is_empty()).then_some(copies)
    }

    fn source(&self, path: &CratePath) -> SourceId {
        self.files[path].source
    }
}

// === impl Additions ===

impl Additions<'_> {
    fn text(&self, path: &CratePath) -> Option<&str> {
        self.changed
            .get(path)
            .or_else(|| self.user.files.get(path).map(|file| &file.text))
            .map(String::as_str)
    }

    fn find_impl(
        &self,
        handler_trait: &HandlerTrait,
        diagnostics: &mut Diagnostics,
    ) -> ImplLocation<'_> {
        let wanted = &handler_trait.trait_name;
        let mut unreadable = false;
        for (path, file) in &self.user.files {
            let text = self.changed.get(path).unwrap_or(&file.text);
            if !text.contains(wanted) {
                continue;
            }
            match UserSource::parse(text) {
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
        let Some(file) = self.user.files.get(&usual) else {
            return ImplLocation::Missing;
        };
        let message = format!(
            "no file implements `{wanted}`, which has the handlers of {}",
            handler_trait.subject
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

    /// The file of a trait with stubs for its missing methods; `None` if none is missing.
    fn with_stubs(
        &self,
        handler_trait: &HandlerTrait,
        path: &CratePath,
        source: &UserSource<'_>,
        diagnostics: &mut Diagnostics,
    ) -> Option<String> {
        let blocks = source.impls_of(&handler_trait.trait_name);
        let methods = &handler_trait.methods;
        let present: BTreeSet<_> = blocks
            .iter()
            .flat_map(|block| &block.methods)
            .map(|method| method.name.as_str())
            .collect();
        let missing: Vec<&TraitMethod> = methods
            .iter()
            .filter(|method| !present.contains(bare(&method.name)))
            .collect();
        for left_over in blocks.iter().flat_map(|block| &block.methods) {
            if methods
                .iter()
                .any(|method| bare(&method.name) == left_over.name)
            {
                continue;
            }
            let (start, name) = (left_over.offset, &left_over.name);
            // Additions come after every old method, so offsets of old methods are still right.
            let span = Span::new(start, start + name.len());
            diagnostics.push(
                Diagnostic::warning(
                    Code::LeftOverHandler,
                    format!(
                        "`{name}` is not a handler of {} any more",
                        handler_trait.owner
                    ),
                )
                .at(
                    self.user.source(path),
                    span,
                    "nothing in kopf.yaml names it",
                )
                .help(
                    "delete it, or move what is worth keeping; the crate does not compile until then",
                ),
            );
        }
        let unnamed = |kind: &&HandledKind| {
            let is_named = |block: &TraitImpl| block.types.iter().any(|it| it == memo::ASSOCIATED);
            kind.memo.is_some() && !blocks.iter().any(is_named)
        };
        let memo_kind = handler_trait.memo_kind.as_ref().filter(unnamed);
        if missing.is_empty() && memo_kind.is_none() {
            return None;
        }
        let imports = source.imports();
        let module = format!("crate::generated::{}", handler_trait.module);
        let names = NameStyle::Qualified {
            imports: &imports,
            module: &module,
            exports: &handler_trait.exports,
        };
        let association = memo_kind.and_then(memo::association);
        let stubs: Vec<_> = association
            .into_iter()
            .chain(missing.into_iter().map(|method| stub(method, names)))
            .collect();
        let mut after = source.with_methods(&blocks[0], &stubs);
        if let Some(kind) = memo_kind.filter(|kind| !self.declares_memo(kind)) {
            let items = memo::declaration(kind, names).join("\n");
            after = with_items(&after, &items);
        }
        Some(after)
    }

    /// Whether a file of the user already declares the type of the memo.
    fn declares_memo(&self, kind: &HandledKind) -> bool {
        let name = kind.memo.as_deref().unwrap_or_default();
        let declares = |file: &UserFile| {
            let may_declare = file.text.contains(name);
            may_declare && UserSource::parse(&file.text).is_ok_and(|it| it.declares_type(name))
        };
        self.user.files.values().any(declares)
    }

    fn add_traits(
        &mut self,
        operator: &Operator,
        traits: &[HandlerTrait],
        diagnostics: &mut Diagnostics,
    ) {
        for handler_trait in traits {
            let text = handler_trait.scaffold.clone();
            self.new
                .push(PlannedFile::scaffold(handler_trait.file(), text));
        }
        if traits.is_empty() {
            return;
        }
        let found = [handlers_file(), inside("src/handlers/mod.rs")]
            .into_iter()
            .find_map(|path| Some((self.text(&path)?.to_owned(), path)));
        let Some((mut text, parent)) = found else {
            self.new.push(PlannedFile::scaffold(
                handlers_file(),
                text(&HandlersView::new(operator)),
            ));
            return;
        };
        for handler_trait in traits {
            match UserSource::parse(&text) {
                Ok(source) if source.declares_module(&handler_trait.module) => {}
                Ok(source) => {
                    text = source.with_module(&handler_trait.module);
                    self.changed.insert(parent.clone(), text.clone());
                }
                Err(error) => {
                    diagnostics.push(
                        Diagnostic::error(
                            Code::UserFileSyntax,
                            format!("{parent} is not valid Rust: {error}"),
                        )
                        .at(
                            self.user.source(&parent),
                            Span::new(error.offset, error.offset),
                            "the parser stopped here",
                        )
                        .help(format!(
                            "`mod {};` has to be added; fix the file and run again",
                            handler_trait.module
                        )),
                    );
                    return;
                }
            }
        }
    }

    fn finish(self) -> Vec<PlannedFile> {
        let changed = self.changed.into_iter().map(|(path, after)| {
            let before = self.user.files[&path].text.clone();
            PlannedFile::splice(path, before, after)
        });
        self.new.into_iter().chain(changed).collect()
    }
}

fn bare(name: &str) -> &str {
    name.strip_prefix("r#").unwrap_or(name)
}
