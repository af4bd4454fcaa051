//! The files for deployment outside of `deploy/`: `Dockerfile` and `README.md`.

use askama::Template;

use crate::diagnostic::harmless;
use crate::load::manifest::Trigger;
use crate::model::handler::{ChangeTriggers, Handler, HandlerCause};
use crate::model::hook::{Hook, HookKind};
use crate::model::operator::{CrdFile, HandledKind, Operator};
use crate::model::webhook::{Webhook, WebhookRole};
use crate::view::cluster_test::ClusterTestView;
use crate::view::hooks;
use crate::view::method;

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
            occasion: harmless(&occasion),
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
