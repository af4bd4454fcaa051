//! Edits the manifest of a crate, then generates.

use std::path::Path;

use super::console::Console;
use super::crate_folder::find_root;
use super::draft::CrateDraft;
use super::exit_status::CommandStatus;
use super::runtime_args::RuntimeArgs;
use super::write_plan::{WriteMode, apply_plan, recover_interrupted_run};
use crate::diagnostic::{Diagnostics, Sources};
use crate::load::manifest::{self, FILE_NAME, Manifest};
use crate::model::operator::Operator;
use crate::suggest::did_you_mean;
use crate::write::EditPolicy;

/// Edits the entry of a kind in the manifest, then generates.
pub(super) fn edit_kind(
    manifest: Option<&Path>,
    kind: &str,
    console: &mut Console,
    edit: impl FnOnce(&str, usize, &Manifest) -> Result<String, String>,
) -> CommandStatus {
    edit_manifest(manifest, console, |text, operator, manifest| {
        edit(text, find_kind(operator, kind)?, manifest)
    })
}

/// Edits the manifest of a crate, then generates.
pub(super) fn edit_manifest(
    manifest: Option<&Path>,
    console: &mut Console,
    edit: impl FnOnce(&str, &Operator, &Manifest) -> Result<String, String>,
) -> CommandStatus {
    let changed = (|| {
        let root = find_root(manifest).map_err(|message| console.fail(&message))?;
        recover_interrupted_run(&root, WriteMode::WRITE, console)?;
        let mut draft = CrateDraft::open(&root).map_err(|error| console.fail_with(&error))?;
        let operator = draft.load(console)?.operator;
        let manifest = parse(draft.manifest());
        let text = edit(draft.manifest(), &operator, &manifest)
            .map_err(|message| console.fail(&message))?;
        draft.set_manifest(text);
        let plan = draft.plan(&RuntimeArgs::default(), console)?;
        Ok((root, plan))
    })();
    match changed {
        Ok((root, plan)) => apply_plan(&root, &plan, EditPolicy::Keep, WriteMode::WRITE, console),
        Err(status) => status,
    }
}

/// The index of a kind in `resources`: both lists have the same order if the manifest is valid.
fn find_kind(operator: &Operator, name: &str) -> Result<usize, String> {
    let found = operator.kinds.iter().position(|kind| {
        kind.kind.eq_ignore_ascii_case(name) || kind.plural.eq_ignore_ascii_case(name)
    });
    found.ok_or_else(|| {
        let kinds: Vec<_> = operator
            .kinds
            .iter()
            .map(|kind| kind.kind.as_str())
            .collect();
        let help = did_you_mean(name, kinds.iter().copied())
            .unwrap_or_else(|| format!("it handles {}", kinds.join(", ")));
        format!("kopf.yaml has no kind `{name}`; {help}")
    })
}

fn parse(text: &str) -> Manifest {
    let mut sources = Sources::new();
    let source = sources.add(FILE_NAME, text);
    manifest::parse(&sources, source, &mut Diagnostics::new())
        .expect("the manifest was read without errors before")
}

/// The entry that is probably meant by `wanted`, or all entries; each has several names.
pub(super) fn suggest_entry(wanted: &str, entries: &[Vec<String>]) -> String {
    let names = || entries.iter().flatten().map(String::as_str);
    let listed: Vec<&str> = entries
        .iter()
        .filter_map(|names| names.first())
        .map(String::as_str)
        .collect();
    did_you_mean(wanted, names()).unwrap_or_else(|| match listed[..] {
        [] => "it has none".to_owned(),
        _ => format!("it has {}", listed.join(", ")),
    })
}
