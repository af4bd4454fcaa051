//! Types that keep what the types of `k8s-openapi` would change, with conversions between the two.

use syn::parse_quote;

use super::version_writer::{
    CLONE, DEBUG, DEFAULT, DESERIALIZE, EQ, PARTIAL_EQ, SERIALIZE, VersionWriter,
};
use crate::model::identifier::TypeName;
use crate::rust::{
    RustEnum, RustItem, RustNewtype, RustPath, RustType, RustVariant, SerdeArgument, ident,
};

/// The derives of a time or a duration.
const TEXT_DERIVES: &[&str] = &[
    CLONE,
    DEBUG,
    DEFAULT,
    PARTIAL_EQ,
    EQ,
    DESERIALIZE,
    SERIALIZE,
];

/// The times of `k8s-openapi`: with whole seconds, and with microseconds.
const TIMES: [&str; 2] = [
    "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time",
    "k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime",
];

impl VersionWriter<'_> {
    /// A time, with its conversions.
    pub(super) fn time(&self, name: &TypeName, more: &[RustPath]) -> Vec<RustItem> {
        let name = ident(name.as_str());
        let item = RustItem::Newtype(RustNewtype {
            docs: vec!["A time as in RFC 3339, unchanged by a round trip.".to_owned()],
            derives: self.derives(TEXT_DERIVES, more),
            name: name.clone(),
            value: RustType::string(),
        });
        let conversions = TIMES.map(RustPath::external).into_iter().flat_map(|time| {
            [
                parse_quote! {
                    impl ::std::convert::From<#time> for #name {
                        fn from(time: #time) -> Self {
                            Self(time.0.to_string())
                        }
                    }
                },
                parse_quote! {
                    impl ::std::convert::TryFrom<#name> for #time {
                        type Error = ::k8s_openapi::jiff::Error;

                        fn try_from(time: #name) -> ::std::result::Result<Self, Self::Error> {
                            time.0.parse().map(Self)
                        }
                    }
                },
            ]
        });
        std::iter::once(item)
            .chain(conversions.map(RustItem::code))
            .collect()
    }

    /// A duration, with its conversions.
    pub(super) fn duration(&self, name: &TypeName, more: &[RustPath]) -> Vec<RustItem> {
        let name = ident(name.as_str());
        let item = RustItem::Newtype(RustNewtype {
            docs: vec!["A duration such as `1h30m`, unchanged by a round trip.".to_owned()],
            derives: self.derives(TEXT_DERIVES, more),
            name: name.clone(),
            value: RustType::string(),
        });
        // The type here has the name of the one of std, which is never imported.
        vec![
            item,
            RustItem::code(parse_quote! {
                impl ::std::convert::From<::std::time::Duration> for #name {
                    fn from(duration: ::std::time::Duration) -> Self {
                        Self(format!("{duration:?}"))
                    }
                }
            }),
            RustItem::code(parse_quote! {
                impl ::std::convert::TryFrom<#name> for ::std::time::Duration {
                    type Error = ::k8s_openapi::jiff::Error;

                    fn try_from(duration: #name) -> ::std::result::Result<Self, Self::Error> {
                        let signed: ::k8s_openapi::jiff::SignedDuration = duration.0.parse()?;
                        signed.try_into()
                    }
                }
            }),
        ]
    }

    /// A quantity that may also be a number, with its conversions.
    pub(super) fn quantity(&self, name: &TypeName, derives: Vec<RustPath>) -> Vec<RustItem> {
        let doc =
            "A quantity such as `500m` or `2Gi`, or a bare number, unchanged by a round trip.";
        let item = number_or_text(name, doc, derives);
        let name = ident(name.as_str());
        let quantity =
            RustPath::external("k8s_openapi::apimachinery::pkg::api::resource::Quantity");
        vec![
            item,
            RustItem::code(parse_quote! {
                impl ::std::convert::From<#name> for #quantity {
                    fn from(quantity: #name) -> Self {
                        match quantity {
                            #name::Int(number) => Self(number.to_string()),
                            #name::String(text) => Self(text),
                        }
                    }
                }
            }),
            RustItem::code(parse_quote! {
                impl ::std::convert::From<#quantity> for #name {
                    fn from(quantity: #quantity) -> Self {
                        Self::String(quantity.0)
                    }
                }
            }),
        ]
    }

    /// A number or a string, with its conversions.
    pub(super) fn int_or_string(&self, name: &TypeName, derives: Vec<RustPath>) -> Vec<RustItem> {
        let doc = "A number or a string, such as a port or a percentage.";
        let item = number_or_text(name, doc, derives);
        let name = ident(name.as_str());
        let other = RustPath::external("k8s_openapi::apimachinery::pkg::util::intstr::IntOrString");
        vec![
            item,
            RustItem::code(parse_quote! {
                impl ::std::convert::From<#other> for #name {
                    fn from(value: #other) -> Self {
                        match value {
                            #other::Int(number) => Self::Int(number.into()),
                            #other::String(text) => Self::String(text),
                        }
                    }
                }
            }),
            RustItem::code(parse_quote! {
                impl ::std::convert::TryFrom<#name> for #other {
                    type Error = ::std::num::TryFromIntError;

                    fn try_from(value: #name) -> ::std::result::Result<Self, Self::Error> {
                        match value {
                            #name::Int(number) => {
                                ::std::result::Result::Ok(Self::Int(number.try_into()?))
                            }
                            #name::String(text) => ::std::result::Result::Ok(Self::String(text)),
                        }
                    }
                }
            }),
        ]
    }
}

/// The conversions between a struct and the one of `k8s-openapi` for which it stands.
pub(super) fn conversions(name: &syn::Ident, other: &RustType) -> [RustItem; 2] {
    let here = RustType::named(RustPath::local(&name.to_string()));
    [(&here, other), (other, &here)].map(|(from, into)| {
        RustItem::code(parse_quote! {
            impl ::std::convert::TryFrom<#from> for #into {
                type Error = ::serde_json::Error;

                fn try_from(value: #from) -> ::std::result::Result<Self, Self::Error> {
                    ::serde_json::from_value(::serde_json::to_value(value)?)
                }
            }
        })
    })
}

/// The `Default` of a quantity.
pub(super) fn empty_text(name: &TypeName) -> RustItem {
    let name = ident(name.as_str());
    RustItem::code(parse_quote! {
        impl ::std::default::Default for #name {
            fn default() -> Self {
                Self::String(::std::string::String::new())
            }
        }
    })
}

/// The `Default` of a number or a text.
pub(super) fn zero(name: &TypeName) -> RustItem {
    let name = ident(name.as_str());
    RustItem::code(parse_quote! {
        impl ::std::default::Default for #name {
            fn default() -> Self {
                Self::Int(0)
            }
        }
    })
}

/// An enum of a number and a text.
fn number_or_text(name: &TypeName, doc: &str, derives: Vec<RustPath>) -> RustItem {
    let variant = |name: &str, value: RustType| RustVariant {
        docs: Vec::new(),
        serde: Vec::new(),
        name: ident(name),
        value: Some(value),
    };
    RustItem::Enum(RustEnum {
        docs: vec![doc.to_owned()],
        derives,
        serde: vec![SerdeArgument::Untagged],
        allowed: Vec::new(),
        name: ident(name.as_str()),
        variants: vec![
            variant("Int", RustType::primitive("i64")),
            variant("String", RustType::external("String")),
        ],
    })
}
