//! Finds the calls of `apply` on the contexts of handlers.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};

use super::types::{self, FunctionTypes, TypeScope};
use crate::splice::{ImportedNames, UserSource};

/// The contexts that apply any kind, and the trait that they share; the first parameter of each is
/// the kind of the handled object.
const CONTEXTS: [&str; 7] = [
    "ChangeContext",
    "ChildContext",
    "DaemonContext",
    "EventContext",
    "FieldContext",
    "ObjectContext",
    "TimerContext",
];

/// A call of `apply` whose kinds are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ApplyCall {
    /// The name of the type of the handled object.
    pub(super) owner: String,
    /// The path of the type of the child.
    pub(super) child: String,
    /// The bytes of the call, from the method on.
    pub(super) place: Range<usize>,
}

/// Walks through one file.
struct CallFinder<'a> {
    source: &'a UserSource<'a>,
    imports: &'a ImportedNames,
    functions: &'a FunctionTypes,
    found: Vec<ApplyCall>,
}

/// Walks through one function.
struct BodyWalk<'a> {
    source: &'a UserSource<'a>,
    /// The owner by the names of parameters that are contexts.
    contexts: BTreeMap<String, String>,
    scope: TypeScope<'a>,
    found: Vec<ApplyCall>,
}

/// The calls in a file.
pub(super) fn find(source: &UserSource<'_>, functions: &FunctionTypes) -> Vec<ApplyCall> {
    let mut finder = CallFinder {
        source,
        imports: &source.imports(),
        functions,
        found: Vec::new(),
    };
    finder.visit_file(source.file());
    finder.found
}

// === impl CallFinder ===

impl CallFinder<'_> {
    fn walk(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let mut walk = BodyWalk {
            source: self.source,
            contexts: BTreeMap::new(),
            scope: TypeScope {
                imports: self.imports,
                functions: self.functions,
                variables: BTreeMap::new(),
            },
            found: Vec::new(),
        };
        for input in &signature.inputs {
            let syn::FnArg::Typed(input) = input else {
                continue;
            };
            let syn::Pat::Ident(name) = &*input.pat else {
                continue;
            };
            let name = name.ident.to_string();
            match owner_of(&input.ty, &signature.generics) {
                Some(owner) => {
                    walk.contexts.insert(name, owner);
                }
                None => {
                    let known = types::path_of(&input.ty, self.imports);
                    walk.scope.variables.insert(name, known);
                }
            }
        }
        if !walk.contexts.is_empty() {
            walk.visit_block(body);
            self.found.extend(walk.found);
        }
    }
}

impl<'ast> Visit<'ast> for CallFinder<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.walk(&function.sig, &function.block);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.walk(&function.sig, &function.block);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        // The contexts of unit tests send nothing.
        if !module.attrs.iter().any(is_for_tests) {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Whether an attribute is `#[cfg(test)]`.
fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let is_test =
        |list: &syn::MetaList| list.path.is_ident("cfg") && list.tokens.to_string() == "test";
    matches!(&attribute.meta, syn::Meta::List(list) if is_test(list))
}

/// The type of the handled object, if a parameter of this type is a context.
fn owner_of(parameter: &syn::Type, generics: &syn::Generics) -> Option<String> {
    match parameter {
        syn::Type::Reference(reference) => owner_of(&reference.elem, generics),
        syn::Type::ImplTrait(it) => it.bounds.iter().find_map(owner_of_bound),
        syn::Type::Path(path) => owner_of_path(&path.path).or_else(|| {
            let name = path.path.get_ident()?;
            let mut generics = generics.type_params();
            let generic = generics.find(|it| it.ident == *name)?;
            generic.bounds.iter().find_map(owner_of_bound)
        }),
        _ => None,
    }
}

fn owner_of_bound(bound: &syn::TypeParamBound) -> Option<String> {
    match bound {
        syn::TypeParamBound::Trait(bound) => owner_of_path(&bound.path),
        _ => None,
    }
}

fn owner_of_path(path: &syn::Path) -> Option<String> {
    let context = path.segments.last()?;
    let is_context = CONTEXTS.contains(&context.ident.to_string().as_str());
    let owner = types::first_argument(context).filter(|_| is_context)?;
    let syn::Type::Path(owner) = owner else {
        return None;
    };
    Some(owner.path.segments.last()?.ident.to_string())
}

// === impl BodyWalk ===

impl BodyWalk<'_> {
    fn owner(&self, receiver: &syn::Expr) -> Option<&String> {
        let syn::Expr::Path(receiver) = receiver else {
            return None;
        };
        self.contexts.get(&receiver.path.get_ident()?.to_string())
    }

    fn child(&self, call: &syn::ExprMethodCall) -> Option<String> {
        let mut turbofish = call.turbofish.iter().flat_map(|it| &it.args);
        let named = turbofish.find_map(|argument| match argument {
            syn::GenericArgument::Type(named) => types::path_of(named, self.scope.imports),
            _ => None,
        });
        named.or_else(|| self.scope.of(call.args.first()?))
    }

    fn bind(&mut self, pattern: &syn::Pat, known: Option<String>) {
        match pattern {
            syn::Pat::Ident(name) => {
                self.scope.variables.insert(name.ident.to_string(), known);
            }
            syn::Pat::Type(typed) => {
                let declared = types::path_of(&typed.ty, self.scope.imports);
                self.bind(&typed.pat, declared.or(known));
            }
            // Names of which nothing is known hide those before them.
            other => {
                let mut names = BoundNames::default();
                names.visit_pat(other);
                let unknown = names.0.into_iter().map(|name| (name, None));
                self.scope.variables.extend(unknown);
            }
        }
    }
}

impl<'ast> Visit<'ast> for BodyWalk<'_> {
    fn visit_local(&mut self, local: &'ast syn::Local) {
        visit::visit_local(self, local);
        let known = local
            .init
            .as_ref()
            .and_then(|init| self.scope.of(&init.expr));
        self.bind(&local.pat, known);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        if call.method != "apply" || call.args.len() != 1 {
            return;
        }
        let owner = self.owner(&call.receiver).cloned();
        if let (Some(owner), Some(child)) = (owner, self.child(call)) {
            let from = self.source.bytes(call.method.span()).start;
            let to = self.source.bytes(call.span()).end;
            let place = from..to;
            self.found.push(ApplyCall {
                owner,
                child,
                place,
            });
        }
    }
}

/// The names that a pattern binds.
#[derive(Default)]
struct BoundNames(BTreeSet<String>);

impl<'ast> Visit<'ast> for BoundNames {
    fn visit_pat_ident(&mut self, name: &'ast syn::PatIdent) {
        self.0.insert(name.ident.to_string());
        visit::visit_pat_ident(self, name);
    }
}
