//! The responses to liveness and readiness probes, computed from the state of the operator.

use serde_json::{Map, Value, json};

use super::probe::ProbeOutcome;
use crate::coordination::pause::PauseReason;
use crate::task::heartbeat::{ConditionState, OperatorPhase, StuckPart};

/// The key of the pause in the liveness response, beside the results of probe handlers.
const PAUSED: &str = "kopf-gen.dev/paused";

/// The state of the operator at the time of a probe.
#[derive(Debug, Clone, Default)]
pub(super) struct HealthState {
    pub(super) stage: OperatorPhase,
    pub(super) stuck: Vec<StuckPart>,
    pub(super) conditions: Vec<(String, ConditionState)>,
    pub(super) pause: Option<PauseReason>,
    pub(super) serves_webhooks: bool,
}

/// The response to a probe.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ProbeResponse {
    pub(super) status: ProbeStatus,
    pub(super) body: Value,
}

/// The result of a probe, which becomes its HTTP status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProbeStatus {
    /// The probe succeeds.
    Ok,
    /// The operator itself has a problem.
    Unavailable,
    /// A probe handler failed.
    Failed,
}

impl HealthState {
    /// False if a task is stuck or has ended, so that a restart would help.
    pub(super) fn is_alive(&self) -> bool {
        self.stuck.is_empty() && !matches!(self.stage, OperatorPhase::Broken(_))
    }

    /// The response to the liveness probe, by which the kubelet restarts the operator.
    pub(super) fn liveness(&self, probed: ProbeOutcome) -> ProbeResponse {
        if !self.is_alive() {
            let broken = match &self.stage {
                OperatorPhase::Broken(reason) => Some(reason.clone()),
                _ => None,
            };
            let stuck = self.stuck.iter().map(describe_stuck);
            return problems(ProbeStatus::Unavailable, broken.into_iter().chain(stuck));
        }
        let mut body = match probed {
            ProbeOutcome::Results(results) => results,
            ProbeOutcome::Failed(failures) => return problems(ProbeStatus::Failed, failures),
            ProbeOutcome::Unanswered(problem) => {
                return problems(ProbeStatus::Unavailable, [problem]);
            }
        };
        if let Some(pause) = &self.pause {
            body.insert(PAUSED.to_owned(), pause_json(pause));
        }
        ProbeResponse {
            status: ProbeStatus::Ok,
            body: Value::Object(body),
        }
    }

    /// The problems that make the operator unready; empty if it is ready.
    pub(super) fn unreadiness(&self) -> Vec<String> {
        let response = self.readiness();
        let problems = response.body["problems"].as_array().into_iter().flatten();
        let problems = problems.filter_map(|problem| problem.as_str().map(str::to_owned));
        match response.status {
            ProbeStatus::Ok => Vec::new(),
            ProbeStatus::Unavailable | ProbeStatus::Failed => problems.collect(),
        }
    }

    /// The response to the readiness probe.
    ///
    /// A paused operator is ready: another replica handles the objects.
    pub(super) fn readiness(&self) -> ProbeResponse {
        let mut problems: Vec<String> = self.stuck.iter().map(describe_stuck).collect();
        let mut ready = problems.is_empty();
        let stage = match &self.stage {
            OperatorPhase::Starting => Some("the operator is starting".to_owned()),
            OperatorPhase::Stopping => Some("the operator is stopping".to_owned()),
            OperatorPhase::Broken(reason) => Some(reason.clone()),
            OperatorPhase::Running => None,
        };
        let stage = stage.or_else(|| match &self.pause {
            Some(pause @ PauseReason::Starting) => Some(pause.to_string()),
            _ => None,
        });
        if let Some(stage) = stage {
            ready = false;
            problems.push(stage);
        }
        for (part, state) in &self.conditions {
            let (problem, counts) = match state {
                ConditionState::Idle | ConditionState::Fine => continue,
                ConditionState::Pending(problem) | ConditionState::Failing(problem) => {
                    (problem, true)
                }
                // The webhooks of other kinds must stay reachable.
                ConditionState::Absent(problem) => (problem, !self.serves_webhooks),
            };
            ready &= !counts;
            problems.push(format!("{part}: {problem}"));
        }
        let mut body = json!({"ready": ready, "problems": problems});
        if let Some(pause) = &self.pause {
            body["paused"] = pause_json(pause);
        }
        let status = if ready {
            ProbeStatus::Ok
        } else {
            ProbeStatus::Unavailable
        };
        ProbeResponse { status, body }
    }
}

fn problems(status: ProbeStatus, problems: impl IntoIterator<Item = String>) -> ProbeResponse {
    let problems: Vec<String> = problems.into_iter().collect();
    let mut body = Map::new();
    body.insert("problems".to_owned(), Value::from(problems));
    ProbeResponse {
        status,
        body: Value::Object(body),
    }
}

