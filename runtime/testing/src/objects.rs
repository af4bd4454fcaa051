//! The objects of one kind in the namespace of a test.

use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::Value;

use super::{Cluster, TestFailure, TestResult};

/// Creates, changes, deletes and awaits objects of one kind.
#[derive(Clone)]
pub struct Objects {
    cluster: Cluster,
    resource: ApiResource,
    api: Api<DynamicObject>,
}

impl Objects {
    pub(super) fn new(cluster: &Cluster, api_version: &str, kind: &str, plural: &str) -> Self {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let kind = GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        Self {
            api: Api::namespaced_with(cluster.client(), cluster.namespace(), &resource),
            cluster: cluster.clone(),
            resource,
        }
    }

    /// The API client for these objects.
    #[must_use]
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Creates an object of this name; the body has labels, annotations, `spec` and so on.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn create(&self, name: &str, body: Value) -> Result<DynamicObject, TestFailure> {
        let mut object = DynamicObject::new(name, &self.resource);
        let Value::Object(mut body) = body else {
            return Err(TestFailure::new("the body is not a JSON object"));
        };
        if let Some(metadata) = body.remove("metadata") {
            object.metadata = serde_json::from_value(metadata)?;
            object.metadata.name = Some(name.to_owned());
        }
        object.data = Value::Object(body);
        Ok(self.api.create(&PostParams::default(), &object).await?)
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn merge(&self, name: &str, patch: Value) -> Result<DynamicObject, TestFailure> {
        let parameters = PatchParams::default();
        Ok(self
            .api
            .patch(name, &parameters, &Patch::Merge(patch))
            .await?)
    }

    /// Requests the deletion of an object, and does not wait for it.
    ///
    /// # Errors
    /// If the API server rejects it.
    pub async fn delete(&self, name: &str) -> TestResult {
        self.api.delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until `holds` is true for the object.
    ///
    /// # Errors
    /// If it is not within the timeout; with the last state of the object.
    pub async fn until(
        &self,
        name: &str,
        what: &str,
        holds: impl Fn(&DynamicObject) -> bool,
    ) -> Result<DynamicObject, TestFailure> {
        let ask = async || Ok(self.api.get_opt(name).await?.filter(|object| holds(object)));
        let waited = self.cluster.eventually(what, ask).await;
        let Err(failure) = waited else {
            return waited;
        };
        let last = self.api.get_opt(name).await?;
        let last = last.map_or("it does not exist".to_owned(), |object| {
            serde_json::to_string_pretty(&object).unwrap_or_default()
        });
        Err(TestFailure::new(format!(
            "{failure:?}\nthe last state of {name}: {last}"
        )))
    }

    /// Waits until there is no object of this name.
    ///
    /// # Errors
    /// If it still exists after the timeout.
    pub async fn until_gone(&self, name: &str) -> TestResult {
        let what = format!("{name} is gone");
        let ask = async || {
            let object = self.api.get_opt(name).await?;
            Ok(object.is_none().then_some(()))
        };
        self.cluster.eventually(&what, ask).await
    }
}
