//! The Rust types that are generated for one resource: a set of shapes without duplicates.

use rustc_hash::FxHashMap;

use super::identifier::TypeName;
use super::member_names::{FieldNames, VariantNames};
use crate::rust::{RustPath, RustType};

/// A Rust type without its optionality.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// `bool`
    Bool,
    /// An integer.
    Int(IntType),
    /// `f64`
    Float,
    /// `String`
    String,
    /// `serde_json::Value`
    Json,
    /// A type that is not generated.
    Existing(ExistingType),
    /// `Vec<T>`
    Vec(Box<Ty>),
    /// `BTreeMap<String, T>`
    Map(Box<Ty>),
    /// `Option<T>`, for items that may be null.
    Nullable(Box<Ty>),
    /// A type of this resource.
    Shape(ShapeId),
}

/// The integer types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntType {
    /// `i8`
    I8,
    /// `i16`
    I16,
    /// `i32`
    I32,
    /// `i64`
    I64,
    /// `u8`
    U8,
    /// `u16`
    U16,
    /// `u32`
    U32,
    /// `u64`
    U64,
}

/// A type that is not generated: from `k8s-openapi`, or given by an option.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExistingType {
    /// The type.
    pub rust: RustType,
    /// Whether it implements `Default`.
    pub default: bool,
}

/// Names one of the [`Shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(usize);

/// The identity of a generated type; descriptions and validations are not part of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The form and the members.
    pub body: ShapeBody,
    /// The name that an option gave it.
    pub name: Option<TypeName>,
    /// Derives that options added.
    pub derives: Vec<RustPath>,
    /// Whether it also holds values that the schema does not list.
    pub is_open: bool,
    /// Whether it has a `with_…` method per field.
    pub has_builder: bool,
    /// The type of `k8s-openapi` for objects of the same form, which would change some values.
    pub stands_for: Option<ExistingType>,
}

/// Whether a path, as an option may write it, names the trait `Default`.
#[must_use]
pub fn is_default_trait(path: &RustPath) -> bool {
    path.name() == "Default"
        && (path.needs_no_import()
            || path.is("std::default::Default")
            || path.is("core::default::Default"))
}

/// The form of a generated type, with its members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ShapeBody {
    /// An object with known members.
    Struct(StructShape),
    /// A string that is one of these.
    StringEnum(Vec<String>),
    /// An integer that is one of these.
    IntEnum(Vec<i64>),
    /// A quantity that may also be written as a bare number.
    Quantity,
    /// A number or a text.
    IntOrString,
    /// A time, as it is written.
    Time,
    /// A duration as Go writes it, such as `1h30m`, which is kept as its text.
    Duration,
    /// An alias for a type that is too complex to be written out.
    Alias(Ty),
    /// An object with exactly one of these members.
    Union(Vec<(String, Ty)>),
    /// A value of one of these types, tried in this order.
    Untagged(Vec<Ty>),
}

/// An object with known members.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructShape {
    /// The members, in the order of the schema.
    pub fields: Vec<StructField>,
    /// The type of members that are not known, if they are kept.
    pub rest: Option<Ty>,
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StructField {
    /// Its name in JSON.
    pub json: String,
    /// Its type.
    pub ty: Ty,
    /// Whether it is required.
    pub presence: FieldPresence,
    /// Whether it may be null.
    pub nullable: bool,
}

/// Whether a member is required.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldPresence {
    /// It is always present.
    Required,
    /// It may be left out.
    Optional,
    /// If it is left out, the API server fills in this value (compact JSON).
    Default(String),
}

/// The descriptions of a type and its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShapeDocs {
    /// The description of the type.
    pub text: String,
    /// The descriptions of the fields, in order.
    pub fields: Vec<FieldDocs>,
}

/// The description of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldDocs {
    /// The description.
    pub text: String,
    /// The validations, as sentences.
    pub limits: Vec<String>,
}

/// A step from a type to a type inside it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathStep {
    /// The name of the member in JSON.
    pub field: String,
    /// Whether the step goes on to the items of an array or the values of a map.
    pub item: bool,
}

/// The location of a schema; a shape that occurs several times is named after the smallest one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaLocation {
    /// The rank of the version; the storage version is first.
    pub version: usize,
    /// The number of steps.
    pub depth: usize,
    /// The steps from the root.
    pub steps: Vec<PathStep>,
}

/// All shapes of a resource, over all its versions.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    list: Vec<ShapeEntry>,
    index: FxHashMap<Shape, ShapeId>,
}

#[derive(Clone, Debug)]
struct ShapeEntry {
    shape: Shape,
    docs: ShapeDocs,
    location: SchemaLocation,
    /// The last steps of its other locations, without repetitions.
    other_steps: Vec<PathStep>,
    /// The names of its fields, or else of its variants.
    fields: FieldNames,
    variants: VariantNames,
    /// Whether its locations describe it differently.
    conflicting: bool,
}

// === impl IntType ===

