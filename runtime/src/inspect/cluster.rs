//! Finds the kinds and lists the objects that are inspected.

use std::io::{self, Write as _};
use std::sync::Arc;

use kopf_core::selection::DiscoveredResource;
use kopf_core::selection::resolve::{
    Resolution, ResourceDemand, SelectionFinding, Wanted, resolve,
};
use kube::api::{DynamicObject, ListParams};
use kube::core::{ApiResource, PartialObjectMeta};
use kube::{Api, Client};
use serde_json::Value;

use super::args::InspectTarget;
use super::{InspectError, InspectedObject, InspectedOperator, KnownHandlers, REQUEST_TIMEOUT};
use crate::client::discovery::{self, Catalog};

/// The number of objects that one request lists.
const PAGE: u32 = 500;

/// The objects that are inspected.
pub(super) struct InspectedObjects<'a> {
    operator: &'a InspectedOperator,
    pub(super) kinds: Vec<KindObjects>,
    name: Option<String>,
    /// Whether objects without traces of an operator are left out: any operator is meant.
    hides_untouched: bool,
}

/// The objects of one kind, in one namespace or in all.
pub(super) struct KindObjects {
    handlers: KnownHandlers,
    pub(super) resource: Arc<DiscoveredResource>,
    pub(super) api: Api<DynamicObject>,
}

/// The objects of one kind, and the version of the list.
pub(super) struct KindList {
    pub(super) objects: Vec<DynamicObject>,
    pub(super) version: String,
}

impl<'a> InspectedObjects<'a> {
    /// Finds the kinds of the target, or of the operator.
    pub(super) async fn find(
        operator: &'a InspectedOperator,
        client: Client,
        target: Option<&InspectTarget>,
        namespaces: &[String],
    ) -> Result<Self, InspectError> {
        let catalog = discovery::catalog(&client, &Vec::new(), REQUEST_TIMEOUT).await?;
        let own = own_kinds(operator, &catalog);
        let found = match target {
            Some(target) => {
                // Kinds of other operators may have the same name.
                let names: Catalog = own.iter().map(|(it, _)| Arc::clone(it)).collect();
                let resource = match resource_of(target, &names) {
                    Err(InspectError::UnknownKind(_)) => resource_of(target, &catalog)?,
                    found => found?,
                };
                let own = own.into_iter().find(|(it, _)| *it == resource);
                vec![own.unwrap_or((resource, KnownHandlers::default()))]
            }
            None if !operator.kinds.is_empty() => own,
            None => custom_resources(&client, &catalog).await?,
        };
        let kinds = found.into_iter().flat_map(|(resource, handlers)| {
            let apis = apis(&client, &resource, namespaces);
            apis.into_iter().map(move |api| KindObjects {
                handlers: handlers.clone(),
                resource: Arc::clone(&resource),
                api,
            })
        });
        Ok(Self {
            operator,
            kinds: kinds.collect(),
            name: target.and_then(|target| target.name.clone()),
            hides_untouched: target.is_none() && operator.kinds.is_empty(),
        })
    }

    /// Lists and inspects all objects.
    pub(super) async fn list(&self) -> Result<Vec<InspectedObject>, InspectError> {
        let mut found = Vec::new();
        for kind in &self.kinds {
            let listed = match kind.list(self.name.as_deref()).await {
                // The others may be readable.
                Err(error) if self.kinds.len() > 1 => {
                    warn(&error)?;
                    continue;
                }
                listed => listed?,
            };
            found.extend(
                listed
                    .objects
                    .iter()
                    .filter_map(|it| self.inspect(kind, it)),
            );
        }
        Ok(found)
    }

    /// Inspects one object; none if it is not to be shown.
    pub(super) fn inspect(
        &self,
        kind: &KindObjects,
        object: &DynamicObject,
    ) -> Option<InspectedObject> {
        let body = kind.body(object);
        let inspector = self.operator.inspector(&kind.handlers);
        let object = InspectedObject::new(&body, &kind.resource.kind, &inspector);
        (!self.hides_untouched || object.inspection.has_traces()).then_some(object)
    }

    /// An object without finalizer and records; none if it has neither.
    pub(super) fn released(&self, kind: &KindObjects, body: &Value) -> Option<Value> {
        self.operator.inspector(&kind.handlers).released(body)
    }

    /// The name of the object that was asked for.
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The target, for an error.
    pub(super) fn describe_target(&self) -> String {
        let kind = self.kinds.first().map(|kind| kind.resource.kind.as_str());
        let name = self.name.as_deref().unwrap_or_default();
        format!("{} {name:?}", kind.unwrap_or("object"))
    }
}

// === impl KindObjects ===

