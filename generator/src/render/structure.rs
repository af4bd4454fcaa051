//! Structs, their fields and their defaults.

use syn::{Expr, parse_quote};

use super::doc_comments;
use super::expression::construct;
use super::stand_in;
use super::version_writer::{
    CLONE, DEBUG, DEFAULT, DESERIALIZE, PARTIAL_EQ, SERIALIZE, VersionWriter,
};
use crate::model::RenameRule;
use crate::model::default_functions::is_filled;
use crate::model::default_values::{DefaultImpl, DefaultValue};
use crate::model::generated_types::{FieldDocs, ShapeDocs, ShapeId, StructField, StructShape, Ty};
use crate::model::identifier::{RustIdent, TypeName};
use crate::model::member_names::{FieldNames, NamedMember};
use crate::rust::{RustField, RustItem, RustStruct, SerdeArgument, ident};

/// The owner of a field, on which its serde attributes depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldOwner {
    /// The root object, whose `Serialize` is written out.
    Root,
    /// A struct whose fields have defaults of their own.
    Struct,
    /// A struct whose `Default` fills every field that is left out.
    Defaulted,
}

impl VersionWriter<'_> {
    pub(super) fn structure(
        &mut self,
        id: ShapeId,
        body: &StructShape,
        name: &TypeName,
        docs: &ShapeDocs,
    ) -> Vec<RustItem> {
        let shape = self.resource.shapes.shape(id);
        let default = self.defaults.of_shape(id);
        let mut standard = vec![CLONE, DEBUG];
        standard.extend((default == DefaultImpl::Derived).then_some(DEFAULT));
        standard.extend([PARTIAL_EQ, DESERIALIZE, SERIALIZE]);
        let mut derives = self.derives(&standard, &shape.derives);
        // What an option asks for may be impossible.
        if default != DefaultImpl::Derived {
            derives = self.without(DEFAULT, derives);
        }
        let names = self.resource.shapes.field_names(id);
        let owner = if is_filled(body, default) {
            FieldOwner::Defaulted
        } else {
            FieldOwner::Struct
        };
        let fields = self.fields(body, names, docs, owner);
        let mut serde = container(names.rule);
        if owner == FieldOwner::Defaulted {
            serde.push(SerdeArgument::Default);
        }
        let name = ident(name.as_str());
        let mut items = vec![RustItem::Struct(RustStruct {
            docs: doc_comments::lines::<&str>(&docs.text, &[]),
            derives,
            serde,
            name: name.clone(),
            fields,
        })];
        if shape.has_builder && !body.fields.is_empty() {
            items.push(self.builder(&name, body, names));
        }
        if default == DefaultImpl::Written {
            items.push(self.default_impl(&name, body, names, owner));
        }
        if let Some(other) = &shape.stands_for {
            items.extend(stand_in::conversions(&name, &other.rust));
        }
        items
    }

    /// A written-out `Default`.
    pub(super) fn default_impl(
        &mut self,
        name: &syn::Ident,
        body: &StructShape,
        names: &FieldNames,
        owner: FieldOwner,
    ) -> RustItem {
        let mut fields: Vec<(syn::Ident, Expr)> = Vec::new();
        if owner == FieldOwner::Root {
            let value = parse_quote!(::std::default::Default::default());
            fields.push((ident("metadata"), value));
        }
        for (field, name) in body.fields.iter().zip(names.rust()) {
            let value = self.field_default(field, owner);
            fields.push((ident(name.as_str()), value));
        }
        fields.extend(names.other.as_ref().map(|name| -> (syn::Ident, Expr) {
            let empty = parse_quote!(::std::collections::BTreeMap::new());
            (ident(name.as_str()), empty)
        }));
        let value = construct(ident("Self").into(), fields, None);
        let mut function: syn::ImplItemFn = parse_quote!(
            fn default() -> Self {}
        );
        function.block.stmts.push(syn::Stmt::Expr(value, None));
        let mut item: syn::ItemImpl = parse_quote!(impl ::std::default::Default for #name {});
        item.items.push(syn::ImplItem::Fn(function));
        RustItem::code(syn::Item::Impl(item))
    }

    pub(super) fn fields(
        &mut self,
        body: &StructShape,
        names: &FieldNames,
        docs: &ShapeDocs,
        owner: FieldOwner,
    ) -> Vec<RustField> {
        let none = FieldDocs::default();
        let mut fields = Vec::new();
        for (index, (field, name)) in body.fields.iter().zip(&names.list).enumerate() {
            let docs = docs.fields.get(index).unwrap_or(&none);
            fields.push(self.field(field, name, docs, owner));
        }
        if let (Some(rest), Some(name)) = (&body.rest, &names.other) {
            let mut serde = vec![SerdeArgument::Flatten];
            if owner == FieldOwner::Root {
                self.undeclared = true;
                serde.push(SerdeArgument::DeserializeWith(ident("undeclared")));
            }
            fields.push(RustField {
                docs: vec!["Members that the schema does not declare.".to_owned()],
                serde,
                name: ident(name.as_str()),
                ty: self.ty(rest).map(),
            });
        }
        fields
    }

    fn field(
        &mut self,
        field: &StructField,
        member: &NamedMember<RustIdent>,
        docs: &FieldDocs,
        owner: FieldOwner,
    ) -> RustField {
        let optional = self.defaults.is_optional(field);
        let name = &member.rust;
        let mut serde = Vec::new();
        if member.is_renamed {
            serde.push(SerdeArgument::Rename(field.json.clone()));
        }
        if optional {
            // By default, serde reads null as an absent value.
            if self.defaults.null_differs(field) || field.ty == Ty::Json {
                self.nullable = true;
                if owner != FieldOwner::Defaulted {
                    serde.push(SerdeArgument::Default);
                }
                serde.push(SerdeArgument::DeserializeWith(ident("present")));
            }
            if owner != FieldOwner::Root {
                serde.push(SerdeArgument::SkipNone);
            }
        } else if owner != FieldOwner::Defaulted
            && let Some(initial) = self.defaults.of_field(field)
        {
            let function = self.functions.name(field);
            let function = function.filter(|_| initial != DefaultValue::Default);
            serde.push(match function {
                Some(function) => SerdeArgument::DefaultFrom(ident(function.as_str())),
                None => SerdeArgument::Default,
            });
        }
        let ty = self.defaults.field_type(field, self.ty(&field.ty));
        // A description that the type repeats is printed there only.
        let text = match self.described(&field.ty) {
            Some(text) if text == docs.text => "",
            _ => &docs.text,
        };
        RustField {
            docs: doc_comments::lines(text, &docs.limits),
            serde,
            name: ident(name.as_str()),
            ty,
        }
    }

    fn builder(&self, name: &syn::Ident, body: &StructShape, names: &FieldNames) -> RustItem {
        let mut setters: Vec<syn::ImplItem> = Vec::new();
        for (field, field_name) in body.fields.iter().zip(names.rust()) {
            let base = self.ty(&field.ty);
            let optional = self.defaults.is_optional(field);
            let ty = if field.nullable && (!optional || self.defaults.null_differs(field)) {
                base.optional()
            } else {
                base
            };
            let value: Expr = if optional {
                parse_quote!(::std::option::Option::Some(value.into()))
            } else {
                parse_quote!(value.into())
            };
            let stem = field_name.bare().trim_start_matches('_');
            let setter = ident(&format!("with_{stem}"));
            let doc = format!(" Sets `{field_name}`.");
            let field_name = ident(field_name.as_str());
            setters.push(parse_quote! {
                #[doc = #doc]
                #[must_use]
                pub fn #setter(mut self, value: impl ::std::convert::Into<#ty>) -> Self {
                    self.#field_name = #value;
                    self
                }
            });
        }
        RustItem::code(parse_quote!(impl #name { #(#setters)* }))
    }

    /// The description of a field's type, if that is generated.
    fn described(&self, ty: &Ty) -> Option<&str> {
        match ty {
            Ty::Shape(id) => Some(&self.resource.shapes.docs(*id).text),
            _ => None,
        }
    }

    /// The value of a field in a written-out `Default`.
    fn field_default(&mut self, field: &StructField, owner: FieldOwner) -> Expr {
        if self.defaults.is_optional(field) {
            return parse_quote!(::std::option::Option::None);
        }
        match self.defaults.of_field(field) {
            Some(DefaultValue::Default) | None if field.nullable => {
                parse_quote!(::std::option::Option::None)
            }
            Some(DefaultValue::Default) | None => {
                parse_quote!(::std::default::Default::default())
            }
            Some(initial) => match self.functions.name(field) {
                Some(function) if owner != FieldOwner::Defaulted => {
                    let function = ident(function.as_str());
                    parse_quote!(#function())
                }
                _ => self.value(&initial),
            },
        }
    }
}

/// The serde arguments of a type whose members follow this rule.
pub(super) fn container(rule: RenameRule) -> Vec<SerdeArgument> {
    rule.name()
        .map(SerdeArgument::RenameAll)
        .into_iter()
        .collect()
}
