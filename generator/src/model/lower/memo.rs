//! Lowers the `memo` of a kind, and checks the name of its type.

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::manifest::{Manifest, ResourceSection};
use crate::model::identifier::TypeName;
use crate::model::operator::HandledKind;

/// The user's type for the memo of each object of `kind`.
pub(super) fn memo(
    manifest: &Manifest,
    section: &ResourceSection,
    kind: &HandledKind,
    diagnostics: &mut Diagnostics,
) -> Option<String> {
    let name = section.memo.as_ref()?;
    let taken = [
        kind.type_name.as_str(),
        &kind.handlers_trait(),
        "Memo",
        "Operator",
    ];
    let suggestion = TypeName::new(&name.value).to_string();
    if suggestion != name.value || taken.contains(&name.value.as_str()) {
        let help = if suggestion == name.value || taken.contains(&suggestion.as_str()) {
            format!("write it like `{}Memo`", kind.type_name)
        } else {
            format!("write `{suggestion}`")
        };
        diagnostics.push(
            Diagnostic::error(
                Code::ManifestValue,
                format!("`{}` cannot name the type of a memo", name.value),
            )
            .at(
                manifest.source,
                name.span,
                "not a name for a type of your own",
            )
            .help(help),
        );
        return None;
    }
    if !kind.is_watched() {
        let message = format!("the memo of {} is never used", kind.kind);
        diagnostics.push(
            Diagnostic::warning(Code::UselessMemo, message)
                .at(manifest.source, name.span, "webhooks have no memo")
                .help("only objects that a handler watches have a memo"),
        );
    }
    Some(name.value.clone())
}
