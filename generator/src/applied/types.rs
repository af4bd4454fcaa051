//! The types of expressions and functions, as far as one can tell without a compiler.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use syn::visit::{self, Visit};

use crate::splice::{ImportedNames, UserSource};

/// Types around the one that is meant.
const WRAPPERS: [&str; 3] = ["HandlerResult", "Option", "Result"];

/// Methods that leave the type of their receiver, or take it out of a wrapper.
const SAME_TYPE: [&str; 5] = ["clone", "expect", "to_owned", "unwrap", "unwrap_or_default"];

/// The types that the functions of all files return, by the names of the functions.
#[derive(Debug, Default)]
pub(super) struct FunctionTypes {
    /// None for a name with several types.
    types: BTreeMap<String, Option<String>>,
}

/// The names of one function, and of its file.
pub(super) struct TypeScope<'a> {
    pub(super) imports: &'a ImportedNames,
    pub(super) functions: &'a FunctionTypes,
    /// The types of variables, by their names; none if it is not known.
    pub(super) variables: BTreeMap<String, Option<String>>,
}

/// Collects the functions of one file.
struct FunctionCollector<'a> {
    imports: &'a ImportedNames,
    found: &'a mut FunctionTypes,
}

// === impl FunctionTypes ===

impl FunctionTypes {
    pub(super) fn of<'a>(files: impl Iterator<Item = &'a UserSource<'a>>) -> Self {
        let mut found = Self::default();
        for source in files {
            let mut collector = FunctionCollector {
                imports: &source.imports(),
                found: &mut found,
            };
            collector.visit_file(source.file());
        }
        found
    }

    fn add(&mut self, name: &syn::Ident, returned: Option<String>) {
        match self.types.entry(name.to_string()) {
            Entry::Vacant(new) => {
                new.insert(returned);
            }
            Entry::Occupied(mut known) if *known.get() != returned => {
                known.insert(None);
            }
            Entry::Occupied(_) => {}
        }
    }
}

impl FunctionCollector<'_> {
    fn add(&mut self, signature: &syn::Signature) {
        let returned = match &signature.output {
            syn::ReturnType::Type(_, returned) => path_of(returned, self.imports),
            syn::ReturnType::Default => None,
        };
        self.found.add(&signature.ident, returned);
    }
}

impl<'ast> Visit<'ast> for FunctionCollector<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.add(&function.sig);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.add(&function.sig);
        visit::visit_impl_item_fn(self, function);
    }
}

// === impl TypeScope ===

impl TypeScope<'_> {
    /// The path of the type of an expression.
    pub(super) fn of(&self, expression: &syn::Expr) -> Option<String> {
        match expression {
            syn::Expr::Await(it) => self.of(&it.base),
            syn::Expr::Call(it) => self.of_call(it),
            syn::Expr::MethodCall(it) => self.of_method_call(it),
            syn::Expr::Paren(it) => self.of(&it.expr),
            syn::Expr::Path(it) => {
                let name = it.path.get_ident()?.to_string();
                self.variables.get(&name)?.clone()
            }
            syn::Expr::Struct(it) => Some(resolved(names_of(&it.path), self.imports)),
            syn::Expr::Try(it) => self.of(&it.expr),
            _ => None,
        }
    }

    /// `Pod::default()` makes a Pod, and `pod_for(…)` what the function returns.
    fn of_call(&self, call: &syn::ExprCall) -> Option<String> {
        let syn::Expr::Path(function) = &*call.func else {
            return None;
        };
        let mut names: Vec<String> = names_of(&function.path).collect();
        let name = names.pop()?;
        let is_type = |name: &&String| name.starts_with(char::is_uppercase) && *name != "Self";
        match names.last().filter(is_type) {
            // The type comes from elsewhere.
            Some(owner) if owner == "Default" => None,
            Some(_) if matches!(name.as_str(), "default" | "new") => {
                Some(resolved(names.into_iter(), self.imports))
            }
            Some(_) => None,
            None => self.functions.types.get(&name)?.clone(),
        }
    }

    fn of_method_call(&self, call: &syn::ExprMethodCall) -> Option<String> {
        let name = call.method.to_string();
        if SAME_TYPE.contains(&name.as_str()) {
            return self.of(&call.receiver);
        }
        let is_self =
            matches!(&*call.receiver, syn::Expr::Path(receiver) if receiver.path.is_ident("self"));
        match is_self {
            true => self.functions.types.get(&name)?.clone(),
            false => None,
        }
    }
}

/// The path of a type, or of that inside a wrapper.
pub(super) fn path_of(rust_type: &syn::Type, imports: &ImportedNames) -> Option<String> {
    let syn::Type::Path(rust_type) = rust_type else {
        return None;
    };
    let segment = rust_type.path.segments.last()?;
    if !WRAPPERS.contains(&segment.ident.to_string().as_str()) {
        return Some(resolved(names_of(&rust_type.path), imports));
    }
    path_of(first_argument(segment)?, imports)
}

/// The `T` of `Name<T, …>`.
pub(super) fn first_argument(segment: &syn::PathSegment) -> Option<&syn::Type> {
    let syn::PathArguments::AngleBracketed(arguments) = &segment.arguments else {
        return None;
    };
    arguments.args.iter().find_map(|argument| match argument {
        syn::GenericArgument::Type(argument) => Some(argument),
        _ => None,
    })
}

fn names_of(path: &syn::Path) -> impl Iterator<Item = String> {
    path.segments.iter().map(|it| it.ident.to_string())
}

/// A path from its crate on, if the imports of the file say so.
fn resolved(mut names: impl Iterator<Item = String>, imports: &ImportedNames) -> String {
    let first = names.next().unwrap_or_default();
    let first = imports.path_of(&first).unwrap_or(first);
    names.fold(first, |path, name| format!("{path}::{name}"))
}
