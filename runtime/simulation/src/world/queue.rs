//! What will happen, in the order of its time.

use std::collections::BTreeMap;

use super::actor::CallOutcome;
use crate::faults::RequestFault;
use crate::server::ApiRequest;
use crate::time::VirtualTime;

/// One run of one process: after a crash the next one begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId {
    pub(crate) process: usize,
    pub(crate) run: u32,
}

/// An open watch of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WatchId {
    pub(crate) run: RunId,
    pub(crate) watch: u64,
    /// Different for each opening under the same number.
    pub(crate) opening: u64,
}

/// A request on its way to the API server.
#[derive(Debug)]
pub(crate) struct SentRequest {
    pub(crate) call: u64,
    pub(crate) at: VirtualTime,
    pub(crate) request: ApiRequest,
}

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Planned {
    /// A request reaches the API server.
    Arrives {
        run: RunId,
        sent: Box<SentRequest>,
        fault: RequestFault,
    },
    /// A request without a waiting client reaches the API server.
    ArrivesLate { run: RunId, sent: Box<SentRequest> },
    /// A process gets the end of a request.
    Ends {
        run: RunId,
        call: u64,
        outcome: CallOutcome,
    },
    /// A watch sends its next event.
    Sends(WatchId),
    /// The API server may send a bookmark.
    Bookmarks(WatchId),
    /// The request for a watch has failed.
    WatchFails {
        run: RunId,
        watch: u64,
        failure: Option<Box<crate::server::ApiAnswer>>,
    },
    /// A timer fires.
    Fires { run: RunId, timer: u64, set: u64 },
    /// A process is asked to stop.
    Stops(RunId),
    /// Others do something.
    Disturbance(usize),
    /// A process starts.
    Starts(usize),
    /// The operators may be at rest already.
    LooksForRest,
    /// The next part of the history begins.
    NextPhase,
}

/// The plan, by time and then by order of planning.
#[derive(Debug, Default)]
pub(crate) struct EventQueue {
    planned: BTreeMap<(VirtualTime, u64), Planned>,
    numbers: u64,
}

// === impl EventQueue ===

impl EventQueue {
    pub(crate) fn plan(&mut self, at: VirtualTime, what: Planned) {
        self.numbers += 1;
        self.planned.insert((at, self.numbers), what);
    }

    /// Whether something will happen besides what is repeated for ever: timers and bookmarks, and the
    /// requests and events of the coordination.
    pub(crate) fn has_unique_events(&self) -> bool {
        let mut planned = self.planned.values();
        planned.any(|it| match it {
            Planned::ArrivesLate { .. }
            | Planned::WatchFails { .. }
            | Planned::Stops(_)
            | Planned::Disturbance(_)
            | Planned::Starts(_) => true,
            Planned::Arrives { .. }
            | Planned::Ends { .. }
            | Planned::Sends(_)
            | Planned::Bookmarks(_)
            | Planned::Fires { .. }
            | Planned::LooksForRest
            | Planned::NextPhase => false,
        })
    }

    pub(crate) fn next(&mut self) -> Option<(VirtualTime, Planned)> {
        let ((at, _), planned) = self.planned.pop_first()?;
        Some((at, planned))
    }
}

// === impl Planned ===

impl Planned {
    /// The process that gets this; none if the API server or others do.
    pub(crate) fn receiver(&self) -> Option<RunId> {
        match self {
            Self::Ends { run, .. } | Self::Fires { run, .. } | Self::WatchFails { run, .. } => {
                Some(*run)
            }
            Self::Sends(watch) | Self::Bookmarks(watch) => Some(watch.run),
            Self::Stops(run) => Some(*run),
            Self::Arrives { .. }
            | Self::ArrivesLate { .. }
            | Self::Disturbance(_)
            | Self::Starts(_)
            | Self::LooksForRest
            | Self::NextPhase => None,
        }
    }
}
