//! Faults between a client and the API server, drawn from the decisions of a history.

use std::time::Duration;

use crate::choices::Choices;
use crate::server::{ApiAnswer, Failure};

/// The time after which clients give up a request.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The delays of messages, in milliseconds; most are short.
const DELAYS: &[u64] = &[1, 1, 2, 3, 5, 10, 50, 300];

/// The delays of a slow watch, in milliseconds.
const LONG_DELAYS: &[u64] = &[500, 2_000, 10_000, 40_000];

/// The chances of faults, in per mille.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    /// A request is lost on its way: the client sees a broken connection.
    pub lost_before: u32,
    /// The answer to a request is lost: the client sees a broken connection.
    pub lost_after: u32,
    /// 401.
    pub unauthorized: u32,
    /// 429 with `Retry-After`.
    pub busy: u32,
    /// 500, 502, 503 or 504; some of these requests are executed.
    pub server_error: u32,
    /// 409: the API server gave up a write against faster writers.
    pub conflict: u32,
    /// No answer in time: the request is executed late, or never.
    pub timeout: u32,
    /// The connection of a watch breaks at an event.
    pub watch_cut: u32,
    /// A watch sends an event late.
    pub watch_delay: u32,
}

/// The fate of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFault {
    /// It is answered.
    None,
    /// It never arrives, and the connection breaks.
    LostBefore,
    /// It is executed, and the connection breaks.
    LostAfter,
    /// It is answered by 401.
    Unauthorized,
    /// It is answered by 429 with a pause, in seconds.
    Busy(u32),
    /// It is answered by this status, and executed or not.
    ServerError {
        /// The status.
        code: u16,
        /// Whether it is executed.
        lands: bool,
    },
    /// It is a write that is answered by 409, and not executed.
    Conflict,
    /// It is not answered in time; it is executed after this delay, or never.
    Timeout(Option<Duration>),
}

// === impl FaultPlan ===

impl FaultPlan {
    /// No faults at all.
    #[must_use]
    pub fn quiet() -> Self {
        Self::default()
    }

    /// Every fault now and then.
    #[must_use]
    pub fn rough() -> Self {
        Self {
            lost_before: 15,
            lost_after: 15,
            unauthorized: 5,
            busy: 15,
            server_error: 20,
            conflict: 10,
            timeout: 10,
            watch_cut: 30,
            watch_delay: 60,
        }
    }

    /// The time until the client gives up.
    #[must_use]
    pub fn client_timeout(&self) -> Duration {
        CLIENT_TIMEOUT
    }

    /// The fate of a request.
    pub fn request(&self, choices: &mut Choices, is_write: bool) -> RequestFault {
        // The faults have the highest numbers, so that zero is none.
        let number = 999 - choices.one_of(1000);
        let chances = [
            self.lost_before,
            self.lost_after,
            self.unauthorized,
            self.busy,
            self.server_error,
            if is_write { self.conflict } else { 0 },
            self.timeout,
        ];
        let mut end = 0;
        let fault = chances.iter().position(|chance| {
            end += chance;
            number < end
        });
        match fault {
            Some(0) => RequestFault::LostBefore,
            Some(1) => RequestFault::LostAfter,
            Some(2) => RequestFault::Unauthorized,
            Some(3) => RequestFault::Busy(*choices.item(&[1, 2, 7])),
            Some(4) => RequestFault::ServerError {
                code: *choices.item(&[500, 502, 503, 504]),
                lands: choices.one_of(2) == 1,
            },
            Some(5) => RequestFault::Conflict,
            Some(_) => {
                let late = u64::from(choices.one_of(5));
                RequestFault::Timeout((late > 0).then(|| Duration::from_secs(late * 20)))
            }
            None => RequestFault::None,
        }
    }

    /// The delay of a message.
    pub fn delay(&self, choices: &mut Choices) -> Duration {
        Duration::from_millis(*choices.item(DELAYS))
    }

    /// The delay of an event of a watch.
    pub fn watch_event_delay(&self, choices: &mut Choices) -> Duration {
        if choices.happens(self.watch_delay) {
            return Duration::from_millis(*choices.item(LONG_DELAYS));
        }
        self.delay(choices)
    }
}

// === impl RequestFault ===

impl RequestFault {
    /// The answer that the client gets instead of that of the API server.
    #[must_use]
    pub fn answer(self) -> Option<ApiAnswer> {
        let failure = match self {
            Self::None | Self::LostBefore | Self::LostAfter | Self::Timeout(_) => return None,
            Self::Unauthorized => Failure::new(401, "Unauthorized", "Unauthorized"),
            Self::Busy(seconds) => {
                let message = "the server has received too many requests and has asked us to try \
                               again later";
                Failure::new(429, "TooManyRequests", message).retry_after(seconds)
            }
            Self::Conflict => {
                let message = "Operation cannot be fulfilled: the object has been modified; please \
                               apply your changes to the latest version and try again";
                Failure::new(409, "Conflict", message)
            }
            Self::ServerError { code, .. } => {
                Failure::new(code, "InternalError", "an error on the server")
            }
        };
        Some(failure.into())
    }

    /// Whether the API server executes the request when it arrives.
    #[must_use]
    pub fn lands(self) -> bool {
        match self {
            Self::None | Self::LostAfter => true,
            Self::ServerError { lands, .. } => lands,
            Self::LostBefore
            | Self::Unauthorized
            | Self::Busy(_)
            | Self::Conflict
            | Self::Timeout(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::Decisions;

    #[test]
    fn faults_are_as_frequent_as_planned() {
        let plan = FaultPlan {
            lost_before: 100,
            timeout: 200,
            ..FaultPlan::quiet()
        };
        let mut choices = Choices::seeded(1);
        let faults: Vec<RequestFault> = (0..10_000)
            .map(|_| plan.request(&mut choices, true))
            .collect();
        let count =
            |wanted: fn(&RequestFault) -> bool| faults.iter().filter(|it| wanted(it)).count();
        let lost = count(|it| matches!(it, RequestFault::LostBefore));
        let late = count(|it| matches!(it, RequestFault::Timeout(_)));
        assert!((800..1200).contains(&lost), "{lost}");
        assert!((1700..2300).contains(&late), "{late}");
        assert_eq!(lost + late + count(|it| *it == RequestFault::None), 10_000);
    }

    #[test]
    fn the_plainest_history_has_no_faults() {
        let mut choices = Choices::recorded(Decisions::default());
        let plan = FaultPlan::rough();
        assert_eq!(plan.request(&mut choices, true), RequestFault::None);
        assert_eq!(plan.delay(&mut choices), Duration::from_millis(1));
    }
}
