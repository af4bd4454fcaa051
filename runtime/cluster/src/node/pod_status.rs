//! The status that a kubelet would report for a Pod, built from the one that it has.

use std::net::Ipv4Addr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated,
    ContainerStateWaiting, ContainerStatus, HostIP, Pod, PodCondition, PodIP, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// The address of the simulated host.
const HOST: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// Builds the next status of one Pod. What stays the same keeps its timestamps.
pub(super) struct StatusBuilder<'a> {
    pod: &'a Pod,
    spec: &'a PodSpec,
    address: Ipv4Addr,
    now: Timestamp,
}

/// The state that the containers of a Pod get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerTarget<'a> {
    /// They run and are ready.
    Ready,
    /// They run.
    NotReady,
    /// They cannot start, with a message.
    Waiting(&'a str),
    /// They have just exited with this code and will start again.
    Restarting(i32),
    /// They have exited with this code.
    Exited(i32),
}

// === impl StatusBuilder ===

impl<'a> StatusBuilder<'a> {
    pub(super) fn new(pod: &'a Pod, spec: &'a PodSpec, address: Ipv4Addr, now: Timestamp) -> Self {
        Self {
            pod,
            spec,
            address,
            now,
        }
    }

    /// The containers run, ready or not.
    pub(super) fn running(&self, target: ContainerTarget<'_>) -> PodStatus {
        self.build("Running", target)
    }

    /// The containers do not start, because of an invalid annotation.
    pub(super) fn waiting(&self, message: &str) -> PodStatus {
        self.build("Pending", ContainerTarget::Waiting(message))
    }

    /// The containers have exited and will start again.
    pub(super) fn restarted(&self, exit_code: i32) -> PodStatus {
        self.build("Running", ContainerTarget::Restarting(exit_code))
    }

    /// The containers have exited, and the Pod has ended.
    pub(super) fn ended(&self, exit_code: i32) -> PodStatus {
        let phase = if exit_code == 0 {
            "Succeeded"
        } else {
            "Failed"
        };
        self.build(phase, ContainerTarget::Exited(exit_code))
    }

    fn build(&self, phase: &str, target: ContainerTarget<'_>) -> PodStatus {
        let current = self.current();
        let address = current
            .and_then(|status| status.pod_ip.clone())
            .unwrap_or_else(|| self.address.to_string());
        PodStatus {
            phase: Some(phase.to_owned()),
            host_ip: Some(HOST.to_string()),
            host_ips: Some(vec![HostIP {
                ip: HOST.to_string(),
            }]),
            pod_ip: Some(address.clone()),
            pod_ips: Some(vec![PodIP { ip: address }]),
            start_time: current
                .and_then(|status| status.start_time.clone())
                .or(Some(Time(self.now))),
            init_container_statuses: self.init_containers(target),
            container_statuses: Some(self.containers(target)),
            conditions: Some(self.conditions(target)),
            ..PodStatus::default()
        }
    }

    fn current(&self) -> Option<&PodStatus> {
        self.pod.status.as_ref()
    }

    fn containers(&self, target: ContainerTarget<'_>) -> Vec<ContainerStatus> {
        let current = self
            .current()
            .and_then(|it| it.container_statuses.as_deref());
        let containers = self.spec.containers.iter();
        containers
            .map(|container| self.container(container, find(current, container), target))
            .collect()
    }

    /// Init containers have completed before the others start; those that restart always, the
    /// sidecars, do what the others do.
    fn init_containers(&self, target: ContainerTarget<'_>) -> Option<Vec<ContainerStatus>> {
        let current = self
            .current()
            .and_then(|it| it.init_container_statuses.as_deref());
        let containers = self.spec.init_containers.as_ref()?.iter();
        let statuses = containers.map(|container| {
            let previous = find(current, container);
            let is_sidecar = container.restart_policy.as_deref() == Some("Always");
            let own_target = match target {
                ContainerTarget::Waiting(_) => target,
                ContainerTarget::Restarting(_) if is_sidecar => ContainerTarget::Ready,
                ContainerTarget::Exited(_) if is_sidecar => ContainerTarget::Exited(0),
                _ if is_sidecar => target,
                _ => ContainerTarget::Exited(0),
            };
            let status = self.container(container, previous, own_target);
            ContainerStatus {
                // A completed init container counts as ready.
                ready: status.ready || own_target == ContainerTarget::Exited(0),
                ..status
            }
        });
        Some(statuses.collect())
    }

    fn container(
        &self,
        container: &Container,
        previous: Option<&ContainerStatus>,
        target: ContainerTarget<'_>,
    ) -> ContainerStatus {
        let uid = self.pod.metadata.uid.as_deref().unwrap_or_default();
        let restarts = previous.map_or(0, |it| it.restart_count);
        let is_running = matches!(target, ContainerTarget::Ready | ContainerTarget::NotReady);
        let (restart_count, last_state) = match target {
            ContainerTarget::Restarting(code) => (
                restarts.saturating_add(1),
                Some(self.terminated(previous, code)),
            ),
            _ => (restarts, previous.and_then(|it| it.last_state.clone())),
        };
        ContainerStatus {
            name: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
            image_id: "simulated".to_owned(),
            container_id: (!matches!(target, ContainerTarget::Waiting(_)))
                .then(|| format!("simulated://{uid}/{}", container.name)),
            ready: target == ContainerTarget::Ready,
            started: Some(is_running),
            state: Some(self.state(previous, target)),
            restart_count,
            last_state,
            ..ContainerStatus::default()
        }
    }

