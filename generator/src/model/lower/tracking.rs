//! Lowers `track`, and reports it if no handler needs it.

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::load::manifest::{Manifest, ResourceSection, Tracking};
use crate::model::handler::Handler;
use crate::model::operator::HandledKind;

/// The objects of `kind` whose last handled state is kept.
pub(super) fn tracking(
    manifest: &Manifest,
    section: &ResourceSection,
    kind: &HandledKind,
    diagnostics: &mut Diagnostics,
) -> Tracking {
    let Some(track) = &section.track else {
        return Tracking::Matching;
    };
    if track.value == Tracking::Always && !kind.handlers.iter().any(Handler::keeps_progress) {
        let message = format!("no handler needs the last states of {}", kind.kind);
        diagnostics.push(
            Diagnostic::error(Code::UselessTracking, message)
                .at(manifest.source, track.span, "no handler compares them")
                .help("add a `create`, `update`, `field`, `resume` or `delete` handler, or leave `track` out"),
        );
    }
    track.value
}
