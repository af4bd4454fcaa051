//! A rendered file: a tree, a template with its values, or text.

use std::borrow::Cow;

use askama::DynTemplate;
use serde_json::Value;

use crate::crate_path::CratePath;
use crate::plan::FileOwner;
use crate::rust::RustModule;
use crate::yaml::{ChartDocument, YamlDocuments};

/// One file of a run, with its content.
pub struct RenderedFile<'a> {
    /// The path.
    pub path: CratePath,
    /// The owner.
    pub owner: FileOwner<'a>,
    /// The content.
    pub document: Document<'a>,
}

/// The content of a file, before its layout.
pub enum Document<'a> {
    /// A module of Rust.
    Rust {
        /// The comment above it, with the line breaks after it.
        banner: String,
        /// The module.
        module: RustModule,
    },
    /// Documents of YAML.
    Yaml(YamlDocuments),
    /// A template of a Helm chart.
    Chart {
        /// The comment above it.
        banner: &'static str,
        /// The objects.
        documents: Vec<ChartDocument>,
    },
    /// A value of JSON, on many lines.
    Json(Value),
    /// A template with its values.
    Template(Box<dyn DynTemplate + 'a>),
    /// Text that has its layout.
    Text(Cow<'a, str>),
}
