//! Selectors of resources: by kind, plural, singular, short name, category, group, or all of them.
//!
//! Discovery lists the resources of the API server. [`resolve::resolve`] decides for all
//! declarations of an operator at once which are watched, so that no object is watched twice.

pub mod expected_kinds;
pub mod resolve;

use std::collections::BTreeSet;
use std::fmt;

/// A resource in the discovery of the API server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DiscoveredResource {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind, e.g. `KopfExample`.
    pub kind: String,
    /// The plural that request paths use, e.g. `kopfexamples`.
    pub plural: String,
    /// The singular, e.g. `kopfexample`.
    pub singular: String,
    /// Short names, e.g. `kex`.
    pub short_names: BTreeSet<String>,
    /// Categories, e.g. `all`.
    pub categories: BTreeSet<String>,
    /// Subresources, e.g. `status`.
    pub subresources: BTreeSet<String>,
    /// The verbs of its objects, regardless of permissions.
    pub verbs: BTreeSet<String>,
    /// Whether it is namespaced.
    pub namespaced: bool,
    /// Whether this is the preferred version of the API server.
    pub preferred: bool,
}

/// A selector of resources.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Selector {
    /// The API group; any if none.
    group: Option<String>,
    /// The version; the preferred one if none.
    version: Option<String>,
    name: ResourceName,
}

/// The name in a selector.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ResourceName {
    /// The kind, e.g. `Pod`.
    Kind(String),
    /// The plural, e.g. `pods`.
    Plural(String),
    /// The singular, e.g. `pod`.
    Singular(String),
    /// A short name, e.g. `po`.
    Short(String),
    /// Any of the above.
    Any(String),
    /// A category, e.g. `all`.
    Category(String),
    /// No name: all resources.
    Everything,
}

// === impl DiscoveredResource ===

impl DiscoveredResource {
    /// `plural.group`, as in the names of definitions.
    #[must_use]
    pub fn name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// The `apiVersion` of its objects.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Whether it has the status subresource.
    #[must_use]
    pub fn has_status(&self) -> bool {
        self.subresources.contains("status")
    }

    /// Whether its objects can be listed and watched.
    #[must_use]
    pub fn is_watchable(&self) -> bool {
        !self.plural.contains('/') && self.can("list") && self.can("watch")
    }

    /// Whether its objects can be patched.
    ///
    /// The discovery of a definition that is being deleted has verbs for reading and deletion only,
    /// but its objects can still be patched, and their finalizers have to be removed.
    #[must_use]
    pub fn is_patchable(&self) -> bool {
        let is_ending = self.can("deletecollection") && !self.can("create") && !self.can("update");
        self.can("patch") || is_ending
    }

    /// Whether its objects are Kubernetes events: handlers of all of them would cause new ones.
    fn is_event(&self) -> bool {
        self.plural == "events" && matches!(self.group.as_str(), "" | "events.k8s.io")
    }

    /// Whether its objects coordinate programs, which write to them every few seconds: leases and
    /// peerings.
    fn is_coordination(&self) -> bool {
        match self.group.as_str() {
            "coordination.k8s.io" => self.plural == "leases",
            "kopf.dev" | "zalando.org" => {
                matches!(self.plural.as_str(), "kopfpeerings" | "clusterkopfpeerings")
            }
            _ => false,
        }
    }

    fn can(&self, verb: &str) -> bool {
        self.verbs.contains(verb)
    }

    fn same_objects_as(&self, other: &Self) -> bool {
        (&self.group, &self.plural) == (&other.group, &other.plural)
    }
}

impl fmt::Display for DiscoveredResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

// === impl Selector ===

impl Selector {
    /// The resources of this name.
    #[must_use]
    pub fn new(name: ResourceName) -> Self {
        Self {
            group: None,
            version: None,
            name,
        }
    }

    /// The resource of this kind, e.g. `Pod`.
    #[must_use]
    pub fn kind(kind: impl Into<String>) -> Self {
        Self::new(ResourceName::Kind(kind.into()))
    }

    /// The resource with this plural, e.g. `pods`.
    #[must_use]
    pub fn plural(plural: impl Into<String>) -> Self {
        Self::new(ResourceName::Plural(plural.into()))
    }

    /// The resource with this singular, e.g. `pod`.
    #[must_use]
    pub fn singular(singular: impl Into<String>) -> Self {
        Self::new(ResourceName::Singular(singular.into()))
    }

