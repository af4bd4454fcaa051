//! Daemons and timers of one object: when they start, tick and stop.
//!
//! Times are those since the operator started, on a clock that never jumps.

pub mod desired;
pub mod stopping;
pub mod timing;

use std::time::Duration;

/// A moment, as the time since the operator started.
pub type Moment = Duration;
