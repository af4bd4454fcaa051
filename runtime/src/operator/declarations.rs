//! All that is declared, and which kinds that means at present: decided anew whenever the server
//! serves other ones.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kopf_core::handler::registry::Registry;
use kopf_core::persistence::Persistence;
use kopf_core::selection::resolve::{
    Resolution, ResourceDemand, SelectionFinding, Wanted, resolve,
};
use kube::Client;
use tracing::{debug, error, info, warn};

use super::Error;
use crate::client::discovery::Catalog;
use crate::client::resource::{KindSpec, ResourceDescription, ResourceSpec, ResourceTarget};
use crate::health::metrics::Metrics;
use crate::process::Kind;
use crate::process::kind::Supplies;
use crate::process::kinds::Kinds;
use crate::registration::{RegisteredWebhook, ResourceHandlers};
use crate::task::heartbeat::{ConditionState, Heartbeats, ReadinessCondition};
use crate::watch::KindIndex;

/// The declarations of an operator, and the kinds that were made of them.
pub(super) struct Declarations {
    declared: Vec<ResourceHandlers>,
    workshop: Workshop,
    /// Those that are about something else depending on what the server serves.
    open: Vec<Open>,
    /// What is handled at present because of those, by group and plural.
    current: BTreeMap<(String, String), KindIndex>,
}

/// Where kinds are made.
struct Workshop {
    client: Client,
    persistence: Arc<Persistence>,
    patience: Duration,
    metrics: Metrics,
    kinds: Arc<Kinds>,
    /// What was made already, with the positions of its declarations: it may come again.
    made: HashMap<(KindSpec, Vec<usize>), KindIndex>,
}

/// A declaration of which the server decides what it means.
struct Open {
    position: usize,
    demand: ResourceDemand,
    condition: ReadinessCondition,
    /// What was told to people last.
    told: Option<ReportedFindings>,
}

#[derive(PartialEq, Eq)]
struct ReportedFindings {
    served: BTreeSet<String>,
    findings: Vec<SelectionFinding>,
}

/// How the handled kinds change.
#[derive(Debug, Default)]
pub(super) struct Revision {
    pub(super) gone: Vec<KindIndex>,
    pub(super) come: Vec<KindIndex>,
}

// === impl Declarations ===

impl Declarations {
    /// Checks what is declared.
    pub(super) fn new(
        declared: Vec<ResourceHandlers>,
        client: Client,
        persistence: Arc<Persistence>,
        patience: Duration,
        metrics: Metrics,
        heartbeats: &Heartbeats,
    ) -> Result<Self, Error> {
        check(&declared)?;
        let open = declared.iter().enumerate();
        let open =
            open.filter(|(position, it)| !it.handlers.is_empty() && is_open(*position, &declared));
        let open = open.map(|(position, it)| Open {
            position,
            demand: ResourceDemand {
                wanted: wanted(&it.target),
                writes: it.writes(),
            },
            condition: heartbeats.condition(
                it.target.to_string(),
                ConditionState::Pending("the server has not said yet what it serves".to_owned()),
            ),
            told: None,
        });
        Ok(Self {
            open: open.collect(),
            workshop: Workshop {
                client,
                persistence,
                patience,
                metrics,
                kinds: Arc::default(),
                made: HashMap::new(),
            },
            declared,
            current: BTreeMap::new(),
        })
    }

