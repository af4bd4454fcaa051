//! The RBAC rules that an operator needs, each verb with its reason.

mod related;

use kopf_core::selection::{ResourceName, Selector};

use super::coordination::{LeaderElection, Membership, Peering};
use super::handler::Handler;
use super::operator::{HandledKind, KindOrigin, Operator};
use super::status_subresource::StatusSubresource;
use crate::load::crd::Scope;
use crate::load::manifest::ConfigurationOwner;

/// All groups, or all resources with their subresources.
const ALL: &str = "*";

/// The scope in which a rule is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleScope {
    /// The whole cluster.
    Cluster,
    /// Each namespace that the operator watches.
    ServedNamespaces,
    /// The namespace of the operator.
    OwnNamespace,
}

/// One rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbacRule {
    /// The scope in which it is granted.
    pub scope: RuleScope,
    /// The API groups, empty for the core group.
    pub groups: Vec<String>,
    /// The resources or subresources, in plural.
    pub resources: Vec<String>,
    /// The names of the objects; all if empty.
    pub names: Vec<String>,
    /// The verbs, each with the reason for it.
    pub verbs: Vec<Grant>,
}

/// A verb and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The verb.
    pub verb: &'static str,
    /// The reason.
    pub reason: String,
}

/// The rules that the runtime needs for the handlers of `operator`. Requests that the handler
/// functions send themselves are not covered.
#[must_use]
pub fn rules(operator: &Operator) -> Vec<RbacRule> {
    let watched = operator.kinds.iter().filter(|kind| kind.is_watched());
    let mut rules: Vec<RbacRule> = watched
        .flat_map(|kind| kind_rules(operator, kind))
        .collect();
    rules.extend(related::rules(operator));
    rules.extend(event_rules(operator));
    rules.extend(definition_rule(operator));
    rules.extend(namespaces_rule(operator));
    let membership = operator.peering.membership();
    rules.extend(membership.map(|it| peering_rule(operator, it)));
    rules.extend(peering_creation_rule(operator));
    if operator.has_webhooks() && operator.admission.configuration == ConfigurationOwner::Managed {
        rules.push(configuration_rule(operator));
    }
    rules.extend(own_rules(operator));
    rules
}

/// The rules for the namespace of the operator: its lease and its certificates.
fn own_rules(operator: &Operator) -> Vec<RbacRule> {
    let election = operator.leader_election.as_ref();
    let mut rules = election.map(lease_rules).unwrap_or_default();
    if operator.has_webhooks() {
        rules.push(certificate_rule(operator));
    }
    rules
}

/// Kubernetes events about an object are in its namespace, those about cluster-scoped objects in
/// the namespace of the operator.
fn event_rules(operator: &Operator) -> Vec<RbacRule> {
    let writes = |object_scope: Scope| {
        let is_of = |kind: &&HandledKind| kind.scope == object_scope || kind.selector().is_some();
        let kinds = operator.kinds.iter().filter(is_of);
        let mut handlers = kinds.flat_map(|kind| &kind.handlers);
        handlers.any(Handler::writes)
    };
    let rule = |scope| RbacRule {
        scope,
        groups: vec![String::new()],
        resources: vec!["events".to_owned()],
        names: Vec::new(),
        verbs: vec![
            Grant {
                verb: "create",
                reason: "posts Kubernetes events about objects".to_owned(),
            },
            Grant {
                verb: "patch",
                reason: "counts repeated events".to_owned(),
            },
        ],
    };
    let scopes = match operator.fixed_namespaces() {
        Some(_) => [
            writes(Scope::Namespaced).then_some(RuleScope::ServedNamespaces),
            writes(Scope::Cluster).then_some(RuleScope::OwnNamespace),
        ],
        None => {
            let any = writes(Scope::Namespaced) || writes(Scope::Cluster);
            [any.then_some(RuleScope::Cluster), None]
        }
    };
    scopes.into_iter().flatten().map(rule).collect()
}

/// Lets the operator notice a CRD that is installed later.
fn definition_rule(operator: &Operator) -> Option<RbacRule> {
    let watched = operator.kinds.iter().filter(|kind| kind.is_watched());
    let mut kinds = operator.kinds.iter();
    if kinds.any(|kind| kind.selector().is_some()) {
        return Some(RbacRule {
            scope: RuleScope::Cluster,
            groups: vec!["apiextensions.k8s.io".to_owned()],
            resources: vec!["customresourcedefinitions".to_owned()],
            names: Vec::new(),
            verbs: grants(
                &["list", "watch"],
                "notices when kinds that match a selection are installed or removed",
            ),
        });
    }
    let custom = watched.filter(|kind| matches!(kind.origin, KindOrigin::Custom(_)));
    let names: Vec<String> = custom
        .map(|kind| format!("{}.{}", kind.plural, kind.group))
        .collect();
    (!names.is_empty()).then(|| RbacRule {
        scope: RuleScope::Cluster,
        groups: vec!["apiextensions.k8s.io".to_owned()],
        resources: vec!["customresourcedefinitions".to_owned()],
        names,
        verbs: grants(
            &["list", "watch"],
            "notices when a CRD is installed after the operator has started",
        ),
    })
}

