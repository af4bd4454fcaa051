//! The part of the model from which the content of a planned file follows.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::Value;

use super::addition::UserAddition;
use super::crd_files::CrdCopy;
use crate::model::handled_evidence::HandledEvidence;
use crate::model::handler::Handler;
use crate::model::hook::Hook;
use crate::model::operator::{HandledKind, Operator};
use crate::model::resource::{CustomResource, TypedVersion};
use crate::model::webhook_configuration::WebhookConfiguration;

/// What a file is made of.
#[derive(Clone, Debug)]
pub enum FileSource<'a> {
    /// A module of generated Rust.
    Module(ModuleSource<'a>),
    /// The definition of a resource, as compact JSON.
    Definition(&'a str),
    /// Generated objects for a cluster.
    Deploy(DeploySource<'a>),
    /// A generated part of a Helm chart.
    Chart(ChartSource<'a>),
    /// A file that the user owns once it exists.
    Scaffold(ScaffoldSource<'a>),
    /// A file of the user, with additions.
    Additions {
        /// Its present text.
        before: &'a str,
        /// The additions, one after another.
        additions: Vec<UserAddition<'a>>,
    },
    /// A text from elsewhere: a definition, an edited manifest, a file of the runtime.
    Verbatim(Cow<'a, str>),
}

/// A module of generated Rust.
#[derive(Clone, Debug)]
pub enum ModuleSource<'a> {
    /// The root of the generated code.
    Operator {
        /// The operator.
        operator: &'a Operator,
        /// The modules that it declares.
        modules: Vec<&'a str>,
    },
    /// The trait of a kind, and the registration of its handlers.
    Kind(&'a HandledKind),
    /// The indices of an operator.
    Indices(&'a Operator),
    /// The trait for the hooks of an operator.
    Hooks(&'a [Hook]),
    /// The modules of the types of all custom kinds.
    Types {
        /// Their names.
        modules: Vec<&'a str>,
    },
    /// The types of one resource.
    Resource {
        /// The resource.
        resource: &'a CustomResource,
        /// Where its versions are.
        layout: TypesLayout,
        /// The file with its definition.
        defined_in: &'a str,
    },
    /// The types of one version.
    Version {
        /// The resource.
        resource: &'a CustomResource,
        /// The version.
        version: &'a TypedVersion,
        /// The file with its definition.
        defined_in: &'a str,
    },
    /// A module that declares the modules of several resources.
    ResourceList(&'a [CustomResource]),
    /// A module that contains the modules of several resources.
    ResourceBundle(&'a [CustomResource]),
}

/// The files of a resource's module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypesLayout {
    /// One file.
    Inline,
    /// One file for the module, and a folder of the same name for the versions and the CRD.
    Files,
}

/// Generated objects for a cluster.
#[derive(Clone, Debug)]
pub enum DeploySource<'a> {
    /// The list of the definitions in `crds/`.
    CrdKustomization {
        /// The files, relative to the list.
        files: Vec<&'a str>,
    },
    /// Copies of the definitions that Kustomize cannot take from `crds/`.
    CrdCopies(Vec<CrdCopy<'a>>),
    /// The list of the generated files.
    BaseKustomization {
        /// The files, relative to the list.
        files: Vec<&'static str>,
    },
    /// The definitions of peerings.
    Peering,
    /// The permissions of the runtime.
    Rbac(&'a Operator),
    /// The namespace and the Deployment.
    Workload(&'a Operator),
    /// The Service, certificates and configurations of the webhooks.
    Webhooks {
        /// The operator.
        operator: &'a Operator,
        /// The configurations with all webhooks.
        configurations: Vec<WebhookConfiguration>,
    },
    /// The NetworkPolicy.
    NetworkPolicy(&'a Operator),
    /// The ServiceMonitor.
    Monitoring(&'a Operator),
    /// The alert rules.
    Alerts(&'a Operator),
    /// The dashboard.
    Dashboard(&'a Operator),
}

/// A generated part of a Helm chart.
#[derive(Clone, Debug)]
pub enum ChartSource<'a> {
    /// `Chart.yaml`.
    Metadata {
        /// The name of the operator.
        name: &'a str,
        /// The version of the crate.
        version: &'a str,
    },
    /// The schema of the values.
    ValuesSchema(&'a Operator),
    /// The names of a release.
    Helpers(&'a Operator),
    /// What Helm prints after an installation.
    Notes {
        /// The name of the operator.
        name: &'a str,
        /// Whether the chart has definitions.
        has_definitions: bool,
    },
    /// The permissions of the runtime.
    Rbac(&'a Operator),
    /// The Deployment.
    Workload(&'a Operator),
    /// The NetworkPolicy.
    NetworkPolicy(&'a Operator),
    /// The ServiceMonitor, the alert rules and the dashboard.
    Monitoring(&'a Operator),
    /// The Service, certificates and configurations of the webhooks.
    Webhooks {
        /// The operator.
        operator: &'a Operator,
        /// The configurations with all webhooks.
        configurations: Vec<WebhookConfiguration>,
    },
}

/// A file that the user owns once it exists.
#[derive(Clone, Debug)]
pub enum ScaffoldSource<'a> {
    /// `Cargo.toml`.
    CargoManifest {
        /// The name of the crate.
        name: &'a str,
        /// The environment of the crate.
        environment: CrateEnvironment,
        /// Whether there is a cluster test.
        has_cluster_test: bool,
        /// Whether a unit test calls a handler.
        has_handler_test: bool,
    },
    /// `README.md`.
    Readme {
        /// The name of the operator.
        name: &'a str,
        /// Whether there is a cluster test.
        has_cluster_test: bool,
    },
    /// `Dockerfile`.
    Dockerfile {
        /// The name of the operator.
        name: &'a str,
    },
    /// `.dockerignore`.
    Dockerignore,
    /// `.gitignore`.
    Gitignore,
    /// `deploy/kustomization.yaml`.
    Kustomization {
        /// The files and folders that it lists.
        entries: Vec<&'static str>,
    },
    /// The values of a chart.
    ChartValues(&'a Operator),
    /// `src/main.rs`.
    Main(&'a Operator),
    /// The modules of the handlers.
    Handlers {
        /// Their names.
        modules: BTreeSet<&'a str>,
    },
    /// The handlers of a kind.
    KindHandlers {
        /// The kind.
        kind: &'a HandledKind,
        /// What they do.
        bodies: HandlerBodies<'a>,
    },
    /// The hooks of the operator.
    HookHandlers(&'a [Hook]),
    /// A test on a cluster.
    ClusterTest {
        /// The operator.
        operator: &'a Operator,
        /// The kind that it is about.
        kind: &'a HandledKind,
        /// An object of this kind.
        sample: &'a Value,
        /// What shows that this object was handled.
        evidence: HandledEvidence,
    },
    /// The file of a CI system.
    Ci {
        /// The CI system.
        system: CiSystem,
        /// The command that installs kopf-gen.
        install: String,
    },
}

/// What the handlers of a new file do.
#[derive(Clone, Copy, Debug)]
pub enum HandlerBodies<'a> {
    /// They log each call.
    Stubs,
    /// They log each call, and a unit test calls this one.
    TestedStubs(&'a Handler),
    /// They create and update a child for each object.
    Children,
}

/// A CI system that a new crate gets a file for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CiSystem {
    /// A workflow of GitHub Actions.
    GitHub,
    /// A pipeline of GitLab.
    GitLab,
}

/// The environment of a new crate.
#[derive(Clone, Debug)]
pub struct CrateEnvironment {
    /// The source of the runtime dependency, as a TOML value.
    pub runtime: String,
    /// The source of the dependency on the helpers for tests, as a TOML value.
    pub testing: String,
    /// Whether the crate becomes part of a workspace.
    pub has_workspace: bool,
}
