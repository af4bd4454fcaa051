//! Children of handled objects: what is applied, what is already so, what is deleted.

pub mod desired;
pub mod fields;
pub mod in_flight;
pub mod options;
pub mod prune;
pub mod reasons;
pub mod takebacks;

/// The label with the name of the operator: the watches of children select by it.
pub const OPERATOR_LABEL: &str = "kopf-gen.dev/operator";

/// The label with the uid of the owner: the way from a child to its owner.
pub const OWNER_LABEL: &str = "kopf-gen.dev/owner-uid";

/// The annotation with the digest of what was applied.
pub const APPLIED_ANNOTATION: &str = "kopf-gen.dev/applied";
