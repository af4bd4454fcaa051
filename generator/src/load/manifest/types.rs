//! Reads `types` of a kind: options for the Rust types of its objects.

use std::collections::BTreeMap;

use schemars::JsonSchema;

use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::{OneOrMany, Spanned};
use crate::load::yaml::Node;

/// Options for the Rust types of a custom kind. A path such as `spec.rules[].match` is the type of a
/// field; `[]` stands for the items of a list or the values of a map.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "snake_case")]
pub struct TypesSection {
    /// When to use the types of k8s-openapi; `exact` if left out.
    pub builtin_types: Option<Spanned<BuiltinTypeUse>>,
    /// Whether enums hold values that the schema does not list, so that a later version of the
    /// definition cannot make objects unreadable; true if left out.
    pub open_enums: Option<Spanned<bool>>,
    /// Whether structs have a `with_…` method per field; false if left out.
    pub builders: Option<Spanned<bool>>,
    /// The names of types, by path.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub rename: Vec<TypeOption>,
    /// Other Rust types to use, by path, such as `k8s_openapi::jiff::Timestamp`.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub replace: Vec<TypeOption>,
    /// Further traits to derive for all types, such as `Hash`.
    pub derive: Option<OneOrMany<String>>,
    /// Further traits to derive, by path.
    #[schemars(with = "Option<BTreeMap<String, OneOrMany<String>>>")]
    pub derive_at: Vec<TypeOption>,
}

/// An option for the type at a path; a path with several values has several of them.
#[derive(Clone, Debug)]
pub struct TypeOption {
    /// The path.
    pub path: Spanned<String>,
    /// The name, the type or the trait.
    pub value: Spanned<String>,
}

/// When to use the types of k8s-openapi.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum BuiltinTypeUse {
    /// If every value that the schema allows is written as it was read.
    Exact,
    /// Also if values are normalised, as times and quantities are.
    Compatible,
    /// Never.
    None,
}

const BUILTIN_TYPES: &[(&str, BuiltinTypeUse)] = &[
    ("exact", BuiltinTypeUse::Exact),
    ("compatible", BuiltinTypeUse::Compatible),
    ("none", BuiltinTypeUse::None),
];

impl ManifestReader<'_> {
    pub(super) fn types(&mut self, node: &Node) -> Option<Spanned<TypesSection>> {
        let mut fields = self.fields(node, "`types`")?;
        let section = TypesSection {
            builtin_types: fields
                .optional("builtin_types")
                .and_then(|node| self.word(node, "`builtin_types`", BUILTIN_TYPES)),
            open_enums: self.boolean(&mut fields, "open_enums"),
            builders: self.boolean(&mut fields, "builders"),
            rename: self.type_options(&mut fields, "rename"),
            replace: self.type_options(&mut fields, "replace"),
            derive: fields.optional("derive").and_then(|node| {
                self.one_or_many(node, |reader, node| reader.string(node, "a trait"))
            }),
            derive_at: self.type_options(&mut fields, "derive_at"),
        };
        let span = fields.place();
        fields.finish(self);
        Some(Spanned {
            value: section,
            span,
        })
    }

    /// A mapping from paths to values.
    fn type_options(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Vec<TypeOption> {
        let Some(node) = fields.optional(key) else {
            return Vec::new();
        };
        let Some(entries) = node.as_map() else {
            self.wrong_type(node, &format!("`{key}`"), "a mapping from paths");
            return Vec::new();
        };
        let mut options = Vec::new();
        for entry in entries {
            let path = Spanned {
                value: entry.key.name.clone(),
                span: entry.key.span,
            };
            let values = match key {
                "derive_at" => {
                    self.one_or_many(&entry.value, |reader, node| reader.string(node, "a trait"))
                }
                _ => self
                    .string(&entry.value, &format!("a value of `{key}`"))
                    .map(OneOrMany::One),
            };
            let values = values.iter().flat_map(OneOrMany::as_slice);
            options.extend(values.map(|value| TypeOption {
                path: path.clone(),
                value: value.clone(),
            }));
        }
        options
    }
}
