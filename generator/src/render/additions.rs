//! Additions to a file of the user, printed with the names that the file imports.

use std::collections::BTreeMap;

use super::exports::exports;
use super::hooks;
use super::memo;
use super::method::methods;
use super::stub::{NameStyle, stub};
use crate::plan::{HandlerTrait, MemoAddition, UserAddition};
use crate::splice::{UserSource, with_items};

/// The text with all additions.
pub(super) fn text(before: &str, additions: &[UserAddition<'_>]) -> String {
    additions.iter().fold(before.to_owned(), |text, addition| {
        // A text that is not Rust is reported when the additions are planned.
        let Ok(source) = UserSource::parse(&text) else {
            return text;
        };
        match addition {
            UserAddition::Module(name) => source.with_module(name),
            UserAddition::Members { of, methods, memo } => {
                let added = with_members(&source, *of, methods, *memo);
                added.unwrap_or_else(|| text.clone())
            }
        }
    })
}

/// The file with stubs in the `impl` of a trait; `None` if it has no such `impl`.
fn with_members(
    source: &UserSource<'_>,
    of: HandlerTrait<'_>,
    missing: &[&str],
    memo: MemoAddition,
) -> Option<String> {
    let blocks = source.impls_of(&of.name());
    let block = blocks.first()?;
    let (kind, methods) = match of {
        HandlerTrait::Kind(kind) => (Some(kind), methods(kind)),
        HandlerTrait::Hooks(hooks) => (None, hooks::methods(hooks)),
    };
    let exports = kind.map_or_else(BTreeMap::new, |kind| exports(kind, &methods));
    let imports = source.imports();
    let module = format!("crate::generated::{}", of.module());
    let names = NameStyle::Qualified {
        imports: &imports,
        module: &module,
        exports: &exports,
    };
    let association = match memo {
        MemoAddition::Nothing => None,
        MemoAddition::Association | MemoAddition::AssociationAndType => {
            kind.and_then(memo::association)
        }
    };
    let stubs = methods.iter();
    let stubs = stubs.filter(|method| missing.contains(&method.name.as_str()));
    let members: Vec<String> = association
        .into_iter()
        .chain(stubs.map(|method| stub(method, names)))
        .collect();
    let added = source.with_methods(block, &members);
    let declared = kind.filter(|_| memo == MemoAddition::AssociationAndType);
    Some(match declared {
        Some(kind) => with_items(&added, &memo::declaration(kind, names).join("\n")),
        None => added,
    })
}
