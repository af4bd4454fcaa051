//! The journal of `kopf-faults`, in the form for operators that do not share its code.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::ResourceExt as _;
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::ControlledWidget;

/// The pause between two reports of what the process uses.
const PROBE_EVERY: Duration = Duration::from_secs(2);

/// The journal of this process.
#[derive(Debug)]
pub(crate) struct CallLog {
    file: File,
    pid: i32,
    born: u64,
    calls: AtomicU64,
}

/// A call that has begun. Unless it ends, the Controller has dropped it.
#[derive(Debug)]
pub(crate) struct LoggedCall<'a> {
    log: &'a CallLog,
    line: Value,
    ended: bool,
}

/// The end of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LoggedEnd {
    Success,
    /// It comes again, as it asked for or because of an error.
    Retry,
}

/// A number that depends on a handler, an object and its state only.
pub(crate) fn number_of(handler: &str, widget: &ControlledWidget) -> u64 {
    let mut hasher = DefaultHasher::new();
    let state = state_of(widget).to_string();
    (handler, widget.uid(), state).hash(&mut hasher);
    hasher.finish()
}

/// What users edit.
fn state_of(widget: &ControlledWidget) -> Value {
    json!({
        "metadata": {"labels": widget.labels(), "annotations": widget.annotations()},
        "spec": widget.spec,
    })
}

/// Microseconds of the monotonic clock, which all processes of a machine share.
fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000 + now.tv_nsec.unsigned_abs() / 1_000
}

// === impl CallLog ===

impl CallLog {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: OpenOptions::new().append(true).open(path)?,
            pid: rustix::process::getpid().as_raw_nonzero().get(),
            born: now(),
            calls: AtomicU64::new(0),
        })
    }

    /// Reports the number of tasks for as long as this is polled.
    pub(crate) async fn probe(&self) {
        loop {
            sleep(PROBE_EVERY).await;
            let metrics = tokio::runtime::Handle::current().metrics();
            self.append(&json!({
                "line": "probe", "at": now(), "pid": self.pid,
                "tasks": metrics.num_alive_tasks(), "index": {},
            }));
        }
    }

    /// Writes the begin of a call.
    pub(crate) fn begin(&self, handler: &str, widget: &ControlledWidget) -> LoggedCall<'_> {
        let version = widget.resource_version().unwrap_or_default();
        let version: u64 = version.parse().unwrap_or_default();
        let call = LoggedCall {
            log: self,
            line: json!({
                "line": "call", "pid": self.pid, "born": self.born,
                "call": self.calls.fetch_add(1, Ordering::Relaxed),
                "handler": handler, "retry": 0,
                "uid": widget.uid(), "name": widget.name_any(),
                "version": version, "state": {"raw": state_of(widget)},
            }),
            ended: false,
        };
        call.write("begin");
        call
    }

    fn append(&self, line: &Value) {
        // The first line break ends a line that another process left torn.
        let written = (&self.file).write_all(format!("\n{line}\n").as_bytes());
        // Without its journal the process proves nothing, and a missing line would look like a bug.
        written.expect("the journal can be written");
    }
}

// === impl LoggedCall ===

impl LoggedCall<'_> {
    pub(crate) fn end(mut self, step: LoggedEnd) {
        self.ended = true;
        self.write(match step {
            LoggedEnd::Success => "success",
            LoggedEnd::Retry => "retry",
        });
    }

    fn write(&self, step: &str) {
        let mut line = self.line.clone();
        line["at"] = now().into();
        line["step"] = step.into();
        self.log.append(&line);
    }
}

impl Drop for LoggedCall<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.write("cut");
        }
    }
}
