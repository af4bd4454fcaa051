//! Decides what the node does next with one Pod. No clock, no network.

use std::net::Ipv4Addr;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodStatus};

use super::NODE_NAME;
use super::pod_result::PodResult;
use super::pod_status::{ContainerTarget, StatusBuilder, differs};

/// Pods that name another scheduler are that scheduler's.
const SCHEDULER: &str = "default-scheduler";

/// The exit code of a container that is stopped by SIGTERM.
const STOPPED: i32 = 143;

/// The pause after the first restart; it doubles with each further one.
const FIRST_RESTART_DELAY: Duration = Duration::from_secs(1);

/// The longest pause between two restarts, the same as a kubelet's.
const LONGEST_RESTART_DELAY: Duration = Duration::from_secs(300);

/// The next step for a Pod.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PodAction {
    /// The Pod is as it should be, or not ours.
    Nothing,
    /// Bind it to this node.
    Bind,
    /// Write this status.
    Report(Box<PodStatus>),
    /// Delete it without a grace period: it has stopped.
    Remove,
    /// Decide again after this time.
    Later(Duration),
}

/// The next step for this state of the Pod. `address` is the Pod's, or the one it will get.
pub(super) fn next_action(pod: &Pod, address: Ipv4Addr, now: Timestamp) -> PodAction {
    let Some(spec) = &pod.spec else {
        return PodAction::Nothing;
    };
    match spec.node_name.as_deref() {
        Some(NODE_NAME) => bound_action(pod, &StatusBuilder::new(pod, spec, address, now), now),
        Some(node) if !node.is_empty() => PodAction::Nothing,
        _ => {
            let is_ours = spec.scheduler_name.as_deref().unwrap_or(SCHEDULER) == SCHEDULER;
            let is_held = spec.scheduling_gates.iter().flatten().next().is_some();
            if is_ours && !is_held && pod.metadata.deletion_timestamp.is_none() {
                PodAction::Bind
            } else {
                PodAction::Nothing
            }
        }
    }
}

/// Whether the Pod waits for this node or belongs to it.
pub(super) fn concerns_this_node(pod: &Pod) -> bool {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
    node.is_none_or(|node| node.is_empty() || node == NODE_NAME)
}

fn bound_action(pod: &Pod, builder: &StatusBuilder<'_>, now: Timestamp) -> PodAction {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
    if pod.metadata.deletion_timestamp.is_some() {
        return match (has_ended, pod.metadata.deletion_grace_period_seconds) {
            // Deleted already; finalizers of others keep the object.
            (true, Some(0)) => PodAction::Nothing,
            (true, _) => PodAction::Remove,
            // A kubelet reports the end before it deletes, and the Job controller waits for that.
            (false, _) => report(pod, builder.ended(STOPPED)),
        };
    }
    if has_ended {
        return PodAction::Nothing;
    }
    let has_started = phase == Some("Running");
    match PodResult::of(pod) {
        Err(unknown) => report(pod, builder.waiting(&unknown.to_string())),
        Ok(PodResult::NeverReady) => report(pod, builder.running(ContainerTarget::NotReady)),
        // A Pod that ends also runs first, for those who watch.
        Ok(PodResult::Running) => report(pod, builder.running(ContainerTarget::Ready)),
        Ok(_) if !has_started => report(pod, builder.running(ContainerTarget::Ready)),
        Ok(PodResult::Succeeded) => exit(pod, builder, 0, now),
        Ok(PodResult::Failed) => exit(pod, builder, 1, now),
    }
}

fn report(pod: &Pod, desired: PodStatus) -> PodAction {
    let changed = pod
        .status
        .as_ref()
        .is_none_or(|current| differs(current, &desired));
    if changed {
        PodAction::Report(Box::new(desired))
    } else {
        PodAction::Nothing
    }
}

/// The containers of a running Pod exit: the Pod ends, or they start again.
fn exit(pod: &Pod, builder: &StatusBuilder<'_>, code: i32, now: Timestamp) -> PodAction {
    let policy = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.restart_policy.as_deref());
    let ends = match policy {
        Some("Never") => true,
        Some("OnFailure") => code == 0,
        _ => false,
    };
    if ends {
        return report(pod, builder.ended(code));
    }
    match next_restart(pod) {
        Some(due) if due > now => {
            let remaining = due.duration_since(now).unsigned_abs();
            PodAction::Later(remaining.max(Duration::from_secs(1)))
        }
        _ => report(pod, builder.restarted(code)),
    }
}

/// When the containers start again; none if they run.
fn next_restart(pod: &Pod) -> Option<Timestamp> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let container = statuses.iter().max_by_key(|it| it.restart_count)?;
    container.state.as_ref()?.waiting.as_ref()?;
    let last = container.last_state.as_ref()?.terminated.as_ref()?;
    let doublings = u32::try_from(container.restart_count.clamp(1, 20) - 1).unwrap_or(0);
    let delay = FIRST_RESTART_DELAY
        .saturating_mul(1 << doublings)
        .min(LONGEST_RESTART_DELAY);
    last.finished_at.as_ref()?.0.checked_add(delay).ok()
}

#[cfg(test)]
mod tests;
