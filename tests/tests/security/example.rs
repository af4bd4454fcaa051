//! An example with some of its permissions, and the life of its objects.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kopf_gen::diagnostic::{Diagnostics, Sources};
use kopf_gen::model::operator::Operator;
use kopf_gen::pipeline;
use kopf_tests::audit::AuditedRequest;
use kopf_tests::child_process::Ending;
use kopf_tests::permission::{grant, permissions_of, remove_from};
use kopf_tests::{
    ChildProcess, ControlPlane, Objects, Permission, Sandbox, TestFailure, TestResult, User,
    workspace,
};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};

/// An example of `examples/`, with its program.
#[derive(Debug, Clone)]
pub(crate) struct Example {
    pub(crate) name: String,
    pub(crate) operator: Operator,
    folder: PathBuf,
    program: PathBuf,
    /// Definitions, roles and other objects of the deployment.
    documents: Vec<Value>,
    /// What the roles that the generator makes grant.
    generated: Vec<Permission>,
}

/// How the operator of an example runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RunOptions<'a> {
    /// The permission that it does not have.
    pub(crate) missing: Option<&'a Permission>,
    /// Whether it serves the whole cluster instead of one namespace.
    pub(crate) clusterwide: bool,
    /// Whether its kinds are not defined, so that it has no objects.
    pub(crate) undefined: bool,
}

/// An example with an application beside the operator: its program ends when that has ended.
pub(crate) const SHARED: &str = "26-all-at-once";

/// A running example, in a sandbox of its own.
pub(crate) struct RestrictedRun {
    pub(crate) operator: ChildProcess,
    sandbox: Sandbox,
    account: User,
    objects: Vec<(Objects, DynamicObject)>,
    edits: Cell<usize>,
    ends_by_itself: bool,
}

/// The examples, with programs of this build.
pub(crate) fn examples() -> Result<Vec<Example>, TestFailure> {
    let entries = fs::read_dir(workspace::root().join("examples"))?;
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_, TestFailure>>()?;
    folders.sort();
    let package = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml"))?;
        let name = manifest.lines().find_map(|it| it.strip_prefix("name = "));
        let name = name.ok_or_else(|| TestFailure::new("a manifest without a name"))?;
        Ok(name.trim_matches('"').to_owned())
    };
    let packages: Vec<String> = folders
        .iter()
        .map(package)
        .collect::<Result<_, TestFailure>>()?;
    let names: Vec<&str> = packages.iter().map(String::as_str).collect();
    let programs = workspace::build_programs(&names)?;
    let examples = folders.into_iter().zip(programs);
    examples
        .map(|(folder, program)| Example::new(folder, program))
        .collect()
}

// === impl Example ===

impl Example {
    fn new(folder: PathBuf, program: PathBuf) -> Result<Self, TestFailure> {
        let name = folder.file_name().unwrap_or_default();
        let rbac = fs::read_to_string(folder.join("deploy/base/rbac.yaml"))?;
        let rbac: Vec<Value> = serde_saphyr::from_multiple(&rbac)?;
        Ok(Self {
            name: name.to_string_lossy().into_owned(),
            operator: operator_in(&folder)?,
            documents: documents(&folder)?,
            generated: rbac.iter().flat_map(permissions_of).collect(),
            folder,
            program,
        })
    }

