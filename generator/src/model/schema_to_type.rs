//! Maps OpenAPI schemas to Rust types that hold every allowed value without loss.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::alternatives;
use super::generated_types::{
    ExistingType, FieldDocs, FieldPresence, PathStep, SchemaLocation, Shape, ShapeBody, ShapeDocs,
    Shapes, StructField, StructShape, Ty,
};
use super::k8s_types;
use super::member_names::FieldNames;
use super::scalar::{integer, is_int_or_string, nullable};
use super::type_complexity::is_too_complex;
use super::type_options::{Builtins, OptionPaths, Options};
use super::validation_docs::{self, QUANTITY};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId};
use crate::load::schema::{AdditionalProperties, Property, Schema, SchemaType};
use crate::rust::RustPath;

/// Maps the schemas of one version.
pub(super) struct SchemaMapper<'a> {
    pub(super) shapes: &'a mut Shapes,
    pub(super) options: &'a Options,
    pub(super) paths: &'a mut OptionPaths,
    pub(super) diagnostics: &'a mut Diagnostics,
    pub(super) source: SourceId,
    pub(super) version: usize,
    pub(super) steps: Vec<PathStep>,
}

/// The object at the root of a version.
#[derive(Clone, Debug)]
pub struct RootObject {
    /// The members beside `apiVersion`, `kind` and `metadata`.
    pub body: StructShape,
    /// Their names.
    pub names: FieldNames,
    /// Their descriptions.
    pub docs: ShapeDocs,
    /// Derives that options added.
    pub derives: Vec<RustPath>,
}

