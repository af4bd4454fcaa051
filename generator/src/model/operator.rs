//! The complete model of an operator, from which all files are planned.

use std::collections::BTreeSet;

use kopf_core::scope::NamespacePattern;
use kopf_core::selection::Selector;
use kopf_core::shutdown::StopTimes;

use super::builtin_kinds::BuiltinKind;
use super::child::{ChildDeclaration, UsedKind};
use super::coordination::{LeaderElection, Peering};
use super::deploy::DeploymentOptions;
use super::handler::Handler;
use super::hook::{Hook, HookKind};
use super::index::Index;
use super::resource::CustomResource;
use super::status_subresource::StatusSubresource;
use super::webhook::Webhook;
use crate::load::crd::Scope;
use crate::load::manifest::{ConfigurationOwner, SettingValue, Tracking, TunedSection};
use crate::rust::RustPath;

/// The associated type of a kind's trait that names the user's type for the memo.
pub const MEMO_TYPE: &str = "Memo";

/// An operator and the kinds that it handles.
#[derive(Clone, Debug)]
pub struct Operator {
    /// The name of the crate and of everything that is deployed.
    pub name: String,
    /// Its peering with other operators.
    pub peering: Peering,
    /// The leader election among its replicas.
    pub leader_election: Option<LeaderElection>,
    /// How it runs in a cluster.
    pub deployment: DeploymentOptions,
    /// The namespaces to watch unless the command line names others; all if empty.
    pub namespaces: Vec<String>,
    /// The settings that the manifest changes.
    pub settings: Vec<TunedSection>,
    /// The hooks, in the order of the manifest.
    pub hooks: Vec<Hook>,
    /// The kinds, in the order of the manifest.
    pub kinds: Vec<HandledKind>,
    /// The custom kinds that are only children, or that objects only refer to.
    pub related_types: Vec<CustomResource>,
    /// The files with the CustomResourceDefinitions of the kinds.
    pub crd_files: Vec<CrdFile>,
    /// The configuration of webhooks.
    pub admission: AdmissionOptions,
}

/// The webhook configurations of an operator.
#[derive(Clone, Debug)]
pub struct AdmissionOptions {
    /// The name of the webhook configurations.
    pub name: String,
    /// Whether the manifest gives the name.
    pub is_named: bool,
    /// Whether the operator or cert-manager maintains them.
    pub configuration: ConfigurationOwner,
}

/// A file with CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct CrdFile {
    /// The path relative to the crate.
    pub path: String,
    /// The content.
    pub text: String,
    /// The CRDs in it, each as compact JSON in its `v1` form.
    pub definitions: Vec<String>,
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
    /// The prefix of its trait: the type, with version and group if several kinds share the name.
    pub trait_prefix: String,
    /// The origin of the Rust type.
    pub origin: KindOrigin,
    /// An object that the API server probably accepts.
    pub sample: Option<serde_json::Value>,
    /// The kinds that its objects own, in the order of the manifest.
    pub children: Vec<ChildDeclaration>,
    /// The kinds that its objects refer to, in the order of the manifest.
    pub uses: Vec<UsedKind>,
    /// The handlers, in the order of the manifest.
    pub handlers: Vec<Handler>,
    /// The webhooks, in the order of the manifest.
    pub webhooks: Vec<Webhook>,
    /// The user's type for the memo of each object.
    pub memo: Option<String>,
    /// The objects whose last handled state is kept.
    pub tracking: Tracking,
}

/// The origin of the Rust type of a kind.
#[derive(Clone, Debug)]
pub enum KindOrigin {
    /// A type of k8s-openapi.
    Builtin(&'static BuiltinKind),
    /// A type generated from a CustomResourceDefinition.
    Custom(Box<CustomResource>),
    /// Untyped objects of all kinds that a selector matches.
    Selected(Selector),
}

// === impl Operator ===

impl Operator {
    /// Whether a function of the user builds its state.
    #[must_use]
    pub fn builds_state(&self) -> bool {
        self.hooks.iter().any(|hook| hook.moment == HookKind::State)
    }

    /// Whether it has any webhook.
    #[must_use]
    pub fn has_webhooks(&self) -> bool {
        self.kinds.iter().any(|kind| !kind.webhooks.is_empty())
    }