    /// The resource with this short name, e.g. `po`.
    #[must_use]
    pub fn short_name(short_name: impl Into<String>) -> Self {
        Self::new(ResourceName::Short(short_name.into()))
    }

    /// The resource with this kind, plural, singular or short name.
    #[must_use]
    pub fn any_name(name: impl Into<String>) -> Self {
        Self::new(ResourceName::Any(name.into()))
    }

    /// All resources of this category, e.g. `all`.
    #[must_use]
    pub fn category(category: impl Into<String>) -> Self {
        Self::new(ResourceName::Category(category.into()))
    }

    /// All resources, except Kubernetes events.
    #[must_use]
    pub fn everything() -> Self {
        Self::new(ResourceName::Everything)
    }

    /// Only in this API group; empty for the core group.
    #[must_use]
    pub fn in_group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// In this version, even if it is not the preferred one.
    #[must_use]
    pub fn in_version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &ResourceName {
        &self.name
    }

    /// The version to which it is restricted.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// The group to which it is restricted.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// Whether the selector is for exactly one resource.
    #[must_use]
    pub fn is_specific(&self) -> bool {
        !matches!(
            self.name,
            ResourceName::Category(_) | ResourceName::Everything
        )
    }

    /// Whether a resource could match both selectors.
    #[must_use]
    pub fn may_overlap(&self, other: &Self) -> bool {
        let differ = |a: &Option<String>, b: &Option<String>| {
            a.as_ref().zip(b.as_ref()).is_some_and(|(a, b)| a != b)
        };
        let names = match (&self.name, &other.name) {
            (ResourceName::Kind(a), ResourceName::Kind(b))
            | (ResourceName::Plural(a), ResourceName::Plural(b))
            | (ResourceName::Singular(a), ResourceName::Singular(b)) => a == b,
            _ => true,
        };
        names && !differ(&self.group, &other.group)
    }

    /// Whether a resource of these names could match.
    #[must_use]
    pub fn may_select(&self, group: &str, kind: &str, plural: &str) -> bool {
        let named = match &self.name {
            ResourceName::Kind(name) => name == kind,
            ResourceName::Plural(name) => name == plural,
            ResourceName::Singular(_)
            | ResourceName::Short(_)
            | ResourceName::Any(_)
            | ResourceName::Category(_)
            | ResourceName::Everything => true,
        };
        named && self.group.as_ref().is_none_or(|wanted| wanted == group)
    }

    /// Whether a resource matches, in any version.
    fn selects(&self, resource: &DiscoveredResource) -> bool {
        let named = match &self.name {
            ResourceName::Kind(name) => *name == resource.kind,
            ResourceName::Plural(name) => *name == resource.plural,
            ResourceName::Singular(name) => *name == resource.singular,
            ResourceName::Short(name) => resource.short_names.contains(name),
            ResourceName::Any(name) => {
                [&resource.kind, &resource.plural, &resource.singular].contains(&name)
                    || resource.short_names.contains(name)
            }
            ResourceName::Category(name) => resource.categories.contains(name),
            ResourceName::Everything => !resource.is_event(),
        };
        let group = self.group.as_ref();
        named && group.is_none_or(|wanted| *wanted == resource.group)
    }

    /// Whether the selector is for this version of a resource.
    fn wants_version(&self, resource: &DiscoveredResource) -> bool {
        match &self.version {
            Some(version) => *version == resource.version,
            None => resource.preferred,
        }
    }
}

// === impl ResourceName ===

impl ResourceName {
    /// The key of the name in the manifest, which is a function of [`Selector`], too, and the name
    /// itself: `category` and `all`.
    #[must_use]
    pub fn parts(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Kind(name) => ("kind", Some(name)),
            Self::Plural(name) => ("plural", Some(name)),
            Self::Singular(name) => ("singular", Some(name)),
            Self::Short(name) => ("short_name", Some(name)),
            Self::Any(name) => ("any_name", Some(name)),
            Self::Category(name) => ("category", Some(name)),
            Self::Everything => ("everything", None),
        }
    }
}

/// As in the manifest.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, name) = self.name.parts();
        let name = name.map(|name| (key, name));
        let group = self.group().map(|group| ("group", group));
        let version = self.version().map(|version| ("version", version));
        let parts: Vec<String> = [name, group, version]
            .into_iter()
            .flatten()
            .map(|(key, value)| match value {
                "" => format!("{key}: \"\""),
                value => format!("{key}: {value}"),
            })
            .collect();
        if parts.is_empty() {
            f.write_str("everything")
        } else {
            write!(f, "{{{}}}", parts.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
