//! The default values that the API server fills in, as values of the generated types.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::generated_types::{
    FieldPresence, IntType, ShapeBody, ShapeId, Shapes, StructField, StructShape, Ty,
};
use super::k8s_types::{INT_OR_STRING, QUANTITY};
use crate::rust::RustType;

/// A value of a generated type.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultValue {
    /// `Default::default()`.
    Default,
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A string.
    String(String),
    /// Any JSON.
    Json(Json),
    /// A list.
    Vec(Vec<DefaultValue>),
    /// A map.
    Map(Vec<(String, DefaultValue)>),
    /// The variant of an enum, by its position.
    Variant(ShapeId, usize),
    /// A variant with a value, of a type with `Int` and `String` variants.
    IntOrString(Ty, Box<DefaultValue>),
    /// A tuple struct around a string.
    Wrapped(Ty, String),
    /// A struct: some fields, the others as its own default has them.
    Struct {
        /// The struct.
        shape: ShapeId,
        /// Positions of fields and their values.
        fields: Vec<(usize, DefaultValue)>,
        /// Whether there are other fields.
        partial: bool,
    },
    /// `Some` of a value.
    Some(Box<DefaultValue>),
    /// `None`.
    None,
}

/// The implementation of `Default` for a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultImpl {
    /// There is none: some required field has no default.
    Missing,
    /// It is derived.
    Derived,
    /// It is written out, because the API server fills in other values than zero.
    Written,
}

/// Computes default values, and caches which shapes have a `Default`.
#[derive(Debug)]
pub struct Defaults<'s> {
    shapes: &'s Shapes,
    known: std::cell::RefCell<BTreeMap<ShapeId, DefaultImpl>>,
}

impl<'s> Defaults<'s> {
    /// The default values of these shapes.
    #[must_use]
    pub fn new(shapes: &'s Shapes) -> Self {
        Self {
            shapes,
            known: std::cell::RefCell::default(),
        }
    }

    /// The value of a field that is left out; `None` if it has no default, or one that Rust cannot
    /// express, in which case the field is optional.
    #[must_use]
    pub fn of_field(&self, field: &StructField) -> Option<DefaultValue> {
        let FieldPresence::Default(text) = &field.presence else {
            return None;
        };
        let json: Json = serde_json::from_str(text).ok()?;
        let initial = self.value(&json, &field.ty)?;
        if field.nullable {
            Some(DefaultValue::Some(Box::new(initial)))
        } else {
            Some(initial)
        }
    }

    /// The `Default` of a shape.
    #[must_use]
    pub fn of_shape(&self, id: ShapeId) -> DefaultImpl {
        if let Some(known) = self.known.borrow().get(&id) {
            return *known;
        }
        let shape = self.shapes.shape(id);
        let answer = match &shape.body {
            ShapeBody::Struct(body) => self.of_struct(body),
            ShapeBody::Alias(ty) if self.has_default(ty) => DefaultImpl::Derived,
            ShapeBody::Time | ShapeBody::Duration => DefaultImpl::Derived,
            // An option asks for it: the first value.
            ShapeBody::StringEnum(values) if !values.is_empty() && shape.derives_default() => {
                DefaultImpl::Derived
            }
            ShapeBody::IntEnum(values) if !values.is_empty() && shape.derives_default() => {
                DefaultImpl::Derived
            }
            // As for the types of Kubernetes for which they stand.
            ShapeBody::Quantity | ShapeBody::IntOrString if shape.derives_default() => {
                DefaultImpl::Written
            }
            _ => DefaultImpl::Missing,
        };
        self.known.borrow_mut().insert(id, answer);
        answer
    }

