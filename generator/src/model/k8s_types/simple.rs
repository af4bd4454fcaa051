//! The types of `k8s-openapi` that are known without the table of structs.

use crate::load::schema::Schema;
use crate::model::generated_types::{ExistingType, Ty};
use crate::model::type_options::Builtins;

/// A type that is not in the table.
#[derive(Clone, Copy, Debug)]
pub(in crate::model) struct SimpleType {
    path: &'static str,
    default: bool,
}

pub(in crate::model) const BYTE_STRING: SimpleType = SimpleType {
    path: "k8s_openapi::ByteString",
    default: true,
};
pub(in crate::model) const INT_OR_STRING: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::util::intstr::IntOrString",
    default: true,
};
pub(in crate::model) const OBJECT_META: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
    default: true,
};
pub(in crate::model) const QUANTITY: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::api::resource::Quantity",
    default: true,
};
pub(in crate::model) const RAW_EXTENSION: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::runtime::RawExtension",
    default: true,
};
pub(in crate::model) const TIME: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::Time",
    default: false,
};

pub(in crate::model) const CONDITION: SimpleType = SimpleType {
    path: "k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition",
    default: false,
};

impl SimpleType {
    /// Whether a type is this one.
    pub(in crate::model) fn is(self, known: &ExistingType) -> bool {
        known.rust.path().is_some_and(|path| path.is(self.path))
    }

    pub(in crate::model) fn known(self) -> ExistingType {
        ExistingType::external(self.path, self.default)
    }

    pub(in crate::model) fn ty(self) -> Ty {
        Ty::Existing(self.known())
    }
}

/// Whether `IntOrString`, whose numbers have 32 bits, can hold every value of a schema.
pub(in crate::model) fn holds_int_or_string(schema: &Schema, builtins: Builtins) -> bool {
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