/// Namespace patterns need a watch on namespaces.
fn namespaces_rule(operator: &Operator) -> Option<RbacRule> {
    let follows = !operator.namespaces.is_empty()
        && operator.fixed_namespaces().is_none()
        && operator.scans_namespaces();
    follows.then(|| RbacRule {
        scope: RuleScope::Cluster,
        groups: vec![String::new()],
        resources: vec!["namespaces".to_owned()],
        names: Vec::new(),
        verbs: grants(
            &["list", "watch"],
            "finds the namespaces that match the patterns",
        ),
    })
}

fn configuration_rule(operator: &Operator) -> RbacRule {
    RbacRule {
        scope: RuleScope::Cluster,
        groups: vec!["admissionregistration.k8s.io".to_owned()],
        resources: [
            "mutatingwebhookconfigurations",
            "validatingwebhookconfigurations",
        ]
        .map(str::to_owned)
        .to_vec(),
        names: vec![operator.admission.name.clone()],
        verbs: grants(
            &["get", "update"],
            "configures the webhooks while the operator runs",
        ),
    }
}

fn certificate_rule(operator: &Operator) -> RbacRule {
    let verbs = match operator.admission.configuration {
        ConfigurationOwner::Managed => grants(
            &["get", "update"],
            "certificates of the webhooks, shared by all replicas",
        ),
        ConfigurationOwner::CertManager => grants(&["get"], "certificates of the webhooks"),
    };
    RbacRule {
        scope: RuleScope::OwnNamespace,
        groups: vec![String::new()],
        resources: vec!["secrets".to_owned()],
        names: vec![operator.webhook_service()],
        verbs,
    }
}

fn peering_rule(operator: &Operator, membership: &Membership) -> RbacRule {
    let is_fixed = membership.clusterwide || operator.fixed_namespaces().is_some();
    let reason = match (&membership.name, is_fixed) {
        (Some(_), true) => "peering with other operators",
        (None, true) => "peering with other operators, if it exists",
        (Some(_), false) => "peering with other operators, with -A or -n",
        (None, false) => "peering with other operators, if it exists, with -A or -n",
    };
    let (scope, resources) = peering_kinds(operator, membership);
    RbacRule {
        scope,
        groups: ["kopf.dev", "zalando.org"].map(str::to_owned).to_vec(),
        resources: resources.iter().map(|it| (*it).to_owned()).collect(),
        names: vec![membership.peering().to_owned()],
        verbs: grants(&["list", "watch", "patch"], reason),
    }
}

/// RBAC cannot restrict `create` to a name.
fn peering_creation_rule(operator: &Operator) -> Option<RbacRule> {
    let Peering::Mandatory(membership) = &operator.peering else {
        return None;
    };
    let (scope, resources) = peering_kinds(operator, membership);
    Some(RbacRule {
        scope,
        groups: vec!["kopf.dev".to_owned()],
        resources: resources.iter().map(|it| (*it).to_owned()).collect(),
        names: Vec::new(),
        verbs: grants(&["create"], "the first operator creates the peering"),
    })
}

/// The kinds of peerings that the operator uses, and where.
fn peering_kinds(
    operator: &Operator,
    membership: &Membership,
) -> (RuleScope, &'static [&'static str]) {
    if membership.clusterwide {
        (RuleScope::Cluster, &["clusterkopfpeerings"])
    } else if operator.fixed_namespaces().is_some() {
        (RuleScope::ServedNamespaces, &["kopfpeerings"])
    } else {
        (RuleScope::Cluster, &["clusterkopfpeerings", "kopfpeerings"])
    }
}

fn lease_rules(election: &LeaderElection) -> Vec<RbacRule> {
    let rule = |names: Vec<String>, verbs: &[&'static str], reason: &str| RbacRule {
        scope: RuleScope::OwnNamespace,
        groups: vec!["coordination.k8s.io".to_owned()],
        resources: vec!["leases".to_owned()],
        names,
        verbs: grants(verbs, reason),
    };
    vec![
        // RBAC cannot restrict `create` to a name.
        rule(
            Vec::new(),
            &["create"],
            "the first leader creates the lease",
        ),
        rule(
            vec![election.lease.clone()],
            &["get", "list", "watch", "patch"],
            "replicas elect their leader",
        ),
    ]
}