impl SchemaMapper<'_> {
    pub(super) fn root(&mut self, schema: &Schema) -> RootObject {
        let own = |p: &&Property| !["apiVersion", "kind", "metadata"].contains(&p.name.as_str());
        let properties: Vec<&Property> = schema.properties.iter().filter(own).collect();
        self.check_required(schema);
        let (fields, field_docs) = self.fields(schema, &properties);
        let body = StructShape {
            fields,
            rest: self.rest(schema),
        };
        RootObject {
            names: body.names(&["metadata"]),
            body,
            docs: ShapeDocs {
                text: schema.description.clone().unwrap_or_default(),
                fields: field_docs,
            },
            derives: self.options.derives_everywhere.clone(),
        }
    }

    /// The type of a schema, ignoring `nullable`.
    fn ty(&mut self, schema: &Schema) -> Ty {
        let path = self.path();
        if let Some(replacement) = self.options.replacement(&path) {
            self.paths.used.insert(path);
            return Ty::Existing(replacement.clone());
        }
        if !path.is_empty() {
            self.paths.all.insert(path);
        }
        if is_int_or_string(schema) {
            return self.int_or_string(schema);
        }
        if let Some(ty) = self.enumeration(schema) {
            return ty;
        }
        match schema.kind {
            Some(SchemaType::Boolean) => Ty::Bool,
            Some(SchemaType::Integer) => Ty::Int(integer(schema)),
            Some(SchemaType::Number) => Ty::Float,
            Some(SchemaType::String) => self.string(schema),
            Some(SchemaType::Array) => match &schema.items {
                Some(items) => Ty::Vec(Box::new(self.item(items))),
                None => Ty::Vec(Box::new(Ty::Json)),
            },
            Some(SchemaType::Object) => self.object(schema),
            None if !schema.properties.is_empty() || schema.additional.is_some() => {
                self.not_structural(schema);
                self.object(schema)
            }
            None if schema.preserve_unknown => Ty::Json,
            None => {
                self.not_structural(schema);
                self.alternatives(schema).unwrap_or(Ty::Json)
            }
        }
    }

    /// The type of the items of an array or the values of a map.
    fn item(&mut self, schema: &Schema) -> Ty {
        // Nested collections share one step, so only the outermost one changes it.
        let outer = self
            .steps
            .last_mut()
            .map(|step| std::mem::replace(&mut step.item, true));
        let ty = self.ty(schema);
        if let (Some(step), Some(outer)) = (self.steps.last_mut(), outer) {
            step.item = outer;
        }
        if nullable(schema) && ty != Ty::Json {
            Ty::Nullable(Box::new(ty))
        } else {
            ty
        }
    }

    fn int_or_string(&mut self, schema: &Schema) -> Ty {
        let quantity = schema
            .pattern()
            .is_some_and(|pattern| pattern.contains(QUANTITY));
        match (quantity, self.options.builtins) {
            (true, Builtins::Compatible) => k8s_types::QUANTITY.ty(),
            (true, _) => self.intern(ShapeBody::Quantity, ShapeDocs::default()),
            (false, builtins) if k8s_types::holds_int_or_string(schema, builtins) => {
                k8s_types::INT_OR_STRING.ty()
            }
            (false, _) => self.intern(ShapeBody::IntOrString, ShapeDocs::default()),
        }
    }

    fn string(&mut self, schema: &Schema) -> Ty {
        let known = match (schema.format.as_deref(), self.options.builtins) {
            (_, Builtins::None) => None,
            (Some("byte"), _) => Some(k8s_types::BYTE_STRING),
            (Some("date-time"), Builtins::Compatible) => Some(k8s_types::TIME),
            (Some("date-time"), Builtins::Exact) => {
                return self.intern(ShapeBody::Time, ShapeDocs::default());
            }
            (Some("duration"), _) => {
                return self.intern(ShapeBody::Duration, ShapeDocs::default());
            }
            _ if schema
                .pattern()
                .is_some_and(|pattern| pattern.contains(QUANTITY)) =>
            {
                Some(k8s_types::QUANTITY)
            }
            _ => None,
        };
        known.map_or(Ty::String, k8s_types::SimpleType::ty)
    }

    /// An enum, if all values other than null are strings, or all are integers.
    fn enumeration(&mut self, schema: &Schema) -> Option<Ty> {
        let values: Vec<&Json> = schema
            .values
            .as_ref()?
            .iter()
            .filter(|v| !v.is_null())
            .collect();
        if values.is_empty()
            || schema
                .kind
                .is_some_and(|k| !matches!(k, SchemaType::String | SchemaType::Integer))
        {
            return None;
        }
        let strings: Option<BTreeSet<&str>> = values.iter().map(|value| value.as_str()).collect();
        let integers: Option<BTreeSet<i64>> = values.iter().map(|value| value.as_i64()).collect();
        let body = match (strings, integers, schema.kind) {
            (Some(_), _, Some(SchemaType::String) | None) => ShapeBody::StringEnum(distinct(
                values.iter().filter_map(|v| v.as_str()).map(str::to_owned),
            )),
            (_, Some(_), Some(SchemaType::Integer) | None) => {
                ShapeBody::IntEnum(distinct(values.iter().filter_map(|v| v.as_i64())))
            }
            (_, _, None) => return Some(Ty::Json),
            _ => return None,
        };
        let text = schema.description.clone().unwrap_or_default();
        Some(self.intern(
            body,
            ShapeDocs {
                text,
                fields: Vec::new(),
            },
        ))
    }

    fn object(&mut self, schema: &Schema) -> Ty {
        if schema.embedded_resource && schema.properties.is_empty() {
            return match self.options.builtins {
                Builtins::None => Ty::Map(Box::new(Ty::Json)),
                _ => k8s_types::RAW_EXTENSION.ty(),
            };
        }
        if schema.properties.is_empty() && !schema.embedded_resource {
            match &schema.additional {
                Some(AdditionalProperties::Schema(values)) => {
                    return Ty::Map(Box::new(self.item(values)));
                }
                Some(AdditionalProperties::Any) => return Ty::Map(Box::new(Ty::Json)),
                _ if schema.preserve_unknown => return Ty::Map(Box::new(Ty::Json)),
                _ => {}
            }
        }
        if let Some(known) = k8s_types::recognise(schema, &self.steps, self.options.builtins) {
            return Ty::Existing(known);
        }
        self.check_required(schema);
        if alternatives::is_union(schema)
            && let Some(union) = self.union(schema)
        {
            return union;
        }
        let properties: Vec<&Property> = schema.properties.iter().collect();
        let (mut fields, mut field_docs) = self.fields(schema, &properties);
        if schema.embedded_resource {
            embed(&mut fields, &mut field_docs);
        }
        let body = StructShape {
            fields,
            rest: self.rest(schema),
        };
        let docs = ShapeDocs {
            text: schema.description.clone().unwrap_or_default(),
            fields: field_docs,
        };
        let has_counterpart = self.options.builtins == Builtins::Exact;
        let stands_for = has_counterpart.then(|| k8s_types::counterpart(schema));
        self.intern_for(ShapeBody::Struct(body), docs, stands_for.flatten())
    }

    fn fields(
        &mut self,
        schema: &Schema,
        properties: &[&Property],
    ) -> (Vec<StructField>, Vec<FieldDocs>) {
        properties
            .iter()
            .map(|property| self.field(schema, property))
            .unzip()
    }

    fn field(&mut self, parent: &Schema, property: &Property) -> (StructField, FieldDocs) {
        self.steps.push(PathStep {
            field: property.name.clone(),
            item: false,
        });
        let schema = &property.schema;
        let ty = self.ty(schema);
        let ty = self.named_if_complex(ty, nullable(schema));
        self.steps.pop();
        let presence = match &schema.default {
            Some(default) => FieldPresence::Default(default.to_string()),
            None if parent.requires(&property.name) => FieldPresence::Required,
            None => FieldPresence::Optional,
        };
        let docs = FieldDocs {
            text: schema.description.clone().unwrap_or_default(),
            limits: validation_docs::sentences(schema),
        };
        let field = StructField {
            json: property.name.clone(),
            nullable: nullable(schema) && ty != Ty::Json,
            ty,
            presence,
        };
        (field, docs)
    }

    /// An enum with one variant per member; `None` if a member can be any JSON.
    fn union(&mut self, schema: &Schema) -> Option<Ty> {
        let properties: Vec<&Property> = schema.properties.iter().collect();
        let (fields, docs) = self.fields(schema, &properties);
        if fields.iter().any(|field| field.ty == Ty::Json) {
            return None;
        }
        let variants = fields
            .into_iter()
            .map(|field| (field.json, field.ty))
            .collect();
        let docs = ShapeDocs {
            text: schema.description.clone().unwrap_or_default(),
            fields: docs,
        };
        Some(self.intern(ShapeBody::Union(variants), docs))
    }

    /// An untagged enum of the branches of `oneOf` or `anyOf`, if their JSON types differ.
    fn alternatives(&mut self, schema: &Schema) -> Option<Ty> {
        let branches = alternatives::distinct_branches(schema)?;
        let types = branches.iter().map(|branch| self.ty(branch)).collect();
        let docs = ShapeDocs {
            text: schema.description.clone().unwrap_or_default(),
            fields: Vec::new(),
        };
        Some(self.intern(ShapeBody::Untagged(types), docs))
    }

    /// The type of a field, as an alias if it is too complex to be written out.
    fn named_if_complex(&mut self, ty: Ty, nullable: bool) -> Ty {
        if is_too_complex(&ty, nullable) {
            self.intern(ShapeBody::Alias(ty), ShapeDocs::default())
        } else {
            ty
        }
    }

    /// The type of members that are not declared, if the API server keeps them.
    fn rest(&mut self, schema: &Schema) -> Option<Ty> {
        match &schema.additional {
            Some(AdditionalProperties::Schema(values)) if !schema.preserve_unknown => {
                Some(self.item(values))
            }
            Some(AdditionalProperties::Any | AdditionalProperties::Schema(_)) => Some(Ty::Json),
            _ => schema.preserve_unknown.then_some(Ty::Json),
        }
    }

    fn intern(&mut self, body: ShapeBody, docs: ShapeDocs) -> Ty {
        self.intern_for(body, docs, None)
    }

    fn intern_for(
        &mut self,
        body: ShapeBody,
        docs: ShapeDocs,
        stands_for: Option<ExistingType>,
    ) -> Ty {
        let path = self.path();
        let name = self.options.name(&path).cloned();
        let here = self.options.derives(&path);
        let everywhere = &self.options.derives_everywhere;
        let derives = everywhere.iter().chain(here).cloned().collect();
        if name.is_some() || !here.is_empty() {
            self.paths.used.insert(path);
        }
        let location = SchemaLocation {
            version: self.version,
            depth: self.steps.len(),
            steps: self.steps.clone(),
        };
        Ty::Shape(self.shapes.intern(
            Shape {
                is_open: self.options.open_enums && body.is_enum(),
                has_builder: self.options.builders && matches!(body, ShapeBody::Struct(_)),
                body,
                name,
                derives,
                stands_for,
            },
            docs,
            location,
        ))
    }

    /// The path as options write it; empty if no option has a path.
    fn path(&self) -> String {
        if self.options.has_no_paths() {
            return String::new();
        }
        path_text(&self.steps)
    }

    fn check_required(&mut self, schema: &Schema) {
        if schema.preserve_unknown || schema.additional.is_some() {
            return;
        }
        for name in &schema.required {
            let implied = schema.embedded_resource || self.steps.is_empty();
            let known = implied && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
            if schema.property(name).is_none() && !known {
                self.diagnostics.push(
                    Diagnostic::info(
                        Code::UndeclaredRequired,
                        format!("`{name}` is required but not declared"),
                    )
                    .at(self.source, schema.span, ""),
                );
            }
        }
    }

    fn not_structural(&mut self, schema: &Schema) {
        if schema.is_reported {
            return;
        }
        self.diagnostics.push(
            Diagnostic::warning(
                Code::NotStructural,
                format!("`{}` has no type", path_text(&self.steps)),
            )
            .at(self.source, schema.span, "")
            .help("add `type`, or `x-kubernetes-preserve-unknown-fields: true`"),
        );
    }
}

/// A path such as `spec.containers[].name`.
pub(super) fn path_text(steps: &[PathStep]) -> String {
    let names: Vec<String> = steps
        .iter()
        .map(|step| {
            if step.item {
                format!("{}[]", step.field)
            } else {
                step.field.clone()
            }
        })
        .collect();
    names.join(".")
}

fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut list, value| {
        if !list.contains(&value) {
            list.push(value);
        }
        list
    })
}

/// Adds the fields of every embedded resource.
fn embed(fields: &mut Vec<StructField>, docs: &mut Vec<FieldDocs>) {
    for name in ["metadata", "kind", "apiVersion"] {
        if let Some(index) = fields.iter().position(|field| field.json == name) {
            fields.remove(index);
            docs.remove(index);
        }
        let metadata = name == "metadata";
        fields.insert(
            0,
            StructField {
                json: name.to_owned(),
                ty: if metadata {
                    Ty::Existing(k8s_types::OBJECT_META.known())
                } else {
                    Ty::String
                },
                presence: if metadata {
                    FieldPresence::Optional
                } else {
                    FieldPresence::Required
                },
                nullable: false,
            },
        );
        docs.insert(0, FieldDocs::default());
    }
}
