//! `deploy/webhooks.yaml`: the Service, certificates and configurations of an operator's webhooks.

use askama::Template;
use kopf_core::admission::configuration::{
    Address, ClientConfig, ConfiguredWebhook as Configured, SYSTEM_NAMESPACES, WebhookNamespaces,
    entries,
};
use kopf_core::admission::{
    ConfigurationLifetime, FailurePolicy, Operation as CoreOperation, SideEffects,
    WebhookEndpoint as CoreEndpoint, WebhookRole as CoreRole, WebhookSpec,
};
use kopf_core::handler::HandlerId;
use kopf_core::handler::filter::TextTest;
use serde_json::Value;

use crate::load::manifest::{ConfigurationOwner, Operation};
use crate::model::handler::{FilterSubject, FilterTest};
use crate::model::operator::{HandledKind, Operator};
use crate::model::webhook::{Webhook, WebhookEndpoint, WebhookRole};

/// `deploy/webhooks.yaml`.
#[derive(Debug, Template)]
#[template(path = "deploy/webhooks.yaml", escape = "none")]
pub struct WebhooksView<'a> {
    name: &'a str,
    service: String,
    configuration_name: &'a str,
    /// The configurations, if the operator does not write them.
    emitted: Option<Vec<EmittedConfiguration>>,
    /// The kinds of configurations that the operator fills.
    managed: Vec<&'static str>,
}

#[derive(Debug)]
struct EmittedConfiguration {
    kind: &'static str,
    entries: String,
}

impl<'a> WebhooksView<'a> {
    /// The objects for the webhooks of `operator`; `None` if it has none.
    #[must_use]
    pub fn new(operator: &'a Operator) -> Option<Self> {
        if !operator.has_webhooks() {
            return None;
        }
        let specs: Vec<_> = operator
            .kinds
            .iter()
            .flat_map(|kind| {
                kind.webhooks
                    .iter()
                    .map(move |webhook| (kind, spec(webhook)))
            })
            .collect();
        let has = |role| specs.iter().any(|(_, spec)| spec.role == role);
        let roles = CoreRole::ALL.into_iter().filter(|role| has(*role));
        let emitted = match operator.admission.configuration {
            ConfigurationOwner::Managed => None,
            ConfigurationOwner::CertManager => Some(
                roles
                    .clone()
                    .map(|role| emitted(operator, role, &specs))
                    .collect(),
            ),
        };
        Some(Self {
            name: &operator.name,
            service: operator.webhook_service(),
            configuration_name: &operator.admission.name,
            emitted,
            managed: CoreRole::ALL.map(CoreRole::configuration_kind).to_vec(),
        })
    }
}

fn emitted(
    operator: &Operator,
    role: CoreRole,
    specs: &[(&HandledKind, WebhookSpec)],
) -> EmittedConfiguration {
    let webhooks: Vec<_> = specs
        .iter()
        .map(|(kind, spec)| Configured {
            group: &kind.group,
            version: &kind.version,
            plural: &kind.plural,
            spec,
        })
        .collect();
    let client = ClientConfig {
        address: Address::Service {
            namespace: operator.name.clone(),
            name: operator.webhook_service(),
            port: 443,
            path: String::new(),
        },
        ca_bundle: None,
    };
    let mut protected = SYSTEM_NAMESPACES.map(str::to_owned).to_vec();
    protected.push(operator.name.clone());
    protected.sort();
    let entries = entries(
        role,
        &operator.admission.name,
        &webhooks,
        &client,
        &WebhookNamespaces::AllBut(protected),
    )
    .expect("ids are unique within a kind, and the name was checked");
    let mut text = String::new();
    write_yaml(&mut text, &Value::Array(entries), 2);
    EmittedConfiguration {
        kind: role.configuration_kind(),
        entries: text.trim_end().to_owned(),
    }
}

/// The webhook as the runtime will declare it.
fn spec(webhook: &Webhook) -> WebhookSpec {
    let role = match webhook.role {
        WebhookRole::Validate => CoreRole::Validating,
        WebhookRole::Mutate => CoreRole::Mutating,
    };
    let mut spec = WebhookSpec::new(HandlerId::new(&webhook.full_id()), role);
    spec.operations = webhook
        .operations
        .iter()
        .map(|operation| match operation {
            Operation::Create => CoreOperation::Create,
            Operation::Update => CoreOperation::Update,
            Operation::Delete => CoreOperation::Delete,
            Operation::Connect => CoreOperation::Connect,
        })
        .collect();
    spec.endpoint = match &webhook.endpoint {
        WebhookEndpoint::Main => CoreEndpoint::Main,
        WebhookEndpoint::Subresource(name) => CoreEndpoint::Subresource(name.clone()),
        WebhookEndpoint::All => CoreEndpoint::All,
    };
    if webhook.side_effects {
        spec.side_effects = SideEffects::NoneOnDryRun;
    }
    if webhook.ignore_failures {
        spec.on_failure = FailurePolicy::Ignore;
    }
    if webhook.persistent {
        spec.lifetime = ConfigurationLifetime::Persistent;
    }
    if let Some(timeout) = webhook.timeout {
        spec.timeout = timeout;
    }
    for filter in &webhook.filters {
        let FilterSubject::Label(key) = &filter.subject else {
            continue;
        };
        let test = match &filter.expected {
            FilterTest::Present => TextTest::Present,
            FilterTest::Absent => TextTest::Absent,
            FilterTest::Equals(value) => {
                TextTest::Equals(value.as_str().unwrap_or_default().to_owned())
            }
            FilterTest::Predicate(_) => continue,
        };
        spec.filters.labels.push((key.clone(), test.into()));
    }
    spec
}

/// Writes JSON as YAML in block style, with quoted strings. Hand-written, because no YAML
/// serializer is among the dependencies and the values are plain JSON.
fn write_yaml(text: &mut String, value: &Value, indent: usize) {
    let pad = " ".repeat(indent);
    match value {
        Value::Array(items) => {
            for item in items {
                let mut inner = String::new();
                write_yaml(&mut inner, item, indent + 2);
                match item {
                    Value::Object(map) if !map.is_empty() => {
                        *text += &format!("{pad}- {}", inner.trim_start());
                    }
                    _ => *text += &format!("{pad}- {inner}"),
                }
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let is_nested = match value {
                    Value::Array(items) => !items.is_empty(),
                    Value::Object(map) => !map.is_empty(),
                    _ => false,
                };
                let mut inner = String::new();
                write_yaml(&mut inner, value, indent + 2);
                if is_nested {
                    *text += &format!("{pad}{key}:\n{inner}");
                } else if value.is_object() {
                    *text += &format!("{pad}{key}: {{}}\n");
                } else {
                    *text += &format!("{pad}{key}: {inner}");
                }
            }
        }
        scalar => *text += &format!("{scalar}\n"),
    }
}