    /// All permissions that the roles of the example grant.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        self.documents.iter().flat_map(permissions_of).collect()
    }

    /// Whether the generator grants it, and not the user of the example.
    pub(crate) fn is_generated(&self, permission: &Permission) -> bool {
        self.generated.contains(permission)
    }

    /// Applies what the operator needs, and its permissions, starts it, and applies its objects.
    pub(crate) async fn start(
        &self,
        plane: Arc<ControlPlane>,
        options: RunOptions<'_>,
    ) -> Result<RestrictedRun, TestFailure> {
        let sandbox = Sandbox::open_on(plane, "privileges").await?;
        let account = sandbox.user("operator");
        let mut roles = Vec::new();
        for document in &self.documents {
            match document["kind"].as_str() {
                Some("CustomResourceDefinition") if options.undefined => {}
                Some("CustomResourceDefinition") => {
                    sandbox.apply_shared(&document.to_string()).await?;
                }
                Some("Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding") => {
                    let mut document = document.clone();
                    if let Some(missing) = options.missing {
                        remove_from(&mut document, missing);
                    }
                    roles.push(bound_to(&document, &sandbox, &account));
                }
                _ => drop(
                    sandbox
                        .apply(&within(document, &sandbox).to_string())
                        .await?,
                ),
            }
        }
        let expected = self.expected(&sandbox, options.missing);
        grant(&sandbox, &account, &roles, &expected).await?;
        let operator = self.start_operator(&sandbox, &account, options)?;
        let mut run = RestrictedRun {
            operator,
            sandbox,
            account,
            objects: Vec::new(),
            edits: Cell::new(0),
            ends_by_itself: self.name == SHARED,
        };
        if !options.undefined {
            run.apply_objects(&self.folder.join("obj.yaml")).await?;
        }
        Ok(run)
    }

    fn expected(&self, sandbox: &Sandbox, missing: Option<&Permission>) -> Vec<(Permission, bool)> {
        let expected = self.permissions().into_iter().map(|it| {
            let is_granted = Some(&it) != missing;
            let namespace = it.namespace.as_ref();
            let namespace = namespace.map(|_| sandbox.namespace().to_owned());
            (Permission { namespace, ..it }, is_granted)
        });
        expected.collect()
    }

    fn start_operator(
        &self,
        sandbox: &Sandbox,
        account: &User,
        options: RunOptions<'_>,
    ) -> Result<ChildProcess, TestFailure> {
        let namespace = sandbox.namespace();
        let builder = sandbox.operator(&self.program, account)?;
        // One example writes a file.
        let builder = builder.current_dir(sandbox.control_plane().scratch());
        let builder = match (&*self.name, options.clusterwide) {
            // Its own `main` has no arguments.
            ("12-embedded", _) => builder.env("NAMESPACE", namespace),
            (_, true) => builder.args(["run", "--log-format", "plain", "--all-namespaces"]),
            (_, false) => builder.args(["run", "--log-format", "plain", "--namespace", namespace]),
        };
        Ok(builder.start()?)
    }
}

// === impl RestrictedRun ===

impl RestrictedRun {
    async fn apply_objects(&mut self, file: &Path) -> TestResult {
        for object in self.sandbox.apply(&fs::read_to_string(file)?).await? {
            let types = object.types.clone().unwrap_or_default();
            let objects = self
                .sandbox
                .objects(&types.api_version, &types.kind)
                .await?;
            self.objects.push((objects, object));
        }
        Ok(())
    }

    /// Changes the objects.
    pub(crate) async fn edit(&self) {
        self.edits.set(self.edits.get() + 1);
        let number = self.edits.get().to_string();
        for (objects, object) in &self.objects {
            let mut patch = json!({"metadata": {"labels": {"edited": number}}});
            if object.data["spec"]["field"].is_string() {
                patch["spec"] = json!({"field": number});
            }
            // An operator may delete its objects, and it may deny changes.
            let _ = objects.merge(&object.name_any(), patch).await;
        }
    }

    /// Deletes the objects, and stops the operator, which must have been refused nothing.
    pub(crate) async fn end(self) -> TestResult {
        for (objects, object) in &self.objects {
            let name = object.name_any();
            let _ = objects.delete(&name).await;
            objects.wait_gone(&name).await?;
        }
        let ending = match self.operator.ending() {
            Some(ending) => ending,
            None if self.ends_by_itself => self.operator.wait().await?,
            None => self.operator.terminate().await?,
        };
        assert_eq!(ending, Ending::Exit(0), "{}", self.operator.log());
        let requests = self.sandbox.requests_of(&self.account).await?;
        let refused: Vec<_> = requests.iter().filter(|it| it.code == 403).collect();
        assert!(!requests.is_empty() && refused.is_empty(), "{refused:#?}");
        Ok(())
    }

