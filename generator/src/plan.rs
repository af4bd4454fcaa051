//! Plans the files of a run before any of them is written.

mod file;
mod user_files;

use std::collections::BTreeSet;

use self::file::inside;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Sources};
use crate::format;
use crate::load::manifest;
use crate::model::operator::{KindOrigin, Operator};
use crate::model::resource::CustomResource;
use crate::model::type_options::Options;
use crate::types;
use crate::view::cluster_test::ClusterTestView;
use crate::view::deploy::{DockerfileView, DockerignoreView, ReadmeView};
use crate::view::hooks::HooksView;
use crate::view::indices::IndicesView;
use crate::view::kind::KindView;
use crate::view::operator::{OperatorView, TypesView};
use crate::view::scaffold::{
    CargoView, GitignoreView, HandlersView, KindHandlersView, MainView, TestsView,
};
use crate::view::{child, crds, rbac, webhooks, workload};

pub(crate) use file::text;
pub use file::{CratePath, FileContent, NotACratePath, PlannedFile};
pub(crate) use user_files::KUSTOMIZATION;
pub use user_files::UserFiles;

/// The bodies of the handlers in a new crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialHandlers {
    /// They log each call.
    #[default]
    Stubs,
    /// They create and update a child for each object.
    Children,
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

/// All files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The files.
    pub files: Vec<PlannedFile>,
    /// The notes on the manifest, which the lock file keeps so that each is printed once.
    pub notes: BTreeSet<String>,
}

/// Plans every file of an operator crate that already has its own `Cargo.toml` and `main.rs`.
/// Before each kind, `advance` is called with the number of finished kinds.
#[must_use]
pub fn operator(
    operator: &Operator,
    sources: &Sources,
    user: &UserFiles,
    diagnostics: &mut Diagnostics,
    advance: &mut dyn FnMut(usize),
) -> Vec<PlannedFile> {
    let mut files = vec![generated_rust(
        "src/generated.rs",
        &OperatorView::new(operator),
    )];
    for (done, kind) in operator.kinds.iter().enumerate() {
        advance(done);
        files.push(generated_with_imports(
            &format!("src/generated/{}.rs", kind.module),
            &KindView::new(kind),
        ));
        if let KindOrigin::Custom(resource) = &kind.origin {
            let types = types::files(resource, sources, &Options::default());
            files.extend(types.into_iter().map(|file| {
                PlannedFile::generated(
                    inside(&format!("src/generated/types/{}", file.path)),
                    file.text,
                )
            }));
        }
    }
    if let Some(indices) = IndicesView::new(operator) {
        files.push(generated_rust("src/generated/indices.rs", &indices));
    }
    if let Some(hooks) = HooksView::new(&operator.hooks) {
        files.push(generated_with_imports("src/generated/hooks.rs", &hooks));
    }
    if let Some(types) = TypesView::new(operator) {
        files.push(generated_rust("src/generated/types.rs", &types));
    }
    let has_crds = !operator.crd_files.is_empty();
    let webhooks = webhooks::text(operator).unwrap_or_else(|error| {
        let message = format!("the webhooks cannot be configured: {error}");
        let help = "give one of them another `id`";
        diagnostics.push(Diagnostic::error(Code::DuplicateHandler, message).help(help));
        None
    });
    let deployed = [
        ("deploy/rbac.yaml", Some(rbac::text(operator))),
        ("deploy/webhooks.yaml", webhooks),
        ("deploy/crds.yaml", has_crds.then(|| crds::text(operator))),
        ("deploy/peering.yaml", workload::peering(operator)),
    ];
    for (path, text) in deployed {
        files.extend(text.map(|text| PlannedFile::generated(inside(path), text)));
    }
    let mut schema = serde_json::to_string_pretty(&manifest::schema()).expect("a schema is JSON");
    schema.push('\n');
    files.push(PlannedFile::generated(
        inside(".kopf-gen/schema.json"),
        schema,
    ));
    user_files::check_deployment(&files, user, diagnostics);
    files.extend(user_files::additions(operator, user, diagnostics));
    files
}

