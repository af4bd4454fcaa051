//! Which files with CustomResourceDefinitions `kubectl apply -k` takes as they are, and which it
//! needs copies of.

use super::YAML_BANNER;
use crate::diagnostic::{Diagnostics, Sources};
use crate::load::yaml::{Dialect, parse};
use crate::model::operator::{CrdFile, Operator};

/// The folder of the CRDs, as their paths begin.
pub const CRD_FOLDER: &str = "crds/";

/// A copy of the definitions of one file.
#[derive(Clone, Copy, Debug)]
pub enum CrdCopy<'a> {
    /// The text as it is, with its comments.
    Verbatim {
        /// The file.
        path: &'a str,
        /// The text, without a mark at its start and blanks around it.
        text: &'a str,
    },
    /// The definitions in their `v1` form, and nothing else of the file.
    Definitions(&'a CrdFile),
}

/// Whether kopf-gen owns this `crds/kustomization.yaml`.
pub(super) fn is_generated(text: &str) -> bool {
    let comment = text.strip_prefix("# ");
    comment.is_some_and(|comment| comment.starts_with(YAML_BANNER))
}

/// Whether Kustomize takes a file of this name for a list of files.
#[must_use]
pub fn is_kustomization(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    matches!(
        name.as_str(),
        "kustomization" | "kustomization.yaml" | "kustomization.yml"
    )
}

/// The files that Kustomize can take as they are: they are in `crds/`, and have CRDs only. It reads
/// them once more, so it is slow.
pub(super) fn bases(operator: &Operator) -> Vec<&CrdFile> {
    let files = operator.crd_files.iter();
    files.filter(|file| is_base(file)).collect()
}

fn is_base(file: &CrdFile) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..") && !is_kustomization(part);
    let name = file.path.strip_prefix(CRD_FOLDER);
    name.is_some_and(|name| name.split('/').all(is_part)) && exact_text(file).is_some()
}

/// The copies of these files; files without definitions have none.
pub(super) fn copies<'a>(files: impl Iterator<Item = &'a CrdFile>) -> Vec<CrdCopy<'a>> {
    let copies = files.map(|file| match exact_text(file) {
        Some(text) => CrdCopy::Verbatim {
            path: &file.path,
            text,
        },
        None => CrdCopy::Definitions(file),
    });
    let is_empty = |copy: &CrdCopy<'_>| matches!(copy, CrdCopy::Definitions(file) if file.definitions.is_empty());
    copies.filter(|copy| !is_empty(copy)).collect()
}

/// The text of the file; `None` if a copy of it would not be exactly its CRDs.
fn exact_text(file: &CrdFile) -> Option<&str> {
    let body = file.text.trim_start_matches('\u{feff}').trim();
    let body = body.strip_prefix("---").unwrap_or(body).trim_start();
    let mut sources = Sources::new();
    let source = sources.add("crds.yaml", format!("---\n{body}\n"));
    let mut diagnostics = Diagnostics::new();
    let documents = parse(&sources, source, Dialect::Kubernetes, &mut diagnostics);
    let values: Vec<String> = documents
        .iter()
        .map(|document| document.to_json().to_string())
        .collect();
    (diagnostics.is_empty() && values == file.definitions).then_some(body)
}
