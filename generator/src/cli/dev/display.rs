//! Lines of several programs on one terminal, with a status line below them.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Goes to the beginning of the line and clears it.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// The output of a session; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Display {
    /// Never held across an await.
    state: Arc<Mutex<DisplayState>>,
}

#[derive(Debug)]
struct DisplayState {
    /// Whether a status line is drawn: on a terminal only.
    has_status_line: bool,
    status: String,
    /// Whether another program writes to the terminal, which would mix with the status line.
    is_lent: bool,
}

impl Display {
    /// Shows a status line if that is wanted and the output is a terminal.
    pub(super) fn new(wants_status: bool) -> Self {
        let state = DisplayState {
            has_status_line: wants_status && io::stderr().is_terminal(),
            status: String::new(),
            is_lent: false,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Whether keys are read: there is a terminal for both directions.
    pub(super) fn is_interactive(&self) -> bool {
        self.state().has_status_line && io::stdin().is_terminal()
    }

    /// Prints a line of a program.
    pub(super) fn line(&self, line: &str) {
        self.state().print(line);
    }

    /// Prints a line of the session itself.
    pub(super) fn report(&self, line: &str) {
        self.state().print(&format!("dev: {line}"));
    }

    /// Replaces the status line.
    pub(super) fn status(&self, status: impl Into<String>) {
        let mut state = self.state();
        state.status = status.into();
        state.is_lent = false;
        state.draw();
    }

    /// Leaves the terminal to another program until the next status.
    pub(super) fn lend(&self) {
        let mut state = self.state();
        state.clear();
        state.is_lent = true;
    }

    /// Removes the status line.
    pub(super) fn end(&self) {
        let mut state = self.state();
        state.clear();
        state.has_status_line = false;
    }

    fn state(&self) -> MutexGuard<'_, DisplayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DisplayState {
    fn print(&mut self, line: &str) {
        self.clear();
        // A closed standard error leaves nowhere to report to.
        let _ = writeln!(io::stderr().lock(), "{line}");
        self.draw();
    }

    fn clear(&self) {
        if self.has_status_line && !self.is_lent {
            let _ = write!(io::stderr().lock(), "{CLEAR_LINE}");
        }
    }

    fn draw(&self) {
        if self.has_status_line && !self.is_lent && !self.status.is_empty() {
            let mut out = io::stderr().lock();
            let _ = write!(out, "{CLEAR_LINE}\x1b[7m {} \x1b[0m", self.status);
            let _ = out.flush();
        }
    }
}
