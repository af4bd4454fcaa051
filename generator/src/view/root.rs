//! The object at the root of a version.

use std::collections::BTreeSet;

use askama::Template;

use super::doc_comments;
use super::literal;
use super::member_names::idents;
use super::phrases::article;
use super::serde_attributes::{container, rule, serde_lines};
use super::structure::{FieldOwner, FieldView};
use super::version_writer::{VersionWriter, print};
use crate::load::crd::Scope;
use crate::model::default_values::DefaultImpl;
use crate::model::identifier::{RustIdent, TypeName};
use crate::model::resource::{CustomResource, TypedVersion};

#[derive(Template)]
#[template(path = "types/root.rs")]
struct RootView<'a> {
    docs: Vec<String>,
    attributes: Vec<String>,
    name: &'a TypeName,
    fields: Vec<FieldView>,
    /// The names of the resource, as literals.
    api_version: String,
    tag: String,
    group: String,
    kind: String,
    version: String,
    plural: String,
    scope: &'static str,
    serialized: Vec<SerializedView>,
    rest: Option<RustIdent>,
}

struct SerializedView {
    ident: RustIdent,
    optional: bool,
    arguments: String,
}

/// The widest list of arguments that rustfmt leaves on one line.
const ARGUMENTS_WIDTH: usize = 60;

impl VersionWriter<'_> {
    pub(super) fn root(&mut self) -> Vec<String> {
        for path in [
            "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta",
            "serde::Deserialize",
            "serde::Serialize",
            "serde::Serializer",
            "serde::ser::SerializeMap",
        ] {
            self.imports.add(path);
        }
        let (resource, version) = (self.resource, self.version);
        let body = &version.root.body;
        let mut taken = BTreeSet::from([RustIdent::new("metadata")]);
        let idents = idents(&body.fields, &mut taken);
        let fields = self.fields(
            body,
            &idents,
            &version.root.docs,
            &mut taken,
            FieldOwner::Root,
        );
        let rest = body
            .rest
            .as_ref()
            .and(fields.last())
            .map(|field| field.ident.clone());
        let default = self.defaults.of_struct(body);
        let derived = match default {
            DefaultImpl::Derived => &["Default"][..],
            DefaultImpl::Written | DefaultImpl::Missing => &[],
        };
        let mut attributes = vec![self.derives(
            &["Clone", "Debug"],
            derived,
            &["PartialEq", "Deserialize"],
            &[],
        )];
        attributes.extend(serde_lines(&container(rule(body, &idents))));
        let api_version = literal::string(&format!("{}/{}", resource.group, version.name));
        let view = RootView {
            docs: doc_comments::outer::<&str>(&root_text(resource, version), &[]),
            attributes,
            name: &resource.type_name,
            tag: arguments("apiVersion", &api_version, 8),
            group: literal::string(&resource.group),
            kind: literal::string(&resource.names.kind),
            version: literal::string(&version.name),
            plural: literal::string(&resource.names.plural),
            api_version,
            scope: match resource.scope {
                Scope::Namespaced => "Namespace",
                Scope::Cluster => "Cluster",
            },
            serialized: body
                .fields
                .iter()
                .zip(&idents)
                .map(|(field, ident)| {
                    SerializedView::new(&field.json, ident, self.defaults.is_optional(field))
                })
                .collect(),
            fields,
            rest: rest.clone(),
        };
        let mut items = vec![print(&view).trim_end().to_owned()];
        if default == DefaultImpl::Written {
            items.push(self.default_impl(
                &resource.type_name,
                body,
                &idents,
                rest,
                FieldOwner::Root,
            ));
        }
        items
    }
}

impl SerializedView {
    fn new(json: &str, ident: &RustIdent, optional: bool) -> Self {
        let (value, indent) = if optional {
            (ident.to_string(), 12)
        } else {
            (format!("&self.{ident}"), 8)
        };
        Self {
            ident: ident.clone(),
            optional,
            arguments: arguments(json, &value, indent),
        }
    }
}

/// A key and a value, on lines of their own if one would be too long.
fn arguments(json: &str, value: &str, indent: usize) -> String {
    let line = format!("{json:?}, {value}");
    if line.len() <= ARGUMENTS_WIDTH {
        return line;
    }
    let margin = " ".repeat(indent);
    format!("\n{margin}    {json:?},\n{margin}    {value},\n{margin}")
}

fn root_text(resource: &CustomResource, version: &TypedVersion) -> String {
    let text = if version.root.docs.text.trim().is_empty() {
        let kind = &resource.names.kind;
        let article = if article(kind) == "an" { "An" } else { "A" };
        format!(
            "{article} `{kind}` of `{}/{}`.",
            resource.group, version.name
        )
    } else {
        version.root.docs.text.clone()
    };
    format!("{text}\n\n{}", root_notes(resource, version).join(" "))
}

/// Facts about the resource for its doc comment.
fn root_notes(resource: &CustomResource, version: &TypedVersion) -> Vec<String> {
    let quoted = |names: &[String]| format!("`{}`", names.join("`, `"));
    let mut notes = Vec::new();
    if let Some(warning) = &version.deprecated {
        notes.push(format!("Deprecated. {warning}").trim_end().to_owned());
    }
    if !resource.names.short_names.is_empty() {
        notes.push(format!(
            "Short names: {}.",
            quoted(&resource.names.short_names)
        ));
    }
    if !resource.names.categories.is_empty() {
        notes.push(format!(
            "Categories: {}.",
            quoted(&resource.names.categories)
        ));
    }
    if !version.columns.is_empty() {
        let columns: Vec<String> = version
            .columns
            .iter()
            .map(|c| format!("{} (`{}`)", c.name, c.path))
            .collect();
        notes.push(format!("Printed columns: {}.", columns.join(", ")));
    }
    let subresources: Vec<&str> = [
        (version.status, "`status`"),
        (version.scale.is_some(), "`scale`"),
    ]
    .into_iter()
    .filter_map(|(there, name)| there.then_some(name))
    .collect();
    if !subresources.is_empty() {
        notes.push(format!("Subresources: {}.", subresources.join(", ")));
    }
    if !version.selectable_fields.is_empty() {
        notes.push(format!(
            "Selectable fields: {}.",
            quoted(&version.selectable_fields)
        ));
    }
    notes
}
