//! Reads the CustomResourceDefinitions among the documents of a text.

use super::names::{NameProblem, NameRule, QuotedName, lower_case, server_reason};
use super::schema::{Schema, SchemaReader};
use super::server_rules;
use super::unreadable;
use super::upgrade;
use super::yaml::{self, Dialect, MapEntry, Node, Value};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity, SourceId, Sources, Span};

/// A CustomResourceDefinition, in its `v1` form.
#[derive(Clone, Debug)]
pub struct Crd {
    /// The text that it is in.
    pub source: SourceId,
    /// Its place there.
    pub span: Span,
    /// `metadata.name`.
    pub name: String,
    /// `spec.group`.
    pub group: String,
    /// `spec.names`.
    pub names: ResourceNames,
    /// `spec.scope`.
    pub scope: Scope,
    /// `spec.versions`, in the order of the text.
    pub versions: Vec<CrdVersion>,
    /// The whole definition as compact JSON.
    pub json: String,
    /// Whether it is not what the text says, because that was upgraded or corrected.
    pub is_corrected: bool,
}

/// The names of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceNames {
    /// `kind`.
    pub kind: String,
    /// `plural`.
    pub plural: String,
    /// `singular`, which defaults to the kind in lower case.
    pub singular: String,
    /// `listKind`, which defaults to the kind and `List`.
    pub list_kind: String,
    /// `shortNames`.
    pub short_names: Vec<String>,
    /// `categories`.
    pub categories: Vec<String>,
}

/// Whether objects are in namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Each object is in a namespace.
    Namespaced,
    /// Objects are not in namespaces.
    Cluster,
}

/// A version of a resource.
#[derive(Clone, Debug)]
pub struct CrdVersion {
    /// `name`.
    pub name: String,
    /// The place of the name.
    pub span: Span,
    /// `served`.
    pub served: bool,
    /// `storage`.
    pub storage: bool,
    /// `deprecated`, with its warning.
    pub deprecated: Option<String>,
    /// `schema.openAPIV3Schema`.
    pub schema: Schema,
    /// Whether there is a status subresource.
    pub status: bool,
    /// The scale subresource.
    pub scale: Option<ScaleSubresource>,
    /// `additionalPrinterColumns`.
    pub columns: Vec<PrinterColumn>,
    /// The paths of `selectableFields`.
    pub selectable_fields: Vec<String>,
}

/// The scale subresource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaleSubresource {
    /// `specReplicasPath`.
    pub spec_replicas: String,
    /// `statusReplicasPath`.
    pub status_replicas: String,
    /// `labelSelectorPath`.
    pub selector: Option<String>,
}

/// A printer column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrinterColumn {
    /// `name`.
    pub name: String,
    /// `jsonPath`.
    pub path: String,
}

/// The treatment of definitions that the API server rejects although they can be corrected: of
/// `v1beta1`, or not named after plural and group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameFix {
    /// Report them; their types are still good.
    #[default]
    Report,
    /// Refuse them, because they are going to be installed.
    Refuse,
    /// Correct them.
    Correct,
}

/// Reads the definitions of one text; each other document is skipped with a diagnostic.
#[must_use]
pub fn read(
    sources: &Sources,
    source: SourceId,
    fix: NameFix,
    diagnostics: &mut Diagnostics,
) -> Vec<Crd> {
    let documents = yaml::parse(sources, source, Dialect::Kubernetes, diagnostics);
    let mut crds = Vec::new();
    for document in documents {
        flatten(document, source, fix, diagnostics, &mut crds);
    }
    crds
}

