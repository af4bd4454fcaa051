//! Runs the stages in order: from the text of a manifest to the operator that it describes, and from
//! planned files to their texts.

use std::io;
use std::path::Path;

use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity, SourceId, Sources};
use crate::format::{self, FormattedFile};
use crate::load::crd::{self, NameFix};
use crate::load::manifest::{self, ChildEntry, Manifest, ResourceSection, Spanned};
use crate::load::names::QuotedName;
use crate::model::default_rules;
use crate::model::lower::{self, CrdFiles, LoadedCrds};
use crate::model::operator::Operator;
use crate::plan::{FileSource, PlannedFile};
use crate::render;

/// Reads a file that the manifest names, relative to the manifest.
pub type ReadFile<'a> = &'a dyn Fn(&str) -> io::Result<Vec<u8>>;

/// Reads a manifest and the files that it names, and reports all problems; `None` if there is an error.
#[must_use]
pub fn read_operator(
    sources: &mut Sources,
    manifest: SourceId,
    read: ReadFile<'_>,
    diagnostics: &mut Diagnostics,
) -> Option<Operator> {
    let manifest = manifest::parse(sources, manifest, diagnostics)?;
    let crds = read_crd_files(sources, &manifest, read, diagnostics);
    let operator = lower::operator(&manifest, &crds, diagnostics);
    if diagnostics.has_errors() {
        None
    } else {
        operator
    }
}

/// The files that an entry names, for its kind and for the children of that.
fn crd_paths(resource: &ResourceSection) -> impl Iterator<Item = &Spanned<String>> {
    let children = resource.children.iter().filter_map(ChildEntry::crd);
    resource.crd.iter().chain(children)
}

/// Renders and formats planned files.
#[must_use]
pub fn formatted<'a>(planned: impl IntoIterator<Item = PlannedFile<'a>>) -> Vec<FormattedFile> {
    let rendered = planned.into_iter().map(render::file);
    rendered.map(format::file).collect()
}

/// Renders and formats the content of one file.
#[must_use]
pub fn text(source: FileSource<'_>) -> String {
    format::text(render::document(source))
}

fn read_crd_files(
    sources: &mut Sources,
    manifest: &Manifest,
    read: ReadFile<'_>,
    diagnostics: &mut Diagnostics,
) -> CrdFiles {
    let mut files = CrdFiles::new();
    for path in manifest.resources.iter().flat_map(crd_paths) {
        if files.contains_key(&path.value) {
            continue;
        }
        if Path::new(&path.value).is_absolute() {
            let message = format!("{} is not inside of the crate", QuotedName(&path.value));
            diagnostics.push(
                Diagnostic::error(Code::ManifestValue, message)
                    .at(manifest.source, path.span, "an absolute path")
                    .help("paths are relative to kopf.yaml; copy the file into crds/"),
            );
            continue;
        }
        let text = read(&path.value)
            .map_err(|error| error.to_string())
            .and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned()));
        let file = match text {
            Ok(text) => {
                let source = sources.add(path.value.as_str(), text.as_str());
                let before = diagnostics.count(Severity::Warning);
                let errors_before = diagnostics.count(Severity::Error);
                let crds = crd::read(sources, source, NameFix::Refuse, diagnostics);
                // As in the API server, these rules are for schemas that keep all others.
                if diagnostics.count(Severity::Warning) == before {
                    for crd in &crds {
                        default_rules::check(crd, diagnostics);
                    }
                }
                let has_errors = diagnostics.count(Severity::Error) > errors_before;
                LoadedCrds {
                    crds,
                    text,
                    has_errors,
                }
            }
            Err(reason) => {
                diagnostics.push(
                    Diagnostic::error(
                        Code::Unreadable,
                        format!("cannot read {}: {reason}", path.value),
                    )
                    .at(manifest.source, path.span, "named here")
                    .help("paths are relative to kopf.yaml"),
                );
                continue;
            }
        };
        files.insert(path.value.clone(), file);
    }
    files
}
