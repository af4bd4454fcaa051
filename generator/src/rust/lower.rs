//! Lowers a module to a syntax tree: chooses the name of each path, and adds the imports.

use std::borrow::Cow;
use std::fmt;

use proc_macro2::{Ident, Literal, Span};
use quote::quote;
use syn::punctuated::Punctuated;
use syn::visit_mut::{self, VisitMut};
use syn::{AttrStyle, Token};

use super::import::{self, ReexportList};
use super::item::{
    Lint, RustEnum, RustField, RustItem, RustModule, RustNewtype, RustStruct, RustVariant,
    SerdeArgument,
};
use super::path::RustPath;
use super::rust_type::{RustType, TypeArgument};
use super::scope::ModuleScope;
use super::syntax;
use super::written_attributes::WrittenAttributes;

impl RustModule {
    /// The syntax tree of the module, and what is written before its items.
    #[must_use]
    pub fn into_syntax(self) -> (syn::File, WrittenAttributes) {
        let mut attributes = WrittenAttributes::default();
        let file = self.lower(&mut attributes);
        (file, attributes)
    }

    fn lower(self, attributes: &mut WrittenAttributes) -> syn::File {
        let mut scope = ModuleScope::new(&self.location, std::mem::take(attributes));
        self.items.iter().for_each(|item| declare(item, &mut scope));
        let docs = self.docs.iter().map(|line| syntax::doc(line, inner()));
        let allowed = self.allowed.iter().map(allow);
        let attrs = docs.chain(allowed).collect();
        let mut modules = Vec::new();
        let mut reexports = ReexportList::new();
        let mut items = Vec::new();
        for item in self.items {
            match item {
                RustItem::Reexport(path, name) => {
                    let mut written = scope.full(&path).names;
                    let there = written.pop().unwrap_or_default();
                    let names = reexports.entry(written).or_default();
                    names.insert((there, name.to_string()));
                }
                item @ RustItem::Module { body: None, .. } => {
                    modules.push(item.into_syntax(&mut scope));
                }
                item => items.push(item.into_syntax(&mut scope)),
            }
        }
        *attributes = std::mem::take(&mut scope.attributes);
        let items = modules
            .into_iter()
            .chain(import::imports(&scope.into_imports(), &self.traits))
            .chain(reexports.into_iter().map(import::reexport))
            .chain(items);
        syn::File {
            shebang: None,
            frontmatter: None,
            attrs,
            items: items.collect(),
        }
    }
}

fn inner() -> AttrStyle {
    AttrStyle::Inner(<Token![!]>::default())
}

/// Adds the names that an item gives to its module.
fn declare(item: &RustItem, scope: &mut ModuleScope) {
    match item {
        RustItem::Struct(item) => scope.declare(item.name.to_string()),
        RustItem::Enum(item) => scope.declare(item.name.to_string()),
        RustItem::Newtype(item) => scope.declare(item.name.to_string()),
        RustItem::Alias(name, _) | RustItem::Module { name, .. } => {
            scope.declare(name.to_string());
        }
        RustItem::Reexport(path, name) => scope.reexport(path.clone(), name.to_string()),
        RustItem::Code(item) => {
            if let Some(name) = declared_name(item) {
                scope.declare(name.to_string());
            }
        }
    }
}

const fn declared_name(item: &syn::Item) -> Option<&Ident> {
    match item {
        syn::Item::Const(item) => Some(&item.ident),
        syn::Item::Enum(item) => Some(&item.ident),
        syn::Item::Struct(item) => Some(&item.ident),
        syn::Item::Trait(item) => Some(&item.ident),
        syn::Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}

fn allow(lint: &Lint) -> syn::Attribute {
    let text = format!("#![{lint}]");
    let parsed = syn::parse::Parser::parse_str(syn::Attribute::parse_inner, &text);
    let mut parsed = parsed.expect("lints are paths").into_iter();
    parsed.next().expect("it is one attribute")
}

impl fmt::Display for Lint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "allow({}", self.names.join(", "))?;
        if let Some(reason) = self.reason {
            write!(f, ", reason = {reason:?}")?;
        }
        f.write_str(")")
    }
}

// === impl RustItem ===