/// Plans a folder with the types of resources alone.
#[must_use]
pub fn types(
    resources: &[CustomResource],
    sources: &Sources,
    options: &Options,
) -> Vec<PlannedFile> {
    resources
        .iter()
        .flat_map(|resource| types::files(resource, sources, options))
        .chain([types::index(resources)])
        .map(|file| PlannedFile::generated(inside(&file.path), file.text))
        .collect()
}

/// Plans the files that only a new crate gets; they replace files of [`operator`] with the same
/// path.
#[must_use]
pub fn new_crate(
    operator: &Operator,
    environment: CrateEnvironment,
    initial_handlers: InitialHandlers,
) -> Vec<PlannedFile> {
    let name = operator.name.as_str();
    let has_children = initial_handlers == InitialHandlers::Children && !operator.kinds.is_empty();
    let children = has_children.then(|| children(operator));
    // If there are kinds, it is planned with the files of their handlers.
    let handlers = (operator.kinds.is_empty() && operator.hooks.is_empty())
        .then(|| scaffold("src/handlers.rs", &HandlersView::new(operator)));
    let tests = TestsView::new(operator).map(|tests| scaffold("tests/operator.rs", &tests));
    let cluster_test = ClusterTestView::new(operator);
    let cargo = CargoView {
        name,
        has_cluster_test: cluster_test.is_some(),
        has_profile: !environment.has_workspace,
        rust_version: env!("CARGO_PKG_RUST_VERSION"),
        runtime: environment.runtime,
        testing: environment.testing,
    };
    [
        scaffold("Cargo.toml", &cargo),
        scaffold("README.md", &ReadmeView::new(operator, has_children)),
        scaffold("Dockerfile", &DockerfileView { name }),
        scaffold(".dockerignore", &DockerignoreView),
        scaffold(".gitignore", &GitignoreView),
        PlannedFile::scaffold(
            inside("deploy/deployment.yaml"),
            workload::deployment(operator),
        ),
        PlannedFile::scaffold(
            inside(KUSTOMIZATION),
            workload::kustomization(operator, has_children),
        ),
        scaffold("src/main.rs", &MainView { name }),
    ]
    .into_iter()
    .chain(handlers)
    .chain(tests)
    .chain(cluster_test.map(|test| scaffold("tests/cluster.rs", &test)))
    .chain(children.into_iter().flatten())
    .collect()
}

/// The handlers of the preset `child`, and their permissions.
fn children(operator: &Operator) -> Vec<PlannedFile> {
    let handlers = operator.kinds.iter().map(|kind| {
        let path = format!("src/handlers/{}.rs", kind.module);
        scaffold(&path, &KindHandlersView::with_children(kind))
    });
    handlers
        .chain([PlannedFile::scaffold(
            inside("deploy/children.yaml"),
            workload::children(operator, child::HANDLER),
        )])
        .collect()
}

fn generated_rust(path: &str, view: &impl askama::Template) -> PlannedFile {
    let text = format::rust(&text(view)).expect("no text of the input can change the syntax");
    PlannedFile::generated(inside(path), text)
}

/// A module whose template writes every name with its path.
fn generated_with_imports(path: &str, view: &impl askama::Template) -> PlannedFile {
    let text = format::rust_with_imports(&text(view));
    let text = text.expect("no text of the input can change the syntax");
    PlannedFile::generated(inside(path), text)
}

fn scaffold(path: &str, view: &impl askama::Template) -> PlannedFile {
    PlannedFile::scaffold(inside(path), text(view))
}

// === impl Plan ===

impl From<Vec<PlannedFile>> for Plan {
    fn from(files: Vec<PlannedFile>) -> Self {
        Self {
            files,
            notes: BTreeSet::new(),
        }
    }
}
