//! Wrong journals on purpose, to show that the checker finds them.

use clap::ValueEnum;

use crate::journal::{CallLine, LoggedStep};
use crate::workload::CHANGED;

/// What the journal gets wrong about the handler of changes, for every tenth object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sabotage {
    /// Its calls are missing
    Lost,
    /// Each of its successes comes twice
    Repeated,
    /// Each of its calls begins twice before it ends
    Overlapping,
}

// === impl Sabotage ===

impl Sabotage {
    /// The name on the command line and in the environment of the operator.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Repeated => "repeated",
            Self::Overlapping => "overlapping",
        }
    }

    /// The lines to write instead of this one.
    pub(crate) fn lines(self, line: CallLine) -> Vec<CallLine> {
        if line.handler != CHANGED || !line.name.ends_with('7') {
            return vec![line];
        }
        let step = |step, call| CallLine {
            step,
            call: line.call + call,
            ..line.clone()
        };
        // Numbers that no real call of the process has.
        let other = 1 << 40;
        match (self, line.step) {
            (Self::Lost, _) => Vec::new(),
            (Self::Repeated, LoggedStep::Success) => vec![
                line.clone(),
                step(LoggedStep::Begin, other),
                step(LoggedStep::Success, other),
            ],
            (Self::Overlapping, LoggedStep::Begin) => {
                vec![line.clone(), step(LoggedStep::Begin, other)]
            }
            (Self::Overlapping, ended) => vec![step(ended, other), line.clone()],
            (Self::Repeated, _) => vec![line],
        }
    }
}
