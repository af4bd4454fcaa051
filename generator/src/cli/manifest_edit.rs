//! Edits the manifest of a crate, then generates.

use std::path::Path;

use super::add_args::NewEntry;
use super::console::Console;
use super::crate_folder::find_root;
use super::draft::CrateDraft;
use super::exit_status::CommandStatus;
use super::manifest_entry::scalar;
use super::runtime_args::RuntimeArgs;
use super::write_plan::{WriteMode, apply_plan, recover_interrupted_run};
use crate::diagnostic::{Diagnostics, Sources};
use crate::edit::{self, ListItem, ManifestList};
use crate::load::manifest::{self, FILE_NAME, Manifest};
use crate::model::builtin_kinds;
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

/// Appends an entry to a list of a kind; adds a built-in kind that the manifest does not have yet.
pub(super) fn append_to_kind(entry: &NewEntry<'_>, console: &mut Console) -> CommandStatus {
    edit_manifest(entry.manifest, console, |text, operator, _| {
        let edited = match find_kind(operator, entry.kind) {
            Ok(index) => edit::append(text, (entry.list)(index), &entry.item),
            // If there is no such kind, the check of the manifest says so.
            Err(_) if entry.kind.contains('/') => {
                edit::append(text, ManifestList::Resources, &builtin_resource(entry))
            }
            Err(message) => return Err(message),
        };
        edited.map_err(|error| error.to_string())
    })
}

/// A resource of a built-in kind with one entry.
fn builtin_resource(entry: &NewEntry<'_>) -> ListItem {
    let (kind, key) = (scalar(entry.kind), (entry.list)(0).key());
    let mut block = vec![format!("builtin: {kind}"), format!("{key}:")];
    let lines = entry.item.block.iter().enumerate();
    block.extend(lines.map(|(number, line)| match number {
        0 => format!("  - {line}"),
        _ => format!("    {line}"),
    }));
    ListItem {
        flow: format!("{{builtin: {kind}, {key}: [{}]}}", entry.item.flow),
        block,
    }
}

/// The index of a kind in `resources`: both lists have the same order if the manifest is valid.
fn find_kind(operator: &Operator, name: &str) -> Result<usize, String> {
    let found = operator.kinds.iter().position(|kind| {
        kind.kind.eq_ignore_ascii_case(name)
            || kind.plural.eq_ignore_ascii_case(name)
            || name == format!("{}/{}", kind.api_version(), kind.kind)
    });
    found.ok_or_else(|| {
        let kinds: Vec<_> = operator
            .kinds
            .iter()
            .map(|kind| kind.kind.as_str())
            .collect();
        let help = did_you_mean(name, kinds.iter().copied())
            .or_else(|| suggest_builtin(name))
            .unwrap_or_else(|| format!("it handles {}", kinds.join(", ")));
        format!("kopf.yaml has no kind `{name}`; {help}")
    })
}

/// How to write the built-in kind of this name.
fn suggest_builtin(name: &str) -> Option<String> {
    let mut kinds = builtin_kinds::ALL.iter();
    let kind = kinds.find(|kind| {
        kind.kind.eq_ignore_ascii_case(name) || kind.plural.eq_ignore_ascii_case(name)
    })?;
    let version = match kind.group {
        "" => kind.version.to_owned(),
        group => format!("{group}/{}", kind.version),
    };
    Some(format!(
        "`add … {version}/{}` adds the built-in kind",
        kind.kind
    ))
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
