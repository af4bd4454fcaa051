//! Decides which resources are watched, from the declarations and the discovery.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::{DiscoveredResource, ResourceName, Selector};

/// The resources of one declaration of an operator.
#[derive(Clone, Debug)]
pub struct ResourceDemand {
    /// The resources.
    pub wanted: Wanted,
    /// Whether its handlers write to objects, at least their progress.
    pub writes: bool,
}

/// The resources that a declaration wants.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// One resource, whose type the operator has.
    Exact {
        /// The API group.
        group: String,
        /// The version.
        version: String,
        /// The plural.
        plural: String,
    },
    /// Those that match a selector.
    Selected(Selector),
}

/// The resources for all declarations of an operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolution {
    /// The resources to watch, each group and plural once, in order.
    pub served: Vec<ServedResource>,
    /// The findings about each declaration, for the log.
    pub findings: Vec<Vec<SelectionFinding>>,
}

/// A resource to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedResource {
    /// The resource.
    pub resource: Arc<DiscoveredResource>,
    /// The positions of the declarations that want it.
    pub demands: Vec<usize>,
}

/// The position of a declaration, and a resource that it wants.
type Pick<'a> = (usize, &'a Arc<DiscoveredResource>);

/// A problem of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectionFinding {
    /// The API server serves no such resource.
    Nothing,
    /// Several resources match a selector that is for one.
    Ambiguous(Vec<String>),
    /// It matches, but cannot be listed and watched.
    NotWatchable(String),
    /// It matches, but the handlers have to write, and it cannot be patched.
    NotPatchable(String),
    /// It is watched in another version, which another declaration requires.
    OtherVersion {
        /// The resource.
        resource: String,
        /// The watched version.
        version: String,
    },
}

// === impl ResourceDemand ===

impl ResourceDemand {
    /// The wanted resources, and findings about them.
    fn pick(
        &self,
        catalog: &[Arc<DiscoveredResource>],
    ) -> (Vec<Arc<DiscoveredResource>>, Vec<SelectionFinding>) {
        let selector = match &self.wanted {
            Wanted::Exact {
                group,
                version,
                plural,
            } => {
                let same = |it: &&Arc<DiscoveredResource>| {
                    (&it.group, &it.version, &it.plural) == (group, version, plural)
                };
                let found: Vec<_> = catalog.iter().filter(same).cloned().collect();
                let findings = if found.is_empty() {
                    vec![SelectionFinding::Nothing]
                } else {
                    Vec::new()
                };
                return (found, findings);
            }
            Wanted::Selected(selector) => selector,
        };
        let mut findings = Vec::new();
        let mut picked = Vec::new();
        let matching = catalog
            .iter()
            .filter(|it| selector.selects(it) && selector.wants_version(it));
        for resource in matching {
            if !resource.is_watchable() {
                findings.push(SelectionFinding::NotWatchable(resource.name()));
            } else if self.writes && !resource.is_patchable() {
                findings.push(SelectionFinding::NotPatchable(resource.name()));
            } else if self.writes
                && selector.name == ResourceName::Everything
                && resource.is_coordination()
            {
                // Each of their renewals would be a change, and our writes would conflict with them.
            } else {
                picked.push(Arc::clone(resource));
            }
        }
        if selector.is_specific() {
            // As in kubectl: the core group comes before all others.
            if picked.iter().any(|it| it.group.is_empty()) {
                picked.retain(|it| it.group.is_empty());
            }
            if picked.len() > 1 {
                let names = picked.drain(..).map(|it| it.name()).collect();
                return (Vec::new(), vec![SelectionFinding::Ambiguous(names)]);
            }
            if !picked.is_empty() {
                findings.clear();
            }
        }
        if picked.is_empty() && findings.is_empty() {
            findings.push(SelectionFinding::Nothing);
        }
        (picked, findings)
    }

    /// The version that it requires, if it wants this group and plural.
    pub(super) fn version(&self, resource: &DiscoveredResource) -> Option<&str> {
        match &self.wanted {
            Wanted::Exact {
                group,
                version,
                plural,
            } => ((group, plural) == (&resource.group, &resource.plural)).then_some(version),
            Wanted::Selected(selector) => selector.version.as_deref(),
        }
    }

