//! The purposes of the permissions of the examples, and where each is proven to be needed.

use kopf_gen::model::handler::HandlerCause;
use kopf_gen::model::operator::{HandledKind, Operator};
use kopf_tests::Permission;

use super::example::Example;

/// The purpose of a permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Purpose {
    /// Objects to which the runtime writes.
    Handled,
    /// The status of handled objects.
    Status,
    /// Children that block the deletion of handled objects.
    Finalizers,
    /// Objects of handlers for raw events.
    Observed,
    /// Objects that only fill indices.
    Indexed,
    /// Kinds that a selection matches.
    Selected,
    /// Children of handled objects.
    Child,
    /// Objects that handled objects refer to.
    Used,
    /// Kubernetes events about objects.
    Event,
    /// The definitions of the kinds of the operator.
    Definition,
    /// All definitions, for selections.
    AnyDefinition,
    /// A KopfPeering.
    Peering,
    /// A ClusterKopfPeering.
    ClusterPeering,
    /// The webhook configurations.
    WebhookConfiguration,
    /// The Secret with the certificates of webhooks.
    Certificate,
    /// Requests that handlers send, in a role that the user wrote.
    OwnRequest,
}

/// The reason for which a run of an example does not use a permission.
pub(crate) struct Unused {
    pub(crate) purpose: Purpose,
    verbs: &'static [&'static str],
    /// The only examples that may not use it; all if empty.
    examples: &'static [&'static str],
    #[expect(dead_code, reason = "for the readers of this table")]
    reason: &'static str,
    /// The test that takes it away, or needs it: a file of `tests/tests` and a function.
    pub(crate) proof: (&'static str, &'static str),
}

const CHILDREN: (&str, &str) = (
    "runtime/reconcile_permissions.rs",
    "each_permission_of_the_example_is_needed_and_named_when_it_is_missing",
);

const HERE: (&str, &str) = (
    "security/privileges.rs",
    "each_permission_is_used_or_explained_and_named_when_it_is_missing",
);

/// What the runs of examples need not use.
pub(crate) const UNUSED: &[Unused] = &[
    Unused {
        purpose: Purpose::Handled,
        verbs: &["get"],
        examples: &[],
        reason: "an object is read again if another client has changed it meanwhile",
        proof: CHILDREN,
    },
    Unused {
        purpose: Purpose::Handled,
        verbs: &["patch"],
        examples: &["19-children-reconcile", "24-nats", "25-ephemeral-volumes"],
        reason: "a complete call that has applied its children needs no record; a failed one does",
        proof: CHILDREN,
    },
    Unused {
        purpose: Purpose::Selected,
        verbs: &["get"],
        examples: &[],
        reason: "an object is read again if another client has changed it meanwhile",
        proof: CHILDREN,
    },
    Unused {
        purpose: Purpose::Status,
        verbs: &["patch"],
        examples: &[],
        reason: "only the code of a handler decides whether there is a result or a status",
        proof: HERE,
    },
    Unused {
        purpose: Purpose::Finalizers,
        verbs: &["update"],
        examples: &[],
        reason: "it is no request: a plugin of the API server checks it when a child is applied",
        proof: CHILDREN,
    },
    Unused {
        purpose: Purpose::Child,
        verbs: &["get", "patch", "create", "delete"],
        examples: &[],
        reason: "a child is read if it exists before, and deleted if its owner no longer has it",
        proof: CHILDREN,
    },
    Unused {
        purpose: Purpose::Event,
        verbs: &["create", "patch"],
        examples: &[],
        reason: "only failures and what handlers report become events; repeated ones are counted",
        proof: HERE,
    },
    Unused {
        purpose: Purpose::Definition,
        verbs: &["list", "watch"],
        examples: &[],
        reason: "definitions are read if a kind is not served yet",
        proof: HERE,
    },
    Unused {
        purpose: Purpose::ClusterPeering,
        verbs: &["list", "watch", "patch", "create"],
        examples: &[],
        reason: "an operator of one namespace uses the peering of the namespace",
        proof: HERE,
    },
    Unused {
        purpose: Purpose::Certificate,
        verbs: &["get", "update"],
        examples: &[],
        reason: "outside of a cluster, the certificates stay in memory",
        proof: (
            "runtime/admission/generated_manifests.rs",
            "the_generated_permissions_for_managed_webhooks_are_sufficient_and_necessary",
        ),
    },
    Unused {
        purpose: Purpose::OwnRequest,
        verbs: &["delete"],
        examples: &["10-builtins"],
        reason: "Pods are deleted when their timer has ended",
        proof: (
            "examples/builtins.rs",
            "pods_are_deleted_after_a_while_except_in_kube_system",
        ),
    },
    Unused {
        purpose: Purpose::OwnRequest,
        verbs: &["delete"],
        examples: &["25-ephemeral-volumes"],
        reason: "claims are deleted when no Pod needs them",
        proof: (
            "examples/ephemeral_volumes.rs",
            "a_claim_lives_as_long_as_its_pods_need_it",
        ),
    },
];

