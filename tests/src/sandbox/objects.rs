//! The objects of one kind in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::wait::{self, Wait};
use super::{PATIENCE, Place};
use crate::failure::Failure;

/// The objects of one kind, in the sandbox's namespace unless the kind has none.
#[derive(Clone)]
pub struct Objects {
    place: Arc<Place>,
    resource: ApiResource,
    api: Api<DynamicObject>,
    patience: Duration,
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(place: Arc<Place>, resource: ApiResource, namespace: Option<String>) -> Self {
        let client = place.client.clone();
        let api = match namespace {
            Some(namespace) => Api::namespaced_with(client, &namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        Self {
            place,
            resource,
            api,
            patience: PATIENCE,
        }
    }

    /// The same objects, waited for at most this long.
    #[must_use]
    pub fn within(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The same objects through another client, for example a restricted or a proxied one.
    #[must_use]
    pub fn through(mut self, client: &kube::Client) -> Self {
        self.api = match self.api.namespace() {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &self.resource),
            None => Api::all_with(client.clone(), &self.resource),
        };
        self
    }

    /// The client's view, for whatever this type does not offer.
    pub fn api(&self) -> &Api<DynamicObject> {
        &self.api
    }

    /// Group, version, kind and plural.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Creates an object from everything but its type and name.
    pub async fn create(&self, name: &str, body: Value) -> kube::Result<DynamicObject> {
        let mut object = DynamicObject::new(name, &self.resource);
        object.data = body;
        if let Some(metadata) = object
            .data
            .as_object_mut()
            .and_then(|it| it.remove("metadata"))
        {
            object.metadata = serde_json::from_value(metadata).map_err(kube::Error::SerdeError)?;
            object.metadata.name = Some(name.to_owned());
        }
        self.api.create(&PostParams::default(), &object).await
    }

    /// Reads an object.
    pub async fn get(&self, name: &str) -> kube::Result<DynamicObject> {
        self.api.get(name).await
    }

    /// Changes an object by a merge patch.
    pub async fn merge(&self, name: &str, patch: Value) -> kube::Result<DynamicObject> {
        self.api
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
    }

    /// Changes an object's status by a merge patch.
    pub async fn merge_status(&self, name: &str, status: Value) -> kube::Result<DynamicObject> {
        let patch = Patch::Merge(json!({"status": status}));
        self.api
            .patch_status(name, &PatchParams::default(), &patch)
            .await
    }

    /// Asks for the deletion of an object.
    pub async fn delete(&self, name: &str) -> kube::Result<()> {
        self.api
            .delete(name, &DeleteParams::background())
            .await
            .map(drop)
    }

    /// Waits until the object is there and `holds` says so. A failure shows the object, its events
    /// and the logs of the operators.
    #[track_caller]
    pub fn wait_until(
        &self,
        name: &str,
        what: &str,
        holds: impl FnMut(&DynamicObject) -> bool,
    ) -> impl Future<Output = Result<DynamicObject, Failure>> {
        let failure = Failure::here();
        async move {
            let wait = self.wait_for(name);
            self.wait(failure, &wait, what, holds).await
        }
    }

    /// The same for a state that may last a moment only: none from `earlier` on is missed.
    #[track_caller]
    pub fn wait_from(
        &self,
        earlier: DynamicObject,
        what: &str,
        holds: impl FnMut(&DynamicObject) -> bool,
    ) -> impl Future<Output = Result<DynamicObject, Failure>> {
        let failure = Failure::here();
        async move {
            let name = earlier.metadata.name.clone().unwrap_or_default();
            let mut wait = self.wait_for(&name);
            wait.from = wait::From::Earlier(Box::new(earlier));
            self.wait(failure, &wait, what, holds).await
        }
    }

    async fn wait(
        &self,
        failure: Failure,
        wait: &Wait<'_>,
        what: &str,
        mut holds: impl FnMut(&DynamicObject) -> bool,
    ) -> Result<DynamicObject, Failure> {
        let name = wait.name;
        match wait::until(wait, |object| object.is_some_and(&mut holds)).await {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(failure.saying(format!("`{name}` was there and is gone"))),
            Err(seen) => Err(failure.saying(self.report(name, what, seen).await)),
        }
    }

    /// Waits until there is no such object.
    #[track_caller]
    pub fn wait_gone(&self, name: &str) -> impl Future<Output = Result<(), Failure>> {
        let failure = Failure::here();
        async move {
            match wait::until(&self.wait_for(name), |object| object.is_none()).await {
                Ok(_) => Ok(()),
                Err(seen) => Err(failure.saying(self.report(name, "it is gone", seen).await)),
            }
        }
    }

    fn wait_for<'a>(&'a self, name: &'a str) -> Wait<'a> {
        Wait {
            api: &self.api,
            name,
            patience: self.patience,
            from: wait::From::Now,
        }
    }

    async fn report(&self, name: &str, what: &str, seen: wait::Seen) -> String {
        let kind = &self.resource.kind;
        let title = format!(
            "{kind} `{name}`: still waiting after {} s until {what}",
            self.patience.as_secs()
        );
        wait::describe(&self.place, title, name, seen).await
    }
}