impl RustItem {
    fn into_syntax(self, scope: &mut ModuleScope) -> syn::Item {
        match self {
            Self::Struct(item) => item.into_syntax(scope),
            Self::Enum(item) => item.into_syntax(scope),
            Self::Newtype(item) => item.into_syntax(scope),
            Self::Alias(name, ty) => {
                let syn::Item::Type(mut item) = syntax::item(quote!(pub type #name = ();)) else {
                    unreachable!("it is an alias");
                };
                // Not parsed again, because it may be deeply nested.
                *item.ty = scope.ty(&ty);
                syn::Item::Type(item)
            }
            Self::Reexport(path, name) => {
                let path = syntax::path(&scope.full(&path));
                syntax::item(quote!(pub use #path as #name;))
            }
            Self::Module {
                name,
                keeps_layout,
                body,
            } => {
                let mut module: syn::ItemMod = syn::parse_quote!(pub mod #name;);
                if keeps_layout {
                    module.attrs.push(syn::parse_quote!(#[rustfmt::skip]));
                }
                if let Some(body) = body {
                    let file = body.lower(&mut scope.attributes);
                    module.attrs.extend(file.attrs);
                    module.content = Some((syn::token::Brace::default(), file.items));
                    module.semi = None;
                }
                syn::Item::Mod(module)
            }
            Self::Code(mut item) => {
                scope.visit_item_mut(&mut item);
                *item
            }
        }
    }
}

impl RustStruct {
    fn into_syntax(self, scope: &mut ModuleScope) -> syn::Item {
        let mut fields = Punctuated::new();
        for field in self.fields {
            fields.push(field.into_syntax(scope));
        }
        let mut attributes = vec![scope.derive(&self.derives)];
        attributes.extend(scope.serde(&self.serde));
        let attrs = scope.attributes.add(self.docs, attributes);
        syn::Item::Struct(syn::ItemStruct {
            attrs,
            vis: public(),
            struct_token: <Token![struct]>::default(),
            ident: self.name,
            generics: syn::Generics::default(),
            fields: syn::Fields::Named(syn::FieldsNamed {
                brace_token: syn::token::Brace::default(),
                named: fields,
            }),
            semi_token: None,
        })
    }
}

impl RustNewtype {
    fn into_syntax(self, scope: &mut ModuleScope) -> syn::Item {
        let attributes = vec![scope.derive(&self.derives)];
        let attrs = scope.attributes.add(self.docs, attributes);
        let (name, value) = (self.name, scope.ty(&self.value));
        let mut item: syn::ItemStruct = syn::parse_quote!(pub struct #name(pub #value););
        item.attrs = attrs;
        syn::Item::Struct(item)
    }
}

impl RustField {
    fn into_syntax(self, scope: &mut ModuleScope) -> syn::Field {
        let attributes = scope.serde(&self.serde).into_iter().collect();
        let attrs = scope.attributes.add(self.docs, attributes);
        syn::Field {
            attrs,
            vis: public(),
            modifiers: syn::FieldModifiers::default(),
            ident: Some(self.name),
            colon_token: Some(<Token![:]>::default()),
            ty: scope.ty(&self.ty),
            default: None,
        }
    }
}

impl RustEnum {
    fn into_syntax(self, scope: &mut ModuleScope) -> syn::Item {
        let mut variants = Punctuated::new();
        let has_default = self.derives.iter().any(|derive| derive.name() == "Default");
        for (place, variant) in self.variants.into_iter().enumerate() {
            let is_default = has_default && place == 0;
            variants.push(variant.into_syntax(is_default, scope));
        }
        let mut attributes = vec![scope.derive(&self.derives)];
        attributes.extend(scope.serde(&self.serde));
        attributes.extend(self.allowed.iter().map(|lint| format!("#[{lint}]")));
        let attrs = scope.attributes.add(self.docs, attributes);
        syn::Item::Enum(syn::ItemEnum {
            attrs,
            vis: public(),
            enum_token: <Token![enum]>::default(),
            ident: self.name,
            generics: syn::Generics::default(),
            brace_token: syn::token::Brace::default(),
            variants,
        })
    }
}

impl RustVariant {
    fn into_syntax(self, is_default: bool, scope: &mut ModuleScope) -> syn::Variant {
        let default = is_default.then(|| "#[default]".to_owned());
        let attributes = default
            .into_iter()
            .chain(scope.serde(&self.serde))
            .collect();
        let attrs = scope.attributes.add(self.docs, attributes);
        let fields = match &self.value {
            None => syn::Fields::Unit,
            Some(ty) => {
                let ty = scope.ty(ty);
                syn::Fields::Unnamed(syn::parse_quote!((#ty)))
            }
        };
        syn::Variant {
            attrs,
            ident: self.name,
            fields,
            discriminant: None,
        }
    }
}

/// Adds a string literal.
fn push_literal(text: &mut String, value: &str) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\');
    if value.bytes().all(is_plain) {
        text.extend(["\"", value, "\""]);
    } else {
        text.push_str(&Literal::string(value).to_string());
    }
}

fn public() -> syn::Visibility {
    syn::Visibility::Public(<Token![pub]>::default())
}

// === impl ModuleScope ===

impl ModuleScope {
    fn path(&mut self, path: &RustPath) -> syn::Path {
        match self.short(path) {
            Some([name]) => syntax::ident(name).into(),
            _ => syntax::path(&self.write(path)),
        }
    }

    fn ty(&mut self, ty: &RustType) -> syn::Type {
        match ty {
            RustType::Path(path, arguments) => {
                let mut path = self.path(path);
                if let Some(last) = path.segments.last_mut().filter(|_| !arguments.is_empty()) {
                    let arguments = arguments.iter().map(|it| self.argument(it));
                    last.arguments =
                        syn::PathArguments::AngleBracketed(syn::AngleBracketedGenericArguments {
                            colon2_token: None,
                            lt_token: <Token![<]>::default(),
                            args: arguments.collect(),
                            gt_token: <Token![>]>::default(),
                        });
                }
                syn::Type::Path(syn::TypePath {
                    attrs: Vec::new(),
                    qself: None,
                    path,
                })
            }
            RustType::Tuple(items) => {
                let items: Vec<syn::Type> = items.iter().map(|item| self.ty(item)).collect();
                syn::parse_quote!((#(#items,)*))
            }
            RustType::Array(item, length) => {
                let item = self.ty(item);
                let length = Literal::u64_unsuffixed(*length);
                syn::parse_quote!([#item; #length])
            }
        }
    }

    fn argument(&mut self, argument: &TypeArgument) -> syn::GenericArgument {
        match argument {
            TypeArgument::Type(ty) => syn::GenericArgument::Type(self.ty(ty)),
            TypeArgument::Lifetime(name) => {
                let name = format!("'{name}");
                syn::GenericArgument::Lifetime(syn::Lifetime::new(&name, Span::call_site()))
            }
        }
    }

    /// The derive attribute.
    fn derive(&mut self, traits: &[RustPath]) -> String {
        if let Some((last, text)) = &self.last_derives
            && last == traits
        {
            return text.clone();
        }
        let names: Vec<String> = traits.iter().map(|path| self.derive_macro(path)).collect();
        let text = format!("#[derive({})]", names.join(", "));
        self.last_derives = Some((traits.to_vec(), text.clone()));
        text
    }

    /// A derive macro. Those of the standard library are not hidden by types of the same name.
    fn derive_macro(&mut self, path: &RustPath) -> String {
        if path.is("std::fmt::Debug") || path.needs_no_import() {
            return path.name().to_owned();
        }
        self.write(path).text()
    }

    /// The serde attribute; none without arguments.
    fn serde(&mut self, arguments: &[SerdeArgument]) -> Option<String> {
        if arguments.is_empty() {
            return None;
        }
        let mut text = "#[serde(".to_owned();
        for (index, argument) in arguments.iter().enumerate() {
            let (name, value) = self.serde_argument(argument);
            text.push_str(if index == 0 { "" } else { ", " });
            text.push_str(name);
            if let Some(value) = value {
                text.push_str(" = ");
                push_literal(&mut text, &value);
            }
        }
        text.push_str(")]");
        Some(text)
    }

    /// The name and the value of an argument.
    fn serde_argument<'s>(
        &mut self,
        argument: &'s SerdeArgument,
    ) -> (&'static str, Option<Cow<'s, str>>) {
        match argument {
            SerdeArgument::Rename(text) => ("rename", Some(text.into())),
            SerdeArgument::RenameAll(rule) => ("rename_all", Some((*rule).into())),
            SerdeArgument::Default => ("default", None),
            SerdeArgument::DefaultFrom(function) => ("default", Some(function.to_string().into())),
            SerdeArgument::DeserializeWith(function) => {
                ("deserialize_with", Some(function.to_string().into()))
            }
            SerdeArgument::SkipNone => {
                let option = self.declares("Option");
                let function = if option {
                    "std::option::Option::is_none"
                } else {
                    "Option::is_none"
                };
                ("skip_serializing_if", Some(function.into()))
            }
            SerdeArgument::Flatten => ("flatten", None),
            SerdeArgument::Untagged => ("untagged", None),
            SerdeArgument::From(ty) => ("from", Some(self.type_text(ty).into())),
            SerdeArgument::TryFrom(ty) => ("try_from", Some(self.type_text(ty).into())),
            SerdeArgument::Into(ty) => ("into", Some(self.type_text(ty).into())),
        }
    }

    /// A type inside of a string.
    fn type_text(&mut self, ty: &RustType) -> String {
        ty.print(&mut |path| self.write(path).text())
    }
}

/// Code is written with full paths.
impl VisitMut for ModuleScope {
    fn visit_path_mut(&mut self, path: &mut syn::Path) {
        visit_mut::visit_path_mut(self, path);
        let first = path.segments.first();
        let is_full = path.leading_colon.is_some() || first.is_some_and(|it| it.ident == "crate");
        if !is_full {
            return;
        }
        let full = RustPath::of_syntax(path);
        let written = self.write(&full);
        let dropped = path.segments.len().saturating_sub(written.names.len());
        let old = std::mem::replace(path, syntax::path(&written));
        let arguments = old.segments.into_iter().map(|it| it.arguments);
        let arguments: Vec<syn::PathArguments> = arguments.skip(dropped).collect();
        // A relative path can be longer by its `super`.
        let shift = path.segments.len() - arguments.len();
        for (segment, arguments) in path.segments.iter_mut().skip(shift).zip(arguments) {
            segment.arguments = arguments;
        }
    }

    fn visit_macro_mut(&mut self, node: &mut syn::Macro) {
        self.visit_path_mut(&mut node.path);
        // The items of `vec!` are expressions.
        if node.path.is_ident("vec") {
            let items = node.parse_body_with(Punctuated::<syn::Expr, Token![,]>::parse_terminated);
            if let Ok(mut items) = items {
                items.iter_mut().for_each(|item| self.visit_expr_mut(item));
                node.tokens = quote!(#items);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use syn::parse_quote;

    use super::*;

    fn text(items: Vec<RustItem>) -> String {
        let module = RustModule {
            location: vec!["generated".to_owned(), "order".to_owned()],
            items,
            ..RustModule::default()
        };
        crate::format::rust(module)
    }

    fn structure(name: &str, ty: RustType) -> RustItem {
        RustItem::Struct(RustStruct {
            docs: Vec::new(),
            derives: vec![RustPath::external("serde::Serialize")],
            serde: Vec::new(),
            name: syntax::ident(name),
            fields: vec![RustField {
                docs: Vec::new(),
                serde: vec![SerdeArgument::SkipNone],
                name: syntax::ident("r#type"),
                ty: ty.optional(),
            }],
        })
    }

    #[test]
    fn a_module_may_declare_any_name() {
        let map = RustType::json().map().list();
        for name in ["Option", "Vec", "String", "Value", "BTreeMap", "Serialize"] {
            let text = text(vec![structure(name, map.clone())]);
            let imports = text.lines().filter(|line| line.starts_with("use "));
            assert!(
                imports
                    .clone()
                    .all(|line| !line.contains(&format!("{name}{{")))
            );
            assert!(!text.contains(&format!("::{name};")), "{text}");
            assert!(text.contains(&format!("::{name}")), "{text}");
        }
    }

    #[test]
    fn paths_are_imported_or_relative_or_full() {
        let code = RustItem::code(parse_quote! {
            fn f(a: ::std::sync::Arc<crate::generated::types::Order>) -> ::other::Order {
                crate::handlers::call(::kopf_runtime::predicate::value(::std::option::Option::None))
            }
        });
        let order = RustPath::this_crate(&["generated", "types", "Order"]);
        let name = syntax::ident("Order");
        insta::assert_snapshot!(text(vec![RustItem::Reexport(order, name), code]), @r"
        use std::sync::Arc;

        use kopf_runtime::predicate;

        pub use super::types::Order;

        fn f(a: Arc<Order>) -> other::Order {
            crate::handlers::call(predicate::value(None))
        }
        ");
    }
}