impl KindObjects {
    pub(super) async fn list(&self, name: Option<&str>) -> Result<KindList, InspectError> {
        let mut params = ListParams::default().limit(PAGE);
        if let Some(name) = name {
            params = params.fields(&format!("metadata.name={name}"));
        }
        let mut objects = Vec::new();
        loop {
            let page = self.api.list(&params).await;
            let page = page.map_err(|source| self.failed("list", source))?;
            objects.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => {
                    let version = page.metadata.resource_version.unwrap_or_default();
                    return Ok(KindList { objects, version });
                }
            }
        }
    }

    /// The objects of one namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> Api<DynamicObject> {
        let client = self.api.clone().into_client();
        Api::namespaced_with(client, namespace, &api_resource(&self.resource))
    }

    pub(super) fn failed(&self, verb: &str, source: kube::Error) -> InspectError {
        InspectError::Request {
            action: format!("cannot {verb} {}", self.resource.name()),
            source,
        }
    }

    /// The JSON of an object. Items of lists have no kind if it is a built-in one.
    pub(super) fn body(&self, object: &DynamicObject) -> Value {
        let mut body = serde_json::to_value(object).unwrap_or_default();
        if let Some(fields) = body.as_object_mut() {
            fields.insert("apiVersion".to_owned(), self.resource.api_version().into());
            fields.insert("kind".to_owned(), self.resource.kind.clone().into());
        }
        body
    }
}

/// A kind, with what is known of its handlers.
type KindWithHandlers = (Arc<DiscoveredResource>, KnownHandlers);

/// The kinds that the operator handles, as far as the API server serves them.
fn own_kinds(operator: &InspectedOperator, catalog: &Catalog) -> Vec<KindWithHandlers> {
    let demands = operator
        .kinds
        .iter()
        .map(|kind| demand(kind.wanted.clone()));
    let demands: Vec<_> = demands.collect();
    let Resolution { served, .. } = resolve(&demands, catalog);
    let kinds = served.into_iter().map(|served| {
        let mut handlers = KnownHandlers::default();
        for kind in served
            .demands
            .iter()
            .filter_map(|it| operator.kinds.get(*it))
        {
            handlers.ids.extend(kind.handlers.ids.iter().cloned());
            let rules = &kind.handlers.rules;
            handlers.rules.watched.extend(rules.watched.iter().cloned());
            handlers.rules.ignored.clone_from(&rules.ignored);
        }
        (served.resource, handlers)
    });
    kinds.collect()
}

fn resource_of(
    target: &InspectTarget,
    catalog: &Catalog,
) -> Result<Arc<DiscoveredResource>, InspectError> {
    for selector in target.selectors() {
        let demand = demand(Wanted::Selected(selector));
        let Resolution { served, findings } = resolve(&[demand], catalog);
        if let Some(served) = served.into_iter().next() {
            return Ok(served.resource);
        }
        for finding in findings.into_iter().flatten() {
            if let SelectionFinding::Ambiguous(candidates) = finding {
                return Err(InspectError::AmbiguousKind {
                    name: target.kind_text(),
                    candidates: candidates.join(", "),
                });
            }
        }
    }
    Err(InspectError::UnknownKind(target.kind_text()))
}

fn demand(wanted: Wanted) -> ResourceDemand {
    ResourceDemand {
        wanted,
        writes: false,
    }
}

/// All kinds that have a CustomResourceDefinition.
async fn custom_resources(
    client: &Client,
    catalog: &Catalog,
) -> Result<Vec<KindWithHandlers>, InspectError> {
    let definitions = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client.clone(), &definitions);
    let listed = api.list_metadata(&ListParams::default()).await;
    let listed = listed.map_err(InspectError::Definitions)?;
    let names: Vec<String> = listed
        .items
        .into_iter()
        .filter_map(|it| it.metadata.name)
        .collect();
    let custom = catalog
        .iter()
        .filter(|it| it.preferred && it.is_watchable() && names.contains(&it.name()));
    Ok(custom
        .map(|it| (Arc::clone(it), KnownHandlers::default()))
        .collect())
}

fn apis(
    client: &Client,
    resource: &DiscoveredResource,
    namespaces: &[String],
) -> Vec<Api<DynamicObject>> {
    let kind = api_resource(resource);
    if namespaces.is_empty() || !resource.namespaced {
        return vec![Api::all_with(client.clone(), &kind)];
    }
    let namespaced = |namespace: &String| Api::namespaced_with(client.clone(), namespace, &kind);
    namespaces.iter().map(namespaced).collect()
}

fn api_resource(resource: &DiscoveredResource) -> ApiResource {
    ApiResource {
        group: resource.group.clone(),
        version: resource.version.clone(),
        api_version: resource.api_version(),
        kind: resource.kind.clone(),
        plural: resource.plural.clone(),
    }
}

/// Reports a kind that cannot be read, while others can.
fn warn(error: &InspectError) -> io::Result<()> {
    writeln!(io::stderr(), "warning: {}", super::text::chain(error))
}
