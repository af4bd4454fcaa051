//! The monotonic clock, which all processes of a machine share.

use rustix::time::{ClockId, clock_gettime};

/// Microseconds since the start of the machine.
pub(crate) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
    seconds * 1_000_000 + nanoseconds / 1_000
}

/// The same for seconds.
pub(crate) const SECOND: u64 = 1_000_000;
