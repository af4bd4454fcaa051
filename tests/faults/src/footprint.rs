//! What a process uses: memory, threads, tasks, file descriptors.

use std::{fmt, fs, io};

/// The memory in kibibytes that a process may use more than before: allocators keep some.
const MEMORY_SLACK: u64 = 24 * 1024;

/// The descriptors that it may have open beyond those before: connections that idle.
const DESCRIPTOR_SLACK: u64 = 8;

/// The threads that it may have beyond those before: the pool for blocking work keeps some.
const THREAD_SLACK: u64 = 8;

/// The tasks that it may have beyond those before: connections that idle, and turns of objects.
const TASK_SLACK: u64 = 12;

/// What a process uses at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// Resident memory in kibibytes.
    pub(crate) memory: u64,
    pub(crate) threads: u64,
    pub(crate) tasks: u64,
    pub(crate) descriptors: u64,
}

// === impl Footprint ===

impl Footprint {
    /// Measures a process. It reports the number of its tasks itself.
    pub(crate) fn of(pid: i32, tasks: usize) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|rest| rest.split_whitespace().next());
            number.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        Ok(Self {
            memory: number("VmRSS:"),
            threads: number("Threads:"),
            tasks: u64::try_from(tasks).unwrap_or(u64::MAX),
            descriptors: u64::try_from(descriptors).unwrap_or(u64::MAX),
        })
    }

    /// What exceeds the earlier footprint by more than a process keeps for later.
    pub(crate) fn excess_over(&self, before: &Self) -> Vec<String> {
        let limits = [
            (
                "KiB of memory",
                self.memory,
                before.memory + MEMORY_SLACK + before.memory / 2,
            ),
            (
                "descriptors",
                self.descriptors,
                before.descriptors + DESCRIPTOR_SLACK,
            ),
            ("threads", self.threads, before.threads + THREAD_SLACK),
            ("tasks", self.tasks, before.tasks + TASK_SLACK),
        ];
        limits
            .into_iter()
            .filter(|(_, after, limit)| after > limit)
            .map(|(what, after, limit)| format!("{after} {what} at rest, more than {limit}"))
            .collect()
    }
}

impl fmt::Display for Footprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.1} MiB, {} threads, {} tasks, {} descriptors",
            self.memory as f64 / 1024.0,
            self.threads,
            self.tasks,
            self.descriptors
        )
    }
}