    /// Those who can maintain the webhook configurations: only the operator knows the kinds of a selection.
    #[must_use]
    pub fn possible_webhook_owners(&self) -> &'static [ConfigurationOwner] {
        let mut kinds = self.kinds.iter();
        let has_selection =
            kinds.any(|kind| kind.selector().is_some() && !kind.webhooks.is_empty());
        if has_selection || !self.has_webhooks() {
            &[ConfigurationOwner::Managed]
        } else {
            &[ConfigurationOwner::Managed, ConfigurationOwner::CertManager]
        }
    }

    /// The watched namespaces, if the manifest lists them by name and without patterns.
    #[must_use]
    pub fn fixed_namespaces(&self) -> Option<BTreeSet<&str>> {
        let names = self.namespaces.iter().map(|pattern| {
            let is_name = NamespacePattern::new(pattern).literal().is_some();
            is_name.then_some(pattern.as_str())
        });
        let names: BTreeSet<&str> = names.collect::<Option<_>>()?;
        (!names.is_empty()).then_some(names)
    }

    /// Whether the operator watches namespaces.
    #[must_use]
    pub fn scans_namespaces(&self) -> bool {
        let disabled = ("disabled", SettingValue::Flag(true));
        let mut sections = self.settings.iter();
        !sections.any(|it| it.field == "scanning" && it.fields.contains(&disabled))
    }

    /// The time limits of its stop; a startup handler may still change them.
    #[must_use]
    pub fn stop_times(&self) -> StopTimes {
        let mut times = StopTimes::default();
        let shutdown = self.settings.iter().filter(|it| it.field == "shutdown");
        for (field, value) in shutdown.flat_map(|section| &section.fields) {
            let SettingValue::Duration(duration) = value else {
                continue;
            };
            match *field {
                "grace" => times.grace = *duration,
                "posting_grace" => times.posting_grace = *duration,
                "deadline" => times.deadline = *duration,
                _ => {}
            }
        }
        times
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

    /// The name of the Service of its webhooks, and of the Secret with their certificates.
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

    /// The type that stands for the kinds that its objects own; none if they own nothing.
    #[must_use]
    pub fn children_type(&self) -> Option<String> {
        let needs_it = !self.children.is_empty() || self.reconciles();
        needs_it.then(|| format!("{}Children", self.trait_prefix))
    }

    /// Whether it has a `reconcile` handler.
    #[must_use]
    pub fn reconciles(&self) -> bool {
        self.handlers.iter().any(Handler::is_reconcile)
    }

    /// The alias of the context of its `reconcile` handler.
    #[must_use]
    pub fn reconcile_context(&self) -> String {
        format!("{}Reconcile", self.trait_prefix)
    }

    /// Whether one of its objects can own something that no owner reference can reach, and that the
    /// operator deletes together with it.
    #[must_use]
    pub fn has_unreachable_children(&self) -> bool {
        let mut children = self.children.iter();
        children.any(|child| child.prune && !child.is_reachable_from(self.scope))
    }

    /// The path of the type of its objects.
    #[must_use]
    pub fn object_path(&self) -> RustPath {
        match &self.origin {
            KindOrigin::Builtin(builtin) => builtin.type_path(),
            KindOrigin::Custom(resource) => {
                resource.type_path(resource.main_version(), &resource.type_name)
            }
            KindOrigin::Selected(_) => {
                RustPath::external(&format!("kopf_runtime::{}", self.type_name))
            }
        }
    }

    /// The indices that contain its objects.
    pub fn indices(&self) -> impl Iterator<Item = &Index> {
        self.handlers.iter().filter_map(Handler::index)
    }

    /// The selector, unless it is a single kind.
    #[must_use]
    pub fn selector(&self) -> Option<&Selector> {
        match &self.origin {
            KindOrigin::Selected(selector) => Some(selector),
            KindOrigin::Builtin(_) | KindOrigin::Custom(_) => None,
        }
    }

    /// Whether an object can belong to both.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        match (self.selector(), other.selector()) {
            (Some(one), Some(other)) => one.may_overlap(other),
            (Some(selector), None) => selector.may_select(&other.group, &other.kind, &other.plural),
            (None, Some(selector)) => selector.may_select(&self.group, &self.kind, &self.plural),
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
