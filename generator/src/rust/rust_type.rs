//! Rust types that own their values, with full paths.

use std::fmt;
use std::sync::LazyLock;

use super::path::{RustPath, names_item};

/// A type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RustType {
    /// A named type with its generic arguments.
    Path(RustPath, Vec<TypeArgument>),
    /// `(A, B)`.
    Tuple(Vec<RustType>),
    /// `[T; 4]`.
    Array(Box<RustType>, u64),
}

/// A generic argument.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeArgument {
    /// A type.
    Type(RustType),
    /// A lifetime, without its quote.
    Lifetime(String),
}

/// The text is not a type, or not one that owns its values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARustType {
    /// It is not a type.
    #[error("it is not a Rust type")]
    Syntax,
    /// It is a reference, a function or another type that is not named.
    #[error("only paths, tuples and arrays can be types of members")]
    Unsupported,
}

// The types of most fields.
static JSON: LazyLock<RustPath> = LazyLock::new(|| RustPath::external("serde_json::Value"));
static MAP: LazyLock<RustPath> = LazyLock::new(|| RustPath::external("std::collections::BTreeMap"));
static OPTION: LazyLock<RustPath> = LazyLock::new(|| RustPath::external("Option"));
static STRING: LazyLock<RustPath> = LazyLock::new(|| RustPath::external("String"));
static VEC: LazyLock<RustPath> = LazyLock::new(|| RustPath::external("Vec"));

// === impl RustType ===

impl RustType {
    /// A type without generic arguments: `std::time::Duration`, or `String` of the prelude.
    #[must_use]
    pub fn external(path: &str) -> Self {
        Self::named(RustPath::external(path))
    }

    /// A primitive type.
    #[must_use]
    pub fn primitive(name: &'static str) -> Self {
        Self::named(RustPath::local(name))
    }

    /// A type without generic arguments.
    #[must_use]
    pub const fn named(path: RustPath) -> Self {
        Self::Path(path, Vec::new())
    }

    /// An external type with these arguments.
    #[must_use]
    pub fn generic(path: &str, arguments: impl IntoIterator<Item = Self>) -> Self {
        let arguments = arguments.into_iter().map(TypeArgument::Type).collect();
        Self::Path(RustPath::external(path), arguments)
    }

    /// `String`.
    #[must_use]
    pub fn string() -> Self {
        Self::named(STRING.clone())
    }

    /// `Option<Self>`.
    #[must_use]
    pub fn optional(self) -> Self {
        Self::Path(OPTION.clone(), vec![TypeArgument::Type(self)])
    }

    /// `Vec<Self>`.
    #[must_use]
    pub fn list(self) -> Self {
        Self::Path(VEC.clone(), vec![TypeArgument::Type(self)])
    }

    /// `BTreeMap<String, Self>`.
    #[must_use]
    pub fn map(self) -> Self {
        let arguments = [Self::string(), self].map(TypeArgument::Type);
        Self::Path(MAP.clone(), arguments.into())
    }

    /// `serde_json::Value`.
    #[must_use]
    pub fn json() -> Self {
        Self::named(JSON.clone())
    }

    /// Reads a type.
    ///
    /// # Errors
    /// If it is not a type, or not one that owns its values.
    pub fn parse(text: &str) -> Result<Self, NotARustType> {
        let parsed: syn::Type = syn::parse_str(text).map_err(|_| NotARustType::Syntax)?;
        Self::of_syntax(&parsed)
    }

    /// The type of a syntax tree.
    ///
    /// # Errors
    /// If it is not a type that owns its values.
    pub fn of_syntax(parsed: &syn::Type) -> Result<Self, NotARustType> {
        match parsed {
            syn::Type::Path(path) if path.qself.is_none() => {
                if !names_item(&path.path) {
                    return Err(NotARustType::Syntax);
                }
                let arguments = path.path.segments.last().map(|last| &last.arguments);
                let inner_arguments = path.path.segments.iter().rev().skip(1);
                if inner_arguments
                    .into_iter()
                    .any(|it| !it.arguments.is_none())
                {
                    return Err(NotARustType::Unsupported);
                }
                let arguments = match arguments {
                    Some(syn::PathArguments::AngleBracketed(list)) => list
                        .args
                        .iter()
                        .map(TypeArgument::of_syntax)
                        .collect::<Result<_, _>>()?,
                    Some(syn::PathArguments::Parenthesized(_)) => {
                        return Err(NotARustType::Unsupported);
                    }
                    Some(syn::PathArguments::None) | None => Vec::new(),
                };
                Ok(Self::Path(RustPath::of_syntax(&path.path), arguments))
            }
            syn::Type::Tuple(tuple) => {
                let items = tuple.elems.iter().map(Self::of_syntax);
                items.collect::<Result<_, _>>().map(Self::Tuple)
            }
            syn::Type::Array(array) => Ok(Self::Array(
                Box::new(Self::of_syntax(&array.elem)?),
                length(&array.len).ok_or(NotARustType::Syntax)?,
            )),
            syn::Type::Paren(inner) => Self::of_syntax(&inner.elem),
            _ => Err(NotARustType::Unsupported),
        }
    }

