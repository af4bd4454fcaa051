//! The status subresource of a kind.

/// Whether a kind has a status subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusSubresource {
    /// `status` is written through the subresource.
    Present,
    /// `status` is a field like any other, or absent.
    Absent,
}
