//! Reads the manifest, its section `operator` and its list `resources`.

use schemars::JsonSchema;

use super::child::{ChildEntry, UseSection};
use super::coordination::{LeaderElectionSection, PeeringSection};
use super::deploy::DeploySection;
use super::handler::HandlerSection;
use super::hook::HookSection;
use super::index::IndexSection;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::select::SelectSection;
use super::settings::SettingsSection;
use super::spanned::{OneOrMany, Spanned};
use super::types::TypesSection;
use super::webhook::{AdmissionSection, WebhookSection};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::yaml::{self, Dialect, Node};

/// The file name of the manifest.
pub const FILE_NAME: &str = "kopf.yaml";

/// The only `apiVersion` so far.
pub const API_VERSION: &str = "kopf-gen.dev/v1";

/// The operator, its kinds, and the handlers of their objects.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase", title = "kopf.yaml")]
pub struct Manifest {
    /// The version of this format: `kopf-gen.dev/v1`.
    pub api_version: Spanned<ApiVersion>,
    /// The operator itself.
    pub operator: OperatorSection,
    /// The kinds that the operator handles.
    #[schemars(with = "Option<Vec<ResourceSection>>")]
    pub resources: Vec<ResourceSection>,
    /// The text that the spans count in.
    #[schemars(skip)]
    pub source: SourceId,
}

/// The version of the manifest format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
pub enum ApiVersion {
    /// The first version.
    #[schemars(rename = "kopf-gen.dev/v1")]
    V1,
}

/// The operator itself.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OperatorSection {
    /// The name of the operator: of its crate, its Deployment, its ServiceAccount.
    pub name: Spanned<String>,
    /// The namespaces that the operator serves unless its command line names others: names, or
    /// patterns such as `myapp-*,!*-pr-*`; all if left out.
    pub namespaces: Option<OneOrMany<String>>,
    /// Peering: how the operator treats other operators of the same objects.
    pub peering: Option<PeeringSection>,
    /// Leader election: of several replicas, one at a time handles objects.
    pub leader_election: Option<LeaderElectionSection>,
    /// How the operator runs in a cluster: its image, its replicas.
    pub deploy: Option<DeploySection>,
    /// The registration of admission webhooks with the API server.
    pub admission: Option<AdmissionSection>,
    /// Timeouts and limits of the operator.
    pub settings: Option<SettingsSection>,
    /// Functions that are called when the operator starts, stops, needs credentials, or is probed.
    #[schemars(with = "Option<Vec<HookSection>>")]
    pub handlers: Vec<HookSection>,
}

/// A kind that the operator handles, named by `crd` or `builtin`; or several kinds, with `select`.
#[derive(Clone, Debug, Default, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResourceSection {
    /// The place of the entry.
    #[schemars(skip)]
    pub span: Span,
    /// The file with the CustomResourceDefinition, relative to the manifest.
    pub crd: Option<Spanned<String>>,
    /// The kind, if the file defines several.
    pub kind: Option<Spanned<String>>,
    /// The group of the kind, if the file defines kinds of one name in several groups.
    pub group: Option<Spanned<String>>,
    /// The version of the kind; the stored one if left out.
    pub version: Option<Spanned<String>>,
    /// Options for the Rust types of the objects, if they come from a definition.
    pub types: Option<Spanned<TypesSection>>,
    /// A kind of Kubernetes itself, such as `v1/Pod` or `batch/v1/Job`.
    pub builtin: Option<Spanned<String>>,
    /// Several kinds at once: `everything`, or `{group: …}`, `{category: …}`, `{short_name: …}`.
    pub select: Option<SelectSection>,
    /// The name of a selection in your code, such as `Toys`; derived from the selection if left out.
    #[schemars(rename = "as")]
    pub alias: Option<Spanned<String>>,
    /// Kinds that the objects own: the operator watches them, and calls `reconcile` when one changes or is gone.
    #[schemars(with = "Option<Vec<ChildEntry>>")]
    pub children: Vec<ChildEntry>,
    /// Kinds that the objects refer to by name: the operator calls `reconcile` when one changes, appears or is gone.
    #[schemars(with = "Option<Vec<UseSection>>")]
    pub uses: Vec<UseSection>,
    /// Functions that are called for the objects.
    #[schemars(with = "Option<Vec<HandlerSection>>")]
    pub handlers: Vec<HandlerSection>,
    /// The name of a type of yours; the operator keeps one value of it in memory for each object.
    pub memo: Option<Spanned<String>>,
    /// The objects that keep their last handled state; those that handlers match if left out.
    pub track: Option<Spanned<Tracking>>,
    /// Indices: objects found by keys, in memory.
    #[schemars(with = "Option<Vec<IndexSection>>")]
    pub indices: Vec<IndexSection>,
    /// Functions that the API server calls before it stores an object.
    #[schemars(with = "Option<Vec<WebhookSection>>")]
    pub admission: Vec<WebhookSection>,
}