/// Collects the definitions of a document, also those inside of lists.
fn flatten(
    document: Node,
    source: SourceId,
    fix: NameFix,
    diagnostics: &mut Diagnostics,
    crds: &mut Vec<Crd>,
) {
    let text = |key| document.get(key).and_then(Node::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let known = ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"].contains(&api_version);
    if known && kind == "CustomResourceDefinition" {
        let old = api_version.ends_with("v1beta1");
        crds.extend(
            CrdReader {
                source,
                // A definition of `v1beta1` is refused as a whole, and a corrected one is read
                // again.
                is_judged: fix == NameFix::Refuse && !old,
                diagnostics,
            }
            .crd(document, old, fix),
        );
    } else if kind.ends_with("List") && document.get("items").is_some() {
        let Value::Map(entries) = document.value else {
            return;
        };
        let items = entries
            .into_iter()
            .filter(|entry| entry.key.name == "items");
        for entry in items {
            if let Value::Seq(items) = entry.value.value {
                for item in items {
                    flatten(item, source, fix, diagnostics, crds);
                }
            }
        }
    } else if !document.is_null() {
        let what = if kind.is_empty() {
            "not a Kubernetes object".to_owned()
        } else if api_version.is_empty() {
            format!("a {kind} without `apiVersion`")
        } else {
            format!("a {kind} of {api_version}")
        };
        let place = document
            .entry("kind")
            .map_or(document.span, |entry| entry.key.span.to(entry.value.span));
        diagnostics.push(
            Diagnostic::info(Code::NotACrd, format!("skipped: {what}")).at(source, place, ""),
        );
    }
}

/// Reads one definition.
struct CrdReader<'a> {
    source: SourceId,
    /// Whether the reasons of the API server against it are reported.
    is_judged: bool,
    diagnostics: &'a mut Diagnostics,
}

// === impl CrdReader ===

