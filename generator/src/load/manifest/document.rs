//! The manifest as a whole, the operator and its kinds, as they are written.

use schemars::JsonSchema;

use super::coordination::{LeaderElectionSection, PeeringSection};
use super::handler::HandlerSection;
use super::hook::HookSection;
use super::index::IndexSection;
use super::reader::ManifestReader;
use super::select::SelectSection;
use super::settings::SettingsSection;
use super::spanned::{OneOrMany, Spanned};
use super::webhook::{AdmissionSection, WebhookSection};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::yaml::{self, Dialect, Node};

/// The file name of the manifest.
pub const FILE_NAME: &str = "kopf.yaml";

/// The only `apiVersion` so far.
pub const API_VERSION: &str = "kopf-gen.dev/v1";

/// The operator: its kinds and what happens to their objects.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields, rename_all = "camelCase", title = "kopf.yaml")]
pub struct Manifest {
    /// The version of this format: `kopf-gen.dev/v1`.
    pub api_version: Spanned<ApiVersion>,
    /// The operator as a whole.
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

/// The operator as a whole.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OperatorSection {
    /// The name of the operator: of its crate, its Deployment, its ServiceAccount.
    pub name: Spanned<String>,
    /// The namespaces that are served unless the command line says otherwise: names, or patterns
    /// such as `myapp-*,!*-pr-*`; all if left out.
    pub namespaces: Option<OneOrMany<String>>,
    /// How the operator gets along with others on the same objects.
    pub peering: Option<PeeringSection>,
    /// Run several replicas, of which one at a time acts.
    pub leader_election: Option<LeaderElectionSection>,
    /// How admission webhooks are made known to the API server.
    pub admission: Option<AdmissionSection>,
    /// Timeouts and limits of the operator.
    pub settings: Option<SettingsSection>,
    /// What happens when the operator starts, stops, and needs credentials.
    #[schemars(with = "Option<Vec<HookSection>>")]
    pub handlers: Vec<HookSection>,
}

/// A kind that the operator handles: `crd` or `builtin` names it; or those that `select` describes.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ResourceSection {
    /// Where the entry stands.
    #[schemars(skip)]
    pub span: Span,
    /// The file with the CustomResourceDefinition, relative to the manifest.
    pub crd: Option<Spanned<String>>,
    /// Which kind, if the file defines several.
    pub kind: Option<Spanned<String>>,
    /// Which version of the kind is handled; the stored one if left out.
    pub version: Option<Spanned<String>>,
    /// A kind that every cluster has, such as `v1/Pod` or `batch/v1/Job`.
    pub builtin: Option<Spanned<String>>,
    /// Kinds that are not named one by one: `everything`, or `{group: …}`, `{category: …}`, `{short_name: …}`.
    pub select: Option<SelectSection>,
    /// What a selection is called in your code, such as `Toys`; made of what it selects if left out.
    #[schemars(rename = "as")]
    pub alias: Option<Spanned<String>>,
    /// What happens to the objects.
    #[schemars(with = "Option<Vec<HandlerSection>>")]
    pub handlers: Vec<HandlerSection>,
    /// The name of your own type of which one is kept in memory for each object.
    pub memo: Option<Spanned<String>>,
    /// Of which objects the last handled state is kept; of those that handlers match if left out.
    pub track: Option<Spanned<Tracking>>,
    /// What the objects are found by, in memory.
    #[schemars(with = "Option<Vec<IndexSection>>")]
    pub indices: Vec<IndexSection>,
    /// Functions that the API server asks before it stores an object.
    #[schemars(with = "Option<Vec<WebhookSection>>")]
    pub admission: Vec<WebhookSection>,
}

/// Of which objects the last handled state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Tracking {
    /// Of those that some handler of changes matches.
    Matching,
    /// Of all, so that an object that begins to match is compared with what it was before.
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
            first_line(second),
            message,
            "a second document",
        );
    }
    reader.manifest(root)
}

/// The place of something large, cut down to where it begins.
fn first_line(node: &Node) -> Span {
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
            version: self.optional_string(&mut fields, "version"),
            builtin: self.optional_string(&mut fields, "builtin"),
            select: self.select(&mut fields),
            alias: self.optional_string(&mut fields, "as"),
            memo: self.optional_string(&mut fields, "memo"),
            track: fields
                .optional("track")
                .and_then(|node| self.word(node, "`track`", TRACKINGS)),
            handlers: match fields.optional("handlers") {
                Some(node) => self
                    .list(node, "`handlers`", Self::handler)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
            indices: match fields.optional("indices") {
                Some(node) => self
                    .list(node, "`indices`", Self::index)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
            admission: match fields.optional("admission") {
                Some(node) => self
                    .list(node, "`admission`", Self::webhook)
                    .unwrap_or_default(),
                None => Vec::new(),
            },
        };
        fields.finish(self);
        // What is wrong with the selection was reported, and there is no other way to go on.
        (!is_selected || section.select.is_some()).then_some(section)
    }
}
