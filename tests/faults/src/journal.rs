//! The journal: a file outside of the cluster to which the handlers append each call.
//!
//! A line is one `write` to a file opened for appending, so that several processes can share it and
//! a killed one leaves at most one torn line.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::clock;
use crate::sabotage::Sabotage;
use crate::state::DigestedState;

/// One line of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "lowercase")]
pub(crate) enum JournalLine {
    /// A step of a call.
    Call(CallLine),
    /// What an operator knows and uses, reported by the timer of one object.
    Probe(ProbeLine),
}

/// One step of one call of a handler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallLine {
    /// The time in microseconds of the monotonic clock.
    pub(crate) at: u64,
    pub(crate) pid: i32,
    /// The start of the process, because process ids come again.
    pub(crate) born: u64,
    /// The number of the call in its process.
    pub(crate) call: u64,
    pub(crate) step: LoggedStep,
    pub(crate) handler: String,
    pub(crate) retry: u32,
    pub(crate) uid: String,
    pub(crate) name: String,
    /// The resource version of the object that the handler got.
    pub(crate) version: u64,
    pub(crate) state: DigestedState,
}

/// A step of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoggedStep {
    /// The handler was called.
    Begin,
    /// It succeeded.
    Success,
    /// It asked to be called again.
    Retry,
    /// It failed for good.
    Failure,
    /// The operator dropped it.
    Cut,
}

/// What an operator knows and uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ProbeLine {
    pub(crate) at: u64,
    pub(crate) pid: i32,
    /// The number of tasks of the runtime.
    pub(crate) tasks: usize,
    /// The index: for each object its state.
    pub(crate) index: BTreeMap<String, IndexedState>,
}

/// The value of an object in the index. Operators in other languages write the object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum IndexedState {
    Digest(String),
    Object { raw: serde_json::Value },
}

/// The journal of one process.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    pid: i32,
    born: u64,
    calls: AtomicU64,
    sabotage: Option<Sabotage>,
}

/// A call that has begun. Unless it ends, the operator has dropped it.
#[derive(Debug)]
pub(crate) struct OpenCall {
    journal: Arc<Journal>,
    line: CallLine,
    ended: bool,
}

/// Follows a journal that grows.
#[derive(Debug)]
pub(crate) struct JournalTail {
    file: File,
}

/// All lines of a journal.
#[derive(Debug, Default)]
pub(crate) struct JournalContent {
    pub(crate) lines: Vec<JournalLine>,
    /// Lines that killed processes did not complete.
    pub(crate) torn: usize,
}

// === impl Journal ===

impl Journal {
    pub(crate) fn open(path: &Path, sabotage: Option<Sabotage>) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self {
            file,
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            born: clock::now(),
            calls: AtomicU64::new(0),
            sabotage,
        })
    }

    /// Writes the begin of a call. The caller fills in what was called and for which object.
    pub(crate) fn begin(self: &Arc<Self>, facts: CallLine) -> OpenCall {
        let line = CallLine {
            pid: self.pid,
            born: self.born,
            call: self.calls.fetch_add(1, Ordering::Relaxed),
            ..facts
        };
        let call = OpenCall {
            journal: Arc::clone(self),
            line,
            ended: false,
        };
        call.write(LoggedStep::Begin);
        call
    }

    pub(crate) fn probe(&self, tasks: usize, index: BTreeMap<String, IndexedState>) {
        self.append(&JournalLine::Probe(ProbeLine {
            at: clock::now(),
            pid: self.pid,
            tasks,
            index,
        }));
    }

    fn append(&self, line: &JournalLine) {
        let Ok(text) = serde_json::to_string(line) else {
            return;
        };
        // The first line break ends a line that another process left torn.
        let written = (&self.file).write_all(format!("\n{text}\n").as_bytes());
        // Without its journal the process proves nothing, and a missing line would look like a bug.
        written.expect("the journal can be written");
    }
}

// === impl OpenCall ===

impl OpenCall {
    pub(crate) fn end(mut self, step: LoggedStep) {
        self.finish(step);
    }

    fn finish(&mut self, step: LoggedStep) {
        self.ended = true;
        self.write(step);
    }

    fn write(&self, step: LoggedStep) {
        let line = CallLine {
            at: clock::now(),
            step,
            ..self.line.clone()
        };
        let lines = match self.journal.sabotage {
            None => vec![line],
            Some(sabotage) => sabotage.lines(line),
        };
        for line in lines {
            self.journal.append(&JournalLine::Call(line));
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if !self.ended {
            self.finish(LoggedStep::Cut);
        }
    }
}

// === impl IndexedState ===

impl IndexedState {
    /// The digest of everything that users edit.
    pub(crate) fn whole(&self) -> String {
        match self {
            Self::Digest(whole) => whole.clone(),
            Self::Object { raw } => DigestedState::of(raw).whole,
        }
    }
}

// === impl JournalTail ===

impl JournalTail {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(io::SeekFrom::End(0))?;
        Ok(Self { file })
    }

    /// Whether a handler was called in this process since the last question.
    pub(crate) fn has_call_of(&mut self, pid: i32) -> io::Result<bool> {
        Ok(self.read()?.calls().any(|call| call.pid == pid))
    }

    /// The lines since the last question.
    pub(crate) fn read(&mut self) -> io::Result<JournalContent> {
        let mut bytes = Vec::new();
        self.file.read_to_end(&mut bytes)?;
        Ok(JournalContent::parse(&String::from_utf8_lossy(&bytes)))
    }
}

// === impl JournalContent ===

impl JournalContent {
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Self::parse(&String::from_utf8_lossy(&bytes))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str) -> Self {
        let mut content = Self::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            match serde_json::from_str(line) {
                Ok(line) => content.lines.push(line),
                Err(_) => content.torn += 1,
            }
        }
        content
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallLine> {
        self.lines.iter().filter_map(|line| match line {
            JournalLine::Call(call) => Some(call),
            JournalLine::Probe(_) => None,
        })
    }

    /// The last probe of a process.
    pub(crate) fn last_probe(&self, pid: i32) -> Option<&ProbeLine> {
        self.lines.iter().rev().find_map(|line| match line {
            JournalLine::Probe(probe) if probe.pid == pid => Some(probe),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_does_not_spoil_the_next_one() {
        let probe = r#"{"line":"probe","at":1,"pid":2,"tasks":3,"index":{}}"#;
        let content = JournalContent::parse(&format!("\n{probe}\n\n{{\"line\":\"pro\n{probe}\n"));
        assert_eq!((content.lines.len(), content.torn), (2, 1));
    }
}