    /// The `Default` of a struct.
    #[must_use]
    pub fn of_struct(&self, body: &StructShape) -> DefaultImpl {
        let mut answer = DefaultImpl::Derived;
        for field in &body.fields {
            match (&field.presence, self.of_field(field)) {
                (FieldPresence::Default(_), Some(DefaultValue::Default)) => {}
                (FieldPresence::Default(_), Some(_)) => answer = DefaultImpl::Written,
                (FieldPresence::Optional | FieldPresence::Default(_), _) => {}
                (FieldPresence::Required, _) if field.nullable || self.has_default(&field.ty) => {}
                (FieldPresence::Required, _) => return DefaultImpl::Missing,
            }
        }
        answer
    }

    fn has_default(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Existing(known) => known.default,
            Ty::Shape(id) => self.of_shape(*id) != DefaultImpl::Missing,
            _ => true,
        }
    }

    fn value(&self, json: &Json, ty: &Ty) -> Option<DefaultValue> {
        Some(match (ty, json) {
            (Ty::Nullable(_), Json::Null) => DefaultValue::None,
            (Ty::Nullable(inner), json) => DefaultValue::Some(Box::new(self.value(json, inner)?)),
            (Ty::Json, Json::Null) | (Ty::Bool, Json::Bool(false)) => DefaultValue::Default,
            (Ty::Json, json) => DefaultValue::Json(json.clone()),
            (Ty::Bool, Json::Bool(value)) => DefaultValue::Bool(*value),
            (Ty::Int(int), json) => integer(json, *int)?,
            (Ty::Float, Json::Number(number)) => match number.as_f64()? {
                0.0 => DefaultValue::Default,
                value => DefaultValue::Float(value),
            },
            (Ty::String, Json::String(text)) if text.is_empty() => DefaultValue::Default,
            (Ty::String, Json::String(text)) => DefaultValue::String(text.clone()),
            (Ty::Vec(_), Json::Array(items)) if items.is_empty() => DefaultValue::Default,
            (Ty::Vec(inner), Json::Array(items)) => {
                let items = items.iter().map(|item| self.value(item, inner));
                DefaultValue::Vec(items.collect::<Option<_>>()?)
            }
            (Ty::Map(_), Json::Object(entries)) if entries.is_empty() => DefaultValue::Default,
            (Ty::Map(inner), Json::Object(entries)) => {
                let entries = entries
                    .iter()
                    .map(|(key, value)| Some((key.clone(), self.value(value, inner)?)));
                DefaultValue::Map(entries.collect::<Option<_>>()?)
            }
            (Ty::Existing(known), Json::Object(entries)) if entries.is_empty() && known.default => {
                DefaultValue::Default
            }
            (Ty::Existing(known), json) if INT_OR_STRING.is(known) => {
                int_or_string(ty, json, IntType::I32)?
            }
            (Ty::Existing(known), Json::String(text)) if QUANTITY.is(known) => {
                DefaultValue::Wrapped(ty.clone(), text.clone())
            }
            (Ty::Shape(id), json) => self.shape(*id, ty, json)?,
            _ => return None,
        })
    }

    fn shape(&self, id: ShapeId, ty: &Ty, json: &Json) -> Option<DefaultValue> {
        match (self.shapes.body(id), json) {
            (ShapeBody::StringEnum(values), Json::String(text)) => Some(DefaultValue::Variant(
                id,
                values.iter().position(|value| value == text)?,
            )),
            (ShapeBody::IntEnum(values), Json::Number(number)) => {
                let number = number.as_i64()?;
                Some(DefaultValue::Variant(
                    id,
                    values.iter().position(|value| *value == number)?,
                ))
            }
            (ShapeBody::Time | ShapeBody::Duration, Json::String(text)) => {
                Some(DefaultValue::Wrapped(ty.clone(), text.clone()))
            }
            (ShapeBody::Quantity | ShapeBody::IntOrString, json) => {
                int_or_string(ty, json, IntType::I64)
            }
            (ShapeBody::Alias(inner), json) => self.value(json, inner),
            (ShapeBody::Struct(body), Json::Object(entries)) => self.structure(id, body, entries),
            _ => None,
        }
    }

    fn structure(
        &self,
        shape: ShapeId,
        body: &StructShape,
        entries: &serde_json::Map<String, Json>,
    ) -> Option<DefaultValue> {
        let has_default = self.of_shape(shape) != DefaultImpl::Missing;
        if entries.is_empty() && has_default {
            return Some(DefaultValue::Default);
        }
        let declared = |key: &String| body.fields.iter().any(|field| field.json == *key);
        if !entries.keys().all(declared) {
            return None;
        }
        let mut fields = Vec::new();
        let mut partial = body.rest.is_some();
        for (index, field) in body.fields.iter().enumerate() {
            let given = match entries.get(&field.json) {
                Some(json) => Some(self.given(json, field)?),
                None if has_default => None,
                None => Some(self.absent(field)?),
            };
            match given {
                Some(initial) => fields.push((index, initial)),
                None => partial = true,
            }
        }
        (has_default || !partial).then_some(DefaultValue::Struct {
            shape,
            fields,
            partial,
        })
    }

    /// The value of a field that the default of the whole struct contains.
    fn given(&self, json: &Json, field: &StructField) -> Option<DefaultValue> {
        let some = |value| DefaultValue::Some(Box::new(value));
        let null_differs = self.null_differs(field);
        if json.is_null() && field.nullable {
            return Some(match null_differs {
                true => some(DefaultValue::None),
                false => DefaultValue::None,
            });
        }
        let initial = self.value(json, &field.ty)?;
        let is_option = field.nullable || self.is_optional(field);
        Some(match (null_differs, is_option) {
            (true, _) => some(some(initial)),
            (false, true) => some(initial),
            (false, false) => initial,
        })
    }

    /// The value of a field that the default of the whole struct leaves out.
    fn absent(&self, field: &StructField) -> Option<DefaultValue> {
        match field.presence {
            FieldPresence::Required => None,
            _ if self.is_optional(field) => Some(DefaultValue::None),
            _ => self.of_field(field),
        }
    }

    /// Whether null is not the same as an absent value: the API server fills in a default for the
    /// latter, and Rust cannot express that default.
    #[must_use]
    pub fn null_differs(&self, field: &StructField) -> bool {
        let has_default = matches!(field.presence, FieldPresence::Default(_));
        field.nullable && has_default && self.is_optional(field)
    }

    /// The type of a field, if this is the type of its values.
    #[must_use]
    pub fn field_type(&self, field: &StructField, values: RustType) -> RustType {
        if self.null_differs(field) {
            values.optional().optional()
        } else if field.nullable || self.is_optional(field) {
            values.optional()
        } else {
            values
        }
    }

    /// Whether the field is an `Option` because it may be left out.
    #[must_use]
    pub fn is_optional(&self, field: &StructField) -> bool {
        match field.presence {
            FieldPresence::Required => false,
            FieldPresence::Optional => true,
            FieldPresence::Default(_) => self.of_field(field).is_none(),
        }
    }
}

fn integer(json: &Json, int: IntType) -> Option<DefaultValue> {
    let value = json.as_i64().or_else(|| whole(json.as_f64()?))?;
    let (least, most) = int.range();
    let fits = i128::from(value) >= least && i128::from(value) <= most;
    fits.then_some(if value == 0 {
        DefaultValue::Default
    } else {
        DefaultValue::Int(value)
    })
}

#[expect(clippy::cast_possible_truncation, reason = "whole and within 32 bits")]
fn whole(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < f64::from(u32::MAX)).then_some(value as i64)
}

fn int_or_string(ty: &Ty, json: &Json, int: IntType) -> Option<DefaultValue> {
    let inner = match json {
        Json::String(text) => DefaultValue::String(text.clone()),
        json => match integer(json, int)? {
            DefaultValue::Default => DefaultValue::Int(0),
            other => other,
        },
    };
    Some(DefaultValue::IntOrString(ty.clone(), Box::new(inner)))
}
