//! Plans the generated files in `crds/` and `deploy/`, and checks that the user's Kustomizations list
//! them.

use std::collections::BTreeMap;

use super::crd_files::{self, CRD_FOLDER};
use super::file::PlannedFile;
use super::source::DeploySource;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources, Span};
use crate::load::manifest::DeployTool;
use crate::load::yaml::{self, Dialect, Node};
use crate::model::deploy::POD_SECONDS;
use crate::model::operator::{CrdFile, Operator};
use crate::model::webhook_configuration::WebhookConfiguration;

/// The Kustomization that `kubectl apply -k deploy` takes, which the user owns.
pub(crate) const KUSTOMIZATION: &str = "deploy/kustomization.yaml";

/// The Kustomization that applies the files in `crds/`; the user may have one from earlier.
pub(crate) const CRD_KUSTOMIZATION: &str = "crds/kustomization.yaml";

/// The workload of a crate with the flat layout, which the user owns.
pub(crate) const DEPLOYMENT: &str = "deploy/deployment.yaml";

/// The entry of `deploy/kustomization.yaml` for `crds/kustomization.yaml`.
pub(super) const CRD_BASE: &str = "../crds";

/// The entry of `deploy/kustomization.yaml` for the generated files in `deploy/base/`.
pub(super) const OPERATOR_BASE: &str = "base";

/// The entry of a Kustomization for copies of CRDs.
const COPIES: &str = "crds.yaml";

/// The Kustomizations that the user owns.
#[derive(Clone, Debug, Default)]
pub(super) struct UserKustomizations {
    deploy: Option<Kustomization>,
    crds: Option<Kustomization>,
    workload: Option<OperatorDeployment>,
}

/// The place of the generated files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeployLayout {
    /// In `deploy/base/`, with a Kustomization of their own that the user's names as its base.
    Base,
    /// In `deploy/` itself, as earlier versions put them: the user's Kustomization names each file,
    /// and the Deployment is the user's.
    Flat,
}

/// The Deployment of the operator in a crate with the flat layout.
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
    /// The first number of replicas that it sets.
    replicas: Option<(i128, Span)>,
}

/// Plans the generated files in `crds/` and `deploy/` for Kustomize.
pub(super) fn files<'a>(
    operator: &'a Operator,
    webhooks: Option<&[WebhookConfiguration]>,
    user: &UserKustomizations,
    diagnostics: &mut Diagnostics,
) -> Vec<PlannedFile<'a>> {
    if operator.deployment.tool == DeployTool::Helm {
        user.check_without_base(diagnostics);
        return Vec::new();
    }
    let bases = crd_files::bases(operator);
    let is_old = !bases.is_empty() && user.copies().is_some();
    let is_base = |file: &&CrdFile| bases.iter().any(|base| base.path == file.path);
    let copied = operator.crd_files.iter();
    let copied = copied.filter(|file| is_old || !is_base(file));
    let copies = crd_files::copies(copied);
    let layout = user.layout();
    let options = &operator.deployment;
    let in_folder = [
        (!copies.is_empty()).then_some((COPIES, DeploySource::CrdCopies(copies))),
        operator
            .peering
            .is_deployed()
            .then_some(("peering.yaml", DeploySource::Peering)),
        Some(("rbac.yaml", DeploySource::Rbac(operator))),
        (layout == DeployLayout::Base)
            .then_some(("deployment.yaml", DeploySource::Workload(operator))),
        webhooks.map(|configurations| {
            let source = DeploySource::Webhooks {
                operator,
                configurations: configurations.to_vec(),
            };
            ("webhooks.yaml", source)
        }),
        options
            .network_policy
            .then_some(("network-policy.yaml", DeploySource::NetworkPolicy(operator))),
        options
            .service_monitor
            .then_some(("monitoring.yaml", DeploySource::Monitoring(operator))),
        options
            .alerts
            .then_some(("alerts.yaml", DeploySource::Alerts(operator))),
        options
            .dashboard
            .then_some(("dashboard.yaml", DeploySource::Dashboard(operator))),
    ];
    let in_folder: Vec<_> = in_folder.into_iter().flatten().collect();
    let names: Vec<&str> = in_folder.iter().map(|(name, _)| *name).collect();
    user.check(layout, &bases, &names, diagnostics);
    user.check_workload(operator, diagnostics);
    let list = DeploySource::BaseKustomization { files: names };
    let list = (layout == DeployLayout::Base).then_some(("kustomization.yaml", list));
    let in_folder = list
        .into_iter()
        .chain(in_folder)
        .map(|(name, source)| PlannedFile::deploy(&format!("{}{name}", layout.folder()), source));
    let crd_list = crd_list(&bases).filter(|_| user.crds.is_none());
    crd_list.into_iter().chain(in_folder).collect()
}

/// The list of the files in `crds/`; `None` if there is nothing to list.
fn crd_list<'a>(bases: &[&'a CrdFile]) -> Option<PlannedFile<'a>> {
    let names = bases.iter();
    let names = names.filter_map(|file| file.path.strip_prefix(CRD_FOLDER));
    let mut files: Vec<&str> = names.collect();
    files.sort_unstable();
    let is_empty = files.is_empty();
    let source = DeploySource::CrdKustomization { files };
    (!is_empty).then(|| PlannedFile::deploy(CRD_KUSTOMIZATION, source))
}

// === impl DeployLayout ===

