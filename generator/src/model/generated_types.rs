//! The Rust types of one resource: a set of shapes, each of which is kept once.

use std::collections::HashMap;

use super::identifier::TypeName;

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
    /// A type that exists already.
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

/// A type that exists already, in `k8s-openapi` or where an option says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExistingType {
    /// The full path, or any type expression if it came from an option.
    pub path: String,
    /// Whether it implements `Default`.
    pub default: bool,
}

/// Names one of the [`Shapes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShapeId(usize);

/// What makes two types the same; descriptions and validations do not count.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// What it looks like.
    pub body: ShapeBody,
    /// The name that an option gave it.
    pub name: Option<TypeName>,
    /// Derives that an option added.
    pub derives: Vec<String>,
}

/// The forms that a type can have.
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
    /// A type that is too long to be written out where it is used.
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
    /// Whether it must be there.
    pub presence: FieldPresence,
    /// Whether it may be null.
    pub nullable: bool,
}

/// Whether a member must be there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum FieldPresence {
    /// Always.
    Required,
    /// It may be left out.
    Optional,
    /// If left out, the API server fills in this value, here as compact JSON.
    Default(String),
}

/// What is said about a type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ShapeDocs {
    /// About the type itself.
    pub text: String,
    /// About each field, in order.
    pub fields: Vec<FieldDocs>,
}

/// What is said about a field.
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
    /// Whether it is one of many: an item of an array or a value of a map.
    pub item: bool,
}

/// The place by which a type is named: the best one counts, smaller is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaLocation {
    /// The rank of the version; the storage version is first.
    pub version: usize,
    /// How deep it is.
    pub depth: usize,
    /// The way from the root.
    pub steps: Vec<PathStep>,
}

/// All shapes of a resource, over all its versions.
#[derive(Clone, Debug, Default)]
pub struct Shapes {
    list: Vec<ShapeEntry>,
    index: HashMap<Shape, ShapeId>,
}

#[derive(Clone, Debug)]
struct ShapeEntry {
    shape: Shape,
    docs: ShapeDocs,
    location: SchemaLocation,
    /// Whether different things are said about it in different places.
    conflicting: bool,
}

// === impl Int ===

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
    /// The shapes that this type mentions.
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

    /// The existing types that this type mentions.
    pub fn for_each_existing<'t>(&'t self, visit: &mut impl FnMut(&'t ExistingType)) {
        match self {
            Self::Existing(existing) => visit(existing),
            Self::Vec(inner) | Self::Map(inner) | Self::Nullable(inner) => {
                inner.for_each_existing(visit);
            }
            _ => {}
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
    /// The same shape with other numbers for the shapes that it mentions.
    pub(super) fn renumbered(&self, ids: &HashMap<ShapeId, ShapeId>) -> Self {
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
            | ShapeBody::IntOrString => {}
        }
        shape
    }
}

// === impl Body ===

impl ShapeBody {
    /// The types inside it, in order.
    pub fn types(&self) -> Vec<&Ty> {
        match self {
            Self::Struct(body) => body.types().collect(),
            Self::Union(variants) => variants.iter().map(|(_, ty)| ty).collect(),
            Self::Untagged(types) => types.iter().collect(),
            Self::Alias(ty) => vec![ty],
            Self::StringEnum(_) | Self::IntEnum(_) | Self::Quantity | Self::IntOrString => {
                Vec::new()
            }
        }
    }
}

impl StructShape {
    /// The types of the members, known or not.
    pub fn types(&self) -> impl Iterator<Item = &Ty> {
        self.fields.iter().map(|field| &field.ty).chain(&self.rest)
    }
}

// === impl Shapes ===

impl Shapes {
    /// Adds a shape, or finds the equal one; the best place gives the name and the words.
    pub fn intern(&mut self, shape: Shape, docs: ShapeDocs, location: SchemaLocation) -> ShapeId {
        if let Some(id) = self.index.get(&shape) {
            self.list[id.0].merge(docs, location);
            return *id;
        }
        let id = ShapeId(self.list.len());
        self.index.insert(shape.clone(), id);
        self.list.push(ShapeEntry {
            shape,
            docs,
            location,
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

    /// What it looks like.
    #[must_use]
    pub fn body(&self, id: ShapeId) -> &ShapeBody {
        &self.shape(id).body
    }

    /// What is said about it.
    #[must_use]
    pub fn docs(&self, id: ShapeId) -> &ShapeDocs {
        &self.list[id.0].docs
    }

    /// The place by which it is named.
    #[must_use]
    pub fn location(&self, id: ShapeId) -> &SchemaLocation {
        &self.list[id.0].location
    }
}

// === impl Entry ===

impl ShapeEntry {
    fn merge(&mut self, docs: ShapeDocs, location: SchemaLocation) {
        let elsewhere = location.steps != self.location.steps;
        let (mut kept, other) = if location < self.location {
            self.location = location;
            (docs, std::mem::take(&mut self.docs))
        } else {
            (std::mem::take(&mut self.docs), docs)
        };
        if kept.text.is_empty() {
            kept.text = other.text;
        } else if elsewhere && !other.text.is_empty() && kept.text != other.text {
            self.conflicting = true;
        }
        // What holds in one place only is said there, about the field.
        if self.conflicting {
            kept.text.clear();
        }
        for (kept, other) in kept.fields.iter_mut().zip(other.fields) {
            if kept.text.is_empty() {
                kept.text = other.text;
            }
            // A limit that holds in one place only must not be claimed for all.
            kept.limits.retain(|limit| other.limits.contains(limit));
        }
        self.docs = kept;
    }
}
