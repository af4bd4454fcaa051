//! How an operator runs in a cluster.

use std::sync::LazyLock;

use regex::Regex;

use super::coordination::LeaderElection;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Span};
use crate::load::manifest::{DeploySection, DeployTool, Manifest, Spanned};
use crate::load::names::QuotedName;

/// The replicas of an operator with leader election: one leads, the other takes over.
const ELECTED_REPLICAS: u32 = 2;

/// The time that Kubernetes gives a pod to stop, in seconds, unless the pod says more.
pub const POD_SECONDS: u64 = 30;

/// More replicas than an operator can use are a mistake.
const MOST_REPLICAS: u32 = 100;

/// The longest reference that registries take: a repository of 255 characters, a tag, a digest.
const LONGEST_IMAGE: usize = 512;

/// What Docker and Kubernetes take for an image: a registry, a repository, a tag, a digest.
static IMAGE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let host = r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?";
    let part = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*";
    let tag = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
    let digest = r"[A-Za-z][A-Za-z0-9]*:[0-9a-fA-F]{32,}";
    let image = format!("^(?:{host}/)?{part}(?:/{part})*(?::{tag})?(?:@{digest})?$");
    Regex::new(&image).ok()
});

/// The Deployment of an operator, and what goes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeploymentOptions {
    /// The tools for which files are written.
    pub tool: DeployTool,
    /// The image.
    pub image: String,
    /// The number of Pods.
    pub replicas: u32,
    /// Whether a NetworkPolicy restricts who reaches the Pods.
    pub network_policy: bool,
    /// Whether a ServiceMonitor names the metrics.
    pub service_monitor: bool,
    /// Whether there are alert rules for the metrics.
    pub alerts: bool,
    /// Whether there is a dashboard of the metrics.
    pub dashboard: bool,
}

/// Lowers `deploy` of the manifest, and reports wrong values.
pub(super) fn lower(
    manifest: &Manifest,
    election: Option<&LeaderElection>,
    diagnostics: &mut Diagnostics,
) -> DeploymentOptions {
    let section = manifest.operator.deploy.clone().unwrap_or_default();
    let flag = |it: &Option<Spanned<bool>>| it.as_ref().is_some_and(|it| it.value);
    let default = if election.is_some() {
        ELECTED_REPLICAS
    } else {
        1
    };
    let mut error = |span: Span, message: String, label: &str, help: &str| {
        let error = Diagnostic::error(Code::DeployOption, message);
        diagnostics.push(error.at(manifest.source, span, label).help(help));
    };
    check_image(&section, &mut error);
    check_replicas(&section, election, &mut error);
    DeploymentOptions {
        tool: section.tool.map(|it| it.value).unwrap_or_default(),
        image: section.image.map_or_else(
            || format!("{}:latest", manifest.operator.name.value),
            |image| image.value,
        ),
        replicas: section.replicas.map_or(default, |it| it.value),
        network_policy: flag(&section.network_policy),
        // Alerts and dashboard name the metrics by the Service of the monitor.
        service_monitor: [
            &section.service_monitor,
            &section.alerts,
            &section.dashboard,
        ]
        .into_iter()
        .any(flag),
        alerts: flag(&section.alerts),
        dashboard: flag(&section.dashboard),
    }
}

fn check_image(section: &DeploySection, error: &mut impl FnMut(Span, String, &str, &str)) {
    let Some(image) = &section.image else {
        return;
    };
    let text = image.value.as_str();
    let is_image = IMAGE.as_ref().is_some_and(|it| it.is_match(text));
    if !is_image || text.len() > LONGEST_IMAGE {
        error(
            image.span,
            format!("{} is not the name of an image", QuotedName(text)),
            "no registry has an image of this name",
            "write it as `registry.example.com/team/my-operator:1.0`, in lower case before the tag",
        );
    }
}

fn check_replicas(
    section: &DeploySection,
    election: Option<&LeaderElection>,
    error: &mut impl FnMut(Span, String, &str, &str),
) {
    let Some(replicas) = &section.replicas else {
        return;
    };
    if replicas.value > 1 && election.is_none() {
        error(
            replicas.span,
            format!(
                "{} replicas would handle every object at once",
                replicas.value
            ),
            "they do not know of each other",
            "add `leader_election: {}` to `operator`: one replica works, and the others wait",
        );
    } else if replicas.value > MOST_REPLICAS {
        error(
            replicas.span,
            format!("`replicas` must be at most {MOST_REPLICAS}"),
            "one replica works, and the others wait",
            "two are enough to replace one that fails",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_a_registry_a_repository_a_tag_and_a_digest() {
        let image = IMAGE.as_ref().expect("a regular expression");
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for good in [
            "operator",
            "operator:latest",
            "team/operator:1.0",
            "localhost:5000/operator",
            "ghcr.io/acme/my-operator:v1.2.3-rc.1",
            "REGISTRY.example.com/a__b/c-d.e:T_1",
            &digest,
        ] {
            assert!(image.is_match(good), "{good}");
        }
        for bad in [
            "",
            "Operator",
            "operator:",
            "operator:a b",
            "a//b",
            "a:1\nimage: b",
            "a:{{x}}",
            "-a",
            "a@sha256:12",
        ] {
            assert!(!image.is_match(bad), "{bad}");
        }
    }
}
