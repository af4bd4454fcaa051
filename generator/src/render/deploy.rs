//! The files for deployment outside of `deploy/`: `Dockerfile` and `README.md`.

use askama::Template;

/// `Dockerfile`.
#[derive(Debug, Template)]
#[template(path = "deploy/Dockerfile", escape = "none")]
pub(super) struct DockerfileView<'a> {
    /// The name of the operator.
    pub name: &'a str,
}

/// `.dockerignore`.
#[derive(Debug, Template)]
#[template(path = "deploy/dockerignore", escape = "none")]
pub(super) struct DockerignoreView;

/// `README.md`, which repeats nothing that a change of `kopf.yaml` or of a CRD changes.
#[derive(Debug, Template)]
#[template(path = "scaffold/README.md")]
pub(super) struct ReadmeView<'a> {
    /// The name of the operator.
    pub name: &'a str,
    /// Whether there is a cluster test.
    pub has_cluster_test: bool,
}
