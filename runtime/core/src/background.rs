//! Daemons and timers of one object: when they start, run and stop.
//!
//! Times are monotonic, and count from the start of the operator.

pub mod desired;
pub mod life;
pub mod stopping;
pub mod timing;

use std::time::Duration;

/// A moment, as the time since the operator started.
pub type Moment = Duration;
