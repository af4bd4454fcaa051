//! Whether a kind's status is written apart from the rest.

/// Whether `status` is written through its own subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusSubresource {
    /// It is.
    Present,
    /// It is not: status is a field like any other, or there is none.
    Absent,
}
