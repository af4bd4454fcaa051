//! The module of a resource: its versions and the embedded definition.

use askama::Template;

use super::{doc_comments, literal, version};
use crate::model::resource::{CustomResource, TypedVersion};
use crate::model::type_options::Options;

/// The files of a resource's module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypesLayout {
    /// One file.
    Inline,
    /// One file for the module, and a folder of the same name for the versions and the CRD.
    Files,
}

#[derive(Template)]
#[template(path = "types/module.rs")]
struct ModuleView {
    docs: Vec<String>,
    versions: Vec<ModuleEntry>,
    crd: String,
}

#[derive(Template)]
#[template(path = "types/bundle.rs")]
struct BundleView<'a> {
    header: &'a str,
    modules: Vec<ModuleEntry>,
}

/// A module that is declared, or defined if it has a body.
struct ModuleEntry {
    name: String,
    body: String,
}

/// The text of the module of a resource.
#[must_use]
pub(crate) fn resource(
    resource: &CustomResource,
    options: &Options,
    layout: TypesLayout,
) -> String {
    let mut versions: Vec<&TypedVersion> = resource.versions.iter().collect();
    versions.sort_by(|a, b| a.module.cmp(&b.module));
    let versions = versions
        .into_iter()
        .map(|version| ModuleEntry {
            name: version.module.to_string(),
            body: match layout {
                TypesLayout::Inline => indent(&self::version(resource, version, options)),
                TypesLayout::Files => String::new(),
            },
        })
        .collect();
    let view = ModuleView {
        docs: doc_comments::inner::<&str>(&summary(resource), &[]),
        versions,
        crd: match layout {
            TypesLayout::Inline => literal::json_text(&resource.crd_json),
            TypesLayout::Files => format!("include_str!(\"{}/crd.json\")", resource.module.bare()),
        },
    };
    let text = view.render().expect("writing to a string cannot fail");
    text.trim_end().to_owned() + "\n"
}

/// The text of the module of a version.
#[must_use]
pub(crate) fn version(
    resource: &CustomResource,
    version: &TypedVersion,
    options: &Options,
) -> String {
    version::render(resource, version, options)
        .trim_end()
        .to_owned()
        + "\n"
}

/// One text with a module per resource.
#[must_use]
pub(crate) fn bundle(resources: &[CustomResource], options: &Options, header: &str) -> String {
    bundled(resources, header, |resource| {
        indent(&self::resource(resource, options, TypesLayout::Inline))
    })
}

/// One text that declares the modules of all resources.
#[must_use]
pub(crate) fn index(resources: &[CustomResource], header: &str) -> String {
    bundled(resources, header, |_| String::new())
}

fn bundled(
    resources: &[CustomResource],
    header: &str,
    body: impl Fn(&CustomResource) -> String,
) -> String {
    let mut resources: Vec<&CustomResource> = resources.iter().collect();
    resources.sort_by(|a, b| a.module.cmp(&b.module));
    let modules = resources
        .into_iter()
        .map(|resource| ModuleEntry {
            name: resource.module.to_string(),
            body: body(resource),
        })
        .collect();
    let text = BundleView { header, modules }
        .render()
        .expect("writing to a string cannot fail");
    text.trim_end().to_owned() + "\n"
}

fn summary(resource: &CustomResource) -> String {
    let storage = resource.versions.iter().find(|version| version.storage);
    let stored = storage.map(|version| format!(" Objects are stored as `{}`.", version.name));
    format!(
        "`{}` of `{}`.{}",
        resource.names.kind,
        resource.group,
        stored.unwrap_or_default()
    )
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            if line.is_empty() {
                String::new()
            } else {
                format!("    {line}")
            }
        })
        .collect();
    lines.join("\n")
}
