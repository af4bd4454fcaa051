//! From YAML nodes to the manifest's types, reporting everything that does not fit.

use super::coordination::whole;
use super::reader::{ManifestReader, MappingFields};
use super::{
    API_VERSION, ApiVersion, FILE_NAME, Manifest, OneOrMany, OperatorSection, ResourceSection,
    Spanned, Tracking,
};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::yaml::{self, Dialect, Node};

const TRACKINGS: &[(&str, Tracking)] = &[
    ("matching", Tracking::Matching),
    ("always", Tracking::Always),
];

pub(super) fn manifest(
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

    pub(super) fn list<T>(
        &mut self,
        node: &Node,
        what: &str,
        mut item: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(nodes) = node.as_seq() else {
            self.wrong_type(node, what, "a list");
            return None;
        };
        Some(nodes.iter().filter_map(|node| item(self, node)).collect())
    }

    pub(super) fn one_or_many<T>(
        &mut self,
        node: &Node,
        mut item: impl FnMut(&mut Self, &Node) -> Option<Spanned<T>>,
    ) -> Option<OneOrMany<T>> {
        match node.as_seq() {
            None => item(self, node).map(OneOrMany::One),
            Some([]) => {
                self.error(
                    Code::ManifestValue,
                    node.span,
                    "the list is empty",
                    "at least one is needed",
                );
                None
            }
            Some(nodes) => {
                let values: Vec<_> = nodes.iter().filter_map(|node| item(self, node)).collect();
                (values.len() == nodes.len()).then_some(OneOrMany::Many(values))
            }
        }
    }

    pub(super) fn optional_string(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<String>> {
        fields
            .optional(key)
            .and_then(|node| self.string(node, &format!("`{key}`")))
    }

    pub(super) fn boolean(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<bool>> {
        let node = fields.optional(key)?;
        let value = node.as_bool();
        if value.is_none() {
            self.wrong_type(node, &format!("`{key}`"), "true or false");
        }
        value.map(|value| Spanned {
            value,
            span: node.span,
        })
    }

    pub(super) fn count(
        &mut self,
        fields: &mut MappingFields<'_>,
        key: &'static str,
    ) -> Option<Spanned<u32>> {
        let node = fields.optional(key)?;
        match whole(node).map(u32::try_from) {
            Some(Ok(value)) => Some(Spanned {
                value,
                span: node.span,
            }),
            Some(Err(_)) => {
                let message = format!("`{key}` must be between 0 and {}", u32::MAX);
                self.error(Code::ManifestValue, node.span, message, "out of range");
                None
            }
            None => {
                self.wrong_type(node, &format!("`{key}`"), "a whole number");
                None
            }
        }
    }
}
