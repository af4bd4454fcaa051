//! Additions to files of the user: methods of handler traits, and modules.

use super::inside;
use crate::crate_path::CratePath;
use crate::model::common_modules::CommonModule;
use crate::model::hook::{self, Hook};
use crate::model::operator::HandledKind;
use crate::model::phrases::article;

/// One addition to a file of the user.
#[derive(Clone, Debug)]
pub enum UserAddition<'a> {
    /// Members of the `impl` of a trait.
    Members {
        /// The trait.
        of: HandlerTrait<'a>,
        /// The methods that get a stub.
        methods: Vec<&'a str>,
        /// What it lacks of the memo.
        memo: MemoAddition,
    },
    /// The declaration of a module.
    Module(&'a str),
}

/// What is added for the memo of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoAddition {
    /// Nothing.
    Nothing,
    /// The associated type of the trait.
    Association,
    /// The associated type, and the declaration of its type.
    AssociationAndType,
}

/// A trait that the user's operator implements, in a module of its own.
#[derive(Clone, Copy, Debug)]
pub enum HandlerTrait<'a> {
    /// The trait of a kind.
    Kind(&'a HandledKind),
    /// The trait of the operator's hooks.
    Hooks(&'a [Hook]),
}

// === impl HandlerTrait ===

impl<'a> HandlerTrait<'a> {
    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Kind(kind) => kind.handlers_trait(),
            Self::Hooks(_) => hook::TRAIT.to_owned(),
        }
    }

    /// The module of the generated and the user's code.
    #[must_use]
    pub fn module(self) -> &'a str {
        match self {
            Self::Kind(kind) => &kind.module,
            Self::Hooks(_) => CommonModule::Hooks.name(),
        }
    }

    /// The names of its methods, each once.
    pub(super) fn methods(self) -> Vec<&'a str> {
        match self {
            Self::Kind(kind) => kind.method_names(),
            Self::Hooks(hooks) => hooks.iter().map(|hook| hook.method.as_str()).collect(),
        }
    }

    /// The objects of its methods: "a Pod".
    pub(super) fn subject(self) -> String {
        match self {
            Self::Kind(kind) => format!("{} {}", article(&kind.type_name), kind.type_name),
            Self::Hooks(_) => "the operator".to_owned(),
        }
    }

    /// The owner of its methods: "Pod".
    pub(super) fn owner(self) -> &'a str {
        match self {
            Self::Kind(kind) => &kind.kind,
            Self::Hooks(_) => "the operator",
        }
    }

    /// Whether the user names a type for its memo.
    pub(super) fn memo(self) -> Option<&'a str> {
        match self {
            Self::Kind(kind) => kind.memo.as_deref(),
            Self::Hooks(_) => None,
        }
    }

    /// The file of the user in a new crate.
    pub(super) fn file(self) -> CratePath {
        inside(&format!("src/handlers/{}.rs", self.module()))
    }
}