impl CrdReader<'_> {
    fn crd(&mut self, mut document: Node, old: bool, fix: NameFix) -> Option<Crd> {
        let errors = self.diagnostics.count(Severity::Error);
        if old {
            self.report_old(&document, fix);
        }
        if self.is_judged {
            server_rules::check(&document, self.source, self.diagnostics);
        }
        fill_null_texts(&mut document);
        let is_upgraded = upgrade::to_v1(&mut document, old);
        let spec = self.field(&document, "spec")?;
        let names = self.field(spec, "names");
        let group = self.name(spec, "group", NameRule::CustomGroup);
        let names = self.names(names?);
        let scope = self.scope(spec);
        let versions = self.versions(spec);
        let (group, names) = (group?, names?);
        let expected = format!("{}.{group}", names.plural);
        if let Some(problem) = NameRule::Subdomain.problem(&expected) {
            let place = spec.get("group").map_or(spec.span, |group| group.span);
            self.reject_name(&expected, "metadata.name", place, problem);
        }
        let is_renamed = self.check_name(&mut document, &expected, fix);
        let name = document
            .get("metadata")
            .and_then(|metadata| metadata.get("name"))
            .and_then(Node::as_str)
            .unwrap_or(&expected)
            .to_owned();
        let versions = versions?;
        // A wrong value that is reported above would be reported twice.
        if self.diagnostics.count(Severity::Error) == errors
            && let Some(part) = unreadable::find(&document)
        {
            let message = "the API server cannot read this definition";
            let error = Diagnostic::error(Code::InvalidCrd, message);
            self.diagnostics.push(
                error
                    .at(self.source, part.span, "in this part")
                    .help(part.reason),
            );
            return None;
        }
        Some(Crd {
            source: self.source,
            span: document.span,
            name,
            group,
            names,
            scope: scope?,
            versions,
            json: document.to_json_text(),
            is_corrected: is_upgraded || is_renamed,
        })
    }

    fn names(&mut self, node: &Node) -> Option<ResourceNames> {
        let kind = self.name(node, "kind", NameRule::Kind);
        let plural = self.name(node, "plural", NameRule::Label);
        let singular = self.optional_name(node, "singular", NameRule::Label);
        let list_kind = self.optional_name(node, "listKind", NameRule::Kind);
        let short_names = self.name_list(node, "shortNames");
        let categories = self.name_list(node, "categories");
        let (kind, plural) = (kind?, plural?);
        let list_kind = self.list_kind(node, list_kind, &kind)?;
        Some(ResourceNames {
            singular: singular.unwrap_or_else(|| lower_case(&kind)),
            list_kind,
            short_names,
            categories,
            kind,
            plural,
        })
    }

    /// The kind of lists: the given one, or else the kind and `List`.
    fn list_kind(&mut self, node: &Node, given: Option<String>, kind: &str) -> Option<String> {
        let span = |key| node.get(key).map_or(node.span, |node| node.span);
        let Some(given) = given else {
            let default = format!("{kind}List");
            let problem = NameRule::Kind.problem(&default);
            return match problem {
                None => Some(default),
                Some(problem) => self.reject_name(&default, "listKind", span("kind"), problem),
            };
        };
        if given == kind {
            self.invalid("kind and listKind may not be the same", span("listKind"));
            return None;
        }
        Some(given)
    }

    /// A required name.
    fn name(&mut self, node: &Node, key: &str, rule: NameRule) -> Option<String> {
        let value = self.field(node, key)?;
        self.checked_name(value, key, rule)
    }

    /// A name that may be left out or be empty.
    fn optional_name(&mut self, node: &Node, key: &str, rule: NameRule) -> Option<String> {
        let is_given = |value: &&Node| !value.is_null() && value.as_str() != Some("");
        let value = node.get(key).filter(is_given)?;
        self.checked_name(value, key, rule)
    }

    /// A list of labels that may be left out.
    fn name_list(&mut self, node: &Node, key: &str) -> Vec<String> {
        let values = node.get(key).filter(|values| !values.is_null());
        if let Some(values) = values.filter(|values| values.as_seq().is_none()) {
            self.invalid(&format!("`{key}` is a list"), values.span);
        }
        list(node, key)
            .iter()
            .filter_map(|value| self.checked_name(value, key, NameRule::Label))
            .collect()
    }

    fn checked_name(&mut self, value: &Node, key: &str, rule: NameRule) -> Option<String> {
        let Some(text) = value.as_str().filter(|text| !text.is_empty()) else {
            let message = format!("`{key}` is a string that is not empty");
            self.invalid(&message, value.span);
            return None;
        };
        match rule.problem(text) {
            None => Some(text.to_owned()),
            Some(problem) => self.reject_name(text, key, value.span, problem),
        }
    }

    /// Reports a name that the API server rejects.
    fn reject_name(
        &mut self,
        name: &str,
        key: &str,
        span: Span,
        problem: NameProblem,
    ) -> Option<String> {
        let message = format!("{} is not a valid `{key}`", QuotedName(name));
        self.diagnostics.push(
            Diagnostic::error(Code::InvalidName, message)
                .at(self.source, span, "the API server rejects it")
                .help(server_reason(&problem.to_string())),
        );
        None
    }

    fn scope(&mut self, spec: &Node) -> Option<Scope> {
        let node = self.field(spec, "scope")?;
        match node.as_str() {
            Some("Namespaced") => Some(Scope::Namespaced),
            Some("Cluster") => Some(Scope::Cluster),
            _ => {
                self.invalid("`scope` is `Namespaced` or `Cluster`", node.span);
                None
            }
        }
    }

    fn versions(&mut self, spec: &Node) -> Option<Vec<CrdVersion>> {
        let node = self.field(spec, "versions")?;
        let Some(nodes) = node.as_seq() else {
            self.invalid("`versions` is a list", node.span);
            return None;
        };
        // Collected first, so that the errors of all versions are reported.
        let versions: Vec<_> = nodes.iter().map(|node| self.version(node)).collect();
        let versions: Vec<CrdVersion> = versions.into_iter().collect::<Option<_>>()?;
        for (index, version) in versions.iter().enumerate() {
            if versions[..index].iter().any(|it| it.name == version.name) {
                self.invalid("must contain unique version names", version.span);
                return None;
            }
        }
        Some(versions)
    }

    fn version(&mut self, node: &Node) -> Option<CrdVersion> {
        let span = self.field(node, "name")?.span;
        let name = self.name(node, "name", NameRule::Label)?;
        let schema = present(node, "schema").and_then(|it| present(it, "openAPIV3Schema"));
        let Some(schema) = schema else {
            let message = format!("version `{name}` has no schema");
            let reason = server_reason("schema.openAPIV3Schema: Required value");
            let error = Diagnostic::error(Code::InvalidCrd, message).help(reason);
            self.diagnostics.push(error.at(self.source, span, ""));
            return None;
        };
        let mut reader = SchemaReader {
            source: self.source,
            is_judged: self.is_judged,
            diagnostics: self.diagnostics,
        };
        let subresources = present(node, "subresources");
        Some(CrdVersion {
            name,
            span,
            served: flag(node, "served"),
            storage: flag(node, "storage"),
            deprecated: flag(node, "deprecated")
                .then(|| optional_text(node, "deprecationWarning").unwrap_or_default()),
            schema: reader.schema(schema),
            status: subresources.is_some_and(|it| present(it, "status").is_some()),
            scale: subresources.and_then(|it| present(it, "scale")).map(scale),
            columns: list(node, "additionalPrinterColumns")
                .iter()
                .map(column)
                .collect(),
            selectable_fields: list(node, "selectableFields")
                .iter()
                .filter_map(|field| optional_text(field, "jsonPath"))
                .collect(),
        })
    }

    fn report_old(&mut self, document: &Node, fix: NameFix) {
        let place = document.get("apiVersion");
        let place = place.map_or(document.span, |node| node.span);
        let diagnostic = match fix {
            NameFix::Report | NameFix::Correct => Diagnostic::info(
                Code::OldCrd,
                "a `v1beta1` definition, upgraded to `v1`",
            )
            .at(self.source, place, ""),
            NameFix::Refuse => {
                let message = "a `v1beta1` definition, which no current cluster accepts";
                Diagnostic::error(Code::OldCrd, message)
                    .at(self.source, place, "removed in Kubernetes 1.22")
                    .help("shall kopf-gen write it as `v1`? Then pass `--fix-names`")
            }
        };
        self.diagnostics.push(diagnostic);
    }

    /// Checks `metadata.name`, and returns whether it was corrected.
    fn check_name(&mut self, document: &mut Node, expected: &str, fix: NameFix) -> bool {
        let Some(name) = text_mut(document, &["metadata", "name"]) else {
            self.invalid("`metadata.name` is missing", document.span);
            return false;
        };
        let Value::String(text) = &mut name.value else {
            self.invalid("`metadata.name` is a string", name.span);
            return false;
        };
        if text == expected {
            return false;
        }
        let message = "the name of the definition is not `<plural>.<group>`";
        let diagnostic = match fix {
            NameFix::Report => Diagnostic::warning(Code::CrdName, message)
                .help(format!("name it `{expected}`, or pass `--fix-names`")),
            NameFix::Refuse => Diagnostic::error(Code::CrdName, message).help(format!(
                "shall kopf-gen name it `{expected}`? Then pass `--fix-names`"
            )),
            NameFix::Correct => {
                let message = format!("the name of the definition is corrected to `{expected}`");
                expected.clone_into(text);
                Diagnostic::info(Code::CrdName, message)
            }
        };
        let label = format!("the API server only accepts `{expected}`");
        self.diagnostics
            .push(diagnostic.at(self.source, name.span, label));
        fix == NameFix::Correct
    }

    fn field<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n Node> {
        let found = node.get(key);
        if found.is_none() {
            self.invalid(&format!("`{key}` is missing"), node.span);
        }
        found
    }

    fn invalid(&mut self, message: &str, span: Span) {
        self.diagnostics
            .push(Diagnostic::error(Code::InvalidCrd, message).at(self.source, span, ""));
    }
}

