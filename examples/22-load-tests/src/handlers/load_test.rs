//! Handlers for LoadTest objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, Pod};
use kopf_runtime::prelude::*;
use kube::api::{DeleteParams, ListParams};
use serde::Deserialize;

use super::Operator;
use crate::generated::indices::Phases;
use crate::generated::load_test::{LoadTest, LoadTestHandlers};

/// The label of Pods with the name of their load test.
const TEST_LABEL: &str = "loadtest";

/// The label of Pods with the number of the run, which grows with each change of the load test.
pub(super) const RUN_LABEL: &str = "run";

/// A load test may not fill the cluster, nor the arguments of a program.
const MOST_REPLICAS: u32 = 100;
const MOST_REQUESTS: u32 = 1000;

const PAUSE: Duration = Duration::from_secs(1);

/// The spec of a load test: its definition has no schema, so the API server checks nothing.
#[derive(Debug, Deserialize)]
struct LoadSpec {
    replicas: u32,
    test: LoadRequest,
}

/// The request that each Pod sends.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LoadRequest {
    method: String,
    service_name: String,
    path: String,
    repeat: u32,
}

impl LoadTestHandlers for Operator {
    /// Called when a LoadTest is created or is changed.
    async fn stop_pods(&self, cx: &mut ChangeContext<LoadTest>) -> HandlerResult {
        let all = ListParams::default().labels(&format!("{TEST_LABEL}={}", cx.name()));
        let pods = cx.api::<Pod>();
        pods.delete_collection(&DeleteParams::default(), &all)
            .await?;
        let run = run_of(cx.raw()) + 1;
        let status = json!({"state": "pending", "run": run, "children": []});
        cx.patch().status(status);
        Ok(())
    }

    /// Called when a LoadTest is created or is changed.
    async fn start_pods(&self, cx: &mut ChangeContext<LoadTest>) -> HandlerResult {
        if cx.raw()["status"]["state"] != "pending" {
            return Err(HandlerError::temporary_after(
                PAUSE,
                "stop_pods comes first",
            ));
        }
        let spec = LoadSpec::deserialize(&cx.raw()["spec"])
            .map_err(|error| HandlerError::permanent("the spec is wrong").because(error))?;
        if spec.replicas > MOST_REPLICAS || spec.test.repeat > MOST_REQUESTS {
            let message = format!("at most {MOST_REPLICAS} replicas repeat {MOST_REQUESTS} times");
            return Err(HandlerError::permanent(message));
        }
        let run = run_of(cx.raw()).to_string();
        let earlier = format!("{TEST_LABEL}={},{RUN_LABEL}!={run}", cx.name());
        let earlier = ListParams::default().labels(&earlier);
        let left = cx.api::<Pod>().list(&earlier).await?.items.len();
        if left > 0 {
            let message = format!("{left} Pods of the former run have not ended yet");
            return Err(HandlerError::temporary_after(PAUSE, message));
        }
        let mut children = Vec::new();
        for number in 1..=spec.replicas {
            let pod = cx
                .apply(load_pod(cx.name(), &run, number, &spec.test))
                .await?;
            children.push(pod.name_any());
        }
        info!("{} Pods execute run {run}", children.len());
        let status = json!({"state": "executing", "children": children});
        cx.patch().status(status);
        Ok(())
    }

    /// Called for a LoadTest every 1s.
    async fn follow_pods(&self, cx: &mut TimerContext<LoadTest>) -> HandlerResult {
        let run = run_of(&cx.raw());
        let children = cx.raw()["status"]["children"]
            .as_array()
            .map_or(0, Vec::len);
        let phases = cx
            .index(Phases)
            .get(&(cx.uid().to_owned(), run.to_string()));
        let Some(state) = ended_state(&phases, children) else {
            return Ok(());
        };
        info!("run {run} has {state}");
        cx.edit(move |test| {
            // The load test may have been changed and stopped since.
            if let Some(status) = test.extra.get_mut("status")
                && status["run"] == run
                && status["state"] == "executing"
            {
                status["state"] = json!(state);
            }
        });
        Ok(())
    }

    /// Whether the filter of `follow_pods` accepts a LoadTest.
    fn is_executing(&self, cx: &FilterContext<LoadTest>) -> bool {
        cx.raw()["status"]["state"] == "executing"
    }
}

/// The number of the present run; zero before the first.
fn run_of(test: &Value) -> u64 {
    test["status"]["run"].as_u64().unwrap_or_default()
}

/// The state of a run, if it has ended: it fails with its first Pod.
fn ended_state(phases: &[String], children: usize) -> Option<&'static str> {
    if phases.iter().any(|phase| phase == "Failed") {
        return Some("failed");
    }
    let succeeded = phases.iter().filter(|phase| *phase == "Succeeded");
    (succeeded.count() == children).then_some("finished")
}

/// A Pod that sends the requests one after another.
fn load_pod(test: &str, run: &str, number: u32, request: &LoadRequest) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(format!("{test}-{number}"));
    let labels = [(TEST_LABEL, test), (RUN_LABEL, run)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    pod.metadata.labels = Some(BTreeMap::from(labels));
    let url = format!("http://{}{}", request.service_name, request.path);
    let spec = pod.spec.get_or_insert_default();
    spec.restart_policy = Some("Never".into());
    spec.containers = vec![Container {
        name: "load".into(),
        image: Some("curlimages/curl".into()),
        // Arguments, not a script: a path from the spec is not run by a shell.
        command: Some(vec!["curl".into(), "--fail".into(), "--request".into()]),
        args: Some(
            std::iter::once(request.method.clone())
                .chain((0..request.repeat).map(|_| url.clone()))
                .collect(),
        ),
        ..Container::default()
    }];
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_with_its_last_success_or_its_first_failure() {
        let phases = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(ended_state(&phases("Running Succeeded"), 2), None);
        assert_eq!(
            ended_state(&phases("Succeeded"), 2),
            None,
            "not all indexed"
        );
        assert_eq!(
            ended_state(&phases("Succeeded Succeeded"), 2),
            Some("finished")
        );
        assert_eq!(ended_state(&phases("Failed Running"), 2), Some("failed"));
    }
}
