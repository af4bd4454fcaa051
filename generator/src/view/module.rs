//! The module of a resource: its versions and the embedded definition.

use askama::Template;

use super::{docs, version};
use crate::model::options::Options;
use crate::model::resource::{Resource, Version};

/// Where the versions and the definition are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// All in one text.
    Inline,
    /// In files of their own, in a folder named after the module.
    Files,
}

#[derive(Template)]
#[template(path = "types/module.rs")]
struct ModuleView {
    docs: Vec<String>,
    versions: Vec<Entry>,
    crd: String,
}

#[derive(Template)]
#[template(path = "types/bundle.rs")]
struct BundleView<'a> {
    header: &'a str,
    modules: Vec<Entry>,
}

/// A module that is declared, or defined if it has a body.
struct Entry {
    name: String,
    body: String,
}

/// The text of the module of a resource.
#[must_use]
pub(crate) fn resource(resource: &Resource, options: &Options, layout: Layout) -> String {
    let mut versions: Vec<&Version> = resource.versions.iter().collect();
    versions.sort_by(|a, b| a.module.cmp(&b.module));
    let versions = versions
        .into_iter()
        .map(|version| Entry {
            name: version.module.to_string(),
            body: match layout {
                Layout::Inline => indent(&self::version(resource, version, options)),
                Layout::Files => String::new(),
            },
        })
        .collect();
    let view = ModuleView {
        docs: docs::inner::<&str>(&summary(resource), &[]),
        versions,
        crd: match layout {
            Layout::Inline => raw_string(&resource.crd_json),
            Layout::Files => format!("include_str!(\"{}/crd.json\")", resource.module.bare()),
        },
    };
    let text = view.render().expect("writing to a string cannot fail");
    text.trim_end().to_owned() + "\n"
}

/// The text of the module of a version.
#[must_use]
pub(crate) fn version(resource: &Resource, version: &Version, options: &Options) -> String {
    version::render(resource, version, options)
        .trim_end()
        .to_owned()
        + "\n"
}

/// One text with a module per resource.
#[must_use]
pub(crate) fn bundle(resources: &[Resource], options: &Options, header: &str) -> String {
    bundled(resources, header, |resource| {
        indent(&self::resource(resource, options, Layout::Inline))
    })
}

/// One text that declares the modules of all resources.
#[must_use]
pub(crate) fn index(resources: &[Resource], header: &str) -> String {
    bundled(resources, header, |_| String::new())
}

fn bundled(resources: &[Resource], header: &str, body: impl Fn(&Resource) -> String) -> String {
    let mut resources: Vec<&Resource> = resources.iter().collect();
    resources.sort_by(|a, b| a.module.cmp(&b.module));
    let modules = resources
        .into_iter()
        .map(|resource| Entry {
            name: resource.module.to_string(),
            body: body(resource),
        })
        .collect();
    let text = BundleView { header, modules }
        .render()
        .expect("writing to a string cannot fail");
    text.trim_end().to_owned() + "\n"
}

fn summary(resource: &Resource) -> String {
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

/// A raw string literal with as many hashes as it needs.
fn raw_string(text: &str) -> String {
    let hashes = (1..)
        .map(|n| "#".repeat(n))
        .find(|hashes| !text.contains(&format!("\"{hashes}")))
        .expect("some number of hashes is not in the text");
    format!("r{hashes}\"{text}\"{hashes}")
}
