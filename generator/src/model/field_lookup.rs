//! Finds the Rust type of a field by its path.

use super::common_modules::CommonModule;
use super::default_values::Defaults;
use super::generated_types::{FieldPresence, ShapeBody, StructField, StructShape, Ty};
use super::identifier::TypeName;
use super::k8s_types;
use super::resource::{CustomResource, TypedVersion};
use crate::rust::{RustPath, RustType};

/// The type of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedField {
    /// The type, without `Option`.
    pub rust: RustType,
    /// Whether the value, or anything on the path to it, may be absent or null.
    pub optional: bool,
    /// Whether it is untyped JSON.
    pub json: bool,
}

/// There is no such field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no field `{name}` in `{parent}`")]
pub struct UnknownField {
    /// The part of the path that was not found.
    pub name: String,
    /// The path before it; empty for the object itself.
    pub parent: String,
    /// The most similar names, best first.
    pub similar: Vec<String>,
}

/// The number of similar names to offer.
const MAX_SUGGESTIONS: usize = 3;

impl CustomResource {
    /// The path of a type of a version in the crate of an operator.
    #[must_use]
    pub fn type_path(&self, version: &TypedVersion, name: &TypeName) -> RustPath {
        let (module, version) = (self.module.as_str(), version.module.as_str());
        CommonModule::Types.path(&[module, version, name.as_str()])
    }

    /// The type at a path such as `["spec", "size"]`.
    ///
    /// # Errors
    ///
    /// If the schema does not allow such a field.
    pub fn field(
        &self,
        version: &TypedVersion,
        path: &[&str],
    ) -> Result<ResolvedField, UnknownField> {
        let mut walk = FieldWalk {
            resource: self,
            version,
            optional: false,
        };
        let mut here = None;
        for (index, name) in path.iter().enumerate() {
            let next = match &here {
                None => walk.in_root(name),
                Some(ty) => walk.inside(ty, name),
            };
            here = Some(next.map_err(|names| UnknownField {
                name: (*name).to_owned(),
                parent: path[..index].join("."),
                similar: similar(name, &names),
            })?);
        }
        let (rust, json) = match here {
            None => {
                let root = self.type_path(version, &self.type_name);
                (RustType::named(root), false)
            }
            Some(ty) => {
                let shape = |id| self.type_path(version, version.type_names.of(id));
                (ty.rust(&shape), ty == Ty::Json)
            }
        };
        Ok(ResolvedField {
            rust,
            optional: walk.optional,
            json,
        })
    }
}

/// Follows a path from the root of an object.
struct FieldWalk<'a> {
    resource: &'a CustomResource,
    version: &'a TypedVersion,
    optional: bool,
}

impl FieldWalk<'_> {
    fn in_root(&mut self, name: &str) -> Result<Ty, Vec<String>> {
        match name {
            "apiVersion" | "kind" => Ok(Ty::String),
            "metadata" => Ok(k8s_types::OBJECT_META.ty()),
            _ => {
                let mut found = self.member(&self.version.root.body, name);
                if let Err(names) = &mut found {
                    names.push("metadata".to_owned());
                }
                found
            }
        }
    }

    fn inside(&mut self, ty: &Ty, name: &str) -> Result<Ty, Vec<String>> {
        match ty {
            Ty::Json => {
                self.optional = true;
                Ok(Ty::Json)
            }
            Ty::Map(values) => {
                self.optional = true;
                Ok((**values).clone())
            }
            Ty::Nullable(inner) => {
                self.optional = true;
                self.inside(inner, name)
            }
            Ty::Existing(known) if k8s_types::RAW_EXTENSION.is(known) => {
                self.optional = true;
                Ok(Ty::Json)
            }
            Ty::Existing(known) => match k8s_types::member(known, name) {
                Ok((ty, optional)) => {
                    self.optional |= optional;
                    Ok(ty)
                }
                Err(names) => Err(names.into_iter().map(str::to_owned).collect()),
            },
            Ty::Shape(id) => match self.resource.shapes.body(*id) {
                ShapeBody::Struct(body) => self.member(body, name),
                ShapeBody::Union(members) => {
                    self.optional = true;
                    let found = members.iter().find(|(json, _)| json == name);
                    found
                        .map(|(_, ty)| ty.clone())
                        .ok_or_else(|| members.iter().map(|(json, _)| json.clone()).collect())
                }
                ShapeBody::Alias(ty) => self.inside(ty, name),
                _ => Err(Vec::new()),
            },
            _ => Err(Vec::new()),
        }
    }

    fn member(&mut self, body: &StructShape, name: &str) -> Result<Ty, Vec<String>> {
        if let Some(field) = body.fields.iter().find(|field| field.json == name) {
            self.optional |= self.may_be_absent(field);
            return Ok(field.ty.clone());
        }
        match &body.rest {
            Some(rest) => {
                self.optional = true;
                Ok(rest.clone())
            }
            None => Err(body.fields.iter().map(|field| field.json.clone()).collect()),
        }
    }

    fn may_be_absent(&self, field: &StructField) -> bool {
        let defaults = Defaults::new(&self.resource.shapes);
        field.nullable || (field.presence != FieldPresence::Required && defaults.is_optional(field))
    }
}

/// The names that are most similar to a wrong one.
fn similar(name: &str, names: &[String]) -> Vec<String> {
    let mut ranked: Vec<(usize, &String)> = names
        .iter()
        .map(|other| (distance(&name.to_lowercase(), &other.to_lowercase()), other))
        .filter(|(distance, other)| *distance <= name.len().max(other.len()) / 3 + 1)
        .collect();
    ranked.sort();
    ranked
        .into_iter()
        .take(MAX_SUGGESTIONS)
        .map(|(_, name)| name.clone())
        .collect()
}

/// The Levenshtein distance.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}