impl DeployLayout {
    /// The folder of the generated files, as their paths begin.
    fn folder(self) -> &'static str {
        match self {
            Self::Base => "deploy/base/",
            Self::Flat => "deploy/",
        }
    }
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
            CRD_KUSTOMIZATION if !crd_files::is_generated(text) => {
                self.crds = kustomization(sources)
            }
            DEPLOYMENT => self.workload = OperatorDeployment::read(sources, text),
            _ => {}
        }
    }

    /// Flat if the user's Kustomization names the single files.
    fn layout(&self) -> DeployLayout {
        let is_flat = |it: &Kustomization| {
            it.entry(OPERATOR_BASE).is_none() && it.entry("rbac.yaml").is_some()
        };
        match &self.deploy {
            Some(deploy) if is_flat(deploy) => DeployLayout::Flat,
            _ => DeployLayout::Base,
        }
    }

    /// The first entry of a Kustomization that names the single files.
    pub(super) fn flat_entry(&self) -> Option<(SourceId, Span)> {
        let deploy = self.deploy.as_ref()?;
        let is_flat = self.layout() == DeployLayout::Flat;
        is_flat.then_some((deploy.source, deploy.entry("rbac.yaml")?))
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
    fn check(
        &self,
        layout: DeployLayout,
        bases: &[&CrdFile],
        planned: &[&str],
        diagnostics: &mut Diagnostics,
    ) {
        if let Some(deploy) = &self.deploy {
            let has_bases = !bases.is_empty();
            // The list may name a base that the user maintains, and copies instead of the base.
            if has_bases != deploy.entry(CRD_BASE).is_some()
                && self.copies().is_none()
                && (has_bases || self.crds.is_none())
            {
                deploy.warn("deploy", CRD_BASE, CRD_KUSTOMIZATION, diagnostics);
            }
            match layout {
                DeployLayout::Base => deploy.check_base(diagnostics),
                DeployLayout::Flat => deploy.check_flat(planned, diagnostics),
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

    /// Warns if the user's Kustomization lists what only Kustomize needs: a chart has its own files.
    fn check_without_base(&self, diagnostics: &mut Diagnostics) {
        let Some(deploy) = &self.deploy else { return };
        let crds = self.crds.is_none();
        let crds = crds.then_some((CRD_BASE, CRD_KUSTOMIZATION)).into_iter();
        for (name, path) in crds.chain([(OPERATOR_BASE, "deploy/base/")]) {
            let Some(at) = deploy.entry(name) else {
                continue;
            };
            let message = format!("`kubectl apply -k deploy` fails: there is no {path}");
            diagnostics.push(
                Diagnostic::warning(Code::DeploymentList, message)
                    .at(deploy.source, at, "`deploy.tool` in kopf.yaml is `helm`")
                    .help("delete this file, or write `tool: both`"),
            );
        }
    }

    /// Warns if what the user sets for the workload contradicts the manifest.
    fn check_workload(&self, operator: &Operator, diagnostics: &mut Diagnostics) {
        if let Some(workload) = &self.workload
            && self.layout() == DeployLayout::Flat
        {
            workload.check(operator.stop_times().pod_seconds(), diagnostics);
        }
        if let Some(deploy) = &self.deploy
            && let Some((replicas, place)) = deploy.replicas
            && replicas > 1
            && operator.leader_election.is_none()
        {
            let message = format!("{replicas} replicas would handle every object at once");
            let help = "add `leader_election: {}` to `operator` in kopf.yaml, or keep one replica";
            diagnostics.push(
                Diagnostic::warning(Code::DeploymentDrift, message)
                    .at(deploy.source, place, "kopf.yaml has no leader election")
                    .help(help),
            );
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

/// The number of replicas that a patch within a Kustomization sets, and the place of the patch.
fn patched_replicas(root: &Node) -> Option<(i128, Span)> {
    let patches = root.get("patches")?.as_seq()?.iter();
    let texts = patches.filter_map(|it| it.entry("patch"));
    texts
        .filter_map(|entry| Some((replicas_of_patch(entry.value.as_str()?)?, entry.key.span)))
        .next()
}

/// The number of replicas that a merge patch or a JSON patch sets.
fn replicas_of_patch(text: &str) -> Option<i128> {
    let mut sources = Sources::new();
    let id = sources.add(KUSTOMIZATION, text);
    let documents = yaml::parse(&sources, id, Dialect::Kubernetes, &mut Diagnostics::new());
    let patch = documents.first()?;
    let merged = patch.get("spec").and_then(|spec| spec.get("replicas"));
    let operations = patch.as_seq().unwrap_or_default().iter();
    let mut values = operations.filter_map(|operation| {
        let path = operation.get("path")?.as_str()?;
        operation.get("value").filter(|_| path == "/spec/replicas")
    });
    merged.or_else(|| values.next())?.as_int()
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
        let root = documents.first();
        let replicas = root.and_then(|root| root.get("replicas")?.as_seq()?.first());
        let replicas = replicas.and_then(|it| {
            let count = it.entry("count")?;
            Some((count.value.as_int()?, count.value.span))
        });
        Self {
            source,
            replicas: replicas.or_else(|| root.and_then(patched_replicas)),
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

    /// Warns if the list leaves out the generated files.
    fn check_base(&self, diagnostics: &mut Diagnostics) {
        if self.entry(OPERATOR_BASE).is_none() {
            self.warn("deploy", OPERATOR_BASE, "deploy/base/", diagnostics);
        }
    }

    /// Warns if the list names other files than those that are planned.
    fn check_flat(&self, planned: &[&str], diagnostics: &mut Diagnostics) {
        for name in [
            COPIES,
            "rbac.yaml",
            "peering.yaml",
            "webhooks.yaml",
            "network-policy.yaml",
            "monitoring.yaml",
            "alerts.yaml",
            "dashboard.yaml",
        ] {
            if planned.contains(&name) != self.entry(name).is_some() {
                self.warn("deploy", name, &format!("deploy/{name}"), diagnostics);
            }
        }
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
