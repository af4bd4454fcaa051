//! The webhook configuration objects, by which the API server knows the webhooks.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde_json::{Map, Value, json};

use super::{
    ConfigurationLifetime, FailurePolicy, Operation, SideEffects, WebhookRole, WebhookSpec,
};
use crate::{
    handler::watch_selectors::{LabelRequirement, label_requirements},
    scope::NamespacePattern,
    selection::{DiscoveredResource, Selector},
};

/// The label of a namespace that holds its name.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// Namespaces without which a cluster does not work.
pub const SYSTEM_NAMESPACES: [&str; 3] = ["kube-node-lease", "kube-public", "kube-system"];

/// A webhook with the kinds that it reviews.
#[derive(Clone, Debug)]
pub struct ConfiguredWebhook<'a> {
    /// The kinds.
    pub kinds: ReviewedKinds<'a>,
    /// The webhook itself.
    pub spec: &'a WebhookSpec,
}

/// The kinds whose objects a webhook reviews.
#[derive(Clone, Debug)]
pub enum ReviewedKinds<'a> {
    /// One kind, by its name.
    One {
        /// The API group of the kind; empty for the core group.
        group: &'a str,
        /// The version of its objects.
        version: &'a str,
        /// Its plural.
        plural: &'a str,
    },
    /// The kinds that match a selector.
    Selected {
        /// The selector.
        selector: &'a Selector,
        /// The resources that match it at present.
        resources: Vec<Arc<DiscoveredResource>>,
    },
}

/// The client configuration of the API server for webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// The address; the paths of webhooks are appended.
    pub address: Address,
    /// The trusted authorities, as PEM; those of the API server's machine if none.
    pub ca_bundle: Option<String>,
}

/// The address of the webhook server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A URL.
    Url(String),
    /// A Service of the cluster.
    Service {
        /// The namespace of the Service.
        namespace: String,
        /// The name of the Service.
        name: String,
        /// The port of the Service.
        port: u16,
        /// The prefix of the paths of webhooks.
        path: String,
    },
}

/// The namespaces whose objects are reviewed; cluster-scoped objects always are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookNamespaces {
    /// All but these.
    AllBut(Vec<String>),
    /// These.
    Only(Vec<String>),
    /// Those that match one of the patterns, which a namespace selector cannot express, and are
    /// not excluded.
    Matching {
        /// The patterns.
        patterns: Vec<NamespacePattern>,
        /// The excluded namespaces.
        but: Vec<String>,
    },
}

/// The reason why webhooks cannot be configured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigurationError {
    /// The API server requires at least two dots in the name of a webhook.
    #[error(
        "`{0}` cannot name a webhook configuration: it needs a dot, as in `auto.kopf.dev`, and lower-case letters"
    )]
    Configuration(String),
    /// Two webhooks would have the same name.
    #[error("two webhooks would both be named `{0}`: give one of them another id")]
    Twice(String),
}

// === impl ConfiguredWebhook ===

impl ConfiguredWebhook<'_> {
    /// The path under which it is served: `/validate/kopf.dev/kopfexamples/check_size`, or
    /// `/validate/selections/category.toys/check_size`.
    #[must_use]
    pub fn path(&self) -> String {
        let kinds = match &self.kinds {
            ReviewedKinds::One {
                group: "", plural, ..
            } => format!("core/{plural}"),
            ReviewedKinds::One { group, plural, .. } => format!("{group}/{plural}"),
            ReviewedKinds::Selected { selector, .. } => {
                format!("selections/{}", quoted(&selection_name(selector)))
            }
        };
        let id = quoted(self.spec.id.as_str());
        format!("/{}/{kinds}/{id}", self.spec.role.path())
    }

    /// The requests that the API server sends to it; none if its selection matches no kind.
    fn rules(&self) -> Vec<Value> {
        match &self.kinds {
            ReviewedKinds::One {
                group,
                version,
                plural,
            } => vec![self.rule(group, version, plural)],
            ReviewedKinds::Selected { resources, .. } => resources
                .iter()
                .map(|it| self.rule(&it.group, &it.version, &it.plural))
                .collect(),
        }
    }

    fn rule(&self, group: &str, version: &str, plural: &str) -> Value {
        let operations: Vec<&str> = match self.spec.operations.as_slice() {
            [] => vec!["*"],
            some => some.iter().copied().map(Operation::as_str).collect(),
        };
        json!({
            "apiGroups": [group],
            "apiVersions": [version],
            "resources": [self.spec.endpoint.resource(plural)],
            "operations": operations,
            "scope": "*",
        })
    }

    /// Its kinds as a part of the name of a webhook.
    fn kinds_name(&self) -> String {
        match &self.kinds {
            ReviewedKinds::One {
                group: "", plural, ..
            } => (*plural).to_owned(),
            ReviewedKinds::One { group, plural, .. } => format!("{plural}.{group}"),
            ReviewedKinds::Selected { selector, .. } => label(&selection_name(selector)),
        }
    }

    fn is_configured(&self, role: WebhookRole) -> bool {
        let matches_none = matches!(
            &self.kinds,
            ReviewedKinds::Selected { resources, .. } if resources.is_empty()
        );
        self.spec.role == role && !matches_none
    }
}