fn grants(verbs: &[&'static str], reason: &str) -> Vec<Grant> {
    let grant = |verb: &&'static str| Grant {
        verb,
        reason: reason.to_owned(),
    };
    verbs.iter().map(grant).collect()
}

fn kind_rules(operator: &Operator, kind: &HandledKind) -> Vec<RbacRule> {
    let is_fixed = operator.fixed_namespaces().is_some();
    let scope = match kind.scope {
        // A selection may match cluster-scoped kinds.
        Scope::Namespaced if is_fixed && kind.selector().is_none() => RuleScope::ServedNamespaces,
        Scope::Namespaced | Scope::Cluster => RuleScope::Cluster,
    };
    let (group, plural) = match kind.selector() {
        Some(selector) => granted(selector),
        None => (kind.group.clone(), kind.plural.clone()),
    };
    let mut verbs = read_grants(kind, &names(kind, &|_| true));
    let writing = names(kind, &Handler::writes);
    let mut rules = Vec::new();
    if !writing.is_empty() {
        verbs.push(Grant {
            verb: "patch",
            reason: write_reasons(kind),
        });
        // `*` includes all subresources.
        if kind.status == StatusSubresource::Present && plural != ALL {
            rules.push(RbacRule {
                scope,
                groups: vec![group.clone()],
                resources: vec![format!("{plural}/status")],
                names: Vec::new(),
                verbs: vec![Grant {
                    verb: "patch",
                    reason: format!("results of {writing}"),
                }],
            });
        }
    }
    // Where the API server checks it, nothing may block the deletion of an owner without this.
    if !writing.is_empty() && plural != ALL {
        rules.push(RbacRule {
            scope,
            groups: vec![group.clone()],
            resources: vec![format!("{plural}/finalizers")],
            names: Vec::new(),
            verbs: vec![Grant {
                verb: "update",
                reason: "children whose deletion their owner waits for".to_owned(),
            }],
        });
    }
    rules.insert(
        0,
        RbacRule {
            scope,
            groups: vec![group],
            resources: vec![plural],
            names: Vec::new(),
            verbs,
        },
    );
    rules
}

/// The ids of those handlers of a kind that match.
fn names(kind: &HandledKind, matches: &dyn Fn(&Handler) -> bool) -> String {
    let handlers = kind.handlers.iter().filter(|handler| matches(handler));
    let names: Vec<_> = handlers.map(Handler::full_id).collect();
    names.join(", ")
}

/// What the runtime writes to objects of a kind, and for which handlers.
fn write_reasons(kind: &HandledKind) -> String {
    let holds_deletion = |handler: &Handler| {
        let is_owner = kind.has_unreachable_children() && handler.is_reconcile();
        handler.holds_deletion() || is_owner
    };
    let reasons: Vec<String> = [
        ("progress", names(kind, &Handler::keeps_progress)),
        (
            "failures and first success",
            names(kind, &Handler::is_reconcile),
        ),
        ("finalizer", names(kind, &holds_deletion)),
        ("changes", names(kind, &Handler::is_of_children)),
    ]
    .into_iter()
    .filter(|(_, handlers)| !handlers.is_empty())
    .map(|(what, handlers)| format!("{what} of {handlers}"))
    .collect();
    reasons.join("; ")
}

/// The verbs to list and watch a kind, for the handlers of these names.
fn read_grants(kind: &HandledKind, handlers: &str) -> Vec<Grant> {
    let only_indexed = !kind.handlers.is_empty() && kind.indices().count() == kind.handlers.len();
    let only_read = !kind.handlers.iter().any(Handler::writes);
    if only_indexed {
        grants(&["list", "watch"], &format!("fills {handlers}"))
    } else if only_read && !handlers.is_empty() {
        // An object is read again only if a write to it conflicts with another client.
        grants(&["list", "watch"], &format!("needed by {handlers}"))
    } else if handlers.is_empty() {
        grants(&["get", "list", "watch"], "named in kopf.yaml")
    } else {
        grants(&["get", "list", "watch"], &format!("needed by {handlers}"))
    }
}

/// The group and the plural of a selection, or `*` if only the cluster knows them.
fn granted(selector: &Selector) -> (String, String) {
    let plural = match selector.name() {
        ResourceName::Plural(plural) => plural,
        _ => ALL,
    };
    (
        selector.group().unwrap_or(ALL).to_owned(),
        plural.to_owned(),
    )
}
