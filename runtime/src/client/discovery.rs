//! Discovery requests: all resources that the API server serves, or one kind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{APIGroup, APIResource, APIResourceList};
use kopf_core::selection::DiscoveredResource;
use kube::Client;
use kube::core::discovery::v2::{APIGroupDiscovery, APIResourceDiscovery, APIVersionDiscovery};

use crate::client::requests;
use crate::client::resource::KindSpec;

/// All resources that the API server serves, in its order of groups and versions.
pub(crate) type Catalog = Vec<Arc<DiscoveredResource>>;

/// Reads all resources that the API server serves.
///
/// Some may come from aggregated API servers. If one of those does not respond, its resources stay
/// as `known`: their objects still exist.
pub(crate) async fn catalog(
    client: &Client,
    known: &Catalog,
    timeout: Duration,
) -> Result<Catalog, requests::Error> {
    let request = async {
        let core = client.list_core_api_versions_aggregated().await?;
        let others = client.list_api_groups_aggregated().await?;
        Ok::<_, requests::Error>((core, others))
    };
    let response = tokio::time::timeout(timeout, request).await;
    let (core, others) = response.unwrap_or(Err(requests::Error::Timeout))?;
    if core.items.is_empty() {
        let message = "there is no aggregated discovery, which Kubernetes has since 1.26";
        return Err(requests::Error::Invalid(message.to_owned()));
    }
    Ok(read(core.items.iter().chain(&others.items), known))
}

/// Reads the discovery of one kind; none if the API server does not serve it.
pub(crate) async fn description(
    client: &Client,
    kind: &KindSpec,
    timeout: Duration,
) -> Result<Option<DiscoveredResource>, requests::Error> {
    let request = describe(client, kind);
    let response = tokio::time::timeout(timeout, request).await;
    response.unwrap_or(Err(requests::Error::Timeout))
}

async fn describe(
    client: &Client,
    kind: &KindSpec,
) -> Result<Option<DiscoveredResource>, requests::Error> {
    let Some(list) = resources(client, &kind.group, &kind.version).await? else {
        return Ok(None);
    };
    let own = |list: &APIResourceList| list.resources.iter().any(|it| *it.name == *kind.plural);
    let Some(found) = list.resources.iter().find(|it| *it.name == *kind.plural) else {
        return Ok(None);
    };
    let mut preferred = true;
    if !kind.group.is_empty() {
        let path = format!("/apis/{}", kind.group);
        let request = Request::get(path).body(Vec::new());
        let request =
            request.map_err(|error| requests::Error::from(kube::Error::HttpError(error)))?;
        let group: APIGroup = client.request(request).await?;
        for version in group.versions {
            if *version.version == *kind.version {
                break;
            }
            let other = resources(client, &kind.group, &version.version).await?;
            if other.as_ref().is_some_and(own) {
                preferred = false;
                break;
            }
        }
    }
    Ok(Some(listed(kind, found, &list, preferred)))
}

