//! Plans the generated files in `crds/` and `deploy/`, and checks that the user's Kustomizations list
//! them.

use std::collections::BTreeMap;

use super::file::{PlannedFile, inside};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::yaml::{self, Dialect, Node};
use crate::model::operator::{CrdFile, Operator};
use crate::view::crds::{self, CRD_FOLDER};
use crate::view::workload::{CRD_BASE, POD_SECONDS};
use crate::view::{rbac, webhooks, workload};

/// The Kustomization that applies the files in `deploy/`, which the user owns.
pub(crate) const KUSTOMIZATION: &str = "deploy/kustomization.yaml";

/// The Kustomization that applies the files in `crds/`; the user may have one from earlier.
pub(crate) const CRD_KUSTOMIZATION: &str = "crds/kustomization.yaml";

/// The workload, which the user owns.
pub(crate) const DEPLOYMENT: &str = "deploy/deployment.yaml";

/// The entry of `deploy/kustomization.yaml` for copies of CRDs.
const COPIES: &str = "crds.yaml";

/// The Kustomizations that the user owns.
#[derive(Clone, Debug, Default)]
pub(super) struct UserKustomizations {
    deploy: Option<Kustomization>,
    crds: Option<Kustomization>,
    workload: Option<OperatorDeployment>,
}

/// The Deployment of the operator.
#[derive(Clone, Debug)]
struct OperatorDeployment {
    source: SourceId,
    /// The place of `terminationGracePeriodSeconds`, or of the key `spec` of its pods.
    place: Span,
    /// The time that its pods have to stop.
    seconds: u64,
}

#[derive(Clone, Debug)]
struct Kustomization {
    source: SourceId,
    /// The place of the key `resources`.
    place: Span,
    /// The places of its entries.
    listed: BTreeMap<String, Span>,
}

/// Plans the generated files in `crds/` and `deploy/`.
pub(super) fn files(
    operator: &Operator,
    user: &UserKustomizations,
    diagnostics: &mut Diagnostics,
) -> Vec<PlannedFile> {
    let webhooks = webhooks::text(operator).unwrap_or_else(|error| {
        let message = format!("the webhooks cannot be configured: {error}");
        let help = "give one of them another `id`";
        diagnostics.push(Diagnostic::error(Code::DuplicateHandler, message).help(help));
        None
    });
    let bases = crds::bases(operator);
    let is_old = !bases.is_empty() && user.copies().is_some();
    let is_base = |file: &&CrdFile| bases.iter().any(|base| base.path == file.path);
    let copied = operator.crd_files.iter();
    let copied = copied.filter(|file| is_old || !is_base(file));
    let base = user.crds.is_none().then(|| crds::kustomization(&bases));
    let planned = [
        (CRD_KUSTOMIZATION, base.flatten()),
        ("deploy/rbac.yaml", Some(rbac::text(operator))),
        ("deploy/webhooks.yaml", webhooks),
        ("deploy/crds.yaml", crds::copies(copied)),
        ("deploy/peering.yaml", workload::peering(operator)),
    ];
    let planned = planned
        .into_iter()
        .filter_map(|(path, text)| Some(PlannedFile::generated(inside(path), text?)));
    let planned: Vec<PlannedFile> = planned.collect();
    user.check(&bases, &planned, diagnostics);
    if let Some(workload) = &user.workload {
        workload.check(operator.stop_times().pod_seconds(), diagnostics);
    }
    planned
}

// === impl UserKustomizations ===

impl UserKustomizations {
    pub(super) fn add(&mut self, sources: &mut Sources, path: &str, text: &str) {
        let kustomization = |sources: &mut Sources| {
            let source = sources.add(path, text.to_owned());
            Some(Kustomization::new(source, text))
        };
        match path {
            KUSTOMIZATION => self.deploy = kustomization(sources),
            CRD_KUSTOMIZATION if !crds::is_generated(text) => self.crds = kustomization(sources),
            DEPLOYMENT => self.workload = OperatorDeployment::read(sources, text),
            _ => {}
        }
    }

    /// The entry for copies of CRDs, if there is none for the CRDs themselves: earlier versions
    /// copied all.
    pub(super) fn copies(&self) -> Option<(SourceId, Span)> {
        let deploy = self.deploy.as_ref()?;
        let copies = deploy.entry(COPIES)?;
        let is_old = deploy.entry(CRD_BASE).is_none();
        is_old.then_some((deploy.source, copies))
    }