impl IntType {
    /// The name of the type.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
        }
    }

    /// The smallest and the largest value.
    #[must_use]
    pub const fn range(self) -> (i128, i128) {
        match self {
            Self::I8 => (i8::MIN as i128, i8::MAX as i128),
            Self::I16 => (i16::MIN as i128, i16::MAX as i128),
            Self::I32 => (i32::MIN as i128, i32::MAX as i128),
            Self::I64 => (i64::MIN as i128, i64::MAX as i128),
            Self::U8 => (0, u8::MAX as i128),
            Self::U16 => (0, u16::MAX as i128),
            Self::U32 => (0, u32::MAX as i128),
            Self::U64 => (0, u64::MAX as i128),
        }
    }
}

// === impl Ty ===

impl Ty {
    /// Visits the shapes that this type mentions.
    pub fn for_each_shape(&self, visit: &mut impl FnMut(ShapeId)) {
        match self {
            Self::Shape(id) => visit(*id),
            Self::Vec(inner) | Self::Map(inner) | Self::Nullable(inner) => {
                inner.for_each_shape(visit);
            }
            _ => {}
        }
    }

    fn for_each_shape_mut(&mut self, visit: &mut impl FnMut(&mut ShapeId)) {
        match self {
            Self::Shape(id) => visit(id),
            Self::Vec(inner) | Self::Map(inner) | Self::Nullable(inner) => {
                inner.for_each_shape_mut(visit);
            }
            _ => {}
        }
    }

    /// Visits the existing types that this type mentions.
    pub fn for_each_existing<'t>(&'t self, visit: &mut impl FnMut(&'t ExistingType)) {
        match self {
            Self::Existing(existing) => visit(existing),
            Self::Vec(inner) | Self::Map(inner) | Self::Nullable(inner) => {
                inner.for_each_existing(visit);
            }
            _ => {}
        }
    }

    /// The Rust type; `shape` gives the path of a generated one.
    pub fn rust(&self, shape: &impl Fn(ShapeId) -> RustPath) -> RustType {
        match self {
            Self::Bool => RustType::primitive("bool"),
            Self::Int(int) => RustType::primitive(int.name()),
            Self::Float => RustType::primitive("f64"),
            Self::String => RustType::string(),
            Self::Json => RustType::json(),
            Self::Existing(known) => known.rust.clone(),
            Self::Vec(inner) => inner.rust(shape).list(),
            Self::Map(inner) => inner.rust(shape).map(),
            Self::Nullable(inner) => inner.rust(shape).optional(),
            Self::Shape(id) => RustType::named(shape(*id)),
        }
    }
}

// === impl ExistingType ===

impl ExistingType {
    /// A type of another crate.
    pub(super) fn external(path: &str, default: bool) -> Self {
        Self {
            rust: RustType::external(path),
            default,
        }
    }
}

// === impl ShapeId ===

impl ShapeId {
    pub(super) const fn from_index(index: usize) -> Self {
        Self(index)
    }

    pub(super) const fn index(self) -> usize {
        self.0
    }
}

// === impl Shape ===

impl Shape {
    /// Whether an option asks for `Default`.
    #[must_use]
    pub fn derives_default(&self) -> bool {
        self.derives.iter().any(is_default_trait)
    }

    /// The same shape with other numbers for the shapes that it mentions.
    pub(super) fn renumbered(&self, ids: &FxHashMap<ShapeId, ShapeId>) -> Self {
        let mut shape = self.clone();
        let renumber = |ty: &mut Ty| ty.for_each_shape_mut(&mut |id| *id = ids[id]);
        match &mut shape.body {
            ShapeBody::Struct(body) => {
                body.fields
                    .iter_mut()
                    .for_each(|field| renumber(&mut field.ty));
                body.rest.iter_mut().for_each(renumber);
            }
            ShapeBody::Union(variants) => variants.iter_mut().for_each(|(_, ty)| renumber(ty)),
            ShapeBody::Untagged(types) => types.iter_mut().for_each(renumber),
            ShapeBody::Alias(ty) => renumber(ty),
            ShapeBody::StringEnum(_)
            | ShapeBody::IntEnum(_)
            | ShapeBody::Quantity
            | ShapeBody::IntOrString
            | ShapeBody::Time
            | ShapeBody::Duration => {}
        }
        shape
    }
}

// === impl ShapeBody ===

impl ShapeBody {
    /// Whether it lists the values or the forms that it can have.
    pub(super) const fn is_enum(&self) -> bool {
        matches!(
            self,
            Self::StringEnum(_) | Self::IntEnum(_) | Self::Union(_) | Self::Untagged(_)
        )
    }

    /// The types inside it, in order.
    pub fn types(&self) -> Vec<&Ty> {
        match self {
            Self::Struct(body) => body.types().collect(),
            Self::Union(variants) => variants.iter().map(|(_, ty)| ty).collect(),
            Self::Untagged(types) => types.iter().collect(),
            Self::Alias(ty) => vec![ty],
            Self::StringEnum(_)
            | Self::IntEnum(_)
            | Self::Quantity
            | Self::IntOrString
            | Self::Time
            | Self::Duration => Vec::new(),
        }
    }
}

