//! Resolves the handler declarations of an operator to the kinds that it handles at present.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::registry::Registry;
use kopf_core::persistence::Persistence;
use kopf_core::selection::resolve::{Resolution, ResourceDemand, SelectionFinding, resolve};
use kube::Client;
use tracing::{debug, error, info, warn};

use super::error::Error;
use crate::children::Children;
use crate::client::discovery::Catalog;
use crate::client::resource::{KindSpec, ResourceDescription, ResourceTarget};
use crate::health::metrics::Metrics;
use crate::index::Indices;
use crate::process::HandledKind;
use crate::process::kind::KindServices;
use crate::process::kinds::HandledKinds;
use crate::registration::{RegisteredWebhook, ResourceHandlers};
use crate::task::heartbeat::{ConditionState, Heartbeats, ReadinessCondition};
use crate::watch::KindIndex;

/// The declarations of an operator, and the kinds that they resolve to.
pub(super) struct Declarations {
    declared: Vec<ResourceHandlers>,
    factory: KindFactory,
    /// The declarations whose kinds depend on the resources that the API server serves.
    dynamic: Vec<DynamicDeclaration>,
    /// Whether there are webhooks on selections.
    review_selections: bool,
    /// The kinds that they resolve to at present, by group and plural.
    current: BTreeMap<(String, String), KindIndex>,
}

/// What all kinds share.
pub(super) struct SharedServices {
    pub(super) client: Client,
    pub(super) persistence: Arc<Persistence>,
    pub(super) indices: Indices,
    pub(super) request_timeout: Duration,
    pub(super) metrics: Metrics,
    pub(super) children: Arc<Children>,
}

/// Makes kinds of declarations.
struct KindFactory {
    services: SharedServices,
    kinds: Arc<HandledKinds>,
    /// The kinds made so far, with the positions of their declarations: a kind may come again.
    made: HashMap<(KindSpec, Vec<usize>), KindIndex>,
}

/// A declaration whose kinds depend on the resources that the API server serves.
struct DynamicDeclaration {
    position: usize,
    demand: ResourceDemand,
    condition: ReadinessCondition,
    /// The result that was logged last.
    logged: Option<LoggedResolution>,
}

#[derive(PartialEq, Eq)]
struct LoggedResolution {
    served: BTreeSet<String>,
    findings: Vec<SelectionFinding>,
}

/// The kinds that are not handled any more, and those that are from now on.
#[derive(Debug, Default)]
pub(super) struct HandledKindsChange {
    pub(super) removed: Vec<KindIndex>,
    pub(super) added: Vec<KindIndex>,
}

// === impl Declarations ===

impl Declarations {
    /// Checks the declarations.
    pub(super) fn new(
        declared: Vec<ResourceHandlers>,
        services: SharedServices,
        heartbeats: &Heartbeats,
    ) -> Result<Self, Error> {
        check(&declared)?;
        let dynamic = declared.iter().enumerate();
        let dynamic = dynamic
            .filter(|(position, it)| !it.handlers.is_empty() && is_dynamic(*position, &declared));
        let dynamic = dynamic.map(|(position, it)| DynamicDeclaration {
            position,
            demand: ResourceDemand {
                wanted: it.target.wanted(),
                writes: it.writes(),
            },
            condition: heartbeats.condition(
                it.target.to_string(),
                ConditionState::Pending("the served resources are not discovered yet".to_owned()),
            ),
            logged: None,
        });
        let review_selections = declared
            .iter()
            .any(|it| matches!(it.target, ResourceTarget::Selection(_)) && !it.webhooks.is_empty());
        Ok(Self {
            dynamic: dynamic.collect(),
            review_selections,
            factory: KindFactory {
                services,
                kinds: Arc::default(),
                made: HashMap::new(),
            },
            declared,
            current: BTreeMap::new(),
        })
    }

