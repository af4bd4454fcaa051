//! The state that all parts of one version module share while they are written.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;

use super::imports::ImportList;
use crate::model::default_values::Defaults;
use crate::model::generated_types::Ty;
use crate::model::resource::{CustomResource, TypedVersion};
use crate::model::type_options::Options;

/// Writes one version.
pub(super) struct VersionWriter<'a> {
    pub(super) resource: &'a CustomResource,
    pub(super) version: &'a TypedVersion,
    pub(super) options: &'a Options,
    pub(super) defaults: Defaults<'a>,
    pub(super) imports: ImportList,
    pub(super) functions: BTreeMap<(String, String), String>,
    pub(super) function_names: BTreeSet<String>,
    pub(super) nullable: bool,
    pub(super) undeclared: bool,
    pub(super) constants: bool,
}

// === impl VersionWriter ===

impl VersionWriter<'_> {
    /// A type as this module writes it; adds the imports that it needs.
    pub(super) fn ty(&mut self, ty: &Ty) -> String {
        match ty {
            Ty::Bool => "bool".to_owned(),
            Ty::Int(int) => int.name().to_owned(),
            Ty::Float => "f64".to_owned(),
            Ty::String => "String".to_owned(),
            Ty::Json => self.imports.add("serde_json::Value"),
            Ty::Existing(known) if known.path.starts_with("k8s_openapi::") => {
                self.imports.add(&known.path)
            }
            Ty::Existing(known) => known.path.clone(),
            Ty::Vec(inner) => format!("Vec<{}>", self.ty(inner)),
            Ty::Map(inner) => {
                let map = self.imports.add("std::collections::BTreeMap");
                format!("{map}<String, {}>", self.ty(inner))
            }
            Ty::Nullable(inner) => format!("Option<{}>", self.ty(inner)),
            Ty::Shape(id) => self.version.type_names.of(*id).to_string(),
        }
    }

    pub(super) fn derives(
        &self,
        first: &[&str],
        default: &[&str],
        last: &[&str],
        more: &[String],
    ) -> String {
        let standard: Vec<&str> = first.iter().chain(default).chain(last).copied().collect();
        format!("#[derive({})]", self.derive_list(&standard, more))
    }

    pub(super) fn derive_list(&self, standard: &[&str], more: &[String]) -> String {
        let mut list: Vec<&str> = standard.to_vec();
        for derive in self.options.derives_everywhere.iter().chain(more) {
            if !list.contains(&derive.as_str()) {
                list.push(derive);
            }
        }
        list.join(", ")
    }
}

pub(super) fn print(view: &impl Template) -> String {
    view.render().expect("writing to a string cannot fail")
}
