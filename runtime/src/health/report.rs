//! What is told about the operator: pure functions of how its parts are.

use serde_json::{Map, Value, json};

use super::probe::Probed;
use crate::coordination::pause::PauseReason;
use crate::task::heartbeat::{ConditionState, OperatorPhase, StuckPart};

/// The key under which liveness tells of a pause, beside the results of probe handlers.
const PAUSED: &str = "kopf-gen.dev/paused";

/// How the operator is at a moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Standing {
    pub(super) phase: OperatorPhase,
    pub(super) stuck: Vec<StuckPart>,
    pub(super) conditions: Vec<(String, ConditionState)>,
    pub(super) pause: Option<PauseReason>,
    pub(super) serves_webhooks: bool,
}

/// An answer to a probe.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Report {
    pub(super) status: Status,
    pub(super) body: Value,
}

/// What Kubernetes is to make of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    /// All is well.
    Well,
    /// The operator itself is not as it should be.
    Unavailable,
    /// A probe handler says that something is not as it should be.
    Failed,
}

impl Standing {
    /// Whether a restart would help: something is dead or stuck.
    pub(super) fn is_alive(&self) -> bool {
        self.stuck.is_empty() && !matches!(self.phase, OperatorPhase::Broken(_))
    }

    /// What to answer to whoever would restart the operator.
    pub(super) fn liveness(&self, probed: Probed) -> Report {
        if !self.is_alive() {
            let broken = match &self.phase {
                OperatorPhase::Broken(reason) => Some(reason.clone()),
                _ => None,
            };
            let stuck = self.stuck.iter().map(describe_stuck);
            return problems(Status::Unavailable, broken.into_iter().chain(stuck));
        }
        let mut body = match probed {
            Probed::Results(results) => results,
            Probed::Failed(failures) => return problems(Status::Failed, failures),
            Probed::Unanswered(problem) => return problems(Status::Unavailable, [problem]),
        };
        if let Some(pause) = &self.pause {
            body.insert(PAUSED.to_owned(), told(pause));
        }
        Report {
            status: Status::Well,
            body: Value::Object(body),
        }
    }

    /// What keeps the operator from being ready; nothing if it is.
    pub(super) fn unreadiness(&self) -> Vec<String> {
        let report = self.readiness();
        let problems = report.body["problems"].as_array().into_iter().flatten();
        let problems = problems.filter_map(|problem| problem.as_str().map(str::to_owned));
        match report.status {
            Status::Well => Vec::new(),
            Status::Unavailable | Status::Failed => problems.collect(),
        }
    }

    /// What to answer to whoever wants to know if the operator does its work.
    ///
    /// A pause is work, too: another replica acts, and this one stands by.
    pub(super) fn readiness(&self) -> Report {
        let mut problems: Vec<String> = self.stuck.iter().map(describe_stuck).collect();
        let mut ready = problems.is_empty();
        let phase = match &self.phase {
            OperatorPhase::Starting => Some("the operator is starting".to_owned()),
            OperatorPhase::Stopping => Some("the operator is stopping".to_owned()),
            OperatorPhase::Broken(reason) => Some(reason.clone()),
            OperatorPhase::Running => None,
        };
        let phase = phase.or_else(|| match &self.pause {
            Some(pause @ PauseReason::Starting) => Some(pause.to_string()),
            _ => None,
        });
        if let Some(phase) = phase {
            ready = false;
            problems.push(phase);
        }
        for (part, state) in &self.conditions {
            let (story, counts) = match state {
                ConditionState::Idle | ConditionState::Fine => continue,
                ConditionState::Pending(story) | ConditionState::Failing(story) => (story, true),
                // Those who wait for webhooks have nothing to do with it.
                ConditionState::Absent(story) => (story, !self.serves_webhooks),
            };
            ready &= !counts;
            problems.push(format!("{part}: {story}"));
        }
        let mut body = json!({"ready": ready, "problems": problems});
        if let Some(pause) = &self.pause {
            body["paused"] = told(pause);
        }
        let status = if ready {
            Status::Well
        } else {
            Status::Unavailable
        };
        Report { status, body }
    }
}

fn problems(status: Status, problems: impl IntoIterator<Item = String>) -> Report {
    let problems: Vec<String> = problems.into_iter().collect();
    let mut body = Map::new();
    body.insert("problems".to_owned(), Value::from(problems));
    Report {
        status,
        body: Value::Object(body),
    }
}

