//! What every handler has around it, whatever it is called for.

use std::sync::Arc;

use kopf_core::selection::DiscoveredResource;
use kube::Client;

use crate::coordination::pause::PauseGate;
use crate::events::log_layer::LogPoster;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::{EventPoster, EventSeverity};
use crate::events::recorder::EventRecorder;
use crate::handler::memo::AnyMemo;
use crate::index::Indices;
use crate::settings::{PostingLevel, ProgressPosting};

/// What all handlers of an operator share.
pub(crate) struct OperatorServices {
    pub(crate) client: Client,
    /// None if nobody is to be told anything.
    pub(crate) poster: Option<EventPoster>,
    pub(crate) pause_gate: PauseGate,
    pub(crate) indices: Indices,
}

/// The object, and the means to do something about it.
#[derive(Clone)]
pub(crate) struct HandlerScope {
    pub(crate) services: Arc<OperatorServices>,
    pub(crate) subject: ObjectRef,
    /// None if the kind has no memos.
    pub(crate) memo: Option<AnyMemo>,
    pub(crate) resource: Arc<DiscoveredResource>,
}

/// How the handling of an object goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// A handler succeeded.
    Success,
    /// A handler failed.
    Failure,
    /// All handlers are done.
    Finished,
}

impl HandlerScope {
    /// The means to tell people about the object.
    pub(crate) fn recorder(&self) -> EventRecorder {
        EventRecorder::new(self.subject.clone(), self.services.poster.clone())
    }

    /// Whether and how log lines of a handler become events.
    pub(crate) fn log_poster(&self) -> Option<LogPoster> {
        LogPoster::of(self.services.poster.as_ref(), &self.subject)
    }

    /// Tells people in an event how the handling goes on, if they want to know that.
    pub(crate) fn tell(&self, progress: Progress, message: &str) {
        let (least, level, severity, reason) = match progress {
            Progress::Success => (
                ProgressPosting::Everything,
                PostingLevel::Info,
                EventSeverity::Normal,
                "Success",
            ),
            Progress::Failure => (
                ProgressPosting::Failures,
                PostingLevel::Error,
                EventSeverity::Error,
                // As Kopf has it, so that people and their alerts recognise it.
                "Logging",
            ),
            Progress::Finished => (
                ProgressPosting::Everything,
                PostingLevel::Info,
                EventSeverity::Normal,
                "Finished",
            ),
        };
        if let Some(poster) = &self.services.poster
            && poster.settings().wanted_progress() >= least
            && poster.wants(level)
        {
            poster.post(&self.subject, &severity, reason, message);
        }
    }
}
