//! The files for deployment: `deploy/`, `Dockerfile` and `README.md`.

use askama::Template;

use crate::load::manifest::Trigger;
use crate::model::handler::{ChangeTriggers, Handler, HandlerCause};
use crate::model::hook::{Hook, HookKind};
use crate::model::operator::{CrdFile, HandledKind, Operator};
use crate::model::rbac::{self, RbacRule, RuleScope};
use crate::model::webhook::{Webhook, WebhookRole};
use crate::view::cluster_test::ClusterTestView;
use crate::view::hooks;
use crate::view::layout::wrap;
use crate::view::method;

/// The width of a comment in a list of rules.
const COMMENT_WIDTH: usize = 96;

/// `deploy/rbac.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/rbac.yaml")]
pub struct RbacView<'a> {
    name: &'a str,
    rules: Vec<RuleLines>,
    /// The namespaces in which `served_rules` are granted.
    namespaces: Vec<&'a str>,
    served_rules: Vec<RuleLines>,
    /// The rules that are granted in the namespace of the operator only.
    own_rules: Vec<RuleLines>,
}

#[derive(Debug)]
struct RuleLines {
    reasons: Vec<String>,
    groups: String,
    resources: String,
    names: Option<String>,
    verbs: String,
}

/// `deploy/crds.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/crds.yaml")]
pub struct CrdsView<'a> {
    files: Vec<CrdText<'a>>,
}

#[derive(Debug)]
struct CrdText<'a> {
    path: &'a str,
    text: &'a str,
}

/// `deploy/deployment.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/deployment.yaml")]
pub struct DeploymentView<'a> {
    name: &'a str,
    /// Whether replicas elect a leader.
    elects: bool,
    /// Whether peers or replicas identify the operator by the name of its Pod.
    is_named: bool,
    /// Whether the operator watches the whole cluster.
    is_everywhere: bool,
}

/// `deploy/peering.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/peering.yaml")]
pub struct PeeringView<'a> {
    peering: &'a str,
}

/// `deploy/kustomization.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/kustomization.yaml")]
pub struct KustomizationView<'a> {
    /// The name of the operator.
    pub name: &'a str,
    /// Whether there are definitions to install.
    pub has_crds: bool,
    /// Whether there is a peering to install.
    pub has_peering: bool,
    /// Whether there are webhooks.
    pub has_webhooks: bool,
    /// Whether there are permissions for children.
    pub has_children: bool,
}

/// `Dockerfile`.
#[derive(Debug, Template)]
#[template(path = "deploy/Dockerfile", escape = "none")]
pub struct DockerfileView<'a> {
    /// The name of the operator.
    pub name: &'a str,
}

/// `.dockerignore`.
#[derive(Debug, Template)]
#[template(path = "deploy/dockerignore", escape = "none")]
pub struct DockerignoreView;

/// `README.md`.
#[derive(Debug, Template)]
#[template(path = "scaffold/README.md")]
pub struct ReadmeView<'a> {
    name: &'a str,
    /// The path to apply for the CRDs, if there are any.
    definitions: Option<&'static str>,
    has_cluster_test: bool,
    has_children: bool,
    kinds: Vec<ReadmeKind<'a>>,
}

#[derive(Debug)]
struct ReadmeKind<'a> {
    title: String,
    file: String,
    handlers: Vec<ReadmeHandler<'a>>,
}

#[derive(Debug)]
struct ReadmeHandler<'a> {
    method: &'a str,
    occasion: String,
}

// === impl DeploymentView ===

impl<'a> DeploymentView<'a> {
    /// Prepares the workload of `operator`.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        let elects = operator.leader_election.is_some();
        Self {
            name: &operator.name,
            elects,
            is_named: elects || operator.peering.membership().is_some(),
            is_everywhere: operator.namespaces.is_empty(),
        }
    }
}

// === impl PeeringView ===

impl<'a> PeeringView<'a> {
    /// The peering of `operator`; `None` if `deploy/` contains none.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Option<Self> {
        let membership = operator.peering.membership();
        let membership = membership.filter(|_| operator.peering.is_deployed())?;
        Some(Self {
            peering: membership.peering(),
        })
    }
}

// === impl RbacView ===

impl<'a> RbacView<'a> {
    /// Prepares the permissions of `operator`.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        let rules = rbac::rules(operator);
        let at = |scope: RuleScope| -> Vec<RuleLines> {
            let rules = rules.iter().filter(|rule| rule.scope == scope);
            rules.map(RuleLines::new).collect()
        };
        Self {
            name: &operator.name,
            rules: at(RuleScope::Cluster),
            namespaces: operator.fixed_namespaces().into_iter().flatten().collect(),
            served_rules: at(RuleScope::ServedNamespaces),
            own_rules: at(RuleScope::OwnNamespace),
        }
    }
}