fn describe_stuck(StuckPart { part, late }: &StuckPart) -> String {
    let seconds = late.as_secs();
    format!("{part} is stuck: it should have moved {seconds} s ago")
}

fn told(pause: &PauseReason) -> Value {
    json!({"reason": pause.reason(), "message": pause.to_string()})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn running() -> Standing {
        Standing {
            phase: OperatorPhase::Running,
            ..Standing::default()
        }
    }

    fn results(results: &Value) -> Probed {
        Probed::Results(results.as_object().unwrap().clone())
    }

    fn with(state: ConditionState) -> Standing {
        Standing {
            conditions: vec![("widgets".to_owned(), state)],
            ..running()
        }
    }

    #[test]
    fn the_results_of_probe_handlers_are_the_whole_body() {
        let report = running().liveness(results(&json!({"now": 1})));
        assert_eq!(report.status, Status::Well);
        assert_eq!(report.body, json!({"now": 1}));
    }

    #[test]
    fn a_paused_operator_is_alive_and_ready_and_says_that_it_is_paused() {
        let paused = Standing {
            pause: Some(PauseReason::Peers("dev (priority 666)".to_owned())),
            ..running()
        };
        let told = json!({"reason": "peers", "message": "in favour of dev (priority 666)"});
        let report = paused.liveness(results(&json!({"now": 1})));
        assert_eq!(report.status, Status::Well);
        assert_eq!(report.body, json!({"now": 1, PAUSED: told}));
        let report = paused.readiness();
        assert_eq!(report.status, Status::Well);
        assert_eq!(report.body["paused"], told);
    }

    #[test]
    fn what_is_stuck_or_dead_is_named_and_probes_are_not_asked_for_it() {
        let standing = Standing {
            phase: OperatorPhase::Broken("task `queue` panicked: no".to_owned()),
            stuck: vec![StuckPart {
                part: "runtime".to_owned(),
                late: Duration::from_secs(31),
            }],
            ..running()
        };
        let report = standing.liveness(results(&json!({"now": 1})));
        assert_eq!(report.status, Status::Unavailable);
        let both = [
            "task `queue` panicked: no",
            "runtime is stuck: it should have moved 31 s ago",
        ];
        assert_eq!(report.body, json!({"problems": both}));
        assert_eq!(standing.readiness().status, Status::Unavailable);
    }

    #[test]
    fn a_probe_handler_that_fails_fails_the_probe() {
        let failed = Probed::Failed(vec!["probe `db` failed: away".to_owned()]);
        let report = running().liveness(failed);
        assert_eq!(report.status, Status::Failed);
        assert_eq!(
            report.body,
            json!({"problems": ["probe `db` failed: away"]})
        );
    }

    #[test]
    fn an_operator_is_not_ready_until_it_has_seen_everything() {
        for (state, status) in [
            (ConditionState::Idle, Status::Well),
            (ConditionState::Fine, Status::Well),
            (
                ConditionState::Pending("not listed".to_owned()),
                Status::Unavailable,
            ),
            (
                ConditionState::Failing("forbidden".to_owned()),
                Status::Unavailable,
            ),
            (
                ConditionState::Absent("not served".to_owned()),
                Status::Unavailable,
            ),
        ] {
            assert_eq!(with(state.clone()).readiness().status, status, "{state:?}");
        }
        let report = with(ConditionState::Failing("forbidden".to_owned())).readiness();
        let body = json!({"ready": false, "problems": ["widgets: forbidden"]});
        assert_eq!(report.body, body);
        let alive = with(ConditionState::Failing("the server is away".to_owned()));
        assert!(alive.is_alive());
    }

    #[test]
    fn a_kind_that_does_not_exist_does_not_take_the_webhooks_of_others_away() {
        let standing = Standing {
            serves_webhooks: true,
            ..with(ConditionState::Absent("not served".to_owned()))
        };
        let report = standing.readiness();
        assert_eq!(report.status, Status::Well);
        assert_eq!(report.body["problems"], json!(["widgets: not served"]));
    }

    #[test]
    fn before_and_after_its_work_an_operator_is_not_ready() {
        for phase in [OperatorPhase::Starting, OperatorPhase::Stopping] {
            let standing = Standing {
                phase,
                ..Standing::default()
            };
            assert_eq!(standing.readiness().status, Status::Unavailable);
            assert!(standing.is_alive());
        }
        let undecided = Standing {
            pause: Some(PauseReason::Starting),
            ..running()
        };
        assert_eq!(undecided.readiness().status, Status::Unavailable);
    }
}
