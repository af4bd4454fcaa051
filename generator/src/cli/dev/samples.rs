//! The sample objects of an operator: files of the user, or objects made from the schemas.

use std::path::{Path, PathBuf};

use kopf_core::object::ObjectView;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::{Scope, oneshot};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::error::Error;
use crate::diagnostic::{Diagnostics, Severity, Sources};
use crate::load::yaml::{self, Dialect};
use crate::model::handler::HandlerCause;
use crate::model::operator::{HandledKind, KindOrigin, Operator};

/// The files and folders in which users keep sample objects.
const PLACES: [&str; 3] = ["samples", "obj.yaml", "examples"];

/// The namespace of samples that have none.
const NAMESPACE: &str = "default";

/// The field manager of samples.
const MANAGER: &str = "kopf-gen-dev";

/// An object to apply.
#[derive(Clone, Debug)]
pub(super) struct SampleObject {
    body: Value,
    /// Whether handlers of its kind leave records on it.
    has_records: bool,
}

/// A sample on the cluster.
#[derive(Clone, Debug)]
pub(super) struct AppliedSample {
    api: Api<DynamicObject>,
    pub(super) name: String,
    namespace: Option<String>,
    plural: String,
    group: String,
    pub(super) kind: String,
    /// Whether handlers of its kind leave records on it.
    pub(super) has_records: bool,
}

/// The samples in files of the crate, or those that the schemas demand.
pub(super) fn find(root: &Path, operator: &Operator) -> Result<Vec<SampleObject>, Error> {
    let files = files(root);
    if files.is_empty() {
        return Ok(operator.kinds.iter().filter_map(of_schema).collect());
    }
    let mut samples = Vec::new();
    for file in files {
        samples.extend(read(&file, operator)?);
    }
    Ok(samples)
}

fn files(root: &Path) -> Vec<PathBuf> {
    for place in PLACES.map(|place| root.join(place)) {
        if place.is_file() {
            return vec![place];
        }
        let entries = std::fs::read_dir(&place).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let mut yaml: Vec<PathBuf> = paths
            .filter(|path| {
                let extension = path.extension().and_then(|it| it.to_str());
                matches!(extension, Some("yaml" | "yml"))
            })
            .collect();
        if !yaml.is_empty() {
            yaml.sort();
            return yaml;
        }
    }
    Vec::new()
}

fn read(file: &Path, operator: &Operator) -> Result<Vec<SampleObject>, Error> {
    let unreadable = |reason: String| Error::Sample {
        name: file.display().to_string(),
        reason,
    };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(error.to_string()))?;
    let mut sources = Sources::new();
    let source = sources.add(file.display().to_string(), text);
    let mut diagnostics = Diagnostics::new();
    let documents = yaml::parse(&sources, source, Dialect::Kubernetes, &mut diagnostics);
    let mut problems = diagnostics.iter();
    if let Some(problem) = problems.find(|it| it.severity == Severity::Error) {
        return Err(unreadable(problem.message.clone()));
    }
    let bodies = documents.iter().map(yaml::Node::to_json);
    let objects = bodies.filter(|body| ObjectView::new(body).kind().is_some());
    let samples = objects.map(|body| {
        let view = ObjectView::new(&body);
        let own = |it: &&HandledKind| Some(it.kind.as_str()) == view.kind();
        let has_records = operator.kinds.iter().find(own).is_some_and(has_records);
        SampleObject { body, has_records }
    });
    Ok(samples.collect())
}

/// An object of a kind with the fields that its schema requires.
fn of_schema(kind: &HandledKind) -> Option<SampleObject> {
    if !matches!(kind.origin, KindOrigin::Custom(_)) {
        return None;
    }
    let mut body = json!({
        "apiVersion": format!("{}/{}", kind.group, kind.version),
        "kind": kind.kind,
        "metadata": {"name": format!("sample-{}", kind.kind.to_lowercase())},
    });
    let fields = kind.sample.as_ref()?.as_object()?;
    body.as_object_mut()?.extend(fields.clone());
    let has_records = has_records(kind);
    Some(SampleObject { body, has_records })
}

fn has_records(kind: &HandledKind) -> bool {
    let has_children = !kind.children.is_empty();
    let leaves_record = |cause: &HandlerCause| match cause {
        HandlerCause::Change(_) | HandlerCause::Field { .. } => true,
        HandlerCause::Reconcile(_) => has_children,
        _ => false,
    };
    kind.handlers
        .iter()
        .any(|handler| leaves_record(&handler.cause))
}

impl SampleObject {
    /// Applies the object on the server.
    pub(super) async fn apply(&self, client: &Client) -> Result<AppliedSample, Error> {
        let view = ObjectView::new(&self.body);
        let name = view.name().unwrap_or_default().to_owned();
        let kind = view.kind().unwrap_or_default().to_owned();
        let failed = |error: &dyn std::error::Error| Error::Sample {
            name: format!("{kind} {name}"),
            reason: error.to_string(),
        };
        let version = view.api_version().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let identity = GroupVersionKind::gvk(group, version, &kind);
        let found = oneshot::pinned_kind(client, &identity).await;
        let (resource, capabilities) = found.map_err(|error| failed(&error))?;
        let (api, namespace) = match capabilities.scope {
            Scope::Cluster => (Api::all_with(client.clone(), &resource), None),
            Scope::Namespaced => {
                let namespace = view.namespace().unwrap_or(NAMESPACE).to_owned();
                let api = Api::namespaced_with(client.clone(), &namespace, &resource);
                (api, Some(namespace))
            }
        };
        let applied = AppliedSample {
            api,
            name: name.clone(),
            namespace,
            plural: resource.plural.clone(),
            group: group.to_owned(),
            kind: kind.clone(),
            has_records: self.has_records,
        };
        applied
            .send(&self.body)
            .await
            .map_err(|error| failed(&error))?;
        Ok(applied)
    }
}

impl AppliedSample {
    async fn send(&self, body: &Value) -> kube::Result<()> {
        let params = PatchParams::apply(MANAGER).force();
        self.api
            .patch(&self.name, &params, &Patch::Apply(body))
            .await?;
        Ok(())
    }

    /// The arguments of `inspect` for it.
    pub(super) fn inspect_arguments(&self) -> Vec<String> {
        let kind = if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        };
        let target = ["inspect".to_owned(), format!("{kind}/{}", self.name)];
        let namespace = self.namespace.iter();
        let namespace = namespace.flat_map(|it| ["-n".to_owned(), it.clone()]);
        target.into_iter().chain(namespace).collect()
    }
}
