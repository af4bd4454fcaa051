//! The progress record of one handler, as Kopf stores it.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{cause::Reason, handler::HandlerId, object::member, time};

/// The progress of one handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The time at which the handler was first selected.
    pub started: Timestamp,
    /// The time at which it was done.
    pub stopped: Option<Timestamp>,
    /// The earliest time of the next call.
    pub delayed: Option<Timestamp>,
    /// The reason for which it was selected; none stands for any.
    pub purpose: Option<Reason>,
    /// The number of calls.
    pub retries: u32,
    /// Whether it succeeded.
    pub success: bool,
    /// Whether it failed for good.
    pub failure: bool,
    /// The last error.
    pub message: Option<String>,
    /// All sub-handlers of all levels, sorted.
    pub subrefs: Vec<HandlerId>,
}

/// The names of its entries.
const ENTRIES: [&str; 9] = [
    "started", "stopped", "delayed", "purpose", "retries", "success", "failure", "message",
    "subrefs",
];

// === impl Record ===

impl Record {
    /// The record of a handler that is selected now.
    #[must_use]
    pub fn begin(purpose: Reason, now: Timestamp) -> Self {
        Self {
            started: time::to_micros(now),
            stopped: None,
            delayed: None,
            purpose: Some(purpose),
            retries: 0,
            success: false,
            failure: false,
            message: None,
            subrefs: Vec::new(),
        }
    }

    /// Whether the handler is done, by success or by failure.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.success || self.failure
    }

    /// Whether the handler waits for its delay.
    #[must_use]
    pub fn is_sleeping(&self, now: Timestamp) -> bool {
        !self.is_finished() && self.delayed.is_some_and(|delayed| delayed > now)
    }

    /// Time since the handler was first selected.
    #[must_use]
    pub fn runtime(&self, now: Timestamp) -> Duration {
        time::elapsed(self.started, now)
    }

    /// Time until the handler is due; zero if it is.
    #[must_use]
    pub fn delay(&self, now: Timestamp) -> Duration {
        self.delayed
            .map_or(Duration::ZERO, |delayed| time::elapsed(now, delayed))
    }

    /// Keeps the wait for the next call though the clock of its times was ahead by this time.
    ///
    /// If the handler was first selected in the future, the clock was ahead at least by that.
    pub fn correct_clock(&mut self, ahead: Duration, now: Timestamp) {
        let Some(delayed) = self.delayed.filter(|_| !self.is_finished()) else {
            return;
        };
        let in_future = time::elapsed(now, self.started);
        let is_plausible = in_future <= time::LARGEST_DRIFT || self.started >= delayed;
        let ahead = match is_plausible {
            true => ahead,
            false => ahead.max(in_future),
        };
        if !ahead.is_zero() {
            let due = time::before(delayed, ahead);
            self.delayed = Some(time::to_micros(due));
            self.started = self.started.min(time::to_micros(now));
        }
    }

    /// The record with the names and the order of Kopf, without empty entries.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let Value::Object(mut map) = self.to_json_with_nulls() else {
            return Value::Null;
        };
        map.retain(|_, value| !value.is_null());
        Value::Object(map)
    }

    /// The record with the names and the order of Kopf, empty entries as nulls.
    #[must_use]
    pub fn to_json_with_nulls(&self) -> Value {
        let stamp = |at: Option<Timestamp>| at.map_or(Value::Null, |at| time::format(at).into());
        let subrefs: Vec<Value> = self.subrefs.iter().map(|id| id.as_str().into()).collect();
        let entries: [(&str, Value); 9] = [
            ("started", stamp(Some(self.started))),
            ("stopped", stamp(self.stopped)),
            ("delayed", stamp(self.delayed)),
            (
                "purpose",
                self.purpose
                    .map_or(Value::Null, |purpose| purpose.as_str().into()),
            ),
            ("retries", self.retries.into()),
            ("success", self.success.into()),
            ("failure", self.failure.into()),
            ("message", self.message.clone().into()),
            (
                "subrefs",
                if subrefs.is_empty() {
                    Value::Null
                } else {
                    subrefs.into()
                },
            ),
        ];
        Value::Object(
            entries
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect::<Map<_, _>>(),
        )
    }

    /// Whether a JSON value has entries of a record, and no others.
    #[must_use]
    pub fn looks_like_one(json: &Value) -> bool {
        let keys = json.as_object().filter(|map| !map.is_empty());
        keys.is_some_and(|map| map.keys().all(|key| ENTRIES.contains(&key.as_str())))
    }

    /// Reads a record in which anything may be missing; none if it is no JSON object.
    ///
    /// A record without a start has started at `stopped` or `delayed`, else at the epoch.
    #[must_use]
    pub fn from_json(json: &Value) -> Option<Self> {
        let map = json.as_object()?;
        let stamp = |key: &str| member(map, key)?.as_str().and_then(time::parse);
        let flag = |key: &str| member(map, key).and_then(Value::as_bool).unwrap_or(false);
        let text = |key: &str| member(map, key).and_then(Value::as_str);
        let (stopped, delayed) = (stamp("stopped"), stamp("delayed"));
        let mut subrefs: Vec<HandlerId> = map
            .get("subrefs")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|id| id.as_str().map(HandlerId::new))
            .collect();
        subrefs.sort();
        subrefs.dedup();
        Some(Self {
            started: stamp("started")
                .or(stopped)
                .or(delayed)
                .unwrap_or(Timestamp::UNIX_EPOCH),
            stopped,
            delayed,
            purpose: text("purpose").and_then(Reason::from_word),
            retries: map
                .get("retries")
                .and_then(Value::as_u64)
                .and_then(|retries| retries.try_into().ok())
                .unwrap_or(0),
            success: flag("success"),
            failure: flag("failure"),
            message: text("message").map(str::to_owned),
            subrefs,
        })
    }
}

#[cfg(test)]
mod tests;
