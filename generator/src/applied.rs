//! The kinds that handlers apply, as far as their Rust text says, held against `children:`.
//!
//! The compiler rejects an undeclared child of `reconcile`. The contexts of other handlers apply any
//! kind, and the operator has no permissions for what the manifest does not name.

mod calls;
mod types;

use std::collections::BTreeSet;

use self::calls::ApplyCall;
use self::types::FunctionTypes;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::model::builtin_kinds;
use crate::model::child::RelatedResource;
use crate::model::operator::{HandledKind, Operator};
use crate::plan::UserFiles;
use crate::splice::UserSource;

/// The module of the types of Kubernetes itself.
const LIBRARY: &str = "k8s_openapi::api::";

/// The module of the generated types.
const GENERATED: &str = "crate::generated::";

/// Reports the kinds that handlers apply and that `children:` does not declare. Files that are not
/// valid Rust are left to the compiler.
pub fn check(operator: &Operator, user: &UserFiles, diagnostics: &mut Diagnostics) {
    let files = user.sources();
    let files = files.filter_map(|(id, text)| Some((id, UserSource::parse(text).ok()?)));
    let files: Vec<_> = files.collect();
    let functions = FunctionTypes::of(files.iter().map(|(_, source)| source));
    for (id, source) in &files {
        for call in calls::find(source, &functions) {
            let mut kinds = operator.kinds.iter();
            let owner = kinds.find(|kind| kind.type_name == call.owner);
            let Some(owner) = owner.filter(|owner| !declares(owner, &call.child)) else {
                continue;
            };
            if let Some(name) = kind_name(operator, &call.child) {
                let span = Span::new(call.place.start, call.place.end);
                let found = diagnostic(owner, &call, &name);
                diagnostics.push(found.at(*id, span, "not in `children`"));
            }
        }
    }
}

fn diagnostic(owner: &HandledKind, call: &ApplyCall, name: &str) -> Diagnostic {
    let (kind, child) = (&owner.kind, last(&call.child));
    let message = format!("a handler of `{kind}` applies a `{child}`, which is not declared");
    let help = format!(
        "add `{name}` to `children` of `{kind}`, which also grants the permissions; \
         or grant them in a file of your own"
    );
    Diagnostic::note(Code::UndeclaredApply, message).help(help)
}

/// Whether a type is that of a declared child; or of the owner, which cannot be its own child.
fn declares(owner: &HandledKind, path: &str) -> bool {
    let mut declared = owner.children.iter().map(|child| &child.related);
    let is_own = path.starts_with(GENERATED) && last(path) == owner.type_name;
    is_own || declared.any(|related| is_type_of(related, path))
}

fn is_type_of(related: &RelatedResource, path: &str) -> bool {
    let object = &related.object;
    // A generated type is exported by several modules.
    let is_generated = path.starts_with(GENERATED);
    object.name() == last(path) && (is_generated || object.is(path))
}

/// The name of the kind as in `children`, if the type is one that can be declared.
fn kind_name(operator: &Operator, path: &str) -> Option<String> {
    let name = |group: &str, version: &str, kind: &str| match group {
        "" => format!("{version}/{kind}"),
        group => format!("{group}/{version}/{kind}"),
    };
    if let Some(inside) = path.strip_prefix(LIBRARY) {
        let mut kinds = builtin_kinds::ALL.iter();
        let kind = kinds.find(|it| format!("{}::{}", it.module, it.kind) == inside)?;
        return Some(name(kind.group, kind.version, kind.kind));
    }
    path.strip_prefix(GENERATED)?;
    let handled = operator.kinds.iter();
    let handled = handled.filter(|kind| kind.type_name == last(path));
    let handled = handled.map(|it| name(&it.group, &it.version, &it.kind));
    let related = operator.kinds.iter().flat_map(|kind| &kind.children);
    let related = related.filter(|child| is_type_of(&child.related, path));
    let names: BTreeSet<String> = handled.chain(related.map(|it| it.related.name())).collect();
    // Two kinds of one name cannot be told apart by it.
    let mut names = names.into_iter();
    names.next().filter(|_| names.next().is_none())
}

/// The last name of a path.
fn last(path: &str) -> &str {
    path.rsplit("::").next().unwrap_or(path)
}
