//! What a run wants on disk: one entry per file, decided before anything is written.

mod user_files;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostics, Sources};
use crate::format;
use crate::load::manifest;
use crate::model::operator::{KindOrigin, Operator};
use crate::model::options::Options;
use crate::model::resource::CustomResource;
use crate::types;
use crate::view::child::ChildrenView;
use crate::view::cluster_test::ClusterTestView;
use crate::view::deploy::{
    CrdsView, DeploymentView, DockerfileView, DockerignoreView, KustomizationView, PeeringView,
    RbacView, ReadmeView,
};
use crate::view::hooks::HooksView;
use crate::view::indices::IndicesView;
use crate::view::kind::KindView;
use crate::view::operator::{OperatorView, TypesView};
use crate::view::scaffold::{
    CargoView, GitignoreView, HandlersView, KindHandlersView, MainView, TestsView,
};
use crate::view::webhooks::WebhooksView;

pub(crate) use user_files::KUSTOMIZATION;
pub use user_files::UserFiles;

/// A path inside the operator crate, always with forward slashes and never leaving the crate.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CratePath(String);

/// Why a text is not a [`CratePath`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path inside the operator crate")]
pub struct NotACratePath(String);

/// What should become of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileContent {
    /// Made by kopf-gen alone: exactly this text, every time.
    Generated(String),
    /// The user's: written when it is missing, never touched afterwards.
    Scaffold(String),
    /// The user's, with something added to what it holds now.
    Splice {
        /// The text that the addition was computed from.
        before: String,
        /// The same text with the addition.
        after: String,
    },
}

/// What the handlers of a new crate do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InitialHandlers {
    /// They tell the log that they were called.
    #[default]
    Stubs,
    /// They keep a child in step with each object.
    Children,
}

/// What a new crate finds around it.
#[derive(Clone, Debug)]
pub struct CrateEnvironment {
    /// Where the runtime comes from, as a TOML value.
    pub runtime: String,
    /// Whether the crate becomes part of a workspace.
    pub has_workspace: bool,
}

/// Everything that a run wants on disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The files.
    pub files: Vec<PlannedFile>,
    /// The notes on the manifest, which are remembered so that nobody is told twice.
    pub notes: BTreeSet<String>,
}

/// One file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFile {
    /// Where the file goes.
    pub path: CratePath,
    /// What it holds and whose it is.
    pub content: FileContent,
}