    /// The state for this target: the previous one where it is the same already.
    fn state(
        &self,
        previous: Option<&ContainerStatus>,
        target: ContainerTarget<'_>,
    ) -> ContainerState {
        let kept = previous.and_then(|it| it.state.clone());
        let waiting = |reason: &str, message: &str| ContainerState {
            waiting: Some(ContainerStateWaiting {
                reason: Some(reason.to_owned()),
                message: Some(message.to_owned()),
            }),
            ..ContainerState::default()
        };
        match target {
            ContainerTarget::Ready | ContainerTarget::NotReady => kept
                .filter(|state| state.running.is_some())
                .unwrap_or_else(|| ContainerState {
                    running: Some(ContainerStateRunning {
                        started_at: Some(Time(self.now)),
                    }),
                    ..ContainerState::default()
                }),
            ContainerTarget::Exited(code) => kept
                .filter(|state| state.terminated.is_some())
                .unwrap_or_else(|| self.terminated(previous, code)),
            ContainerTarget::Waiting(message) => waiting("InvalidPodResult", message),
            ContainerTarget::Restarting(code) => waiting(
                "CrashLoopBackOff",
                &format!("the simulated container exited with code {code}"),
            ),
        }
    }

    fn terminated(&self, previous: Option<&ContainerStatus>, exit_code: i32) -> ContainerState {
        let started_at = previous
            .and_then(|it| it.state.as_ref()?.running.as_ref()?.started_at.clone())
            .unwrap_or(Time(self.now));
        let reason = if exit_code == 0 { "Completed" } else { "Error" };
        ContainerState {
            terminated: Some(ContainerStateTerminated {
                exit_code,
                reason: Some(reason.to_owned()),
                started_at: Some(started_at),
                finished_at: Some(Time(self.now)),
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        }
    }

    fn conditions(&self, target: ContainerTarget<'_>) -> Vec<PodCondition> {
        let not_ready = match target {
            ContainerTarget::Ready => None,
            ContainerTarget::Exited(0) => Some("PodCompleted"),
            ContainerTarget::Exited(_) => Some("PodFailed"),
            _ => Some("ContainersNotReady"),
        };
        let initialized = match target {
            ContainerTarget::Waiting(_) => Some("ContainersNotInitialized"),
            _ => None,
        };
        let gates = (!self.readiness_gates_are_open()).then_some("ReadinessGatesNotReady");
        vec![
            self.condition("PodScheduled", None),
            self.condition("Initialized", initialized),
            self.condition("ContainersReady", not_ready),
            self.condition("Ready", not_ready.or(gates)),
        ]
    }

    /// A condition that is true, or false for a reason.
    fn condition(&self, type_: &str, false_because: Option<&str>) -> PodCondition {
        let status = if false_because.is_none() {
            "True"
        } else {
            "False"
        };
        let previous = self.current_condition(type_);
        let unchanged = previous.filter(|it| it.status == status);
        PodCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: false_because.map(str::to_owned),
            last_transition_time: unchanged
                .and_then(|it| it.last_transition_time.clone())
                .or(Some(Time(self.now))),
            ..PodCondition::default()
        }
    }

    fn readiness_gates_are_open(&self) -> bool {
        self.spec.readiness_gates.iter().flatten().all(|gate| {
            self.current_condition(&gate.condition_type)
                .is_some_and(|it| it.status == "True")
        })
    }

    fn current_condition(&self, type_: &str) -> Option<&PodCondition> {
        let conditions = self.current()?.conditions.as_ref()?;
        conditions.iter().find(|it| it.type_ == type_)
    }
}

fn find<'a>(
    statuses: Option<&'a [ContainerStatus]>,
    container: &Container,
) -> Option<&'a ContainerStatus> {
    statuses?.iter().find(|it| it.name == container.name)
}

/// Whether a write of `desired` would change what this node reports.
pub(super) fn differs(current: &PodStatus, desired: &PodStatus) -> bool {
    let part = |status: &PodStatus| {
        (
            status.phase.clone(),
            status.pod_ip.clone(),
            status.host_ip.clone(),
            status.start_time.clone(),
            status.container_statuses.clone(),
            status.init_container_statuses.clone(),
        )
    };
    let is_set = |desired: &PodCondition| {
        current.conditions.iter().flatten().any(|it| {
            it.type_ == desired.type_ && it.status == desired.status && it.reason == desired.reason
        })
    };
    part(current) != part(desired) || !desired.conditions.iter().flatten().all(is_set)
}

/// The strategic merge patch that writes `status`, if the Pod is still the one that was read.
pub(super) fn patch_of(pod: &Pod, status: &PodStatus) -> Value {
    let mut status = json!(status);
    // Such a patch merges conditions field by field: an absent reason would leave the old one.
    if let Some(conditions) = status["conditions"].as_array_mut() {
        for condition in conditions.iter_mut().filter_map(Value::as_object_mut) {
            for field in ["reason", "message"] {
                condition.entry(field).or_insert(Value::Null);
            }
        }
    }
    json!({
        "metadata": {
            "uid": pod.metadata.uid,
            "resourceVersion": pod.metadata.resource_version,
        },
        "status": status,
    })
}
