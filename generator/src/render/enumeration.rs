//! Enums: of strings, of integers, of alternative members and of alternative types.

use syn::parse_quote;

use super::default_value::integer;
use super::doc_comments;
use super::structure::container;
use super::version_writer::{
    CLONE, COPY, DEBUG, DEFAULT, DESERIALIZE, EQ, PARTIAL_EQ, SERIALIZE, VersionWriter,
};
use crate::model::generated_types::{Shape, ShapeDocs, Ty};
use crate::model::identifier::TypeName;
use crate::model::lints;
use crate::model::member_names::{NamedMember, VariantNames};
use crate::rust::{
    Lint, RustEnum, RustItem, RustPath, RustType, RustVariant, SerdeArgument, ident,
};

/// The derives of an enum whose values have no content.
const PLAIN_DERIVES: &[&str] = &[CLONE, COPY, DEBUG, PARTIAL_EQ, EQ, DESERIALIZE, SERIALIZE];

/// The derives of an enum that keeps unknown texts.
const OPEN_DERIVES: &[&str] = &[CLONE, DEBUG, PARTIAL_EQ, EQ, DESERIALIZE, SERIALIZE];

/// The derives of an enum whose values have content of any type.
const CONTENT_DERIVES: &[&str] = &[CLONE, DEBUG, PARTIAL_EQ, DESERIALIZE, SERIALIZE];

/// The doc comment of the variant for other values.
const OTHER: &str = "A value that the schema does not list.";

/// The doc comment of the variant for an object with other members.
const OTHER_MEMBERS: &str = "An object with other members, or with another number of them.";

/// The doc comment of the variant for a value of another type.
const UNKNOWN: &str = "A value of another type than the schema lists.";

/// All values of the schema repeat a word.
const REPETITION: Lint = Lint {
    names: &["clippy::enum_variant_names"],
    reason: None,
};

impl VersionWriter<'_> {
    pub(super) fn string_enum(
        &mut self,
        values: &[String],
        names: &VariantNames,
        name: &TypeName,
        docs: &ShapeDocs,
        shape: &Shape,
    ) -> RustItem {
        let open = shape.is_open;
        let mut list: Vec<RustVariant> = names
            .list
            .iter()
            .zip(values)
            .map(|(name, text)| RustVariant {
                serde: renamed(name, text),
                ..plain(&name.rust)
            })
            .collect();
        let mut all: Vec<&TypeName> = names.rust().collect();
        if let Some(other) = names.other.as_ref().filter(|_| open) {
            list.push(RustVariant {
                docs: vec![OTHER.to_owned()],
                serde: vec![SerdeArgument::Untagged],
                name: ident(other.as_str()),
                value: Some(RustType::external("String")),
            });
            all.push(other);
        }
        let standard = if open { OPEN_DERIVES } else { PLAIN_DERIVES };
        RustItem::Enum(RustEnum {
            docs: doc_comments::lines::<&str>(&docs.text, &[]),
            derives: self.derives(standard, &shape.derives),
            serde: container(names.rule),
            allowed: repetition(name, &all),
            name: ident(name.as_str()),
            variants: list,
        })
    }

    pub(super) fn int_enum(
        &mut self,
        values: &[i64],
        names: &VariantNames,
        name: &TypeName,
        docs: &ShapeDocs,
        shape: &Shape,
    ) -> Vec<RustItem> {
        let open = shape.is_open;
        let mut list: Vec<RustVariant> = names.rust().map(plain).collect();
        let number = RustType::primitive("i64");
        if open {
            list.push(RustVariant {
                docs: vec![OTHER.to_owned()],
                serde: Vec::new(),
                name: ident("Other"),
                value: Some(number.clone()),
            });
        }
        let from = if open {
            SerdeArgument::From(number.clone())
        } else {
            SerdeArgument::TryFrom(number.clone())
        };
        let item = RustItem::Enum(RustEnum {
            docs: doc_comments::lines::<&str>(&docs.text, &[]),
            derives: self.derives(PLAIN_DERIVES, &shape.derives),
            serde: vec![from, SerdeArgument::Into(number)],
            allowed: Vec::new(),
            name: ident(name.as_str()),
            variants: list,
        });
        let [into, from] = int_conversions(values, name, names, open);
        vec![item, into, from]
    }

    pub(super) fn union(
        &mut self,
        members: &[(String, Ty)],
        names: &VariantNames,
        name: &TypeName,
        docs: &ShapeDocs,
        shape: &Shape,
    ) -> RustItem {
        let mut list = Vec::new();
        for (index, (variant, (json, ty))) in names.list.iter().zip(members).enumerate() {
            let member = docs.fields.get(index).cloned().unwrap_or_default();
            let value = self.ty(ty);
            // Boxed, because a member can be of any size.
            let value = match ty {
                Ty::Shape(_) | Ty::Existing(_) => RustType::generic("Box", [value]),
                _ => value,
            };
            list.push(RustVariant {
                docs: doc_comments::lines(&member.text, &member.limits),
                serde: renamed(variant, json),
                name: ident(variant.rust.as_str()),
                value: Some(value),
            });
        }
        let mut all: Vec<&TypeName> = names.rust().collect();
        if let Some(other) = names.other.as_ref().filter(|_| shape.is_open) {
            list.push(RustVariant {
                docs: vec![OTHER_MEMBERS.to_owned()],
                serde: vec![SerdeArgument::Untagged],
                name: ident(other.as_str()),
                value: Some(RustType::json().map()),
            });
            all.push(other);
        }
        RustItem::Enum(RustEnum {
            docs: doc_comments::lines::<&str>(&docs.text, &[]),
            derives: self.content_derives(shape),
            serde: container(names.rule),
            allowed: repetition(name, &all),
            name: ident(name.as_str()),
            variants: list,
        })
    }

    pub(super) fn untagged(
        &mut self,
        types: &[Ty],
        name: &TypeName,
        docs: &ShapeDocs,
        shape: &Shape,
    ) -> RustItem {
        let variants = types.iter().map(|ty| RustVariant {
            docs: Vec::new(),
            serde: Vec::new(),
            name: ident(untagged_name(ty)),
            value: Some(self.ty(ty)),
        });
        let unknown = shape.is_open.then(|| RustVariant {
            docs: vec![UNKNOWN.to_owned()],
            serde: Vec::new(),
            name: ident("Unknown"),
            value: Some(RustType::json()),
        });
        let variants = variants.chain(unknown).collect();
        RustItem::Enum(RustEnum {
            docs: doc_comments::lines::<&str>(&docs.text, &[]),
            derives: self.content_derives(shape),
            serde: vec![SerdeArgument::Untagged],
            allowed: Vec::new(),
            name: ident(name.as_str()),
            variants,
        })
    }

    /// The derives of an enum whose values have content, which has no default.
    fn content_derives(&self, shape: &Shape) -> Vec<RustPath> {
        self.without(DEFAULT, self.derives(CONTENT_DERIVES, &shape.derives))
    }
}

