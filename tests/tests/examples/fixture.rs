//! Runs the operator of an example on a control plane, with exactly its generated permissions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kopf_tests::{ChildProcess, ControlPlane, Objects, Sandbox, TestFailure, User, workspace};
use kube::ResourceExt as _;
use kube::api::DynamicObject;

/// The object that most examples come with.
pub(crate) const EXAMPLE: &str = "kopf-example-1";

/// The annotation with the last handled state.
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// The program of an example, and a sandbox with its definitions and permissions.
pub(crate) struct ExampleFixture {
    pub(crate) sandbox: Sandbox,
    folder: PathBuf,
    binary: PathBuf,
    account: User,
}

impl ExampleFixture {
    /// Builds the operator of a folder of `examples/`, and applies its definitions and permissions.
    pub(crate) async fn open(folder: &str, operator: &str) -> Result<Self, TestFailure> {
        let folder = workspace::root().join("examples").join(folder);
        Self::open_in(folder, operator).await
    }

    /// The same on the given control plane.
    pub(crate) async fn open_on(
        plane: Arc<ControlPlane>,
        folder: &str,
        operator: &str,
    ) -> Result<Self, TestFailure> {
        let folder = workspace::root().join("examples").join(folder);
        let sandbox = Sandbox::open_on(plane, operator).await?;
        Self::prepare(sandbox, folder, operator).await
    }

    /// The same with any folder of the workspace.
    pub(crate) async fn open_in(folder: PathBuf, operator: &str) -> Result<Self, TestFailure> {
        Self::prepare(Sandbox::open(operator).await?, folder, operator).await
    }

    async fn prepare(
        sandbox: Sandbox,
        folder: PathBuf,
        operator: &str,
    ) -> Result<Self, TestFailure> {
        let binary = workspace::build_program(operator)?;
        let namespace = format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {operator}}}");
        sandbox.apply_shared(&namespace).await?;
        for file in definitions_and_permissions(&folder)? {
            for document in std::fs::read_to_string(file)?.split("\n---\n") {
                // A client certificate of its name stands in for the service account.
                if !document.contains("kind: ServiceAccount\nmetadata") {
                    sandbox.apply_shared(document).await?;
                }
            }
        }
        Ok(Self {
            sandbox,
            folder,
            binary,
            account: User::new(format!("system:serviceaccount:{operator}:{operator}")),
        })
    }

    /// Applies the example's `obj.yaml`.
    pub(crate) async fn apply_object(&self) -> Result<(), TestFailure> {
        let yaml = std::fs::read_to_string(self.folder.join("obj.yaml"))?;
        self.sandbox.apply(&yaml).await.map(drop)
    }

    /// Starts the operator for the namespace of the sandbox.
    pub(crate) fn start(&self) -> Result<ChildProcess, TestFailure> {
        self.start_with(&[], &[])
    }

    /// The same with more arguments and variables.
    pub(crate) fn start_with(
        &self,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<ChildProcess, TestFailure> {
        self.start_as(&self.account, arguments, variables)
    }

    /// The same as another user.
    pub(crate) fn start_as(
        &self,
        account: &User,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Result<ChildProcess, TestFailure> {
        let namespace = self.sandbox.namespace();
        let mut builder = self
            .sandbox
            .operator(&self.binary, account)?
            .args(["run", "--log-format", "plain", "--namespace", namespace])
            .args(arguments);
        for (name, value) in variables {
            builder = builder.env(name, value);
        }
        Ok(builder.start()?)
    }

    /// Starts the program without arguments, in the namespace of the sandbox.
    pub(crate) fn start_without_arguments(&self) -> Result<ChildProcess, TestFailure> {
        let builder = self.sandbox.operator(&self.binary, &self.account)?;
        let namespace = self.sandbox.namespace();
        Ok(builder.env("NAMESPACE", namespace).start()?)
    }

    /// Runs another command of the operator, as an administrator.
    pub(crate) fn command(&self, arguments: &[&str]) -> Result<ChildProcess, TestFailure> {
        let builder = self
            .sandbox
            .operator(&self.binary, self.sandbox.client_user())?;
        Ok(builder.args(arguments).start()?)
    }

    /// The `KopfExample` objects of most examples.
    pub(crate) async fn kopf_examples(&self) -> Result<Objects, TestFailure> {
        self.sandbox.objects("kopf.dev/v1", "KopfExample").await
    }
}

/// Whether the last handled state contains a text.
pub(crate) fn is_handled_with(object: &DynamicObject, text: &str) -> bool {
    let handled = object.annotations().get(LAST_HANDLED);
    handled.is_some_and(|state| state.contains(text))
}

/// Whether the object was handled at least once.
pub(crate) fn is_handled(object: &DynamicObject) -> bool {
    is_handled_with(object, "")
}

/// The number of occurrences of a text in the log.
pub(crate) fn count(operator: &ChildProcess, text: &str) -> usize {
    operator.log().matches(text).count()
}

/// The lines of the log that contain a marker, from the marker on.
pub(crate) fn lines_with(operator: &ChildProcess, markers: &[&str]) -> Vec<String> {
    let log = operator.log();
    let from_marker = |line: &str| {
        let at = markers
            .iter()
            .filter_map(|marker| line.find(marker))
            .min()?;
        Some(line[at..].to_owned())
    };
    log.lines().filter_map(from_marker).collect()
}

fn definitions_and_permissions(folder: &Path) -> Result<Vec<PathBuf>, TestFailure> {
    let mut files = Vec::new();
    for folder in ["crds", "deploy", "deploy/base"].map(|name| folder.join(name)) {
        // Not every operator has definitions.
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry?.path();
            let is_other = path.is_dir()
                || path.ends_with("kustomization.yaml")
                || path.ends_with("deployment.yaml");
            if !is_other {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