    /// The kinds, those that come later included.
    pub(super) fn kinds(&self) -> &Arc<Kinds> {
        &self.workshop.kinds
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &ResourceHandlers> {
        self.declared.iter()
    }

    /// Whether it has to be known what the server serves.
    pub(super) fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The webhooks, which are nobody else's business from now on.
    pub(super) fn take_webhooks(&mut self) -> Vec<(ResourceSpec, RegisteredWebhook)> {
        let declared = self.declared.iter_mut();
        let webhooks = declared.filter_map(|it| match it.target {
            ResourceTarget::Kind(spec) => {
                let webhooks = std::mem::take(&mut it.webhooks);
                Some(webhooks.into_iter().map(move |webhook| (spec, webhook)))
            }
            ResourceTarget::Selection(_) => None,
        });
        webhooks.flatten().collect()
    }

    /// The kinds about which nobody but the API server asks, and what it says about them.
    pub(super) fn unwatched(&self) -> Vec<(KindSpec, ResourceDescription)> {
        let declared = self.declared.iter();
        let unwatched = declared.filter(|it| it.handlers.is_empty());
        let described = unwatched.filter_map(|it| match it.target {
            ResourceTarget::Kind(spec) => Some((spec.into(), it.description.clone()?)),
            ResourceTarget::Selection(_) => None,
        });
        described.collect()
    }

    /// Makes the kinds that are handled whatever the server serves.
    pub(super) fn settled(&mut self) -> Result<Vec<KindIndex>, Error> {
        let mut settled = Vec::new();
        for (position, declared) in self.declared.iter().enumerate() {
            let is_open = self.open.iter().any(|it| it.position == position);
            // Without handlers, it has webhooks only.
            if is_open || declared.handlers.is_empty() {
                continue;
            }
            if let ResourceTarget::Kind(spec) = declared.target {
                let made = self
                    .workshop
                    .make(spec.into(), vec![position], &self.declared);
                settled.push(made?);
            }
        }
        Ok(settled)
    }

    /// Decides anew which kinds are handled, and by whom.
    pub(super) fn revise(&mut self, catalog: &Catalog) -> Revision {
        let demands: Vec<ResourceDemand> = self.open.iter().map(|it| it.demand.clone()).collect();
        let resolution = resolve(&demands, catalog);
        let mut current = BTreeMap::new();
        for served in &resolution.served {
            let positions = served.demands.iter().map(|at| self.open[*at].position);
            let positions: Vec<usize> = positions.collect();
            let declared = positions
                .iter()
                .find_map(|at| match self.declared[*at].target {
                    ResourceTarget::Kind(spec) => Some(KindSpec::from(spec)),
                    ResourceTarget::Selection(_) => None,
                });
            let resource = &served.resource;
            let spec = declared.unwrap_or_else(|| KindSpec::from(&**resource));
            match self.workshop.make(spec, positions, &self.declared) {
                Ok(index) => {
                    let kind = self.workshop.kinds.get(index);
                    kind.api()
                        .description()
                        .set_discovered(Arc::clone(resource));
                    current.insert((resource.group.clone(), resource.plural.clone()), index);
                }
                Err(error) => error!("{resource} cannot be handled: {error}"),
            }
        }
        self.tell(&resolution);
        let before = std::mem::replace(&mut self.current, current);
        let difference = |of: &BTreeMap<_, KindIndex>, without: &BTreeMap<_, KindIndex>| {
            let kept: BTreeSet<KindIndex> = without.values().copied().collect();
            let all = of.values().copied();
            all.filter(|index| !kept.contains(index)).collect()
        };
        Revision {
            gone: difference(&before, &self.current),
            come: difference(&self.current, &before),
        }
    }

    /// Tells people what declarations mean now, where that is news.
    fn tell(&mut self, resolution: &Resolution) {
        for (at, open) in self.open.iter_mut().enumerate() {
            let served = resolution.served.iter();
            let served = served.filter(|it| it.demands.contains(&at));
            let news = ReportedFindings {
                served: served.map(|it| it.resource.name()).collect(),
                findings: resolution.findings[at].clone(),
            };
            if open.told.as_ref() == Some(&news) {
                continue;
            }
            let target = &self.declared[open.position].target;
            let is_broad =
                matches!(target, ResourceTarget::Selection(selector) if !selector.is_specific());
            for finding in &news.findings {
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
            if !news.served.is_empty() && matches!(target, ResourceTarget::Selection(_)) {
                let served: Vec<&str> = news.served.iter().map(String::as_str).collect();
                info!("{target} is about {}", served.join(", "));
            }
            let obstacle = news.findings.first().filter(|_| news.served.is_empty());
            open.condition.set(match obstacle {
                Some(ambiguous @ SelectionFinding::Ambiguous(_)) => {
                    ConditionState::Failing(ambiguous.to_string())
                }
                Some(finding) if !is_broad => ConditionState::Absent(finding.to_string()),
                Some(_) | None => ConditionState::Fine,
            });
            open.told = Some(news);
        }
    }
}

// === impl Workshop ===

impl Workshop {
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
        let supplies = Supplies {
            client: self.client.clone(),
            persistence: Arc::clone(&self.persistence),
            patience: self.patience,
            metrics: self.metrics.kind(&spec.kind, &spec.group),
        };
        let kind = Kind::new(spec.clone(), &declarations, supplies);
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

fn wanted(target: &ResourceTarget) -> Wanted {
    match target {
        ResourceTarget::Kind(spec) => Wanted::Exact {
            group: spec.group.to_owned(),
            version: spec.version.to_owned(),
            plural: spec.plural.to_owned(),
        },
        ResourceTarget::Selection(selector) => Wanted::Selected(selector.clone()),
    }
}

/// Whether the server decides what a declaration means, or whether it is alone in that.
fn is_open(position: usize, declared: &[ResourceHandlers]) -> bool {
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
        if matches!(one.target, ResourceTarget::Selection(_)) && !one.webhooks.is_empty() {
            let selection = one.target.to_string();
            return Err(Error::SelectedWebhook { selection });
        }
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

/// The id of a handler that both have, if objects of both could be the same.
fn shared_id(one: &ResourceHandlers, other: &ResourceHandlers) -> Option<String> {
    if !one.target.may_overlap(&other.target) {
        return None;
    }
    let has = |id: &str| other.handlers.iter().any(|it| it.spec.id.as_str() == id);
    let ids = one.handlers.iter().map(|it| it.spec.id.as_str());
    ids.into_iter().find(|id| has(id)).map(str::to_owned)
}
