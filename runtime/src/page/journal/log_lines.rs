//! Passes log lines to the journals of the process.
//!
//! The log belongs to the whole process, and is set up before any operator: so it finds the journals
//! here. Without a journal this is one read of a flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use jiff::Timestamp;

use super::JournalState;
use super::entry::{LineEntry, cut};

static LISTENING: AtomicBool = AtomicBool::new(false);

/// Written when an operator with a page starts, read for each log line; never held across an await.
static JOURNALS: RwLock<Vec<Weak<JournalState>>> = RwLock::new(Vec::new());

/// Passes log lines to a journal as long as it exists.
pub(super) fn listen(journal: &Arc<JournalState>) {
    let mut journals = JOURNALS.write().unwrap_or_else(PoisonError::into_inner);
    journals.retain(|journal| journal.strong_count() > 0);
    journals.push(Arc::downgrade(journal));
    LISTENING.store(true, Ordering::Relaxed);
}

/// Whether there may be a journal.
pub(crate) fn is_listening() -> bool {
    LISTENING.load(Ordering::Relaxed)
}

/// Keeps a log line about an object in the journals that know the object.
pub(crate) fn keep(uid: &str, level: &'static str, handler: Option<&str>, message: &str) {
    let journals = JOURNALS.read().unwrap_or_else(PoisonError::into_inner);
    for journal in journals.iter().filter_map(Weak::upgrade) {
        if journal.lock().objects.contains(uid) {
            journal.update(|contents, at: Timestamp| {
                contents.lines.push(LineEntry {
                    at: at.into(),
                    uid: uid.into(),
                    level,
                    handler: handler.map(Box::from),
                    message: cut(message),
                });
            });
        }
    }
}
