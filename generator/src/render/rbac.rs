//! `deploy/base/rbac.yaml`: the permissions of the runtime, each verb with its reason.

use super::layout::wrap;
use super::object_names::{ObjectNames, ObjectPlace};
use crate::model::operator::Operator;
use crate::model::rbac::RbacRule;
use crate::model::roles::{RbacRole, RolePlace, roles};
use crate::plan::YAML_BANNER;
use crate::yaml::{Yaml, YamlDocuments, YamlItem, YamlMap};

/// The width of a comment in a list of rules.
const COMMENT_WIDTH: usize = 96;

/// The end of the name of the roles in the served namespaces.
pub(super) const HANDLERS_SUFFIX: &str = "-handlers";

/// The end of the name of the Service of the webhooks, and of the Secret with their certificates.
pub(super) const WEBHOOK_SUFFIX: &str = "-webhook";

const API_GROUP: &str = "rbac.authorization.k8s.io";

/// A role, its binding, and where both are.
pub(super) struct RoleObjects<'a> {
    pub(super) names: ObjectNames<'a>,
    pub(super) name: Yaml,
    /// The namespace; in the cluster, the role counts everywhere.
    pub(super) place: ObjectPlace,
    pub(super) rules: Vec<YamlItem>,
}

/// The permissions of `operator`.
pub(super) fn objects(operator: &Operator) -> YamlDocuments {
    let names = ObjectNames::Manifest(operator);
    let banner: &[&str] = &[
        YAML_BANNER,
        "These rules cover the runtime. Grant what your handlers request themselves in a file of your own.",
    ];
    let mut documents: Vec<(&[&str], YamlMap)> = vec![(banner, service_account(names))];
    for role in roles(operator) {
        let role = RoleObjects::new(names, &role);
        let binding = role.binding();
        documents.push((&[], role.into_role()));
        documents.push((&[], binding));
    }
    documents.into_iter().collect()
}

/// The ServiceAccount of an operator.
fn service_account(names: ObjectNames<'_>) -> YamlMap {
    YamlMap::object("v1", "ServiceAccount").with(
        "metadata",
        names.metadata(names.account(), ObjectPlace::Own),
    )
}

/// A rule, with the reasons above it.
pub(super) fn rule(names: ObjectNames<'_>, rule: &RbacRule) -> YamlItem {
    let verbs = rule.verbs.iter().map(|grant| grant.verb);
    let groups = rule.groups.iter().cloned().map(Yaml::Quoted).collect();
    let mut map = YamlMap::default()
        .with("apiGroups", Yaml::Flow(groups))
        .with("resources", Yaml::flow(&rule.resources));
    if !rule.names.is_empty() {
        let objects = rule.names.iter();
        let objects = objects.map(|name| object_name(names, rule, name)).collect();
        map = map.with("resourceNames", Yaml::Flow(objects));
    }
    YamlItem::new(reasons(rule), map.with("verbs", Yaml::flow(verbs)))
}

/// The name of an object of the runtime, which each release of a chart names otherwise.
fn object_name(names: ObjectNames<'_>, rule: &RbacRule, name: &str) -> Yaml {
    let operator = names.operator();
    let lease = operator
        .leader_election
        .as_ref()
        .map(|it| it.lease.as_str());
    match rule.resources.first().map(String::as_str) {
        Some("mutatingwebhookconfigurations") if name == operator.admission.name => {
            names.configuration()
        }
        Some("secrets") if name == operator.webhook_service() => names.suffixed(WEBHOOK_SUFFIX),
        Some("leases") if Some(name) == lease => names.lease(name),
        _ => name.into(),
    }
}

/// The reasons of a rule; verbs with the same reason share a line.
fn reasons(rule: &RbacRule) -> Vec<String> {
    let same_reason = rule.verbs.chunk_by(|one, other| one.reason == other.reason);
    let lines = same_reason.flat_map(|grants| {
        let verbs: Vec<&str> = grants.iter().map(|grant| grant.verb).collect();
        let reason = grants.first().map_or("", |grant| &grant.reason);
        wrap(&format!("{}: {reason}", verbs.join(", ")), COMMENT_WIDTH)
    });
    lines.collect()
}

// === impl RoleObjects ===

impl<'a> RoleObjects<'a> {
    fn new(names: ObjectNames<'a>, role: &RbacRole<'_>) -> Self {
        let (name, place) = match role.place {
            RolePlace::Cluster => (names.in_cluster(""), ObjectPlace::Cluster),
            RolePlace::Served(namespace) => (
                names.in_cluster(HANDLERS_SUFFIX),
                ObjectPlace::In(namespace.into()),
            ),
            RolePlace::Own => (names.name(), ObjectPlace::Own),
        };
        Self {
            names,
            name,
            place,
            rules: role.rules.iter().map(|it| rule(names, it)).collect(),
        }
    }

    pub(super) fn binding(&self) -> YamlMap {
        let (kind, role) = match self.place {
            ObjectPlace::Cluster => ("ClusterRoleBinding", "ClusterRole"),
            ObjectPlace::Own | ObjectPlace::In(_) => ("RoleBinding", "Role"),
        };
        let subject = YamlMap::default()
            .with("kind", "ServiceAccount")
            .with("name", self.names.account())
            .with("namespace", self.names.namespace());
        YamlMap::object(&format!("{API_GROUP}/v1"), kind)
            .with("metadata", self.metadata())
            .with(
                "roleRef",
                YamlMap::default()
                    .with("apiGroup", API_GROUP)
                    .with("kind", role)
                    .with("name", self.name.clone()),
            )
            .with("subjects", Yaml::list([subject]))
    }

    pub(super) fn into_role(self) -> YamlMap {
        let kind = match self.place {
            ObjectPlace::Cluster => "ClusterRole",
            ObjectPlace::Own | ObjectPlace::In(_) => "Role",
        };
        YamlMap::object(&format!("{API_GROUP}/v1"), kind)
            .with("metadata", self.metadata())
            .with("rules", self.rules)
    }

    fn metadata(&self) -> YamlMap {
        self.names.metadata(self.name.clone(), self.place.clone())
    }
}
