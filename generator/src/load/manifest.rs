//! Reads `kopf.yaml` into types in which every value has its span; `model` interprets them.
//!
//! The JSON Schema for editors is derived from these types, so the documentation of their fields
//! is for users. The decoder is written by hand: serde stops at the first error, and this one
//! reports all of them, each with its span and a suggestion.

mod child;
mod coordination;
mod deploy;
mod document;
mod duration;
mod filter;
mod handler;
mod hook;
mod index;
mod mapping;
mod namespaces;
mod reader;
mod select;
pub mod settings;
mod spanned;
mod types;
mod webhook;

use schemars::Schema;

use crate::diagnostic::{Diagnostics, SourceId, Sources};

pub use self::child::{ChildEntry, ChildSection, ChildUpdate, KindScope, UseSection};
pub use self::coordination::{
    LeaderElectionSection, PeeringOptions, PeeringSection, Standalone, Ties,
};
pub use self::deploy::{DeploySection, DeployTool};
pub use self::document::{
    API_VERSION, ApiVersion, FILE_NAME, Manifest, OperatorSection, ResourceSection, Tracking,
};
pub use self::duration::ManifestDuration;
pub use self::filter::{Conditions, MetadataFilters, PredicateName, ValueFilter};
pub use self::handler::{ErrorMode, HandlerSection, InitialDelay, Trigger};
pub use self::hook::{HookKind, HookSection};
pub use self::index::IndexSection;
pub use self::select::{KindSelector, SelectSection};
pub use self::settings::{SettingValue, SettingsSection, TunedSection, kopf_only_settings};
pub use self::spanned::{OneOrMany, Spanned};
pub use self::types::{BuiltinTypeUse, TypeOption, TypesSection};
pub use self::webhook::{AdmissionSection, ConfigurationOwner, Operation, WebhookSection};

/// Reads a manifest and reports all errors; `None` if it cannot be used.
#[must_use]
pub fn parse(
    sources: &Sources,
    source: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Manifest> {
    document::read(sources, source, diagnostics)
}

/// The JSON Schema of the manifest.
#[must_use]
pub fn schema() -> Schema {
    schemars::schema_for!(Manifest)
}

#[cfg(test)]
mod tests;