/// Plans every file of an operator crate that already has its own `Cargo.toml` and `main.rs`.
/// `advance` is told how many kinds are done, each time before the next one.
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
        files.push(generated_rust(
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
        files.push(generated_rust("src/generated/hooks.rs", &hooks));
    }
    if let Some(types) = TypesView::new(operator) {
        files.push(generated_rust("src/generated/types.rs", &types));
    }
    files.push(generated_text("deploy/rbac.yaml", &RbacView::new(operator)));
    if let Some(webhooks) = WebhooksView::new(operator) {
        files.push(generated_text("deploy/webhooks.yaml", &webhooks));
    }
    if !operator.crd_files.is_empty() {
        files.push(generated_text("deploy/crds.yaml", &CrdsView::new(operator)));
    }
    if let Some(peering) = PeeringView::new(operator) {
        files.push(generated_text("deploy/peering.yaml", &peering));
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

/// Plans the files that only a new crate gets, beside what every crate has or in place of it.
#[must_use]
pub fn beginnings(
    operator: &Operator,
    surroundings: CrateEnvironment,
    beginning: InitialHandlers,
) -> Vec<PlannedFile> {
    let name = operator.name.as_str();
    let has_children = beginning == InitialHandlers::Children && !operator.kinds.is_empty();
    let children = has_children.then(|| children(operator));
    // With kinds, it comes with the files of their handlers.
    let handlers = (operator.kinds.is_empty() && operator.hooks.is_empty())
        .then(|| scaffold("src/handlers.rs", &HandlersView::new(operator)));
    let tests = TestsView::new(operator).map(|tests| scaffold("tests/operator.rs", &tests));
    let cluster_test = ClusterTestView::new(operator);
    let cargo = CargoView {
        name,
        has_cluster_test: cluster_test.is_some(),
        has_profile: !surroundings.has_workspace,
        rust_version: env!("CARGO_PKG_RUST_VERSION"),
        runtime: surroundings.runtime,
    };
    [
        scaffold("Cargo.toml", &cargo),
        scaffold("README.md", &ReadmeView::new(operator, has_children)),
        scaffold("Dockerfile", &DockerfileView { name }),
        scaffold(".dockerignore", &DockerignoreView),
        scaffold(".gitignore", &GitignoreView),
        scaffold("deploy/deployment.yaml", &DeploymentView::new(operator)),
        scaffold(
            KUSTOMIZATION,
            &KustomizationView {
                name,
                has_crds: !operator.crd_files.is_empty(),
                has_peering: operator.peering.is_brought(),
                has_webhooks: operator.has_webhooks(),
                has_children,
            },
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

/// Handlers that keep children in step, and the permissions for that.
fn children(operator: &Operator) -> Vec<PlannedFile> {
    let handlers = operator.kinds.iter().map(|kind| {
        let path = format!("src/handlers/{}.rs", kind.module);
        scaffold(&path, &KindHandlersView::with_children(kind))
    });
    handlers
        .chain([scaffold(
            "deploy/children.yaml",
            &ChildrenView::new(operator),
        )])
        .collect()
}

fn generated_rust(path: &str, view: &impl askama::Template) -> PlannedFile {
    let text = format::rust(&text(view)).expect("the templates print valid Rust");
    PlannedFile::generated(inside(path), text)
}

fn generated_text(path: &str, view: &impl askama::Template) -> PlannedFile {
    PlannedFile::generated(inside(path), text(view))
}

fn scaffold(path: &str, view: &impl askama::Template) -> PlannedFile {
    PlannedFile::scaffold(inside(path), text(view))
}

/// What a template prints, with one line break at the end.
pub(crate) fn text(view: &impl askama::Template) -> String {
    let mut text = view.render().expect("writing to a string cannot fail");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn inside(path: &str) -> CratePath {
    CratePath::new(path).expect("module names make paths inside the crate")
}

// === impl CratePath ===

impl CratePath {
    /// Checks that `path` stays inside the crate.
    pub fn new(path: impl Into<String>) -> Result<Self, NotACratePath> {
        let path = path.into();
        let inside = !path.is_empty()
            && !path.contains('\\')
            && !path.contains(':')
            && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if inside {
            Ok(Self(path))
        } else {
            Err(NotACratePath(path))
        }
    }

    /// The text, with forward slashes.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The place on disk for a crate in `root`.
    #[must_use]
    pub fn below(&self, root: &Path) -> PathBuf {
        self.0
            .split('/')
            .fold(root.to_path_buf(), |path, part| path.join(part))
    }
}

impl fmt::Display for CratePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for CratePath {
    type Error = NotACratePath;

    fn try_from(path: String) -> Result<Self, NotACratePath> {
        Self::new(path)
    }
}

impl From<CratePath> for String {
    fn from(path: CratePath) -> Self {
        path.0
    }
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

// === impl PlannedFile ===

impl PlannedFile {
    /// A file that kopf-gen owns.
    #[must_use]
    pub fn generated(path: CratePath, text: String) -> Self {
        Self {
            path,
            content: FileContent::Generated(text),
        }
    }

    /// A file that is the user's once it exists.
    #[must_use]
    pub fn scaffold(path: CratePath, text: String) -> Self {
        Self {
            path,
            content: FileContent::Scaffold(text),
        }
    }

    /// An addition to a file of the user.
    #[must_use]
    pub fn splice(path: CratePath, before: String, after: String) -> Self {
        Self {
            path,
            content: FileContent::Splice { before, after },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_crate_are_refused() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a\\b",
            "C:/x",
        ] {
            assert!(CratePath::new(bad).is_err(), "{bad}");
        }
        assert_eq!(
            CratePath::new("src/main.rs").map(|path| path.to_string()),
            Ok("src/main.rs".into())
        );
    }
}
