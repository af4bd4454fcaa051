//! The parts of an object that handlers change: spec, status and conditions.

use super::default_values::Defaults;
use super::generated_types::{FieldPresence, ShapeBody, StructField, StructShape, Ty};
use super::identifier::RustIdent;
use super::k8s_types;
use super::resource::{CustomResource, TypedVersion};
use crate::rust::RustType;

/// The parts that the type of a kind has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectParts {
    /// The spec, with `Option` if it may be absent.
    pub spec: Option<TypedMember>,
    /// The status, without its `Option`.
    pub status: Option<TypedMember>,
    /// The conditions in the status, if they are as Kubernetes defines them.
    pub conditions: Option<ConditionList>,
}

/// A list of conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConditionList {
    /// Whether a condition has `observedGeneration`.
    pub observed_generation: bool,
}

/// The members of a condition that its schema must have.
const CONDITION_MEMBERS: [&str; 5] = ["lastTransitionTime", "message", "reason", "status", "type"];
const OBSERVED_GENERATION: &str = "observedGeneration";

/// A field of the type of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypedMember {
    /// The name of the field.
    pub field: RustIdent,
    /// Its type.
    pub ty: RustType,
}

impl CustomResource {
    /// The parts of the objects of a version.
    #[must_use]
    pub fn object_parts(&self, version: &TypedVersion) -> ObjectParts {
        let defaults = Defaults::new(&self.shapes);
        let root = &version.root;
        let shape = |id| self.type_path(version, version.type_names.of(id));
        let part = |name: &str| {
            let mut members = root.body.fields.iter().zip(root.names.rust());
            members.find(|(field, _)| field.json == name)
        };
        let spec = part("spec").map(|(field, ident)| TypedMember {
            field: ident.clone(),
            ty: defaults.field_type(field, field.ty.rust(&shape)),
        });
        let status = part("status")
            .filter(|(field, _)| {
                let is_option = field.nullable || defaults.is_optional(field);
                is_option && !defaults.null_differs(field)
            })
            .map(|(field, ident)| TypedMember {
                field: ident.clone(),
                ty: field.ty.rust(&shape),
            });
        ObjectParts {
            spec,
            status,
            conditions: self.conditions(&version.root.body),
        }
    }

    /// The type that the status declares under a name; none if it declares no such field.
    #[must_use]
    pub fn result_type(&self, version: &TypedVersion, name: &str) -> Option<RustType> {
        let status = self.structure(member(&version.root.body, "status")?)?;
        let shape = |id| self.type_path(version, version.type_names.of(id));
        Some(member(status, name)?.rust(&shape))
    }

    fn conditions(&self, root: &StructShape) -> Option<ConditionList> {
        let status = self.structure(member(root, "status")?)?;
        let Ty::Vec(item) = member(status, "conditions")? else {
            return None;
        };
        if matches!(&**item, Ty::Existing(known) if k8s_types::CONDITION.is(known)) {
            return Some(ConditionList {
                observed_generation: true,
            });
        }
        let condition = self.structure(item)?;
        let is_text = |name: &str| member(condition, name).is_some_and(|ty| self.is_text(ty));
        let is_other = |field: &StructField| {
            let name = field.json.as_str();
            name != OBSERVED_GENERATION && !CONDITION_MEMBERS.contains(&name)
        };
        let needs_other =
            |field: &StructField| is_other(field) && field.presence == FieldPresence::Required;
        let fits = CONDITION_MEMBERS.iter().all(|name| is_text(name))
            && !condition.fields.iter().any(needs_other);
        fits.then(|| ConditionList {
            observed_generation: matches!(member(condition, OBSERVED_GENERATION), Some(Ty::Int(_))),
        })
    }

    fn structure(&self, ty: &Ty) -> Option<&StructShape> {
        match ty {
            Ty::Shape(id) => match self.shapes.body(*id) {
                ShapeBody::Struct(body) => Some(body),
                ShapeBody::Alias(ty) => self.structure(ty),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether values of a type are JSON strings: texts, times, or one of some words.
    fn is_text(&self, ty: &Ty) -> bool {
        match ty {
            Ty::String => true,
            Ty::Existing(known) => k8s_types::TIME.is(known),
            Ty::Shape(id) => matches!(
                self.shapes.body(*id),
                ShapeBody::StringEnum(_) | ShapeBody::Time | ShapeBody::Duration
            ),
            _ => false,
        }
    }
}

fn member<'s>(body: &'s StructShape, name: &str) -> Option<&'s Ty> {
    let field = body.fields.iter().find(|field| field.json == name)?;
    Some(&field.ty)
}
