//! The complexity of a type as clippy counts it, to name types that are too long to write out.

use super::generated_types::Ty;

/// The complexity from which on clippy warns.
const MAX_COMPLEXITY: usize = 250;

/// Whether a field of this type needs a type alias.
pub(super) fn is_too_complex(ty: &Ty, nullable: bool) -> bool {
    let options = 1 + usize::from(nullable);
    let around: usize = (1..=options).map(weight).sum();
    around + complexity(ty, 1 + options) > MAX_COMPLEXITY
}

/// The complexity of a type that is nested this deep in others.
fn complexity(ty: &Ty, depth: usize) -> usize {
    weight(depth)
        + match ty {
            Ty::Vec(inner) | Ty::Nullable(inner) => complexity(inner, depth + 1),
            Ty::Map(inner) => weight(depth + 1) + complexity(inner, depth + 1),
            _ => 0,
        }
}

const fn weight(depth: usize) -> usize {
    10 * depth
}
