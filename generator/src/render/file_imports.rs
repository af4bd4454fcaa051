//! The imports of a new file of the user.

use std::collections::{BTreeMap, BTreeSet};

use super::exports::exports;
use super::imports::{self, ImportList};
use super::method::{MethodSignature, TraitMethod};
use crate::model::operator::HandledKind;
use crate::rust::{PathRoot, RustPath};

/// The type of the state that all handlers share, in the file of their modules.
const STATE: &str = "Operator";

/// The names that a new file of the user imports.
#[derive(Clone, Debug, Default)]
pub(super) struct FileImports {
    /// What the module of the kind re-exports.
    pub(super) exports: BTreeMap<RustPath, String>,
    /// The names from the module of the kind.
    pub(super) from_kind: BTreeSet<String>,
    /// The items of other crates.
    pub(super) external: ImportList,
}

// === impl FileImports ===

impl FileImports {
    pub(super) fn new(kind: &HandledKind, methods: &[TraitMethod]) -> Self {
        let exports = exports(kind, methods);
        let mut from_kind = BTreeSet::from([kind.handlers_trait()]);
        from_kind.extend(kind.memo.as_ref().map(|_| kind.type_name.clone()));
        let mut others = BTreeSet::new();
        for method in methods {
            method
                .shape
                .for_each_path(&mut |path| match exports.get(path) {
                    Some(name) => from_kind.extend([name.clone()]),
                    None if path.needs_no_import() || is_in_runtime_prelude(path) => {}
                    None => others.extend([path.clone()]),
                });
        }
        let mut external = ImportList::default();
        external.reserve(STATE);
        from_kind.iter().for_each(|name| external.reserve(name));
        for path in &others {
            external.add(path);
        }
        Self {
            exports,
            from_kind,
            external,
        }
    }

    /// The type of the state that all handlers share, which a type of the kind can hide.
    pub(super) fn state(&self) -> &'static str {
        if self.from_kind.contains(STATE) {
            "super::Operator"
        } else {
            STATE
        }
    }

    /// The declarations, line by line, with an empty line at the end.
    pub(super) fn lines(&self, kind: &HandledKind, methods: &[TraitMethod]) -> Vec<String> {
        let handles = methods
            .iter()
            .any(|method| matches!(method.shape, MethodSignature::Handler { .. }));
        let mut external = self.external.clone();
        if handles || kind.memo.is_some() {
            external.add_all_of("kopf_runtime::prelude");
        }
        let mut lines = external.lines();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if self.state() == STATE {
            lines.push(format!("use super::{STATE};"));
        }
        let module = format!("crate::generated::{}", kind.module);
        let names = self.from_kind.iter().map(String::as_str);
        lines.extend(imports::declaration("use", &module, names));
        lines.push(String::new());
        lines
    }
}

/// Whether the prelude of the runtime has an item.
pub(super) fn is_in_runtime_prelude(path: &RustPath) -> bool {
    let is_of_runtime = path.root() == PathRoot::External
        && matches!(path.names(), [crate_name, _] if crate_name == "kopf_runtime");
    is_of_runtime || path.is("serde_json::Value") || path.is("std::time::Duration")
}
