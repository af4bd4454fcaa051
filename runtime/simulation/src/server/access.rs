//! Permissions: every user has all of them, but for those that rules take away.

use std::sync::Arc;

use super::answer::Failure;
use super::kind::{KindDefinition, KindId};
use super::request::{ApiRequest, Endpoint};

/// Actions on a kind that a user may not perform.
#[derive(Debug, Clone)]
pub struct AccessRule {
    /// The user.
    pub user: Arc<str>,
    /// The kind.
    pub kind: KindId,
    /// The actions, as `get`, `list`, `watch`, `create`, `update`, `patch` and `delete`.
    pub verbs: Vec<&'static str>,
    /// The endpoint.
    pub endpoint: Endpoint,
}

/// An action that is checked.
pub(crate) struct CheckedAccess<'a> {
    pub(crate) user: &'a str,
    pub(crate) kind: KindId,
    pub(crate) verb: &'static str,
    pub(crate) endpoint: Endpoint,
    pub(crate) namespace: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
}

// === impl AccessRule ===

impl AccessRule {
    fn forbids(&self, access: &CheckedAccess<'_>) -> bool {
        *self.user == *access.user
            && self.kind == access.kind
            && self.endpoint == access.endpoint
            && self.verbs.contains(&access.verb)
    }
}

// === impl CheckedAccess ===

impl<'a> CheckedAccess<'a> {
    pub(crate) fn of(request: &'a ApiRequest) -> Self {
        Self {
            user: &request.user,
            kind: request.kind,
            verb: request.verb.name(),
            endpoint: request.verb.endpoint(),
            namespace: request.namespace.as_deref(),
            name: request.verb.object_name(),
        }
    }

    pub(crate) fn check(
        &self,
        rules: &[AccessRule],
        definition: &KindDefinition,
    ) -> Result<(), Failure> {
        if !rules.iter().any(|rule| rule.forbids(self)) {
            return Ok(());
        }
        let name = self.name.unwrap_or_default();
        let quoted = match self.name {
            Some(name) => format!(" \"{name}\""),
            None => String::new(),
        };
        let suffix = match self.endpoint {
            Endpoint::Object => "",
            Endpoint::Status => "/status",
        };
        let place = match self.namespace {
            Some(namespace) => format!("in the namespace \"{namespace}\""),
            None => "at the cluster scope".to_owned(),
        };
        let KindDefinition { plural, group, .. } = definition;
        let message = format!(
            "{}{quoted} is forbidden: User \"{}\" cannot {} resource \"{plural}{suffix}\" in API \
             group \"{group}\" {place}",
            definition.resource_name(),
            self.user,
            self.verb,
        );
        Err(Failure::new(403, "Forbidden", message).about(definition, name))
    }
}