/// A selector as text, which is the same in all replicas: `category.toys.group.kopf.dev`.
fn selection_name(selector: &Selector) -> String {
    let (sort, name) = selector.name().parts();
    let name = name.map_or_else(|| sort.to_owned(), |name| format!("{sort}.{name}"));
    let group = selector.group().map(|group| match group {
        "" => "group.core".to_owned(),
        group => format!("group.{group}"),
    });
    let version = selector
        .version()
        .map(|version| format!("version.{version}"));
    let parts = [Some(name), group, version];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(".")
}

// === impl ClientConfig ===

impl ClientConfig {
    fn to_json(&self, path: &str) -> Value {
        let mut config = match &self.address {
            Address::Url(url) => json!({"url": format!("{}{path}", url.trim_end_matches('/'))}),
            Address::Service {
                namespace,
                name,
                port,
                path: prefix,
            } => json!({"service": {
                "namespace": namespace,
                "name": name,
                "port": port,
                "path": format!("{}{path}", prefix.trim_end_matches('/')),
            }}),
        };
        if let Some(bundle) = &self.ca_bundle {
            use base64::{Engine as _, engine::general_purpose::STANDARD};
            config["caBundle"] = STANDARD.encode(bundle).into();
        }
        config
    }
}

// === impl WebhookNamespaces ===

impl WebhookNamespaces {
    /// Whether objects of this namespace are reviewed.
    #[must_use]
    pub fn includes(&self, namespace: &str) -> bool {
        match self {
            Self::AllBut(names) => !names.iter().any(|name| name == namespace),
            Self::Only(names) => names.iter().any(|name| name == namespace),
            Self::Matching { patterns, but } => {
                patterns.iter().any(|pattern| pattern.matches(namespace))
                    && !but.iter().any(|name| name == namespace)
            }
        }
    }

    fn to_json(&self) -> Value {
        let (operator, names) = match self {
            Self::AllBut(names) | Self::Matching { but: names, .. } => ("NotIn", names),
            Self::Only(names) => ("In", names),
        };
        json!({"matchExpressions": [{"key": NAMESPACE_NAME, "operator": operator, "values": names}]})
    }
}

