//! The entries of the journal, as the page gets them in JSON.

use jiff::Timestamp;
use kopf_core::handler::Trigger;
use kopf_core::progress::record::Record;
use serde::Serialize;

use super::byte_ring::EntryBytes;
use crate::client::shown_change::ShownChange;

/// The longest message that is kept.
const LONGEST_MESSAGE: usize = 500;

/// What an entry takes beside its texts.
const OVERHEAD: usize = 120;

/// A moment in milliseconds since 1970, which JavaScript reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub(crate) struct Millis(pub(crate) i64);

/// The identity of an object that the journal is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalSubject<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
}

/// The type of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum JournalHandlerType {
    Change,
    Event,
    Daemon,
    Timer,
    Index,
}

/// The progress of a handler on one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HandlerProgress {
    Pending,
    Running,
    Waiting,
    Succeeded,
    Failed,
}

/// A handler of an object, with its last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct HandlerEntry {
    pub(crate) id: Box<str>,
    #[serde(rename = "type")]
    pub(crate) handler_type: JournalHandlerType,
    pub(crate) progress: HandlerProgress,
    pub(crate) attempts: u32,
    /// The begin or the end of the last attempt.
    pub(crate) since: Millis,
    /// The time of the next attempt.
    pub(crate) until: Option<Millis>,
    pub(crate) message: Option<Box<str>>,
}

/// A call of a handler that has ended.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CallEntry {
    pub(crate) at: Millis,
    /// Microseconds.
    pub(crate) duration: u64,
    pub(crate) uid: Box<str>,
    pub(crate) object: Box<str>,
    pub(crate) handler: Box<str>,
    pub(crate) attempt: u32,
    pub(crate) outcome: &'static str,
}

/// The change that an update handled.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ChangeEntry {
    pub(crate) at: Millis,
    pub(crate) uid: Box<str>,
    pub(crate) reason: &'static str,
    pub(crate) changes: Vec<ShownChange>,
}

/// A Kubernetes event that the operator posts on an object.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct PostedEntry {
    pub(crate) at: Millis,
    pub(crate) uid: Box<str>,
    #[serde(rename = "type")]
    pub(crate) event_type: Box<str>,
    pub(crate) reason: Box<str>,
    pub(crate) message: Box<str>,
}

/// A log line about an object.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LineEntry {
    pub(crate) at: Millis,
    pub(crate) uid: Box<str>,
    pub(crate) level: &'static str,
    pub(crate) handler: Option<Box<str>>,
    pub(crate) message: Box<str>,
}

/// A message without what exceeds the limit.
pub(crate) fn cut(message: &str) -> Box<str> {
    if message.len() <= LONGEST_MESSAGE {
        return message.into();
    }
    let mut ends = (0..=LONGEST_MESSAGE).rev();
    let end = ends.find(|end| message.is_char_boundary(*end)).unwrap_or(0);
    format!("{}…", &message[..end]).into()
}

// === impl Millis ===

impl From<Timestamp> for Millis {
    fn from(at: Timestamp) -> Self {
        Self(at.as_millisecond())
    }
}

// === impl JournalHandlerType ===

impl From<Trigger> for JournalHandlerType {
    fn from(trigger: Trigger) -> Self {
        match trigger {
            Trigger::Daemon => Self::Daemon,
            Trigger::Timer => Self::Timer,
            Trigger::Index => Self::Index,
            Trigger::Event => Self::Event,
            _ => Self::Change,
        }
    }
}

impl JournalHandlerType {
    pub(crate) fn is_background(self) -> bool {
        matches!(self, Self::Daemon | Self::Timer)
    }
}

// === impl HandlerEntry ===

impl HandlerEntry {
    pub(crate) fn new(id: &str, handler_type: JournalHandlerType, at: Timestamp) -> Self {
        Self {
            id: id.into(),
            handler_type,
            progress: HandlerProgress::Pending,
            attempts: 0,
            since: at.into(),
            until: None,
            message: None,
        }
    }

    /// Takes over what a record says.
    pub(crate) fn follow(&mut self, record: &Record, at: Timestamp) {
        self.attempts = record.retries;
        self.message = record.message.as_deref().map(cut);
        self.until = None;
        self.progress = if record.success {
            HandlerProgress::Succeeded
        } else if record.failure {
            HandlerProgress::Failed
        } else if record.is_sleeping(at) {
            self.until = record.delayed.map(Millis::from);
            HandlerProgress::Waiting
        } else {
            HandlerProgress::Pending
        };
        self.since = record.stopped.map_or(self.since, Millis::from);
    }
}

// === impl EntryBytes ===

impl EntryBytes for CallEntry {
    fn bytes(&self) -> usize {
        OVERHEAD + self.uid.len() + self.object.len() + self.handler.len()
    }
}

impl EntryBytes for ChangeEntry {
    fn bytes(&self) -> usize {
        let changes = self.changes.iter().map(ShownChange::bytes);
        OVERHEAD + self.uid.len() + changes.sum::<usize>()
    }
}

impl EntryBytes for PostedEntry {
    fn bytes(&self) -> usize {
        let texts = [&self.uid, &self.event_type, &self.reason, &self.message];
        OVERHEAD + texts.iter().map(|text| text.len()).sum::<usize>()
    }
}

impl EntryBytes for LineEntry {
    fn bytes(&self) -> usize {
        let handler = self.handler.as_ref().map_or(0, |handler| handler.len());
        OVERHEAD + self.uid.len() + self.message.len() + handler
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(&*cut("short"), "short");
        let cut = cut(&"ü".repeat(400));
        assert!(cut.len() <= LONGEST_MESSAGE + '…'.len_utf8(), "{cut}");
        assert!(cut.ends_with("ü…"));
    }

    #[test]
    fn a_record_that_waits_says_until_when() {
        let at = Timestamp::from_millisecond(1_000).unwrap();
        let mut record = Record::begin(kopf_core::cause::Reason::Create, at);
        record.retries = 2;
        record.message = Some("not yet".to_owned());
        record.delayed = Timestamp::from_millisecond(5_000).ok();
        let mut handler = HandlerEntry::new("work", JournalHandlerType::Change, at);
        handler.follow(&record, at);
        assert_eq!(handler.progress, HandlerProgress::Waiting);
        assert_eq!(handler.until, Some(Millis(5_000)));
        assert_eq!(
            (handler.attempts, handler.message.as_deref()),
            (2, Some("not yet"))
        );
        record.success = true;
        handler.follow(&record, at);
        assert_eq!(
            (handler.progress, handler.until),
            (HandlerProgress::Succeeded, None)
        );
    }
}