/// The conversions of an enum of integers, to and from a number.
fn int_conversions(
    values: &[i64],
    name: &TypeName,
    names: &VariantNames,
    open: bool,
) -> [RustItem; 2] {
    let name = ident(name.as_str());
    let variants: Vec<syn::Ident> = names.rust().map(|name| ident(name.as_str())).collect();
    let numbers: Vec<syn::Expr> = values.iter().map(|value| integer(*value)).collect();
    let other: Option<syn::Arm> = open.then(|| parse_quote!(#name::Other(number) => number,));
    let into = parse_quote! {
        impl ::std::convert::From<#name> for i64 {
            fn from(value: #name) -> Self {
                match value {
                    #(#name::#variants => #numbers,)*
                    #other
                }
            }
        }
    };
    let from = if open {
        parse_quote! {
            impl ::std::convert::From<i64> for #name {
                fn from(number: i64) -> Self {
                    match number {
                        #(#numbers => Self::#variants,)*
                        other => Self::Other(other),
                    }
                }
            }
        }
    } else {
        parse_quote! {
            impl ::std::convert::TryFrom<i64> for #name {
                type Error = ::std::string::String;

                fn try_from(number: i64) -> ::std::result::Result<Self, Self::Error> {
                    match number {
                        #(#numbers => ::std::result::Result::Ok(Self::#variants),)*
                        other => ::std::result::Result::Err(
                            format!("{other} is not one of the allowed values"),
                        ),
                    }
                }
            }
        }
    };
    [RustItem::code(into), RustItem::code(from)]
}

fn plain(name: &TypeName) -> RustVariant {
    RustVariant {
        docs: Vec::new(),
        serde: Vec::new(),
        name: ident(name.as_str()),
        value: None,
    }
}

fn renamed(member: &NamedMember<TypeName>, text: &str) -> Vec<SerdeArgument> {
    let rename = member
        .is_renamed
        .then(|| SerdeArgument::Rename(text.to_owned()));
    rename.into_iter().collect()
}

/// Silences clippy if all values of the schema repeat a word.
fn repetition(name: &TypeName, variants: &[&TypeName]) -> Vec<Lint> {
    let repeats = lints::repeats_a_word(name, variants);
    repeats.then_some(REPETITION).into_iter().collect()
}

fn untagged_name(ty: &Ty) -> &'static str {
    match ty {
        Ty::Bool => "Bool",
        Ty::Int(_) => "Int",
        Ty::Float => "Number",
        Ty::String => "String",
        Ty::Vec(_) => "List",
        Ty::Map(_) => "Map",
        _ => "Other",
    }
}