/// Permissions that another test takes away.
pub(crate) struct TakenAway {
    pub(crate) purpose: Purpose,
    /// All if empty.
    pub(crate) verbs: &'static [&'static str],
    pub(crate) proof: (&'static str, &'static str),
}

/// The permissions that other tests take away.
pub(crate) const TAKEN_AWAY_ELSEWHERE: &[TakenAway] = &[
    TakenAway {
        purpose: Purpose::Child,
        verbs: &[],
        proof: CHILDREN,
    },
    TakenAway {
        purpose: Purpose::Used,
        verbs: &[],
        proof: CHILDREN,
    },
    // Other clients must be in the way of the operator.
    TakenAway {
        purpose: Purpose::Handled,
        verbs: &["get"],
        proof: CHILDREN,
    },
    TakenAway {
        purpose: Purpose::Selected,
        verbs: &["get"],
        proof: CHILDREN,
    },
    TakenAway {
        purpose: Purpose::WebhookConfiguration,
        verbs: &[],
        proof: (
            "runtime/admission/generated_manifests.rs",
            "the_generated_permissions_for_managed_webhooks_are_sufficient_and_necessary",
        ),
    },
];

/// The reason for which a run of this example may not use a permission.
pub(crate) fn unused(
    example: &Example,
    purpose: Purpose,
    permission: &Permission,
) -> Option<&'static Unused> {
    UNUSED.iter().find(|it| {
        let of_example = it.examples.is_empty() || it.examples.contains(&&*example.name);
        it.purpose == purpose && it.verbs.contains(&&*permission.verb) && of_example
    })
}

/// The purpose of a permission of an example; none if it has no known one.
pub(crate) fn purpose_of(example: &Example, permission: &Permission) -> Option<Purpose> {
    match example.is_generated(permission) {
        true => generated_purpose(&example.operator, permission),
        false => Some(Purpose::OwnRequest),
    }
}

fn generated_purpose(operator: &Operator, permission: &Permission) -> Option<Purpose> {
    let Permission {
        group,
        resource,
        name,
        ..
    } = permission;
    let (plural, subresource) = match resource.split_once('/') {
        Some((plural, subresource)) => (plural, Some(subresource)),
        None => (&**resource, None),
    };
    let same = |of: (&str, &str)| of == (&**group, plural);
    let mut kinds = operator.kinds.iter();
    if let Some(kind) = kinds.find(|it| same((&it.group, &it.plural)) && it.is_watched()) {
        return match subresource {
            None => Some(handled_purpose(kind)),
            Some("status") => Some(Purpose::Status),
            Some("finalizers") => Some(Purpose::Finalizers),
            Some(_) => None,
        };
    }
    let mut children = operator.kinds.iter().flat_map(|it| &it.children);
    if children.any(|it| same((&it.related.group, &it.related.plural))) {
        return Some(Purpose::Child);
    }
    let mut uses = operator.kinds.iter().flat_map(|it| &it.uses);
    if uses.any(|it| same((&it.related.group, &it.related.plural))) {
        return Some(Purpose::Used);
    }
    Some(match (&**group, plural, name) {
        (_, "*", None) => Purpose::Selected,
        ("", "events", None) => Purpose::Event,
        ("apiextensions.k8s.io", "customresourcedefinitions", Some(_)) => Purpose::Definition,
        ("apiextensions.k8s.io", "customresourcedefinitions", None) => Purpose::AnyDefinition,
        ("kopf.dev" | "zalando.org", "kopfpeerings", _) => Purpose::Peering,
        ("kopf.dev" | "zalando.org", "clusterkopfpeerings", _) => Purpose::ClusterPeering,
        ("admissionregistration.k8s.io", _, Some(_)) => Purpose::WebhookConfiguration,
        ("", "secrets", Some(_)) => Purpose::Certificate,
        _ => return None,
    })
}

fn handled_purpose(kind: &HandledKind) -> Purpose {
    let all = |is: fn(&HandlerCause) -> bool| kind.handlers.iter().all(|it| is(&it.cause));
    if all(|it| matches!(it, HandlerCause::Index(_))) {
        Purpose::Indexed
    } else if all(|it| matches!(it, HandlerCause::Index(_) | HandlerCause::Event { .. })) {
        Purpose::Observed
    } else {
        Purpose::Handled
    }
}
