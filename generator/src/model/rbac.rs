//! The permissions that an operator needs, each with the reason for it.

use super::handler::Handler;
use super::kind::Status;
use super::operator::{HandledKind, Operator};
use super::peers::{LeaderElection, Membership};
use crate::load::crd::Scope;
use crate::load::manifest::Configuration;

/// One rule of a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The API groups, empty for the core group.
    pub groups: Vec<String>,
    /// The resources or subresources, in plural.
    pub resources: Vec<String>,
    /// The names of the only objects that it is about; all if empty.
    pub names: Vec<String>,
    /// The verbs, each with the reason for it.
    pub verbs: Vec<Grant>,
}

/// A verb and why it is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The verb.
    pub verb: &'static str,
    /// Why.
    pub reason: String,
}

/// The least that the handlers of `operator` need; what their functions do beyond that is not known here.
#[must_use]
pub fn rules(operator: &Operator) -> Vec<Rule> {
    let watched = operator.kinds.iter().filter(|kind| kind.is_watched());
    let mut rules: Vec<Rule> = watched.flat_map(kind_rules).collect();
    if operator
        .kinds
        .iter()
        .any(|kind| kind.handlers.iter().any(Handler::writes))
    {
        rules.push(Rule {
            groups: vec![String::new()],
            resources: vec!["events".to_owned()],
            names: Vec::new(),
            verbs: vec![Grant {
                verb: "create",
                reason: "what happens to an object is reported on it".to_owned(),
            }],
        });
    }
    rules.extend(operator.peering.membership().map(peering_rule));
    if operator.has_webhooks() && operator.admission.configuration == Configuration::Managed {
        rules.push(configuration_rule(operator));
    }
    rules
}

/// What is needed in the namespace of the operator only: its lease, and its certificates.
#[must_use]
pub fn own_rules(operator: &Operator) -> Vec<Rule> {
    let election = operator.leader_election.as_ref();
    let mut rules = election.map(lease_rules).unwrap_or_default();
    if operator.has_webhooks() {
        rules.push(certificate_rule(operator));
    }
    rules
}

fn configuration_rule(operator: &Operator) -> Rule {
    Rule {
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
            "webhooks are configured while they are served",
        ),
    }
}

fn certificate_rule(operator: &Operator) -> Rule {
    let verbs = match operator.admission.configuration {
        Configuration::Managed => grants(
            &["get", "update"],
            "certificates of the webhooks, shared by all replicas",
        ),
        Configuration::CertManager => grants(&["get"], "certificates of the webhooks"),
    };
    Rule {
        groups: vec![String::new()],
        resources: vec!["secrets".to_owned()],
        names: vec![operator.webhook_service()],
        verbs,
    }
}

fn peering_rule(membership: &Membership) -> Rule {
    let reason = if membership.name.is_some() {
        "other operators are met here, with -A or -n"
    } else {
        "other operators are met here, if it exists, with -A or -n"
    };
    Rule {
        groups: ["kopf.dev", "zalando.org"].map(str::to_owned).to_vec(),
        resources: ["clusterkopfpeerings", "kopfpeerings"]
            .map(str::to_owned)
            .to_vec(),
        names: vec![membership.peering().to_owned()],
        verbs: grants(&["list", "watch", "patch"], reason),
    }
}

fn lease_rules(election: &LeaderElection) -> Vec<Rule> {
    let rule = |names: Vec<String>, verbs: &[&'static str], reason: &str| Rule {
        groups: vec!["coordination.k8s.io".to_owned()],
        resources: vec!["leases".to_owned()],
        names,
        verbs: grants(verbs, reason),
    };
    vec![
        // What does not exist yet has no name that a rule could be about.
        rule(Vec::new(), &["create"], "the first leader makes the lease"),
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

/// Whether all rules are about objects in namespaces, so that roles in namespaces would do.
#[must_use]
pub fn fits_namespaces(operator: &Operator) -> bool {
    operator
        .kinds
        .iter()
        .all(|kind| kind.scope == Scope::Namespaced)
}

fn kind_rules(kind: &HandledKind) -> Vec<Rule> {
    let names = |matches: &dyn Fn(&Handler) -> bool| {
        let names: Vec<_> = kind
            .handlers
            .iter()
            .filter(|handler| matches(handler))
            .map(Handler::full_id)
            .collect();
        names.join(", ")
    };
    let all = names(&|_| true);
    let seen_by = if all.is_empty() {
        "it is in kopf.yaml".to_owned()
    } else {
        format!("seen by {all}")
    };
    let only_indexed = !kind.handlers.is_empty() && kind.indices().count() == kind.handlers.len();
    let reading: &[&'static str] = if only_indexed {
        &["list", "watch"]
    } else {
        &["get", "list", "watch"]
    };
    let seen_by = if only_indexed {
        format!("found in {all}")
    } else {
        seen_by
    };
    let mut verbs = grants(reading, &seen_by);
    let writing = names(&Handler::writes);
    let mut rules = Vec::new();
    if !writing.is_empty() {
        let reasons: Vec<String> = [
            ("progress", names(&Handler::keeps_progress)),
            ("finalizer", names(&Handler::holds_deletion)),
        ]
        .into_iter()
        .filter(|(_, handlers)| !handlers.is_empty())
        .map(|(what, handlers)| format!("{what} of {handlers}"))
        .collect();
        verbs.push(Grant {
            verb: "patch",
            reason: reasons.join("; "),
        });
        if kind.status == Status::Present {
            rules.push(Rule {
                groups: vec![kind.group.clone()],
                resources: vec![format!("{}/status", kind.plural)],
                names: Vec::new(),
                verbs: vec![Grant {
                    verb: "patch",
                    reason: format!("results of {writing}"),
                }],
            });
        }
    }
    rules.insert(
        0,
        Rule {
            groups: vec![kind.group.clone()],
            resources: vec![kind.plural.clone()],
            names: Vec::new(),
            verbs,
        },
    );
    rules
}
