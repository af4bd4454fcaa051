//! Names what a crate of an earlier version has, and what new crates do without.

use std::path::Path;

use crate::crate_path::CratePath;
use crate::diagnostic::{Code, Diagnostic};
use crate::model::operator::Operator;
use crate::plan::UserFiles;
use crate::write::{EDITOR_SCHEMA, LockFile};

/// A test that earlier versions wrote, and a line of it.
const OLD_TEST: (&str, &str) = (
    "tests/operator.rs",
    "fn it_prints_the_crds_of_its_kinds() {",
);

/// The note on the files of an earlier version in the crate in `root`; `None` if it has none.
pub(super) fn note(
    root: &Path,
    operator: &Operator,
    user: &UserFiles,
    lock: &LockFile,
) -> Option<Diagnostic> {
    let mut steps = Vec::new();
    let copies = user.copied_crds(operator);
    if copies.is_some() {
        steps.push(
            "list `../crds` instead of `crds.yaml`, and the next run deletes deploy/crds.yaml"
                .to_owned(),
        );
    }
    let flat = user.flat_deployment();
    if flat.is_some() {
        steps.push(
            "list `base` instead of the generated files and deployment.yaml, move what you changed \
             in deploy/deployment.yaml to `patches`, and the next run fills deploy/base/"
                .to_owned(),
        );
    }
    let (test, line) = OLD_TEST;
    if std::fs::read_to_string(root.join(test)).is_ok_and(|text| text.contains(line)) {
        steps.push(format!("delete {test}, which tests nothing of yours"));
    }
    if CratePath::new(EDITOR_SCHEMA).is_ok_and(|path| lock.has(&path)) {
        steps.push(format!(
            "{EDITOR_SCHEMA} is deleted: add it to .gitignore, and `kopf-gen schema --write` \
             writes it for your editor"
        ));
    }
    if steps.is_empty() {
        return None;
    }
    let message = "this crate has files that new crates do without";
    let note = Diagnostic::note(Code::OldLayout, message).help(steps.join("; "));
    Some(match (copies, flat) {
        (Some((source, span)), _) => note.at(source, span, "a copy of what crds/ has"),
        (None, Some((source, span))) => note.at(source, span, "in deploy/base/ of new crates"),
        (None, None) => note,
    })
}
