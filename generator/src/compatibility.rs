//! Finds the changes of a CRD that break stored objects or clients.

mod schema;

#[cfg(test)]
mod tests;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::load::yaml::Node;

/// A text with definitions, as it is now.
#[derive(Clone, Copy, Debug)]
pub struct CurrentDefinitions<'a> {
    /// The text.
    pub source: SourceId,
    /// Its documents.
    pub documents: &'a [Node],
}

/// Compares the definitions of an earlier state with those of today, and reports each change that
/// rejects what was accepted, or drops what was kept.
pub fn compare(
    earlier: &[Node],
    current: &[CurrentDefinitions<'_>],
    diagnostics: &mut Diagnostics,
) {
    for old in earlier.iter().filter(|it| is_definition(it)) {
        let name = name(old).unwrap_or_default();
        let same = current.iter().find_map(|file| {
            let mut documents = file.documents.iter();
            let new = documents.find(|it| is_definition(it) && self::name(it) == Some(name))?;
            Some((file.source, new))
        });
        match same {
            Some((source, new)) => {
                let mut changes = BreakingChanges {
                    source,
                    definition: name.to_owned(),
                    diagnostics,
                };
                changes.definition(old, new);
            }
            None => {
                let message = format!("{name} is gone: its objects are deleted with it");
                diagnostics.push(Diagnostic::error(Code::BreakingChange, message));
            }
        }
    }
}

fn is_definition(document: &Node) -> bool {
    document.get("kind").and_then(Node::as_str) == Some("CustomResourceDefinition")
}

fn name(document: &Node) -> Option<&str> {
    document.get("metadata")?.get("name")?.as_str()
}

/// Reports the changes of one definition.
struct BreakingChanges<'a> {
    source: SourceId,
    definition: String,
    diagnostics: &'a mut Diagnostics,
}

impl BreakingChanges<'_> {
    /// Reports a change at a place of the new text.
    fn report(&mut self, span: Span, message: &str, why: &str) {
        let message = format!("{}: {message}", self.definition);
        let error = Diagnostic::error(Code::BreakingChange, message);
        self.diagnostics.push(error.at(self.source, span, why));
    }

    fn definition(&mut self, old: &Node, new: &Node) {
        let (Some(old_spec), Some(new_spec)) = (old.get("spec"), new.entry("spec")) else {
            return;
        };
        let place = new_spec.key.span;
        let new_spec = &new_spec.value;
        for (path, what) in [
            (&["scope"][..], "the scope"),
            (&["group"], "the group"),
            (&["names", "kind"], "the kind"),
            (&["names", "plural"], "the plural name"),
        ] {
            let (before, after) = (below(old_spec, path), below(new_spec, path));
            if let (Some(before), Some(after)) = (before, after)
                && let (Some(before), Some(name)) = (before.as_str(), after.as_str())
                && before != name
            {
                let message = format!("{what} was `{before}` and is `{name}`");
                self.report(after.span, &message, "the API server rejects the change");
            }
        }
        let list = new_spec.entry("versions").map_or(place, |it| it.key.span);
        for old_version in versions(old_spec) {
            let Some(name) = old_version.get("name").and_then(Node::as_str) else {
                continue;
            };
            let new_version = versions(new_spec)
                .into_iter()
                .find(|it| it.get("name").and_then(Node::as_str) == Some(name));
            self.version(old_spec, old_version, new_spec, new_version, name, list);
        }
    }

    fn version(
        &mut self,
        old_spec: &Node,
        old: &Node,
        new_spec: &Node,
        new: Option<&Node>,
        name: &str,
        list: Span,
    ) {
        let is = |version: &Node, key: &str| version.get(key).and_then(Node::as_bool) == Some(true);
        let Some(new) = new else {
            if is(old, "storage") {
                let message = format!("version {name}, in which objects are stored, is gone");
                self.report(list, &message, "they cannot be read any more");
            } else if is(old, "served") {
                let message = format!("version {name} is gone");
                self.report(list, &message, "clients that use it fail");
            }
            return;
        };
        if is(old, "served") && !is(new, "served") {
            let span = new.entry("served").map_or(list, |it| it.value.span);
            let message = format!("version {name} is not served any more");
            self.report(span, &message, "clients that use it fail");
        }
        for key in ["status", "scale"] {
            let has = |spec: &Node, version: &Node| subresource(spec, version, key).is_some();
            if has(old_spec, old) && !has(new_spec, new) {
                let span = new.entry("subresources").map_or(list, |it| it.key.span);
                let message = format!("version {name} has no subresource `{key}` any more");
                self.report(span, &message, "clients that use it fail");
            }
        }
        if let (Some(before), Some(after)) = (schema_of(old_spec, old), schema_of(new_spec, new)) {
            self.schema(name, before, after, list);
        }
    }
}

fn versions(spec: &Node) -> Vec<&Node> {
    let listed = spec.get("versions").and_then(Node::as_seq);
    listed.unwrap_or_default().iter().collect()
}

/// The value at a path of keys.
fn below<'n>(node: &'n Node, path: &[&str]) -> Option<&'n Node> {
    path.iter().try_fold(node, |node, key| node.get(key))
}

/// A subresource of a version; definitions of `v1beta1` may have one for all versions.
fn subresource<'n>(spec: &'n Node, version: &'n Node, name: &str) -> Option<&'n Node> {
    let own = below(version, &["subresources", name]);
    own.or_else(|| below(spec, &["subresources", name]))
}

/// The schema of a version; definitions of `v1beta1` may have one for all versions.
fn schema_of<'n>(spec: &'n Node, version: &'n Node) -> Option<&'n Node> {
    let own = version
        .get("schema")
        .and_then(|it| it.get("openAPIV3Schema"));
    own.or_else(|| spec.get("validation")?.get("openAPIV3Schema"))
}