/// Labels and annotations that are null are empty texts, as for the API server.
fn fill_null_texts(document: &mut Node) {
    for key in ["labels", "annotations"] {
        let texts = text_mut(document, &["metadata", key]).map(|node| &mut node.value);
        if let Some(Value::Map(entries)) = texts {
            for entry in entries.iter_mut().filter(|entry| entry.value.is_null()) {
                entry.value.value = Value::String(String::new());
            }
        }
    }
}

fn scale(node: &Node) -> ScaleSubresource {
    ScaleSubresource {
        spec_replicas: optional_text(node, "specReplicasPath").unwrap_or_default(),
        status_replicas: optional_text(node, "statusReplicasPath").unwrap_or_default(),
        selector: optional_text(node, "labelSelectorPath"),
    }
}

fn column(node: &Node) -> PrinterColumn {
    PrinterColumn {
        name: optional_text(node, "name").unwrap_or_default(),
        path: optional_text(node, "jsonPath").unwrap_or_default(),
    }
}

/// The value of a key, unless it is null.
fn present<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|node| !node.is_null())
}

fn flag(node: &Node, key: &str) -> bool {
    node.get(key).and_then(Node::as_bool).unwrap_or_default()
}

fn optional_text(node: &Node, key: &str) -> Option<String> {
    let text = node.get(key).and_then(Node::as_str)?;
    (!text.is_empty()).then(|| text.to_owned())
}

fn list<'n>(node: &'n Node, key: &str) -> &'n [Node] {
    node.get(key).and_then(Node::as_seq).unwrap_or_default()
}

fn text_mut<'n>(node: &'n mut Node, path: &[&str]) -> Option<&'n mut Node> {
    path.iter()
        .try_fold(node, |node, key| match &mut node.value {
            Value::Map(entries) => entries
                .iter_mut()
                .find(|entry| entry.key.name == **key)
                .map(|entry: &mut MapEntry| &mut entry.value),
            _ => None,
        })
}
