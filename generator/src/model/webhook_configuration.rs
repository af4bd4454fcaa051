//! The webhook configurations of an operator, as its runtime makes them when it starts.

use kopf_core::admission::configuration::{
    Address, ClientConfig, ConfigurationError, ConfiguredWebhook as Configured, ReviewedKinds,
    SYSTEM_NAMESPACES, WebhookNamespaces, entries,
};
use kopf_core::admission::{
    ConfigurationLifetime, FailurePolicy, Operation as CoreOperation, SideEffects,
    WebhookEndpoint as CoreEndpoint, WebhookRole as CoreRole, WebhookSpec,
};
use kopf_core::handler::HandlerId;
use kopf_core::handler::filter::TextTest;
use serde_json::Value;

use super::handler::{FilterSubject, FilterTest};
use super::operator::{HandledKind, Operator};
use super::webhook::{Webhook, WebhookEndpoint, WebhookRole};
use crate::load::manifest::Operation;

/// A configuration for all webhooks of one role.
#[derive(Clone, Debug, PartialEq)]
pub struct WebhookConfiguration {
    /// The role.
    pub role: CoreRole,
    /// Its `webhooks`.
    pub entries: Vec<Value>,
}

/// The configurations with all webhooks of `operator`, complete.
///
/// # Errors
/// If two webhooks would have the same name in a configuration.
pub fn configurations(
    operator: &Operator,
) -> Result<Vec<WebhookConfiguration>, ConfigurationError> {
    let specs: Vec<_> = operator
        .kinds
        .iter()
        .flat_map(|kind| kind.webhooks.iter().map(move |it| (kind, spec(it))))
        .collect();
    let has = |role: &CoreRole| specs.iter().any(|(_, spec)| spec.role == *role);
    let roles = CoreRole::ALL.into_iter().filter(has);
    roles
        .map(|role| configuration(operator, role, &specs))
        .collect()
}

fn configuration(
    operator: &Operator,
    role: CoreRole,
    specs: &[(&HandledKind, WebhookSpec)],
) -> Result<WebhookConfiguration, ConfigurationError> {
    let webhooks: Vec<_> = specs
        .iter()
        .map(|(kind, spec)| Configured {
            kinds: match kind.selector() {
                // Only the running operator knows the resources.
                Some(selector) => ReviewedKinds::Selected {
                    selector,
                    resources: Vec::new(),
                },
                None => ReviewedKinds::One {
                    group: &kind.group,
                    version: &kind.version,
                    plural: &kind.plural,
                },
            },
            spec,
        })
        .collect();
    let service = operator.webhook_service();
    let client = ClientConfig {
        address: Address::Service {
            namespace: operator.name.clone(),
            name: service,
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
    )?;
    Ok(WebhookConfiguration { role, entries })
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
        let tests = filter.expected.try_map(&mut |test| match test {
            FilterTest::Present => Some(TextTest::Present),
            FilterTest::Absent => Some(TextTest::Absent),
            FilterTest::Equals(value) => {
                let value = value.as_str().unwrap_or_default();
                Some(TextTest::Equals(value.to_owned()))
            }
            // The operator decides, not the API server.
            FilterTest::Predicate(_) => None,
        });
        spec.filters
            .labels
            .extend(tests.map(|tests| (key.clone(), tests)));
    }
    spec
}