impl RuleLines {
    fn new(rule: &RbacRule) -> Self {
        let mut reasons: Vec<String> = Vec::new();
        let mut previous: Option<(Vec<&str>, String)> = None;
        let mut flush = |group: Option<(Vec<&str>, String)>| {
            let lines = group.map(|(verbs, reason)| {
                wrap(&format!("{}: {reason}", verbs.join(", ")), COMMENT_WIDTH)
            });
            reasons.extend(lines.into_iter().flatten());
        };
        for grant in &rule.verbs {
            match &mut previous {
                Some((verbs, reason)) if *reason == grant.reason => verbs.push(grant.verb),
                _ => flush(previous.replace((vec![grant.verb], grant.reason.clone()))),
            }
        }
        flush(previous);
        let verbs: Vec<_> = rule.verbs.iter().map(|grant| grant.verb).collect();
        Self {
            reasons,
            groups: list(rule.groups.iter().map(|group| format!("\"{group}\""))),
            resources: list(rule.resources.iter().map(|it| resource(it))),
            names: (!rule.names.is_empty()).then(|| list(rule.names.iter().cloned())),
            verbs: verbs.join(", "),
        }
    }
}

/// A star needs quotes in YAML.
fn resource(name: &str) -> String {
    if name.starts_with('*') {
        format!("\"{name}\"")
    } else {
        name.to_owned()
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    items.collect::<Vec<_>>().join(", ")
}

// === impl CrdsView ===

impl<'a> CrdsView<'a> {
    /// All CRDs in one file, because Kustomize reads only files in its own folder.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Self {
        let body = |text: &'a str| {
            let text = text.trim_start_matches('\u{feff}').trim();
            text.strip_prefix("---").unwrap_or(text).trim_start()
        };
        let files = operator.crd_files.iter().map(|file| CrdText {
            path: &file.path,
            text: body(&file.text),
        });
        Self {
            files: files.collect(),
        }
    }
}

// === impl ReadmeView ===

impl<'a> ReadmeView<'a> {
    /// Describes `operator`; the user owns the file afterwards.
    #[must_use]
    pub fn new(operator: &'a Operator, has_children: bool) -> Self {
        Self {
            name: &operator.name,
            definitions: definitions(operator),
            has_cluster_test: ClusterTestView::new(operator).is_some(),
            has_children,
            kinds: operator
                .kinds
                .iter()
                .map(ReadmeKind::new)
                .chain((!operator.hooks.is_empty()).then(|| ReadmeKind::of_hooks(operator)))
                .collect(),
        }
    }
}

/// The folder of the CRDs if it contains all of them, and otherwise the file with copies of all.
fn definitions(operator: &Operator) -> Option<&'static str> {
    let is_in_folder = |file: &CrdFile| file.path.starts_with("crds/");
    match operator.crd_files.as_slice() {
        [] => None,
        files if files.iter().all(is_in_folder) => Some("crds/"),
        _ => Some("deploy/crds.yaml"),
    }
}

impl<'a> ReadmeKind<'a> {
    fn new(kind: &'a HandledKind) -> Self {
        Self {
            title: match kind.selector() {
                Some(selector) => format!("{}: `{selector}`", kind.kind),
                None => format!("{} ({})", kind.kind, kind.api_version()),
            },
            file: format!("src/handlers/{}.rs", kind.module),
            handlers: kind
                .handlers
                .iter()
                .map(ReadmeHandler::new)
                .chain(kind.webhooks.iter().map(ReadmeHandler::of_webhook))
                .collect(),
        }
    }

    fn of_hooks(operator: &'a Operator) -> Self {
        Self {
            title: "Hooks of the operator".to_owned(),
            file: format!("src/handlers/{}.rs", hooks::MODULE),
            handlers: operator.hooks.iter().map(ReadmeHandler::of_hook).collect(),
        }
    }
}

impl<'a> ReadmeHandler<'a> {
    fn new(handler: &'a Handler) -> Self {
        let occasion = match &handler.cause {
            HandlerCause::Change(change) => words(change),
            HandlerCause::Field { field, within } if within.triggers.is_empty() => {
                format!("changes of `{field}`")
            }
            HandlerCause::Field { field, within } => format!("{}, with `{field}`", words(within)),
            HandlerCause::Event { field: None } => "every watch event".to_owned(),
            HandlerCause::Event { field: Some(field) } => {
                format!("every watch event, with `{field}`")
            }
            HandlerCause::Daemon(_) => "as long as the object exists".to_owned(),
            HandlerCause::Timer(timer) => method::timer_schedule(&timer.schedule),
            HandlerCause::Index(_) => "computes the index entries of an object".to_owned(),
        };
        Self {
            method: &handler.method,
            occasion,
        }
    }

    fn of_hook(hook: &'a Hook) -> Self {
        let occasion = match hook.moment {
            HookKind::Startup => "when the operator starts",
            HookKind::Cleanup => "when the operator stops",
            HookKind::Login => "when the operator needs credentials for the cluster",
            HookKind::Probe => "for liveness probes",
        };
        Self {
            method: &hook.method,
            occasion: occasion.to_owned(),
        }
    }

    fn of_webhook(webhook: &'a Webhook) -> Self {
        let occasion = match webhook.role {
            WebhookRole::Validate => "admits or denies a request",
            WebhookRole::Mutate => "can change an object before it is stored",
        };
        Self {
            method: &webhook.method,
            occasion: occasion.to_owned(),
        }
    }
}

fn words(change: &ChangeTriggers) -> String {
    let words: Vec<_> = change
        .triggers
        .iter()
        .map(|trigger| match trigger {
            Trigger::Create => "creation",
            Trigger::Update => "update",
            Trigger::Delete => "deletion",
            Trigger::Resume => "restart of the operator",
            Trigger::Field | Trigger::Event => unreachable!("neither is a kind of change"),
        })
        .collect();
    words.join(", ")
}
