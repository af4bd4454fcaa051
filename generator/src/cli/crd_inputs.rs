//! Reads the CustomResourceDefinitions that a command line names, and adds them to a draft.

use std::io::{self, IsTerminal as _};

use clap::Args;
use serde_json::Value;

use super::console::{Console, PrintedNotes};
use super::draft::{CrateDraft, InitialEntries};
use super::exit_status::CommandStatus;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Sources};
use crate::load::crd::{self, Crd, NameFix};
use crate::load::input::{self, STDIN};
use crate::view::yaml::{self, YamlMap};

/// Adds every CustomResourceDefinition that the arguments name, and skips other files of a folder.
pub(super) fn add_inputs(
    draft: &mut CrateDraft,
    arguments: &[String],
    first: InitialEntries,
    fix: NameFix,
    console: &mut Console,
) -> Result<(), CommandStatus> {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    if !is_typed_by_hand(arguments) {
        console.begin_task("reading the definitions");
    }
    let ids = input::read(arguments, &mut sources, &mut diagnostics);
    let mut files = Vec::new();
    for id in ids {
        let name = sources.name(id);
        let kinds = crd::read(&sources, id, fix, &mut diagnostics);
        let is_meant = name == STDIN || arguments.iter().any(|argument| argument == name);
        if !kinds.is_empty() {
            files.push((id, kinds));
        } else if is_meant && !diagnostics.has_errors() {
            let message = format!("there is no CustomResourceDefinition in {name}");
            diagnostics.push(Diagnostic::error(Code::NothingFound, message));
        }
    }
    if files.is_empty() && !arguments.is_empty() && !diagnostics.has_errors() {
        let message = "there is no CustomResourceDefinition in the inputs";
        diagnostics.push(Diagnostic::error(Code::NothingFound, message));
    }
    // Warnings are printed when the draft is read, with the paths that the files have then.
    if diagnostics.has_errors() {
        diagnostics.sort();
        console.print_diagnostics(&diagnostics, &sources, PrintedNotes::None);
        return Err(CommandStatus::Invalid);
    }
    for (id, kinds) in files {
        let name = sources.name(id);
        let text = corrected_text(name, &kinds).unwrap_or_else(|| sources.text(id).to_owned());
        match draft.add_crds(name, &text, &kinds, first) {
            Ok(known) => known
                .iter()
                .for_each(|kind| console.print_line(&format!("{kind} is in kopf.yaml already"))),
            Err(error) => return Err(console.fail_with(&error)),
        }
    }
    Ok(())
}

/// The option to correct definitions that the API server rejects.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct FixArgs {
    /// Write definitions of `v1beta1`, or not named `<plural>.<group>`, as the API server accepts them
    #[arg(long)]
    fix_names: bool,
}

impl FixArgs {
    pub(super) const fn fix(self) -> NameFix {
        if self.fix_names {
            NameFix::Correct
        } else {
            NameFix::Refuse
        }
    }
}

/// The definitions of a file as YAML, if one of them was corrected.
pub(super) fn corrected_text(name: &str, kinds: &[Crd]) -> Option<String> {
    if !kinds.iter().any(|crd| crd.is_corrected) {
        return None;
    }
    let base = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let origin = format!("Corrected by kopf-gen, from {base}.");
    let first: &[&str] = &[&origin];
    let values = kinds
        .iter()
        .filter_map(|crd| serde_json::from_str(&crd.json).ok());
    let maps = values.enumerate().map(|(index, value): (usize, Value)| {
        let comment = if index == 0 { first } else { &[] };
        (comment, YamlMap::from(&value))
    });
    Some(yaml::documents(&maps.collect::<Vec<_>>()))
}

/// Whether the user types a definition at the terminal, where a progress line would disturb.
pub(super) fn is_typed_by_hand(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "-") && io::stdin().is_terminal()
}
