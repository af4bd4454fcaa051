//! How a Pod ends: what its annotation says, or what its owner suggests.

use std::fmt;
use std::str::FromStr;

use k8s_openapi::api::core::v1::Pod;

use super::POD_RESULT_ANNOTATION;

/// How the containers of a Pod end.
///
/// As with a kubelet, the Pod's `restartPolicy` decides what follows: a container that exits is
/// started again under `Always`, and under `OnFailure` if it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodResult {
    /// `running`: the containers run and are ready. The default, except for Pods of Jobs.
    Running,
    /// `never-ready`: the containers run, but do not become ready.
    NeverReady,
    /// `succeeded`: the containers exit with code 0. The default for Pods of Jobs.
    Succeeded,
    /// `failed`: the containers exit with code 1.
    Failed,
}

/// The annotation has a value that is none of those of [`PodResult`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "annotation {POD_RESULT_ANNOTATION}: \"{0}\" is not one of running, never-ready, succeeded, failed"
)]
pub struct UnknownPodResult(String);

/// The longest part of an unknown value that a message repeats.
const LONGEST_VALUE: usize = 64;

// === impl PodResult ===

impl PodResult {
    const ALL: [Self; 4] = [
        Self::Running,
        Self::NeverReady,
        Self::Succeeded,
        Self::Failed,
    ];

    /// The value of the annotation.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::NeverReady => "never-ready",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
        }
    }

    /// The result that the Pod asks for, or the default for its owner.
    pub(super) fn of(pod: &Pod) -> Result<Self, UnknownPodResult> {
        let annotations = pod.metadata.annotations.as_ref();
        match annotations.and_then(|all| all.get(POD_RESULT_ANNOTATION)) {
            Some(value) => value.parse(),
            None if is_of_a_job(pod) => Ok(Self::Succeeded),
            None => Ok(Self::Running),
        }
    }
}

impl FromStr for PodResult {
    type Err = UnknownPodResult;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|result| result.as_str() == value)
            .ok_or_else(|| UnknownPodResult(value.chars().take(LONGEST_VALUE).collect()))
    }
}

impl fmt::Display for PodResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn is_of_a_job(pod: &Pod) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| {
        owner.controller == Some(true)
            && owner.kind == "Job"
            && owner.api_version.starts_with("batch/")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn result_of(metadata: Value) -> Result<PodResult, UnknownPodResult> {
        let mut pod = json!({});
        pod["metadata"] = metadata;
        let pod = serde_json::from_value(pod).expect("a Pod");
        PodResult::of(&pod)
    }

    fn owned_by(api_version: &str, kind: &str) -> Value {
        json!([{
            "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "1", "controller": true,
        }])
    }

    #[test]
    fn pods_of_jobs_succeed_and_others_run_unless_their_annotation_says_otherwise() {
        assert_eq!(result_of(json!({})), Ok(PodResult::Running));
        let of_job = json!({"ownerReferences": owned_by("batch/v1", "Job")});
        assert_eq!(result_of(of_job), Ok(PodResult::Succeeded));
        let of_other = json!({"ownerReferences": owned_by("example.com/v1", "Job")});
        assert_eq!(result_of(of_other), Ok(PodResult::Running));
        let annotated = json!({
            "annotations": {POD_RESULT_ANNOTATION: "failed"},
            "ownerReferences": owned_by("batch/v1", "Job"),
        });
        assert_eq!(result_of(annotated), Ok(PodResult::Failed));
    }

    #[test]
    fn every_result_can_be_written_as_an_annotation() {
        for result in PodResult::ALL {
            assert_eq!(result.to_string().parse(), Ok(result));
        }
    }

    #[test]
    fn an_unknown_value_is_refused_with_the_known_ones() {
        let message = result_of(json!({"annotations": {POD_RESULT_ANNOTATION: "Fail"}}))
            .expect_err("there is no such result")
            .to_string();

        assert!(message.contains("\"Fail\""), "{message}");
        assert!(message.contains("running, never-ready"), "{message}");
    }
}
