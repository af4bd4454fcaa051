//! Default values as Rust expressions.

use proc_macro2::{Literal, Span};
use syn::{Expr, parse_quote};

use super::expression::construct;
use super::literal;
use super::version_writer::VersionWriter;
use crate::model::default_values::DefaultValue;
use crate::model::generated_types::ShapeId;
use crate::model::lints;
use crate::rust::ident;

impl VersionWriter<'_> {
    /// The expression for a value.
    pub(super) fn value(&mut self, initial: &DefaultValue) -> Expr {
        match initial {
            DefaultValue::Default => parse_quote!(::std::default::Default::default()),
            DefaultValue::Bool(value) => parse_quote!(#value),
            DefaultValue::Int(value) => integer(*value),
            DefaultValue::Float(value) => {
                self.constants |= lints::resembles_constant(*value);
                float(*value)
            }
            DefaultValue::String(text) => parse_quote!(#text.to_owned()),
            DefaultValue::Json(json) => literal::json(json),
            DefaultValue::Vec(items) => {
                let items: Vec<Expr> = items.iter().map(|item| self.value(item)).collect();
                parse_quote!(vec![#(#items),*])
            }
            DefaultValue::Map(entries) => {
                let entries: Vec<Expr> = entries
                    .iter()
                    .map(|(key, value)| {
                        let value = self.value(value);
                        parse_quote!((#key.to_owned(), #value))
                    })
                    .collect();
                parse_quote!(::std::collections::BTreeMap::from([#(#entries),*]))
            }
            DefaultValue::Variant(id, index) => {
                let name = ident(self.version.type_names.of(*id).as_str());
                let variants = &self.resource.shapes.variant_names(*id).list;
                let variant = ident(variants[*index].rust.as_str());
                parse_quote!(#name::#variant)
            }
            DefaultValue::IntOrString(ty, inner) => {
                let variant = if matches!(**inner, DefaultValue::Int(_)) {
                    ident("Int")
                } else {
                    ident("String")
                };
                let (ty, value) = (self.ty(ty), self.value(inner));
                parse_quote!(#ty::#variant(#value))
            }
            DefaultValue::Wrapped(ty, text) => {
                let ty = self.ty(ty);
                parse_quote!(#ty(#text.to_owned()))
            }
            DefaultValue::Struct {
                shape,
                fields,
                partial,
            } => self.struct_value(*shape, fields, *partial),
            DefaultValue::Some(inner) => {
                let value = self.value(inner);
                parse_quote!(::std::option::Option::Some(#value))
            }
            DefaultValue::None => parse_quote!(::std::option::Option::None),
        }
    }

    fn struct_value(
        &mut self,
        id: ShapeId,
        given: &[(usize, DefaultValue)],
        partial: bool,
    ) -> Expr {
        let names = &self.resource.shapes.field_names(id).list;
        let name = ident(self.version.type_names.of(id).as_str());
        let fields: Vec<(syn::Ident, Expr)> = given
            .iter()
            .map(|(index, value)| (ident(names[*index].rust.as_str()), self.value(value)))
            .collect();
        let base = partial.then(|| parse_quote!(::std::default::Default::default()));
        construct(name.into(), fields, base)
    }
}

/// An integer; a negative one is a minus and a literal.
pub(super) fn integer(value: i64) -> Expr {
    let literal = Literal::u64_unsuffixed(value.unsigned_abs());
    if value < 0 {
        parse_quote!(-#literal)
    } else {
        parse_quote!(#literal)
    }
}

fn float(value: f64) -> Expr {
    // The debug form is the shortest text that reads back as the same number.
    let text = format!("{:?}", value.abs());
    let literal = syn::LitFloat::new(&text, Span::call_site());
    if value.is_sign_negative() {
        parse_quote!(-#literal)
    } else {
        parse_quote!(#literal)
    }
}
