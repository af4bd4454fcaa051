//! The roles of an operator: which there are, where each counts, and which rules it grants.

use super::operator::Operator;
use super::rbac::{RbacRule, RuleScope, rules};

/// A role, which the ServiceAccount of the operator is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RbacRole<'a> {
    /// Where it counts.
    pub place: RolePlace<'a>,
    /// What it grants.
    pub rules: Vec<RbacRule>,
}

/// Where a role counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolePlace<'a> {
    /// In the whole cluster.
    Cluster,
    /// In this namespace, whose objects the operator handles.
    Served(&'a str),
    /// In the namespace of the operator.
    Own,
}

/// The roles with all rules that the runtime needs.
#[must_use]
pub fn roles(operator: &Operator) -> Vec<RbacRole<'_>> {
    let rules = rules(operator);
    let at = |scope: RuleScope| -> Vec<RbacRule> {
        let rules = rules.iter().filter(|rule| rule.scope == scope);
        rules.cloned().collect()
    };
    let namespaces: Vec<&str> = operator.fixed_namespaces().into_iter().flatten().collect();
    let mut roles = Vec::new();
    let cluster_rules = at(RuleScope::Cluster);
    if !cluster_rules.is_empty() || namespaces.is_empty() {
        roles.push(RbacRole {
            place: RolePlace::Cluster,
            rules: cluster_rules,
        });
    }
    let served_rules = at(RuleScope::ServedNamespaces);
    for namespace in namespaces.iter().filter(|_| !served_rules.is_empty()) {
        roles.push(RbacRole {
            place: RolePlace::Served(namespace),
            rules: served_rules.clone(),
        });
    }
    let own_rules = at(RuleScope::OwnNamespace);
    if !own_rules.is_empty() {
        roles.push(RbacRole {
            place: RolePlace::Own,
            rules: own_rules,
        });
    }
    roles
}
