//! The scope of a handler call: the object, and the services of the operator.

use std::fmt;
use std::sync::Arc;

use kopf_core::selection::DiscoveredResource;
use kube::Client;

use super::applied_uids::AppliedUids;
use crate::coordination::pause::PauseGate;
use crate::events::log_layer::LogPoster;
use crate::events::object_ref::ObjectRef;
use crate::events::posting::{EventPoster, EventSeverity};
use crate::events::recorder::EventRecorder;
use crate::handler::memo::AnyMemo;
use crate::index::Indices;
use crate::page::journal::PageJournal;
use crate::settings::{PostingLevel, ProgressPosting};

/// The services that all handlers of an operator share.
pub(crate) struct OperatorServices {
    pub(crate) client: Client,
    /// The name of the operator, under which it applies children.
    pub(crate) field_manager: Arc<str>,
    /// None if no Kubernetes events are to be posted.
    pub(crate) poster: Option<EventPoster>,
    pub(crate) pause_gate: PauseGate,
    pub(crate) indices: Indices,
    pub(crate) applied: AppliedUids,
    /// Keeps what happens, for the page of the operator.
    pub(crate) journal: PageJournal,
}

/// The object of a call, with the services of the operator.
#[derive(Clone)]
pub(crate) struct HandlerScope {
    pub(crate) services: Arc<OperatorServices>,
    pub(crate) subject: ObjectRef,
    /// None if the kind has no memos.
    pub(crate) memo: Option<AnyMemo>,
    pub(crate) resource: Arc<DiscoveredResource>,
}

/// A step in the handling of an object that is posted as a Kubernetes event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgressEvent {
    /// A handler succeeded.
    Success,
    /// A handler failed.
    Failure,
    /// All handlers are done.
    Finished,
}

impl HandlerScope {
    /// Posts Kubernetes events on the object.
    pub(crate) fn recorder(&self) -> EventRecorder {
        EventRecorder::new(self.subject.clone(), self.services.poster.clone())
    }

    /// The posting of log lines as Kubernetes events, if the settings ask for it.
    pub(crate) fn log_poster(&self) -> Option<LogPoster> {
        LogPoster::of(self.services.poster.as_ref(), &self.subject)
    }

    /// Posts an event about the handling, if the settings ask for it: by default they do not for
    /// successes, which then need no message.
    pub(crate) fn post_progress(&self, progress: ProgressEvent, message: impl fmt::Display) {
        let (least, level, severity, reason) = match progress {
            ProgressEvent::Success => (
                ProgressPosting::Everything,
                PostingLevel::Info,
                EventSeverity::Normal,
                "Success",
            ),
            ProgressEvent::Failure => (
                ProgressPosting::Failures,
                PostingLevel::Error,
                EventSeverity::Error,
                // Kopf's reason, so that people and their alerts recognise it.
                "Logging",
            ),
            ProgressEvent::Finished => (
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
            poster.post(&self.subject, &severity, reason, message.to_string());
        }
    }
}
