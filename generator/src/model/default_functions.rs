//! The functions that return the defaults of fields: which fields have one, and its name.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::default_values::{DefaultImpl, DefaultValue, Defaults};
use super::generated_types::{FieldPresence, ShapeBody, StructField, StructShape, Ty};
use super::identifier::RustIdent;
use super::member_names::FieldNames;
use super::resource::{CustomResource, TypedVersion};

/// The functions of one version.
#[derive(Debug, Default)]
pub struct DefaultFunctions {
    list: Vec<DefaultFunction>,
    index: FxHashMap<DefaultKey, usize>,
}

/// A function that returns the default of fields.
#[derive(Clone, Debug)]
pub struct DefaultFunction {
    /// Its name.
    pub name: RustIdent,
    /// The type of the fields, without `Option`.
    pub ty: Ty,
    /// Whether the fields may be null.
    pub nullable: bool,
    /// The default.
    pub value: DefaultValue,
}

/// Fields of one type share a function if they have the same default, as compact JSON.
type DefaultKey = (Ty, bool, String);

// === impl DefaultFunctions ===

impl DefaultFunctions {
    /// The functions for the types that a version defines.
    #[must_use]
    pub fn new(resource: &CustomResource, version: &TypedVersion, defaults: &Defaults<'_>) -> Self {
        let mut functions = Self::default();
        let mut taken = BTreeSet::new();
        let root = &version.root;
        functions.add(&root.body, &root.names, defaults, &mut taken);
        for (id, _) in &version.type_names.defined {
            if let ShapeBody::Struct(body) = resource.shapes.body(*id)
                && !is_filled(body, defaults.of_shape(*id))
            {
                let names = resource.shapes.field_names(*id);
                functions.add(body, names, defaults, &mut taken);
            }
        }
        functions
    }

    fn add(
        &mut self,
        body: &StructShape,
        names: &FieldNames,
        defaults: &Defaults<'_>,
        taken: &mut BTreeSet<RustIdent>,
    ) {
        for (field, name) in body.fields.iter().zip(names.rust()) {
            let Some(key) = key(field).filter(|key| !self.index.contains_key(key)) else {
                continue;
            };
            let Some(value) = defaults.of_field(field) else {
                continue;
            };
            if value != DefaultValue::Default {
                let name = RustIdent::unique(&format!("default_{}", name.bare()), taken);
                self.index.insert(key, self.list.len());
                self.list.push(DefaultFunction {
                    name,
                    ty: field.ty.clone(),
                    nullable: field.nullable,
                    value,
                });
            }
        }
    }

    /// The name of the function for a field; none if the field has no default, or that of its type.
    #[must_use]
    pub fn name(&self, field: &StructField) -> Option<&RustIdent> {
        let index = self.index.get(&key(field)?)?;
        Some(&self.list[*index].name)
    }

    /// All functions, by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<&DefaultFunction> {
        let mut list: Vec<&DefaultFunction> = self.list.iter().collect();
        list.sort_by(|one, other| one.name.cmp(&other.name));
        list
    }
}

fn key(field: &StructField) -> Option<DefaultKey> {
    match &field.presence {
        FieldPresence::Default(json) => Some((field.ty.clone(), field.nullable, json.clone())),
        FieldPresence::Required | FieldPresence::Optional => None,
    }
}

/// Whether the `Default` of a struct fills in every field that is left out, so that its fields need
/// no functions.
#[must_use]
pub fn is_filled(body: &StructShape, default: DefaultImpl) -> bool {
    let mut fields = body.fields.iter();
    let may_be_empty = fields.all(|field| field.presence != FieldPresence::Required);
    default == DefaultImpl::Written && may_be_empty
}
