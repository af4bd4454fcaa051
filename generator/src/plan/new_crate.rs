//! Plans the files that only a new crate gets: manifest, `main.rs`, first handlers and tests.

use serde_json::Value;

use super::crd_files;
use super::deployment::{CRD_BASE, KUSTOMIZATION, OPERATOR_BASE};
use super::file::PlannedFile;
use super::source::{CiSystem, CrateEnvironment, HandlerBodies, ScaffoldSource};
use super::user_files::handler_modules;
use crate::load::crd::Scope;
use crate::load::manifest::DeployTool;
use crate::model::handled_evidence::HandledEvidence;
use crate::model::handler::{Handler, HandlerCause};
use crate::model::operator::{HandledKind, KindOrigin, Operator};

/// The bodies of the handlers in a new crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialHandlers {
    /// They log each call.
    #[default]
    Stubs,
    /// They create and update a child for each object.
    Children,
}

/// Plans the files that only a new crate gets; they replace files of
/// [`operator`](super::operator) with the same path.
#[must_use]
pub fn new_crate(
    operator: &Operator,
    environment: CrateEnvironment,
    initial_handlers: InitialHandlers,
) -> Vec<PlannedFile<'_>> {
    let name = operator.name.as_str();
    let has_children = initial_handlers == InitialHandlers::Children && !operator.kinds.is_empty();
    let children = has_children.then(|| children(operator));
    // If there are kinds, it is planned with the files of their handlers.
    let modules = handler_modules(operator);
    let handlers = modules
        .is_empty()
        .then(|| PlannedFile::scaffold("src/handlers.rs", ScaffoldSource::Handlers { modules }));
    let cluster_test = cluster_test(operator);
    let has_cluster_test = cluster_test.is_some();
    let tested = operator.kinds.iter().find_map(tested_handler);
    let tested = tested.filter(|_| !has_children);
    let cargo = ScaffoldSource::CargoManifest {
        name,
        environment,
        has_cluster_test,
        has_handler_test: tested.is_some(),
    };
    let readme = ScaffoldSource::Readme {
        name,
        has_cluster_test,
    };
    let tested =
        tested.map(|(kind, handler)| kind_handlers(kind, HandlerBodies::TestedStubs(handler)));
    let cluster_test = cluster_test.map(|(kind, sample)| {
        let source = ScaffoldSource::ClusterTest {
            operator,
            kind,
            sample,
            evidence: match initial_handlers {
                InitialHandlers::Stubs => HandledEvidence::of(operator, kind),
                InitialHandlers::Children => HandledEvidence::ConfigMap,
            },
        };
        PlannedFile::scaffold("tests/cluster.rs", source)
    });
    let kustomization = (operator.deployment.tool != DeployTool::Helm)
        .then(|| PlannedFile::scaffold(KUSTOMIZATION, kustomization(operator)));
    [
        PlannedFile::scaffold("Cargo.toml", cargo),
        PlannedFile::scaffold("README.md", readme),
        PlannedFile::scaffold("Dockerfile", ScaffoldSource::Dockerfile { name }),
        PlannedFile::scaffold(".dockerignore", ScaffoldSource::Dockerignore),
        PlannedFile::scaffold(".gitignore", ScaffoldSource::Gitignore),
        PlannedFile::scaffold("src/main.rs", ScaffoldSource::Main(operator)),
    ]
    .into_iter()
    .chain(kustomization)
    .chain(handlers)
    .chain(cluster_test)
    .chain(children.into_iter().flatten())
    .chain(tested)
    .collect()
}

/// Plans the file of a CI system, in which `install` installs kopf-gen.
#[must_use]
pub fn ci_file(system: CiSystem, install: String) -> PlannedFile<'static> {
    let path = match system {
        CiSystem::GitHub => ".github/workflows/ci.yaml",
        CiSystem::GitLab => ".gitlab-ci.yml",
    };
    PlannedFile::scaffold(path, ScaffoldSource::Ci { system, install })
}

/// The handlers of the preset `child`.
fn children(operator: &Operator) -> impl Iterator<Item = PlannedFile<'_>> {
    let handlers = operator.kinds.iter();
    handlers.map(|kind| kind_handlers(kind, HandlerBodies::Children))
}

fn kind_handlers<'a>(kind: &'a HandledKind, bodies: HandlerBodies<'a>) -> PlannedFile<'a> {
    let path = format!("src/handlers/{}.rs", kind.module);
    PlannedFile::scaffold(&path, ScaffoldSource::KindHandlers { kind, bodies })
}

fn kustomization(operator: &Operator) -> ScaffoldSource<'static> {
    let has_bases = !crd_files::bases(operator).is_empty();
    let crds = has_bases.then_some(CRD_BASE).into_iter();
    ScaffoldSource::Kustomization {
        entries: crds.chain([OPERATOR_BASE]).collect(),
    }
}

/// The kind that the cluster test is about, and an object of it: the first namespaced custom kind.
fn cluster_test(operator: &Operator) -> Option<(&HandledKind, &Value)> {
    let is_tested = |kind: &&HandledKind| {
        matches!(kind.origin, KindOrigin::Custom(_))
            && kind.scope == Scope::Namespaced
            && kind.is_watched()
    };
    let kind = operator.kinds.iter().find(is_tested)?;
    Some((kind, kind.sample.as_ref()?))
}

/// The first change handler of a kind that a unit test can call with a sample alone.
fn tested_handler(kind: &HandledKind) -> Option<(&HandledKind, &Handler)> {
    kind.sample.as_ref()?;
    let is_change = |handler: &&Handler| matches!(handler.cause, HandlerCause::Change(_));
    let mut handlers = kind.handlers.iter().filter(is_change);
    let handler = handlers.find(|it| it.param.is_none() && it.result.is_none())?;
    Some((kind, handler))
}
