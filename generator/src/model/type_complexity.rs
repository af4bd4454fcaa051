//! Types that are too long to be read where they are used get a name.

use super::generated_types::{ShapeBody, ShapeDocs, Ty};
use super::schema_to_type::SchemaMapper;

/// What clippy takes for too complex.
const MOST_COMPLEX: usize = 250;

impl SchemaMapper<'_> {
    /// The type of a field, under a name of its own if it is too long to be written out.
    pub(super) fn short(&mut self, ty: Ty, nullable: bool) -> Ty {
        let options = 1 + usize::from(nullable);
        let around: usize = (1..=options).map(weight).sum();
        if around + complexity(&ty, 1 + options) > MOST_COMPLEX {
            self.intern(ShapeBody::Alias(ty), ShapeDocs::default())
        } else {
            ty
        }
    }
}

/// The complexity of a type that stands so deep in others, as clippy counts it.
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