async fn resources(
    client: &Client,
    group: &str,
    version: &str,
) -> Result<Option<APIResourceList>, requests::Error> {
    let listed = if group.is_empty() {
        client.list_core_api_resources(version).await
    } else {
        let group_version = format!("{group}/{version}");
        client.list_api_group_resources(&group_version).await
    };
    match listed.map_err(requests::Error::from) {
        Ok(list) => Ok(Some(list)),
        Err(requests::Error::NotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn listed(
    kind: &KindSpec,
    found: &APIResource,
    list: &APIResourceList,
    preferred: bool,
) -> DiscoveredResource {
    let prefix = format!("{}/", found.name);
    let subresources = list.resources.iter();
    let subresources = subresources.filter_map(|it| it.name.strip_prefix(&prefix));
    DiscoveredResource {
        group: kind.group.to_string(),
        version: kind.version.to_string(),
        kind: found.kind.clone(),
        plural: found.name.clone(),
        singular: singular(Some(&found.singular_name), &found.kind),
        short_names: found.short_names.iter().flatten().cloned().collect(),
        categories: found.categories.iter().flatten().cloned().collect(),
        subresources: subresources.map(str::to_owned).collect(),
        verbs: found.verbs.iter().cloned().collect(),
        namespaced: found.namespaced,
        preferred,
    }
}

fn read<'a>(groups: impl Iterator<Item = &'a APIGroupDiscovery>, known: &Catalog) -> Catalog {
    let mut catalog = Catalog::new();
    for group in groups {
        let name = group.metadata.as_ref().and_then(|meta| meta.name.clone());
        let name = name.unwrap_or_default();
        // Versions come in the order of preference.
        let mut preferred = BTreeSet::new();
        for version in &group.versions {
            for resource in in_version(&name, version, known) {
                let preferred = preferred.insert(resource.plural.clone());
                catalog.push(Arc::new(DiscoveredResource {
                    preferred,
                    ..resource
                }));
            }
        }
    }
    catalog
}

fn in_version(
    group: &str,
    version: &APIVersionDiscovery,
    known: &Catalog,
) -> Vec<DiscoveredResource> {
    let name = version.version.clone().unwrap_or_default();
    let listed = version.resources.iter();
    let mut found: Vec<_> = listed
        .filter_map(|resource| described(group, &name, resource))
        .collect();
    if version.freshness.as_deref() == Some("Stale") {
        let before = known.iter();
        let before = before.filter(|it| it.group == group && it.version == name);
        let missing = before.filter(|it| found.iter().all(|found| found.plural != it.plural));
        let missing: Vec<_> = missing.map(|it| DiscoveredResource::clone(it)).collect();
        found.extend(missing);
    }
    found
}

fn described(
    group: &str,
    version: &str,
    resource: &APIResourceDiscovery,
) -> Option<DiscoveredResource> {
    let kind = resource.response_kind.as_ref()?.kind.clone()?;
    let subresources = resource.subresources.iter();
    Some(DiscoveredResource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: resource.resource.clone()?,
        singular: singular(resource.singular_resource.as_ref(), &kind),
        kind,
        short_names: resource.short_names.iter().cloned().collect(),
        categories: resource.categories.iter().cloned().collect(),
        subresources: subresources
            .filter_map(|it| it.subresource.clone())
            .collect(),
        verbs: resource.verbs.iter().cloned().collect(),
        namespaced: resource.scope.as_deref() == Some("Namespaced"),
        preferred: false,
    })
}

/// The singular name, which some API servers leave empty.
fn singular(listed: Option<&String>, kind: &str) -> String {
    let listed = listed.filter(|singular| !singular.is_empty());
    listed.map_or_else(|| kind.to_lowercase(), Clone::clone)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn resource(kind: &str) -> Value {
        let singular = kind.to_lowercase();
        json!({
            "resource": format!("{singular}s"), "singularResource": singular, "scope": "Namespaced",
            "responseKind": {"group": "", "version": "", "kind": kind},
            "verbs": ["get", "list", "watch"], "shortNames": ["w"], "categories": ["toys"],
            "subresources": [{"subresource": "status", "verbs": ["patch"]}],
        })
    }

    fn group(versions: &Value) -> APIGroupDiscovery {
        let group = json!({"metadata": {"name": "example.com"}, "versions": versions});
        serde_json::from_value(group).expect("a group")
    }

    fn names(catalog: &Catalog) -> Vec<(String, String, bool)> {
        let names = catalog.iter();
        names
            .map(|it| (it.version.clone(), it.plural.clone(), it.preferred))
            .collect()
    }

    #[test]
    fn each_resource_is_preferred_in_the_first_version_that_has_it() {
        let group = group(&json!([
            {"version": "v1", "resources": [resource("Widget")], "freshness": "Current"},
            {"version": "v1beta1", "resources": [resource("Widget"), resource("Gadget")]},
        ]));
        let catalog = read([&group].into_iter(), &Catalog::new());
        let expected = [
            ("v1", "widgets", true),
            ("v1beta1", "widgets", false),
            ("v1beta1", "gadgets", true),
        ];
        let expected = expected.map(|(v, p, preferred)| (v.to_owned(), p.to_owned(), preferred));
        assert_eq!(names(&catalog), expected);
        let widget = &catalog[0];
        assert!(widget.namespaced && widget.has_status() && widget.is_watchable());
        assert_eq!(widget.short_names, BTreeSet::from(["w".to_owned()]));
        assert_eq!(widget.categories, BTreeSet::from(["toys".to_owned()]));
    }

    #[test]
    fn resources_of_a_stale_version_stay_known() {
        let current = group(&json!([{"version": "v1", "resources": [resource("Widget")]}]));
        let known = read([&current].into_iter(), &Catalog::new());
        let stale = group(&json!([{"version": "v1", "resources": [], "freshness": "Stale"}]));
        assert_eq!(read([&stale].into_iter(), &known), known);
        let gone = group(&json!([{"version": "v1", "resources": [], "freshness": "Current"}]));
        assert_eq!(read([&gone].into_iter(), &known), Catalog::new());
    }
}