    /// Warns if the user's Kustomizations list other files than those that are planned.
    fn check(&self, bases: &[&CrdFile], planned: &[PlannedFile], diagnostics: &mut Diagnostics) {
        if let Some(deploy) = &self.deploy {
            let has_bases = !bases.is_empty();
            // The list may name a base that the user maintains, and copies instead of the base.
            if has_bases != deploy.entry(CRD_BASE).is_some()
                && self.copies().is_none()
                && (has_bases || self.crds.is_none())
            {
                deploy.warn("deploy", CRD_BASE, CRD_KUSTOMIZATION, diagnostics);
            }
            for name in [COPIES, "rbac.yaml", "peering.yaml", "webhooks.yaml"] {
                let path = format!("deploy/{name}");
                let is_planned = planned.iter().any(|file| file.path.as_str() == path);
                if is_planned != deploy.entry(name).is_some() {
                    deploy.warn("deploy", name, &path, diagnostics);
                }
            }
        }
        if let Some(crds) = &self.crds {
            for file in bases {
                let name = file.path.strip_prefix(CRD_FOLDER).unwrap_or(&file.path);
                if crds.entry(name).is_none() {
                    crds.warn("crds", name, &file.path, diagnostics);
                }
            }
        }
    }
}

// === impl OperatorDeployment ===

impl OperatorDeployment {
    /// The first Deployment of a text.
    fn read(sources: &mut Sources, text: &str) -> Option<Self> {
        let source = sources.add(DEPLOYMENT, text.to_owned());
        let mut ignored = Diagnostics::new();
        let documents = yaml::parse(sources, source, Dialect::Kubernetes, &mut ignored);
        let mut documents = documents.iter();
        let deployment =
            documents.find(|it| it.get("kind").and_then(Node::as_str) == Some("Deployment"))?;
        let pod = deployment.get("spec")?.get("template")?.entry("spec")?;
        let grace = pod.value.entry("terminationGracePeriodSeconds");
        let seconds = grace.and_then(|it| u64::try_from(it.value.as_int()?).ok());
        Some(Self {
            source,
            place: grace.map_or(pod.key.span, |grace| grace.value.span),
            seconds: seconds.unwrap_or(POD_SECONDS),
        })
    }

    /// Warns if its pods are killed before the operator has stopped.
    fn check(&self, needed: u64, diagnostics: &mut Diagnostics) {
        if self.seconds >= needed {
            return;
        }
        let message = format!(
            "Kubernetes kills the operator {} s after the signal to stop, and it needs {needed} s",
            self.seconds
        );
        let label = format!("the pod has {} s", self.seconds);
        diagnostics.push(
            Diagnostic::warning(Code::PodGrace, message)
                .at(self.source, self.place, label)
                .help(format!("set `terminationGracePeriodSeconds: {needed}`")),
        );
    }
}

// === impl Kustomization ===

impl Kustomization {
    fn new(source: SourceId, text: &str) -> Self {
        let mut sources = Sources::new();
        let id = sources.add(KUSTOMIZATION, text);
        let mut ignored = Diagnostics::new();
        let documents = yaml::parse(&sources, id, Dialect::Kubernetes, &mut ignored);
        let entry = documents.first().and_then(|root| root.entry("resources"));
        let items = entry.and_then(|entry| entry.value.as_seq());
        let items = items.unwrap_or_default().iter();
        let listed = items.filter_map(|item| Some((item.as_str()?.to_owned(), item.span)));
        Self {
            source,
            // The key with its colon.
            place: entry.map_or(Span::default(), |entry| {
                Span::new(entry.key.span.start, entry.key.span.end + 1)
            }),
            listed: listed.collect(),
        }
    }

    /// The place of an entry, however its path is written.
    fn entry(&self, name: &str) -> Option<Span> {
        let spellings = [name.to_owned(), format!("./{name}"), format!("{name}/")];
        spellings
            .iter()
            .find_map(|name| self.listed.get(name))
            .copied()
    }

    /// Warns that the list should name the file at `path`, or that it should not.
    fn warn(&self, folder: &str, name: &str, path: &str, diagnostics: &mut Diagnostics) {
        let (message, span, label, help) = match self.entry(name) {
            None => (
                format!("`kubectl apply -k {folder}` leaves out {path}"),
                self.place,
                "not in this list",
                format!("add `- {name}` to the `resources`"),
            ),
            Some(at) => (
                format!("`kubectl apply -k {folder}` fails: there is no {path}"),
                at,
                "nothing in kopf.yaml needs it any more",
                "remove it from the `resources`".to_owned(),
            ),
        };
        diagnostics.push(
            Diagnostic::warning(Code::DeploymentList, message)
                .at(self.source, span, label)
                .help(help),
        );
    }
}
