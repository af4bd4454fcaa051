//! The progress line on a terminal: shown while a task takes long, erased afterwards.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A task that ends within this time is not shown.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// How often the line is drawn again.
const REDRAW_EVERY: Duration = Duration::from_secs(1);

/// Moves to the start of the line and clears it.
const ERASE: &str = "\r\x1b[K";

/// Shows the current task on the last line of the terminal.
#[derive(Debug, Default)]
pub(super) struct ProgressLine {
    line: Option<Arc<TerminalLine>>,
}

/// Two threads write to one terminal, so the line has a lock. Code that prints something else
/// clears the line first, and it stays cleared until the next task.
#[derive(Debug, Default)]
struct TerminalLine {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    task: Option<Task>,
    is_shown: bool,
    is_over: bool,
}

#[derive(Debug)]
struct Task {
    what: &'static str,
    since: Instant,
    /// How many kinds are done, for tasks that count them.
    count: Option<KindCount>,
}

#[derive(Clone, Copy, Debug)]
struct KindCount {
    done: usize,
    total: usize,
}

// === impl ProgressLine ===

impl ProgressLine {
    /// On standard error, if that is a terminal that can erase a line; otherwise shows nothing.
    pub(super) fn on_terminal() -> Self {
        let is_dumb = std::env::var_os("TERM").is_some_and(|name| name == "dumb");
        if !io::stderr().is_terminal() || is_dumb {
            return Self::default();
        }
        let line = Arc::new(TerminalLine::default());
        let shown = Arc::clone(&line);
        let started = thread::Builder::new().spawn(move || shown.show());
        Self {
            line: started.is_ok().then_some(line),
        }
    }

    /// Starts a task.
    pub(super) fn begin(&self, what: &'static str) {
        let since = Instant::now();
        self.set(Some(Task {
            what,
            since,
            count: None,
        }));
    }

    /// Updates the count; the next drawing of the line shows it.
    pub(super) fn advance(&self, done: usize, total: usize) {
        let Some(line) = &self.line else { return };
        if let Some(task) = &mut line.lock().task {
            task.count = Some(KindCount { done, total });
        }
    }

    /// Ends the task and erases the line.
    pub(super) fn clear(&self) {
        self.set(None);
    }

    fn set(&self, task: Option<Task>) {
        let Some(line) = &self.line else { return };
        let mut state = line.lock();
        state.erase();
        state.task = task;
        line.changed.notify_one();
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        let Some(line) = &self.line else { return };
        let mut state = line.lock();
        state.erase();
        state.is_over = true;
        line.changed.notify_one();
    }
}

// === impl TerminalLine ===

impl TerminalLine {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show(&self) {
        let mut state = self.lock();
        while !state.is_over {
            let pause = match &state.task {
                None => None,
                Some(task) => Some(match SHOW_AFTER.checked_sub(task.since.elapsed()) {
                    Some(early) if !early.is_zero() => early,
                    _ => {
                        state.draw();
                        REDRAW_EVERY
                    }
                }),
            };
            state = match pause {
                None => self.changed.wait(state),
                Some(pause) => self
                    .changed
                    .wait_timeout(state, pause)
                    .map(|(state, _)| state)
                    .map_err(|error| PoisonError::new(error.into_inner().0)),
            }
            .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

// === impl State ===

impl State {
    fn draw(&mut self) {
        if let Some(Task { what, since, count }) = &self.task {
            let seconds = since.elapsed().as_secs();
            let count = count.map_or_else(String::new, |KindCount { done, total }| {
                format!("{done} of {total} kinds, ")
            });
            write(&format!("{ERASE}{what}: {count}{seconds} s"));
            self.is_shown = true;
        }
    }

    fn erase(&mut self) {
        if self.is_shown {
            write(ERASE);
            self.is_shown = false;
        }
    }
}

fn write(text: &str) {
    let mut out = io::stderr().lock();
    // A closed standard error leaves nowhere to report to.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
