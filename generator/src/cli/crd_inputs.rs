//! Reads the CustomResourceDefinitions that a command line names, and adds them to a draft.

use std::io::{self, IsTerminal as _};

use super::console::{Console, PrintedNotes};
use super::definition_fix::corrected_text;
use super::draft::{CrateDraft, InitialEntries};
use super::exit_status::CommandStatus;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Sources};
use crate::load::crd::{self, NameFix};
use crate::load::input::{self, STDIN};

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

/// Whether the user types a definition at the terminal, where a progress line would disturb.
pub(super) fn is_typed_by_hand(arguments: &[String]) -> bool {
    arguments.iter().any(|argument| argument == "-") && io::stdin().is_terminal()
}