    /// Visits the paths in it, outermost first.
    pub fn for_each_path<'t>(&'t self, visit: &mut impl FnMut(&'t RustPath)) {
        match self {
            Self::Path(path, arguments) => {
                visit(path);
                for argument in arguments {
                    if let TypeArgument::Type(ty) = argument {
                        ty.for_each_path(visit);
                    }
                }
            }
            Self::Tuple(items) => items.iter().for_each(|item| item.for_each_path(visit)),
            Self::Array(item, _) => item.for_each_path(visit),
        }
    }

    /// The same type with other paths.
    #[must_use]
    pub fn map_paths(&self, change: &mut impl FnMut(&RustPath) -> RustPath) -> Self {
        match self {
            Self::Path(path, arguments) => {
                let path = change(path);
                let arguments = arguments.iter().map(|argument| match argument {
                    TypeArgument::Type(ty) => TypeArgument::Type(ty.map_paths(change)),
                    TypeArgument::Lifetime(name) => TypeArgument::Lifetime(name.clone()),
                });
                Self::Path(path, arguments.collect())
            }
            Self::Tuple(items) => {
                Self::Tuple(items.iter().map(|item| item.map_paths(change)).collect())
            }
            Self::Array(item, length) => Self::Array(Box::new(item.map_paths(change)), *length),
        }
    }

    /// Whether it borrows for some lifetime.
    #[must_use]
    pub fn has_lifetime(&self) -> bool {
        match self {
            Self::Path(_, arguments) => arguments.iter().any(|argument| match argument {
                TypeArgument::Type(ty) => ty.has_lifetime(),
                TypeArgument::Lifetime(_) => true,
            }),
            Self::Tuple(items) => items.iter().any(Self::has_lifetime),
            Self::Array(item, _) => item.has_lifetime(),
        }
    }

    /// The path, if it is a named type.
    #[must_use]
    pub const fn path(&self) -> Option<&RustPath> {
        match self {
            Self::Path(path, _) => Some(path),
            Self::Tuple(_) | Self::Array(..) => None,
        }
    }

    /// Whether it is this external type, or this primitive, with any arguments.
    #[must_use]
    pub fn is(&self, path: &str) -> bool {
        self.path() == Some(&RustPath::external(path))
            || self.path() == Some(&RustPath::local(path))
    }

    /// The type for messages: with the last name of each path only.
    #[must_use]
    pub fn short(&self) -> String {
        self.print(&mut |path| path.name().to_owned())
    }

    /// The type as text, with this text for each path.
    pub fn print(&self, path_text: &mut impl FnMut(&RustPath) -> String) -> String {
        match self {
            Self::Path(path, arguments) if arguments.is_empty() => path_text(path),
            Self::Path(path, arguments) => {
                let path = path_text(path);
                let arguments = arguments.iter().map(|argument| match argument {
                    TypeArgument::Type(ty) => ty.print(path_text),
                    TypeArgument::Lifetime(name) => format!("'{name}"),
                });
                format!("{path}<{}>", arguments.collect::<Vec<_>>().join(", "))
            }
            Self::Tuple(items) => {
                let comma = if items.len() == 1 { "," } else { "" };
                let items = items.iter().map(|item| item.print(path_text));
                format!("({}{comma})", items.collect::<Vec<_>>().join(", "))
            }
            Self::Array(item, length) => format!("[{}; {length}]", item.print(path_text)),
        }
    }
}

impl TypeArgument {
    fn of_syntax(argument: &syn::GenericArgument) -> Result<Self, NotARustType> {
        match argument {
            syn::GenericArgument::Type(ty) => RustType::of_syntax(ty).map(Self::Type),
            syn::GenericArgument::Lifetime(it) => Ok(Self::Lifetime(it.ident.to_string())),
            _ => Err(NotARustType::Unsupported),
        }
    }
}

fn length(expression: &syn::Expr) -> Option<u64> {
    match expression {
        syn::Expr::Lit(syn::ExprLit {
            lit: syn::Lit::Int(number),
            ..
        }) => number.base10_parse().ok(),
        _ => None,
    }
}

impl fmt::Display for RustType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.print(&mut RustPath::to_string))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_prelude_are_the_same_with_and_without_their_paths() {
        let plain = RustType::parse("Option<Vec<String>>");
        let full = RustType::parse("std::option::Option<std::vec::Vec<std::string::String>>");
        assert_eq!(plain, full);
        assert_eq!(
            plain.map(|ty| ty.to_string()).as_deref(),
            Ok("Option<Vec<String>>")
        );
    }

    #[test]
    fn types_that_borrow_are_refused() {
        for text in [
            "&str",
            "dyn Fn()",
            "impl Send",
            "fn(u8)",
            "[u8]",
            "<A as B>::C",
        ] {
            assert_eq!(
                RustType::parse(text),
                Err(NotARustType::Unsupported),
                "{text}"
            );
        }
        assert_eq!(RustType::parse("Vec<"), Err(NotARustType::Syntax));
    }

    #[test]
    fn types_are_printed_as_they_are_written() {
        for text in [
            "(u8,)",
            "()",
            "[u8; 4]",
            "std::borrow::Cow<'static, str>",
            "crate::handlers::PodInfo",
            "super::super::a::B",
        ] {
            let parsed = RustType::parse(text).map(|ty| ty.to_string());
            assert_eq!(parsed.as_deref(), Ok(text));
        }
    }
}