/// The objects that keep their last handled state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Tracking {
    /// Those that match a handler of changes.
    Matching,
    /// All, so that an object that begins to match is compared with its former state.
    Always,
}

const TRACKINGS: &[(&str, Tracking)] = &[
    ("matching", Tracking::Matching),
    ("always", Tracking::Always),
];

pub(super) fn read(
    sources: &Sources,
    source: SourceId,
    diagnostics: &mut Diagnostics,
) -> Option<Manifest> {
    let documents = yaml::parse(sources, source, Dialect::Core, diagnostics);
    let had_errors = diagnostics.has_errors();
    let mut reader = ManifestReader {
        source,
        diagnostics,
    };
    let mut documents = documents.iter();
    let Some(root) = documents.next() else {
        if !had_errors {
            let help = format!("it starts with `apiVersion: {API_VERSION}`");
            let message = format!("{FILE_NAME} is empty");
            reader.push(
                Diagnostic::error(Code::ManifestMissing, message)
                    .at(source, Span::default(), "")
                    .help(help),
            );
        }
        return None;
    };
    if let Some(second) = documents.next() {
        let message = format!("{FILE_NAME} holds one document");
        reader.error(
            Code::ManifestValue,
            first_byte(second),
            message,
            "a second document",
        );
    }
    reader.manifest(root)
}

/// The first byte of a node, as a short span for a large one.
fn first_byte(node: &Node) -> Span {
    Span::new(node.span.start, node.span.end.min(node.span.start + 1))
}

impl ManifestReader<'_> {
    fn manifest(&mut self, root: &Node) -> Option<Manifest> {
        let mut fields = self.fields(root, "the manifest")?;
        let versions = [(API_VERSION, ApiVersion::V1)];
        let api_version = fields
            .required("apiVersion")
            .and_then(|node| self.word(node, "`apiVersion`", &versions));
        let operator = fields
            .required("operator")
            .and_then(|node| self.operator(node));
        let resources = match fields.optional("resources") {
            Some(node) => self.list(node, "`resources`", Self::resource),
            None => Some(Vec::new()),
        };
        fields.finish(self);
        Some(Manifest {
            api_version: api_version?,
            operator: operator?,
            resources: resources?,
            source: self.source,
        })
    }

    fn operator(&mut self, node: &Node) -> Option<OperatorSection> {
        let mut fields = self.fields(node, "`operator`")?;
        let name = fields
            .required("name")
            .and_then(|node| self.string(node, "`name`"));
        let namespaces = self.namespaces(&mut fields);
        let peering = self.peering(&mut fields);
        let leader_election = self.leader_election(&mut fields);
        let deploy = self.deploy(&mut fields);
        let admission = fields
            .optional("admission")
            .and_then(|node| self.admission(node));
        let settings = self.settings(&mut fields);
        let handlers = self.hooks(&mut fields);
        fields.finish(self);
        Some(OperatorSection {
            name: name?,
            namespaces,
            peering,
            leader_election,
            deploy,
            admission,
            settings,
            handlers,
        })
    }

    fn resource(&mut self, node: &Node) -> Option<ResourceSection> {
        let mut fields = self.fields(node, "a resource")?;
        let is_selected = fields.optional("select").is_some();
        let section = ResourceSection {
            span: fields.place(),
            crd: self.optional_string(&mut fields, "crd"),
            kind: self.optional_string(&mut fields, "kind"),
            group: self.optional_string(&mut fields, "group"),
            version: self.optional_string(&mut fields, "version"),
            types: fields.optional("types").and_then(|node| self.types(node)),
            builtin: self.optional_string(&mut fields, "builtin"),
            select: self.select(&mut fields),
            alias: self.optional_string(&mut fields, "as"),
            memo: self.optional_string(&mut fields, "memo"),
            track: fields
                .optional("track")
                .and_then(|node| self.word(node, "`track`", TRACKINGS)),
            children: self.entries(&mut fields, "children", Self::child),
            uses: self.entries(&mut fields, "uses", Self::used),
            handlers: self.entries(&mut fields, "handlers", Self::handler),
            indices: self.entries(&mut fields, "indices", Self::index),
            admission: self.entries(&mut fields, "admission", Self::webhook),
        };
        fields.finish(self);
        // The errors of the selection are reported, and no other key names the kinds.
        (!is_selected || section.select.is_some()).then_some(section)
    }

    /// The entries of a list that may be left out.
    fn entries<T>(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
        item: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<T> {
        let node = fields.optional(key);
        let entries = node.and_then(|node| self.list(node, &format!("`{key}`"), item));
        entries.unwrap_or_default()
    }
}
