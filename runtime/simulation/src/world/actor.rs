//! A process in the world: it gets answers, events and timers, and returns effects.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;

use crate::server::{ApiAnswer, ApiRequest, KindId, ServerEvent, WatchOptions};
use crate::time::VirtualTime;

/// An operator process, without I/O and without a clock.
pub trait Actor {
    /// Something that the process does besides requests, such as a call of a handler.
    type Fact: fmt::Display;

    /// The process has started.
    fn start(&mut self, clock: ActorClock) -> Vec<ActorEffect<Self::Fact>>;

    /// The process is asked to stop: it ends what it has begun, and then it exits.
    fn stop(&mut self, clock: ActorClock) -> Vec<ActorEffect<Self::Fact>>;

    /// Something has happened.
    fn handle(&mut self, clock: ActorClock, input: ActorInput) -> Vec<ActorEffect<Self::Fact>>;
}

/// The clocks of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ActorClock {
    /// The clock that never jumps.
    pub now: VirtualTime,
    /// The time of day, which jumps.
    pub wall: Timestamp,
}

/// An input of a process.
#[derive(Debug)]
pub enum ActorInput {
    /// A request has ended.
    Answered {
        /// The number that the process gave to the request.
        call: u64,
        /// Its end.
        outcome: CallOutcome,
    },
    /// A watch has sent an event.
    Watched {
        /// The number that the process gave to the watch.
        watch: u64,
        /// The event.
        event: ServerEvent,
    },
    /// A watch has ended, or could not be opened.
    WatchEnded {
        /// The number that the process gave to the watch.
        watch: u64,
        /// The failure, unless the connection just closed.
        failure: Option<ApiAnswer>,
    },
    /// The time of a timer has come.
    TimerFired {
        /// The number that the process gave to the timer.
        timer: u64,
    },
}

/// The end of a request.
#[derive(Debug, Clone)]
pub enum CallOutcome {
    /// There is an answer.
    Answered(ApiAnswer),
    /// The connection broke: the request may have been executed.
    ConnectionLost,
    /// There was no answer in time: the request may have been executed, or may still be.
    TimedOut,
}

/// What a process wants to be done.
#[derive(Debug)]
pub enum ActorEffect<F> {
    /// Sends a request.
    Call {
        /// A number that no other open request of the process has.
        call: u64,
        /// The request.
        request: ApiRequest,
    },
    /// Opens a watch.
    OpenWatch {
        /// A number that no other open watch of the process has.
        watch: u64,
        /// The user.
        user: Arc<str>,
        /// The kind.
        kind: KindId,
        /// The namespace; none for all.
        namespace: Option<Arc<str>>,
        /// The options.
        options: WatchOptions,
    },
    /// Closes a watch.
    CloseWatch {
        /// Its number.
        watch: u64,
    },
    /// Sets a timer, or moves it.
    SetTimer {
        /// Its number.
        timer: u64,
        /// The instant at which it fires.
        at: VirtualTime,
    },
    /// Says what the process has done.
    Report(F),
    /// Ends the process, which was asked to stop.
    Exit,
}
