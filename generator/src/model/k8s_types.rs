//! Types of `k8s-openapi` that can stand for a schema.

mod table;

pub(super) use table::{knows, member};

use super::generated_types::{ExistingType, PathStep, Ty};
use super::options::Builtins;
use crate::load::schema::{Kind, Schema};

/// A type that needs no table.
#[derive(Clone, Copy, Debug)]
pub(super) struct SimpleType {
    path: &'static str,
    default: bool,
}

pub(super) const BYTE_STRING: SimpleType = SimpleType {
    path: "k8s_openapi::ByteString",
    default: true,
};
pub(super) const INT_OR_STRING: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString",
    default: true,
};
pub(super) const OBJECT_META: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
    default: true,
};
pub(super) const QUANTITY: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::api::resource::Quantity",
    default: true,
};
pub(super) const RAW_EXTENSION: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::runtime::RawExtension",
    default: true,
};
pub(super) const TIME: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time",
    default: false,
};
const CONDITION: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition",
    default: false,
};

impl SimpleType {
    pub(super) fn known(self) -> ExistingType {
        ExistingType {
            path: self.path.to_owned(),
            default: self.default,
        }
    }

    pub(super) fn ty(self) -> Ty {
        Ty::Existing(self.known())
    }
}

/// The type that can hold every object of a schema, if there is one.
pub(super) fn recognise(
    schema: &Schema,
    steps: &[PathStep],
    builtins: Builtins,
) -> Option<ExistingType> {
    if builtins == Builtins::None || schema.preserve_unknown || schema.embedded_resource {
        return None;
    }
    // Its time would lose what is finer than a second.
    if builtins == Builtins::Compatible && is_condition(schema) {
        return Some(CONDITION.known());
    }
    table::find(schema, steps, builtins)
}

/// Whether `IntOrString`, whose numbers have 32 bits, can hold every value of a schema.
pub(super) fn holds_int_or_string(schema: &Schema, builtins: Builtins) -> bool {
    let bound = |keyword| schema.limit(keyword).and_then(serde_json::Value::as_i64);
    match builtins {
        Builtins::None => false,
        Builtins::Compatible => true,
        Builtins::Exact => {
            bound("minimum").is_some_and(|least| least >= i32::MIN.into())
                && bound("maximum").is_some_and(|most| most <= i32::MAX.into())
        }
    }
}

/// Whether a schema is that of `metav1.Condition`.
fn is_condition(schema: &Schema) -> bool {
    const MEMBERS: [&str; 6] = [
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
        "observedGeneration",
    ];
    let required = &MEMBERS[..5];
    schema.properties.len() >= required.len()
        && schema
            .properties
            .iter()
            .all(|p| MEMBERS.contains(&p.name.as_str()) && !p.schema.nullable)
        && required.iter().all(|name| schema.requires(name))
        && schema.properties.iter().all(|property| {
            let of = &property.schema;
            match property.name.as_str() {
                "lastTransitionTime" => {
                    of.kind == Some(Kind::String) && of.format.as_deref() == Some("date-time")
                }
                "observedGeneration" => of.kind == Some(Kind::Integer) && !of.int_or_string,
                _ => of.kind == Some(Kind::String) && of.format.is_none(),
            }
        })
}