/// The names of webhooks in the configuration `name`, in their order: the id and that name, with
/// the kind in between where kinds share an id.
///
/// # Errors
/// If the webhooks cannot be named.
pub fn names(
    name: &str,
    webhooks: &[ConfiguredWebhook<'_>],
) -> Result<Vec<String>, ConfigurationError> {
    if !is_domain(name) {
        return Err(ConfigurationError::Configuration(name.to_owned()));
    }
    let short: Vec<String> = webhooks
        .iter()
        .map(|webhook| format!("{}.{name}", label(webhook.spec.id.as_str())))
        .collect();
    let mut names: Vec<String> = Vec::new();
    for (webhook, short_name) in webhooks.iter().zip(&short) {
        let shared = short.iter().filter(|other| *other == short_name).count() > 1;
        let full = if shared {
            let id = label(webhook.spec.id.as_str());
            format!("{id}.{}.{name}", webhook.kinds_name())
        } else {
            short_name.clone()
        };
        if names.contains(&full) {
            return Err(ConfigurationError::Twice(full));
        }
        names.push(full);
    }
    Ok(names)
}

/// The entries of the configuration of one role, with every default written out. A webhook on a
/// selection that matches no kind has none.
///
/// # Errors
/// If the webhooks cannot be named.
pub fn entries(
    role: WebhookRole,
    name: &str,
    webhooks: &[ConfiguredWebhook<'_>],
    client: &ClientConfig,
    namespaces: &WebhookNamespaces,
) -> Result<Vec<Value>, ConfigurationError> {
    let webhooks: Vec<ConfiguredWebhook<'_>> = webhooks
        .iter()
        .filter(|webhook| webhook.spec.role == role)
        .cloned()
        .collect();
    let names = names(name, &webhooks)?;
    let entry = |(webhook, name): (&ConfiguredWebhook<'_>, String)| {
        let spec = webhook.spec;
        let mut entry = json!({
            "name": name,
            "admissionReviewVersions": ["v1", "v1beta1"],
            "clientConfig": client.to_json(&webhook.path()),
            "failurePolicy": match spec.on_failure {
                FailurePolicy::Refuse => "Fail",
                FailurePolicy::Ignore => "Ignore",
            },
            "matchPolicy": "Equivalent",
            "namespaceSelector": namespaces.to_json(),
            "objectSelector": object_selector(spec),
            "rules": webhook.rules(),
            "sideEffects": match spec.side_effects {
                SideEffects::None => "None",
                SideEffects::NoneOnDryRun => "NoneOnDryRun",
            },
            "timeoutSeconds": spec.timeout.as_secs().clamp(1, 30),
        });
        if role == WebhookRole::Mutating {
            entry["reinvocationPolicy"] = "Never".into();
        }
        entry
    };
    let webhooks = webhooks.iter().zip(names);
    let configured = webhooks.filter(|(webhook, _)| webhook.is_configured(role));
    Ok(configured.map(entry).collect())
}

/// The entries that stay when no replica serves the webhooks.
#[must_use]
pub fn persistent(
    entries: &[Value],
    webhooks: &[ConfiguredWebhook<'_>],
    role: WebhookRole,
) -> Vec<Value> {
    webhooks
        .iter()
        .filter(|webhook| webhook.is_configured(role))
        .zip(entries)
        .filter(|(webhook, _)| webhook.spec.lifetime == ConfigurationLifetime::Persistent)
        .map(|(_, entry)| entry.clone())
        .collect()
}

/// Whether a configuration has the wanted entries; fields that the API server adds are ignored.
#[must_use]
pub fn is_in_sync(present: &Value, wanted: &[Value]) -> bool {
    let none = Vec::new();
    let present = present
        .get("webhooks")
        .and_then(Value::as_array)
        .unwrap_or(&none);
    let has_all = |(present, wanted): (&Value, &Value)| {
        wanted.as_object().is_some_and(|wanted| {
            wanted
                .iter()
                .all(|(key, value)| present.get(key) == Some(value))
        })
    };
    present.len() == wanted.len() && present.iter().zip(wanted).all(has_all)
}

fn object_selector(spec: &WebhookSpec) -> Value {
    let requirements: BTreeMap<String, LabelRequirement> = label_requirements(&spec.filters);
    let expressions: Vec<Value> = requirements
        .into_iter()
        .map(|(key, requirement)| match requirement {
            LabelRequirement::In(values) => json!({"key": key, "operator": "In", "values": values}),
            LabelRequirement::Exists => json!({"key": key, "operator": "Exists"}),
            LabelRequirement::Missing => json!({"key": key, "operator": "DoesNotExist"}),
        })
        .collect();
    let mut selector = Map::new();
    if !expressions.is_empty() {
        selector.insert("matchExpressions".to_owned(), expressions.into());
    }
    Value::Object(selector)
}

/// An id as a part of a DNS name.
fn label(id: &str) -> String {
    let mut label = String::new();
    for char in id.chars() {
        match char {
            'a'..='z' | '0'..='9' | '-' | '.' => label.push(char),
            'A'..='Z' => label.push(char.to_ascii_lowercase()),
            '/' => label.push('.'),
            '_' => label.push('-'),
            other => {
                for byte in other.to_string().bytes() {
                    write!(label, "{byte:02x}").expect("writing into a string never fails");
                }
            }
        }
    }
    let parts = label.split('.').map(|part| part.trim_matches('-'));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(".")
}

/// Whether a text is a DNS name of at least two parts.
fn is_domain(name: &str) -> bool {
    let is_label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .chars()
                .all(|char| char.is_ascii_lowercase() || char.is_ascii_digit() || char == '-')
    };
    name.contains('.') && name.split('.').all(is_label)
}

/// An id as a part of a URL.
fn quoted(id: &str) -> String {
    let mut path = String::new();
    for byte in id.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                path.push(char::from(byte));
            }
            _ => write!(path, "%{byte:02X}").expect("writing into a string never fails"),
        }
    }
    path
}

#[cfg(test)]
mod tests;
