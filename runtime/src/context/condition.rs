//! Conditions in the status of handled objects.

use jiff::Timestamp;
use kopf_core::object::condition::{ConditionStatus, StatusCondition};

use crate::handler::patch::Patch;

/// A kind whose status has `conditions` as Kubernetes defines them. Generated code implements it.
///
/// Handlers of other kinds cannot set conditions.
#[diagnostic::on_unimplemented(
    message = "the status of `{Self}` has no `conditions` as Kubernetes defines them",
    note = "its schema must have `status.conditions`: a list of objects with the texts `type`, \
            `status`, `reason`, `message` and `lastTransitionTime`"
)]
pub trait HasConditions {
    /// Whether a condition has `observedGeneration`.
    const OBSERVED_GENERATION: bool;
}

/// Adds the condition to the changes of an object. Others change the same list, so that it is an
/// edit of the newest state, which sends no request if the object has the condition.
pub(super) fn set(
    patch: &Patch,
    observed_generation: Option<i64>,
    condition_type: &str,
    status: ConditionStatus,
    reason: &str,
    message: String,
) {
    let condition = StatusCondition {
        condition_type: condition_type.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        observed_generation,
    };
    let now = Timestamp::now();
    patch.edit(move |object| condition.set_in(object, now));
}
