//! The modules of the generated code beside those of the kinds, whose names no kind can take.

use crate::rust::RustPath;

/// The module of all generated code.
pub const GENERATED: &str = "generated";

/// A module that the kinds of an operator have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommonModule {
    /// The trait for the hooks of the operator.
    Hooks,
    /// The indices.
    Indices,
    /// The types of the custom kinds.
    Types,
}

// === impl CommonModule ===

impl CommonModule {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hooks, Self::Indices, Self::Types];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hooks => "hooks",
            Self::Indices => "indices",
            Self::Types => "types",
        }
    }

    /// Its path in the crate.
    #[must_use]
    pub fn location(self) -> Vec<String> {
        [GENERATED, self.name()].map(str::to_owned).to_vec()
    }

    /// The path of something inside of it.
    #[must_use]
    pub fn path(self, names: &[&str]) -> RustPath {
        RustPath::this_crate(&[&[GENERATED, self.name()], names].concat())
    }
}