    /// Whether requests of the operator have used a permission.
    pub(crate) async fn uses(&self, permissions: &[Permission]) -> Result<Vec<bool>, TestFailure> {
        let requests = self.sandbox.requests_of(&self.account).await?;
        let uses = |permission: &Permission| requests.iter().any(|it| needs(it, permission));
        Ok(permissions.iter().map(uses).collect())
    }
}

/// Whether a request needs a permission.
fn needs(request: &AuditedRequest, permission: &Permission) -> bool {
    let Some(resource) = &request.resource else {
        return false;
    };
    // An application that creates an object needs both verbs.
    let creates = request.verb == "patch" && request.code == 201;
    let verb = request.verb == permission.verb || creates && permission.verb == "create";
    let named = permission.name.as_deref();
    let name = named.is_none_or(|it| request.name.as_deref().is_none_or(|name| name == it));
    let resource = permission.resource == "*" || *resource == permission.resource;
    verb && name && resource && request.group == permission.group
}

/// The operator as the manifest in a folder describes it.
fn operator_in(folder: &Path) -> Result<Operator, TestFailure> {
    let (mut sources, mut diagnostics) = (Sources::new(), Diagnostics::new());
    let manifest = fs::read_to_string(folder.join("kopf.yaml"))?;
    let source = sources.add("kopf.yaml", manifest);
    let read = |path: &str| fs::read(folder.join(path));
    let operator = pipeline::read_operator(&mut sources, source, &read, &mut diagnostics);
    operator.ok_or_else(|| TestFailure::new(format!("{diagnostics:?}")))
}

/// The definitions, roles and other objects of an example, but for the pods of the operator.
fn documents(folder: &Path) -> Result<Vec<Value>, TestFailure> {
    let mut files = Vec::new();
    for folder in ["", "crds", "nats", "deploy", "deploy/base"].map(|it| folder.join(it)) {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry?.path();
            if path.extension().is_some_and(|it| it == "yaml") {
                files.push(path);
            }
        }
    }
    files.sort();
    let of_deployment = |document: &Value| {
        let other = ["Deployment", "Kustomization", "Namespace", "ServiceAccount"];
        let kind = document["kind"].as_str().unwrap_or_default();
        !kind.is_empty() && !other.contains(&kind)
    };
    let mut documents = Vec::new();
    for file in files {
        if file.ends_with("kopf.yaml") || file.ends_with("obj.yaml") {
            continue;
        }
        let text = fs::read_to_string(&file)?;
        let parsed: Vec<Value> = serde_saphyr::from_multiple(&text)?;
        documents.extend(parsed.into_iter().filter(of_deployment));
    }
    Ok(documents)
}

/// The document in the namespace of a sandbox.
fn within(document: &Value, sandbox: &Sandbox) -> Value {
    let mut document = document.clone();
    if document["metadata"]["namespace"].is_string() {
        document["metadata"]["namespace"] = sandbox.namespace().into();
    }
    document
}

/// The role or binding under a name of the sandbox, and for its account.
fn bound_to(document: &Value, sandbox: &Sandbox, account: &User) -> Value {
    let mut document = within(document, sandbox);
    let named = |name: &Value| {
        format!(
            "{}-{}",
            name.as_str().unwrap_or_default(),
            sandbox.namespace()
        )
    };
    document["metadata"]["name"] = named(&document["metadata"]["name"]).into();
    if document["roleRef"].is_object() {
        document["roleRef"]["name"] = named(&document["roleRef"]["name"]).into();
        document["subjects"] = json!([{
            "kind": "User", "name": account.name(), "apiGroup": "rbac.authorization.k8s.io",
        }]);
    }
    document
}