fn describe_stuck(StuckPart { part, late }: &StuckPart) -> String {
    let seconds = late.as_secs();
    format!("{part} is stuck: it should have moved {seconds} s ago")
}

fn pause_json(pause: &PauseReason) -> Value {
    json!({"reason": pause.reason(), "message": pause.to_string()})
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn running() -> HealthState {
        HealthState {
            stage: OperatorPhase::Running,
            ..HealthState::default()
        }
    }

    fn results(results: &Value) -> ProbeOutcome {
        ProbeOutcome::Results(results.as_object().unwrap().clone())
    }

    fn with(state: ConditionState) -> HealthState {
        HealthState {
            conditions: vec![("widgets".to_owned(), state)],
            ..running()
        }
    }

    #[test]
    fn the_body_is_the_results_of_probe_handlers() {
        let response = running().liveness(results(&json!({"now": 1})));
        assert_eq!(response.status, ProbeStatus::Ok);
        assert_eq!(response.body, json!({"now": 1}));
    }

    #[test]
    fn a_paused_operator_is_alive_and_ready_and_says_that_it_is_paused() {
        let paused = HealthState {
            pause: Some(PauseReason::Peers("dev (priority 666)".to_owned())),
            ..running()
        };
        let expected = json!({"reason": "peers", "message": "in favour of dev (priority 666)"});
        let response = paused.liveness(results(&json!({"now": 1})));
        assert_eq!(response.status, ProbeStatus::Ok);
        assert_eq!(response.body, json!({"now": 1, PAUSED: expected}));
        let response = paused.readiness();
        assert_eq!(response.status, ProbeStatus::Ok);
        assert_eq!(response.body["paused"], expected);
    }

    #[test]
    fn a_stuck_or_ended_task_is_named_instead_of_the_probe_results() {
        let state = HealthState {
            stage: OperatorPhase::Broken("task `queue` panicked: no".to_owned()),
            stuck: vec![StuckPart {
                part: "runtime".to_owned(),
                late: Duration::from_secs(31),
            }],
            ..running()
        };
        let response = state.liveness(results(&json!({"now": 1})));
        assert_eq!(response.status, ProbeStatus::Unavailable);
        let both = [
            "task `queue` panicked: no",
            "runtime is stuck: it should have moved 31 s ago",
        ];
        assert_eq!(response.body, json!({"problems": both}));
        assert_eq!(state.readiness().status, ProbeStatus::Unavailable);
    }

    #[test]
    fn a_probe_handler_that_fails_fails_the_probe() {
        let failed = ProbeOutcome::Failed(vec!["probe `db` failed: away".to_owned()]);
        let response = running().liveness(failed);
        assert_eq!(response.status, ProbeStatus::Failed);
        assert_eq!(
            response.body,
            json!({"problems": ["probe `db` failed: away"]})
        );
    }

    #[test]
    fn an_operator_is_not_ready_until_all_kinds_are_listed() {
        for (state, status) in [
            (ConditionState::Idle, ProbeStatus::Ok),
            (ConditionState::Fine, ProbeStatus::Ok),
            (
                ConditionState::Pending("not listed".to_owned()),
                ProbeStatus::Unavailable,
            ),
            (
                ConditionState::Failing("forbidden".to_owned()),
                ProbeStatus::Unavailable,
            ),
            (
                ConditionState::Absent("not served".to_owned()),
                ProbeStatus::Unavailable,
            ),
        ] {
            assert_eq!(with(state.clone()).readiness().status, status, "{state:?}");
        }
        let response = with(ConditionState::Failing("forbidden".to_owned())).readiness();
        let body = json!({"ready": false, "problems": ["widgets: forbidden"]});
        assert_eq!(response.body, body);
        let alive = with(ConditionState::Failing("the server is away".to_owned()));
        assert!(alive.is_alive());
    }

    #[test]
    fn a_kind_that_does_not_exist_does_not_make_an_operator_with_webhooks_unready() {
        let state = HealthState {
            serves_webhooks: true,
            ..with(ConditionState::Absent("not served".to_owned()))
        };
        let response = state.readiness();
        assert_eq!(response.status, ProbeStatus::Ok);
        assert_eq!(response.body["problems"], json!(["widgets: not served"]));
    }

    #[test]
    fn an_operator_that_starts_or_stops_is_not_ready() {
        for stage in [OperatorPhase::Starting, OperatorPhase::Stopping] {
            let state = HealthState {
                stage,
                ..HealthState::default()
            };
            assert_eq!(state.readiness().status, ProbeStatus::Unavailable);
            assert!(state.is_alive());
        }
        let undecided = HealthState {
            pause: Some(PauseReason::Starting),
            ..running()
        };
        assert_eq!(undecided.readiness().status, ProbeStatus::Unavailable);
    }
}