    /// The kinds; those that are discovered later are added to it.
    pub(super) fn kinds(&self) -> &Arc<HandledKinds> {
        &self.factory.kinds
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ResourceHandlers> {
        self.declared.iter()
    }

    /// Whether a declaration can only be resolved by discovery.
    pub(super) fn need_discovery(&self) -> bool {
        !self.dynamic.is_empty() || self.review_selections
    }

    /// Moves the webhooks out of the declarations.
    pub(super) fn take_webhooks(&mut self) -> Vec<(ResourceTarget, RegisteredWebhook)> {
        let declared = self.declared.iter_mut();
        let webhooks = declared.flat_map(|it| {
            let target = it.target.clone();
            let webhooks = std::mem::take(&mut it.webhooks).into_iter();
            webhooks.map(move |webhook| (target.clone(), webhook))
        });
        webhooks.collect()
    }

    /// The kinds that have webhooks and no other handlers, with their descriptions.
    pub(super) fn webhook_kinds(&self) -> Vec<(KindSpec, ResourceDescription)> {
        let declared = self.declared.iter();
        let without_handlers = declared.filter(|it| it.handlers.is_empty());
        let described = without_handlers.filter_map(|it| match it.target {
            ResourceTarget::Kind(spec) => Some((spec.into(), it.description.clone()?)),
            ResourceTarget::Selection(_) => None,
        });
        described.collect()
    }

    /// Makes the kinds that are handled whatever the API server serves.
    pub(super) fn make_static_kinds(&mut self) -> Result<Vec<KindIndex>, Error> {
        let mut made = Vec::new();
        for (position, declared) in self.declared.iter().enumerate() {
            let is_dynamic = self.dynamic.iter().any(|it| it.position == position);
            // Without handlers, the kind has webhooks only.
            if is_dynamic || declared.handlers.is_empty() {
                continue;
            }
            if let ResourceTarget::Kind(spec) = declared.target {
                let kind = self
                    .factory
                    .make(spec.into(), vec![position], &self.declared);
                made.push(kind?);
            }
        }
        Ok(made)
    }

    /// Resolves the declarations that depend on discovery, and returns what changed.
    pub(super) fn resolve_kinds(&mut self, catalog: &Catalog) -> HandledKindsChange {
        let demands: Vec<ResourceDemand> =
            self.dynamic.iter().map(|it| it.demand.clone()).collect();
        let resolution = resolve(&demands, catalog);
        let mut current = BTreeMap::new();
        for served in &resolution.served {
            let positions = served.demands.iter().map(|at| self.dynamic[*at].position);
            let positions: Vec<usize> = positions.collect();
            let declared = positions
                .iter()
                .find_map(|at| match self.declared[*at].target {
                    ResourceTarget::Kind(spec) => Some(KindSpec::from(spec)),
                    ResourceTarget::Selection(_) => None,
                });
            let resource = &served.resource;
            let spec = declared.unwrap_or_else(|| KindSpec::from(&**resource));
            match self.factory.make(spec, positions, &self.declared) {
                Ok(index) => {
                    let kind = self.factory.kinds.get(index);
                    kind.api()
                        .description()
                        .set_discovered(Arc::clone(resource));
                    current.insert((resource.group.clone(), resource.plural.clone()), index);
                }
                Err(error) => error!("{resource} cannot be handled: {error}"),
            }
        }
        self.report(&resolution);
        let before = std::mem::replace(&mut self.current, current);
        let difference = |of: &BTreeMap<_, KindIndex>, without: &BTreeMap<_, KindIndex>| {
            let kept: BTreeSet<KindIndex> = without.values().copied().collect();
            let all = of.values().copied();
            all.filter(|index| !kept.contains(index)).collect()
        };
        HandledKindsChange {
            removed: difference(&before, &self.current),
            added: difference(&self.current, &before),
        }
    }

    /// Logs the result for each declaration that has changed, and sets its readiness condition.
    fn report(&mut self, resolution: &Resolution) {
        for (at, dynamic) in self.dynamic.iter_mut().enumerate() {
            let served = resolution.served.iter();
            let served = served.filter(|it| it.demands.contains(&at));
            let resolved = LoggedResolution {
                served: served.map(|it| it.resource.name()).collect(),
                findings: resolution.findings[at].clone(),
            };
            if dynamic.logged.as_ref() == Some(&resolved) {
                continue;
            }
            let target = &self.declared[dynamic.position].target;
            let is_broad =
                matches!(target, ResourceTarget::Selection(selector) if !selector.is_specific());
            for finding in &resolved.findings {
                match finding {
                    SelectionFinding::Nothing if is_broad => info!("{target}: {finding}"),
                    SelectionFinding::NotWatchable(_) | SelectionFinding::NotPatchable(_)
                        if is_broad =>
                    {
                        debug!("{target}: {finding}");
                    }
                    _ => warn!("{target}: {finding}"),
                }
            }
            if !resolved.served.is_empty() && matches!(target, ResourceTarget::Selection(_)) {
                let served: Vec<&str> = resolved.served.iter().map(String::as_str).collect();
                info!("{target} matches {}", served.join(", "));
            }
            let obstacle = resolved
                .findings
                .first()
                .filter(|_| resolved.served.is_empty());
            dynamic.condition.set(match obstacle {
                Some(ambiguous @ SelectionFinding::Ambiguous(_)) => {
                    ConditionState::Failing(ambiguous.to_string())
                }
                Some(finding) if !is_broad => ConditionState::Absent(finding.to_string()),
                Some(_) | None => ConditionState::Fine,
            });
            dynamic.logged = Some(resolved);
        }
    }
}

// === impl KindFactory ===

impl KindFactory {
    /// The kind with the handlers of these declarations.
    fn make(
        &mut self,
        spec: KindSpec,
        positions: Vec<usize>,
        declared: &[ResourceHandlers],
    ) -> Result<KindIndex, Error> {
        let key = (spec, positions);
        if let Some(known) = self.made.get(&key) {
            return Ok(*known);
        }
        let (spec, positions) = &key;
        let declarations: Vec<_> = positions.iter().map(|at| &declared[*at]).collect();
        let shared = &self.services;
        let supplies = KindServices {
            client: shared.client.clone(),
            persistence: Arc::clone(&shared.persistence),
            indices: shared.indices.clone(),
            patience: shared.request_timeout,
            metrics: shared.metrics.kind(&spec.kind, &spec.group),
            children: Arc::clone(&shared.children),
        };
        let kind = HandledKind::new(spec.clone(), &declarations, supplies);
        let kind = kind.map_err(|source| Error::Declaration {
            kind: spec.kind.to_string(),
            source,
        })?;
        let index = self.kinds.add(kind);
        let index = index.ok_or_else(|| Error::Ended("there are too many kinds".to_owned()))?;
        self.made.insert(key, index);
        Ok(index)
    }
}

/// Whether a declaration selects kinds, or may overlap with one that does.
fn is_dynamic(position: usize, declared: &[ResourceHandlers]) -> bool {
    let own = &declared[position].target;
    let mut others = declared.iter().enumerate();
    matches!(own, ResourceTarget::Selection(_))
        || others.any(|(other, it)| {
            other != position && !it.handlers.is_empty() && own.may_overlap(&it.target)
        })
}

fn check(declared: &[ResourceHandlers]) -> Result<(), Error> {
    for (at, one) in declared.iter().enumerate() {
        let specs = one.handlers.iter().map(|handler| handler.spec.clone());
        Registry::new(specs).map_err(|source| Error::Declaration {
            kind: one.target.to_string(),
            source,
        })?;
        for other in &declared[..at] {
            if let (ResourceTarget::Kind(spec), ResourceTarget::Kind(known)) =
                (&one.target, &other.target)
                && spec.is_same_kind(known)
            {
                return Err(Error::DeclaredTwice { kind: spec.kind });
            }
            if let Some(id) = shared_id(other, one) {
                return Err(Error::SharedId {
                    one: other.target.to_string(),
                    other: one.target.to_string(),
                    id,
                });
            }
        }
    }
    Ok(())
}

/// The id of a handler that both have, if both may match the same objects.
fn shared_id(one: &ResourceHandlers, other: &ResourceHandlers) -> Option<String> {
    if !one.target.may_overlap(&other.target) {
        return None;
    }
    let has = |id: &str| other.handlers.iter().any(|it| it.spec.id.as_str() == id);
    let ids = one.handlers.iter().map(|it| it.spec.id.as_str());
    ids.into_iter().find(|id| has(id)).map(str::to_owned)
}
