//! The operator with everything decided: what the views print.

use std::collections::BTreeSet;

use kopf_core::scope::NamespacePattern;
use kopf_core::selection::Selector;

use super::builtin_kinds::BuiltinKind;
use super::coordination::{LeaderElection, Peering};
use super::handler::Handler;
use super::hook::Hook;
use super::index::Index;
use super::resource::CustomResource;
use super::status_subresource::StatusSubresource;
use super::webhook::Webhook;
use crate::load::crd::Scope;
use crate::load::manifest::{Configuration, SettingValue, Tracking, TunedSection};

/// An operator and the kinds that it handles.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The name of the crate and of everything that is deployed.
    pub name: String,
    /// How it gets along with others.
    pub peering: Peering,
    /// How one of its replicas becomes the leader, if there are several.
    pub leader_election: Option<LeaderElection>,
    /// The namespaces that are served unless the command line says otherwise; all if empty.
    pub namespaces: Vec<String>,
    /// What is tuned.
    pub settings: Vec<TunedSection>,
    /// The handlers of the operator as a whole, in the order of the manifest.
    pub hooks: Vec<Hook>,
    /// The kinds, in the order of the manifest.
    pub kinds: Vec<HandledKind>,
    /// The files with CustomResourceDefinitions.
    pub crd_files: Vec<CrdFile>,
    /// How webhooks are made known.
    pub admission: AdmissionOptions,
}

/// How webhooks are made known to the API server.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// The name of the webhook configurations.
    pub name: String,
    /// Whether the manifest says so.
    pub is_named: bool,
    /// Who writes them.
    pub configuration: Configuration,
}

/// A file with CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct CrdFile {
    /// Where it is, relative to the crate.
    pub path: String,
    /// What it says.
    pub text: String,
}

/// A kind with its handlers.
#[derive(Clone, Debug)]
pub struct HandledKind {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version that is watched.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub scope: Scope,
    /// Whether it has a status subresource.
    pub status: StatusSubresource,
    /// The module of the generated and the user's code.
    pub module: String,
    /// The Rust type.
    pub type_name: String,
    /// What the name of its trait begins with: the type, or more where kinds share their names.
    pub trait_prefix: String,
    /// Where the Rust type comes from.
    pub origin: KindOrigin,
    /// The body of an object that the server accepts, as far as that can be guessed.
    pub sample: Option<serde_json::Value>,
    /// The handlers, in the order of the manifest.
    pub handlers: Vec<Handler>,
    /// The webhooks, in the order of the manifest.
    pub webhooks: Vec<Webhook>,
    /// The user's type of which one is kept for each object.
    pub memo: Option<String>,
    /// Of which objects the last handled state is kept.
    pub tracking: Tracking,
}

/// Where the Rust type of a kind comes from.
#[derive(Clone, Debug)]
pub enum KindOrigin {
    /// From k8s-openapi.
    Builtin(&'static BuiltinKind),
    /// Made from a CustomResourceDefinition.
    Custom(Box<CustomResource>),
    /// Whatever the cluster has, of any shape.
    Selected(Selector),
}

// === impl Operator ===

impl Operator {
    /// Whether the API server asks it about anything.
    #[must_use]
    pub fn has_webhooks(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.webhooks.is_empty())
    }

    /// The only namespaces that are served, if they are known by name.
    #[must_use]
    pub fn fixed_namespaces(&self) -> Option<BTreeSet<&str>> {
        let names = self.namespaces.iter().map(|pattern| {
            let is_name = NamespacePattern::new(pattern).literal().is_some();
            is_name.then_some(pattern.as_str())
        });
        let names: BTreeSet<&str> = names.collect::<Option<_>>()?;
        (!names.is_empty()).then_some(names)
    }

    /// Whether namespaces are looked for.
    #[must_use]
    pub fn scans_namespaces(&self) -> bool {
        let disabled = ("disabled", SettingValue::Flag(true));
        let mut sections = self.settings.iter();
        !sections.any(|it| it.field == "scanning" && it.fields.contains(&disabled))
    }

    /// All indices, each once, in the order of the manifest.
    #[must_use]
    pub fn indices(&self) -> Vec<&Index> {
        let mut indices: Vec<&Index> = Vec::new();
        for index in self.kinds.iter().flat_map(HandledKind::indices) {
            if indices.iter().all(|known| known.name != index.name) {
                indices.push(index);
            }
        }
        indices
    }

    /// The name of the Service that leads to its webhooks, and of the Secret with their certificates.
    #[must_use]
    pub fn webhook_service(&self) -> String {
        format!("{}-webhook", self.name)
    }
}

// === impl HandledKind ===

impl HandledKind {
    /// The trait that the user's operator implements.
    #[must_use]
    pub fn handlers_trait(&self) -> String {
        format!("{}Handlers", self.trait_prefix)
    }

    /// The indices in which its objects are found.
    pub fn indices(&self) -> impl Iterator<Item = &Index> {
        self.handlers.iter().filter_map(Handler::index)
    }

    /// What is selected, if it is not one kind.
    #[must_use]
    pub fn selector(&self) -> Option<&Selector> {
        match &self.origin {
            KindOrigin::Selected(selector) => Some(selector),
            KindOrigin::Builtin(_) | KindOrigin::Custom(_) => None,
        }
    }

    /// Whether some objects could be of both.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        match (self.selector(), other.selector()) {
            (Some(one), Some(other)) => one.may_overlap(other),
            (Some(selector), None) => selector.may_mean(&other.group, &other.kind, &other.plural),
            (None, Some(selector)) => selector.may_mean(&self.group, &self.kind, &self.plural),
            (None, None) => (&self.group, &self.plural) == (&other.group, &other.plural),
        }
    }

    /// Whether its objects are listed and watched.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        !self.handlers.is_empty() || self.webhooks.is_empty()
    }

    /// `kopf.dev/v1`, or `v1` for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}