    fn is_exact(&self) -> bool {
        matches!(self.wanted, Wanted::Exact { .. })
    }
}

/// Decides which resources are watched, in one version each, and for which declarations.
///
/// A declared kind is watched in its version; otherwise the first selector that names a version
/// decides, and if none does, the API server. A selector without a version gets the watched one; a
/// selector with another version gets a finding.
#[must_use]
pub fn resolve(demands: &[ResourceDemand], catalog: &[Arc<DiscoveredResource>]) -> Resolution {
    let mut findings = Vec::with_capacity(demands.len());
    let mut picks: BTreeMap<(&str, &str), Vec<Pick<'_>>> = BTreeMap::new();
    let picked: Vec<_> = demands.iter().map(|demand| demand.pick(catalog)).collect();
    for (position, (resources, found)) in picked.iter().enumerate() {
        findings.push(found.clone());
        for resource in resources {
            let objects = (resource.group.as_str(), resource.plural.as_str());
            picks.entry(objects).or_default().push((position, resource));
        }
    }
    let mut served = Vec::new();
    for picks in picks.values() {
        let Some((_, any)) = picks.first() else {
            continue;
        };
        let declared = demands.iter().filter(|demand| demand.is_exact());
        let declared = declared.filter_map(|demand| demand.version(any)).next();
        let required = || picks.iter().find_map(|(at, _)| demands[*at].version(any));
        let version = declared.or_else(required).unwrap_or(&any.version);
        let watched = catalog
            .iter()
            .find(|it| it.same_objects_as(any) && it.version == version);
        let mut members = Vec::new();
        for (position, resource) in picks {
            let wants_other = demands[*position]
                .version(any)
                .is_some_and(|it| it != version);
            if wants_other || watched.is_none() {
                findings[*position].push(SelectionFinding::OtherVersion {
                    resource: resource.name(),
                    version: version.to_owned(),
                });
            } else {
                members.push(*position);
            }
        }
        if let Some(watched) = watched.filter(|_| !members.is_empty()) {
            served.push(ServedResource {
                resource: Arc::clone(watched),
                demands: members,
            });
        }
    }
    Resolution { served, findings }
}

/// The resources whose requests a webhook on a selection reviews, in order.
///
/// A category, a group and everything leave out what cannot be listed and watched, such as the
/// reviews of tokens and of access, which the API server needs for every request; everything leaves
/// out Leases and peerings as well.
#[must_use]
pub fn reviewed(
    selector: &Selector,
    catalog: &[Arc<DiscoveredResource>],
) -> Vec<Arc<DiscoveredResource>> {
    let is_safe = |it: &DiscoveredResource| {
        let is_everything = selector.name == ResourceName::Everything;
        it.is_watchable() && !(is_everything && it.is_coordination())
    };
    let matching = catalog.iter().filter(|it| {
        selector.selects(it)
            && selector.wants_version(it)
            && !it.plural.contains('/')
            && (selector.is_specific() || is_safe(it))
    });
    let mut picked: Vec<_> = matching.cloned().collect();
    // As in kubectl: the core group comes before all others.
    if selector.is_specific() && picked.iter().any(|it| it.group.is_empty()) {
        picked.retain(|it| it.group.is_empty());
    }
    picked.sort();
    picked
}

// === impl SelectionFinding ===

impl fmt::Display for SelectionFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the API server serves no such resource (yet)"),
            Self::Ambiguous(names) => write!(
                f,
                "it could be any of {}, so that none is served: name the group",
                names.join(", ")
            ),
            Self::NotWatchable(name) => {
                write!(f, "{name} cannot be listed and watched, and is not served")
            }
            Self::NotPatchable(name) => {
                write!(f, "{name} cannot be written to, and is not served")
            }
            Self::OtherVersion { resource, version } => write!(
                f,
                "{resource} is not served here: its objects are handled in version {version}"
            ),
        }
    }
}