impl ShapeBody {
    fn field_names(&self) -> FieldNames {
        match self {
            Self::Struct(body) => body.names(&[]),
            _ => FieldNames::default(),
        }
    }

    fn variant_names(&self) -> VariantNames {
        match self {
            Self::StringEnum(values) => {
                VariantNames::of_texts(&values.iter().map(String::as_str).collect::<Vec<_>>())
            }
            Self::Union(members) => {
                let texts: Vec<&str> = members.iter().map(|(json, _)| json.as_str()).collect();
                VariantNames::of_texts(&texts)
            }
            Self::IntEnum(values) => VariantNames::of_numbers(values),
            _ => VariantNames::default(),
        }
    }
}

impl StructShape {
    /// The names of its fields, beside these.
    pub(super) fn names(&self, reserved: &[&str]) -> FieldNames {
        let json: Vec<&str> = self
            .fields
            .iter()
            .map(|field| field.json.as_str())
            .collect();
        FieldNames::of_fields(&json, reserved, self.rest.is_some())
    }

    /// The types of the members, including undeclared ones.
    pub fn types(&self) -> impl Iterator<Item = &Ty> {
        self.fields.iter().map(|field| &field.ty).chain(&self.rest)
    }
}

// === impl Shapes ===

impl Shapes {
    /// Adds a shape, or finds the equal one; the smallest location gives the name and the docs.
    pub fn intern(&mut self, shape: Shape, docs: ShapeDocs, location: SchemaLocation) -> ShapeId {
        if let Some(id) = self.index.get(&shape) {
            self.list[id.0].merge(docs, location);
            return *id;
        }
        let id = ShapeId(self.list.len());
        self.index.insert(shape.clone(), id);
        self.list.push(ShapeEntry {
            fields: shape.body.field_names(),
            variants: shape.body.variant_names(),
            shape,
            docs,
            location,
            other_steps: Vec::new(),
            conflicting: false,
        });
        id
    }

    /// All shapes; each mentions only shapes before it.
    pub fn ids(&self) -> impl Iterator<Item = ShapeId> + use<> {
        (0..self.list.len()).map(ShapeId)
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self, id: ShapeId) -> &Shape {
        &self.list[id.0].shape
    }

    /// Its form and members.
    #[must_use]
    pub fn body(&self, id: ShapeId) -> &ShapeBody {
        &self.shape(id).body
    }

    /// The names of its fields, if it is a struct.
    #[must_use]
    pub fn field_names(&self, id: ShapeId) -> &FieldNames {
        &self.list[id.0].fields
    }

    /// The names of its variants, if it is an enum with names that the schema gives.
    #[must_use]
    pub fn variant_names(&self, id: ShapeId) -> &VariantNames {
        &self.list[id.0].variants
    }

    /// Its descriptions.
    #[must_use]
    pub fn docs(&self, id: ShapeId) -> &ShapeDocs {
        &self.list[id.0].docs
    }

    /// The last steps to its locations, each once.
    pub(super) fn last_steps(&self, id: ShapeId) -> impl Iterator<Item = &PathStep> {
        let entry = &self.list[id.0];
        entry
            .location
            .steps
            .last()
            .into_iter()
            .chain(&entry.other_steps)
    }

    /// The location that it is named after.
    #[must_use]
    pub fn location(&self, id: ShapeId) -> &SchemaLocation {
        &self.list[id.0].location
    }
}

// === impl ShapeEntry ===

impl ShapeEntry {
    fn add_step(&mut self, step: Option<&PathStep>) {
        let Some(step) = step.filter(|step| self.location.steps.last() != Some(*step)) else {
            return;
        };
        if !self.other_steps.contains(step) {
            self.other_steps.push(step.clone());
        }
    }

    fn merge(&mut self, docs: ShapeDocs, location: SchemaLocation) {
        let elsewhere = location.steps != self.location.steps;
        let (mut kept, other) = if location < self.location {
            let former = std::mem::replace(&mut self.location, location);
            self.add_step(former.steps.last());
            (docs, std::mem::take(&mut self.docs))
        } else {
            self.add_step(location.steps.last());
            (std::mem::take(&mut self.docs), docs)
        };
        if kept.text.is_empty() {
            kept.text = other.text;
        } else if elsewhere && !other.text.is_empty() && kept.text != other.text {
            self.conflicting = true;
        }
        // Descriptions that differ are printed with the fields instead.
        if self.conflicting {
            kept.text.clear();
        }
        for (kept, other) in kept.fields.iter_mut().zip(other.fields) {
            if kept.text.is_empty() {
                kept.text = other.text;
            }
            // A limit of one location does not apply to the others.
            kept.limits.retain(|limit| other.limits.contains(limit));
        }
        self.docs = kept;
    }
}
