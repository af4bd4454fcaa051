//! The items of a generated module. Paths in them are full; names are chosen when they are lowered.

use proc_macro2::Ident;

use super::path::RustPath;
use super::rust_type::RustType;

/// A module.
#[derive(Default)]
pub struct RustModule {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The lints that its content would trigger for a good reason.
    pub allowed: Vec<Lint>,
    /// Its path in the crate, if that is known.
    pub location: Vec<String>,
    /// Traits whose methods its code calls.
    pub traits: Vec<RustPath>,
    /// Its items.
    pub items: Vec<RustItem>,
}

/// A lint that is switched off, and the reason.
#[derive(Clone, Copy, Debug)]
pub struct Lint {
    /// The paths of the lints, with commas between them.
    pub names: &'static [&'static str],
    /// The reason.
    pub reason: Option<&'static str>,
}

/// An item of a module.
pub enum RustItem {
    /// A struct.
    Struct(RustStruct),
    /// An enum.
    Enum(RustEnum),
    /// A struct around one public value.
    Newtype(RustNewtype),
    /// Another name for a type.
    Alias(Ident, RustType),
    /// `pub use path as name;`.
    Reexport(RustPath, Ident),
    /// `pub mod name;`, or the whole module if it has a body.
    Module {
        /// The name.
        name: Ident,
        /// Whether rustfmt leaves it as it is.
        keeps_layout: bool,
        /// The body, unless that is in a file of its own.
        body: Option<RustModule>,
    },
    /// Any other item, in which each path is full: `::std::vec::Vec`, `crate::generated::order`.
    Code(Box<syn::Item>),
}

/// A struct with named fields.
#[derive(Clone, Debug)]
pub struct RustStruct {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The derived traits.
    pub derives: Vec<RustPath>,
    /// The arguments of its serde attribute.
    pub serde: Vec<SerdeArgument>,
    /// Its name.
    pub name: Ident,
    /// Its fields, all public.
    pub fields: Vec<RustField>,
}

/// A struct around one public value.
#[derive(Clone, Debug)]
pub struct RustNewtype {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The derived traits.
    pub derives: Vec<RustPath>,
    /// Its name.
    pub name: Ident,
    /// The type of the value.
    pub value: RustType,
}

/// A field of a struct.
#[derive(Clone, Debug)]
pub struct RustField {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The arguments of its serde attribute.
    pub serde: Vec<SerdeArgument>,
    /// Its name.
    pub name: Ident,
    /// Its type.
    pub ty: RustType,
}

/// An enum.
#[derive(Clone, Debug)]
pub struct RustEnum {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The derived traits; a derived `Default` is the first variant.
    pub derives: Vec<RustPath>,
    /// The arguments of its serde attribute.
    pub serde: Vec<SerdeArgument>,
    /// The lints that it would trigger for a good reason.
    pub allowed: Vec<Lint>,
    /// Its name.
    pub name: Ident,
    /// Its variants.
    pub variants: Vec<RustVariant>,
}

/// A variant of an enum.
#[derive(Clone, Debug)]
pub struct RustVariant {
    /// The lines of its doc comment, without slashes.
    pub docs: Vec<String>,
    /// The arguments of its serde attribute.
    pub serde: Vec<SerdeArgument>,
    /// Its name.
    pub name: Ident,
    /// The type of its value, if it has one.
    pub value: Option<RustType>,
}

/// An argument of a serde attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SerdeArgument {
    /// `rename = "text"`
    Rename(String),
    /// `rename_all = "rule"`
    RenameAll(&'static str),
    /// `default`
    Default,
    /// `default = "function"`, a function of the module.
    DefaultFrom(Ident),
    /// `deserialize_with = "function"`, a function of the module.
    DeserializeWith(Ident),
    /// `skip_serializing_if = "Option::is_none"`
    SkipNone,
    /// `flatten`
    Flatten,
    /// `untagged`
    Untagged,
    /// `from = "type"`
    From(RustType),
    /// `try_from = "type"`
    TryFrom(RustType),
    /// `into = "type"`
    Into(RustType),
}

// === impl RustItem ===

impl RustItem {
    /// An item that is given as a syntax tree.
    #[must_use]
    pub fn code(item: syn::Item) -> Self {
        Self::Code(Box::new(item))
    }
}
