//! The objects of one kind in a sandbox.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::wait::{self, Wait};
use super::{DEFAULT_TIMEOUT, SandboxState};
use crate::test_failure::TestFailure;

/// The objects of one kind, in the sandbox's namespace unless the kind is cluster-scoped.
#[derive(Clone)]
pub struct Objects {
    state: Arc<SandboxState>,
    resource: ApiResource,
    api: Api<DynamicObject>,
    limit: Duration,
}

// === impl Objects ===

impl Objects {
    pub(super) fn new(
        state: Arc<SandboxState>,
        resource: ApiResource,
        namespace: Option<String>,
    ) -> Self {
        let client = state.client.clone();
        let api = match namespace {
            Some(namespace) => Api::namespaced_with(client, &namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        Self {
            state,
            resource,
            api,
            limit: DEFAULT_TIMEOUT,
        }
    }

    /// The same objects with another time limit of waits.
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = limit;
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

    /// The underlying API of kube.
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

    /// Requests the deletion of an object.
    pub async fn delete(&self, name: &str) -> kube::Result<()> {
        self.api
            .delete(name, &DeleteParams::background())
            .await
            .map(drop)
    }

    /// Waits until the object exists and `holds` is true. A failure shows the object, its events and
    /// the logs of the operators.
    #[track_caller]
    pub fn wait_until(
        &self,
        name: &str,
        what: &str,
        holds: impl FnMut(&DynamicObject) -> bool,
    ) -> impl Future<Output = Result<DynamicObject, TestFailure>> {
        let failure = TestFailure::at_caller();
        async move {
            let wait = self.wait_for(name);
            self.wait(failure, &wait, what, holds).await
        }
    }

    /// The same for a state that may be short: checks every state from `earlier` on.
    #[track_caller]
    pub fn wait_from(
        &self,
        earlier: DynamicObject,
        what: &str,
        holds: impl FnMut(&DynamicObject) -> bool,
    ) -> impl Future<Output = Result<DynamicObject, TestFailure>> {
        let failure = TestFailure::at_caller();
        async move {
            let name = earlier.metadata.name.clone().unwrap_or_default();
            let mut wait = self.wait_for(&name);
            wait.from = wait::WaitStart::Earlier(Box::new(earlier));
            self.wait(failure, &wait, what, holds).await
        }
    }

    async fn wait(
        &self,
        failure: TestFailure,
        wait: &Wait<'_>,
        what: &str,
        mut holds: impl FnMut(&DynamicObject) -> bool,
    ) -> Result<DynamicObject, TestFailure> {
        let name = wait.name;
        match wait::until(wait, |object| object.is_some_and(&mut holds)).await {
            Ok(Some(object)) => Ok(object),
            Ok(None) => Err(failure.with_message(format!("`{name}` existed and is gone"))),
            Err(last) => Err(failure.with_message(self.report(name, what, last).await)),
        }
    }

    /// Waits until the object does not exist.
    #[track_caller]
    pub fn wait_gone(&self, name: &str) -> impl Future<Output = Result<(), TestFailure>> {
        let failure = TestFailure::at_caller();
        async move {
            match wait::until(&self.wait_for(name), |object| object.is_none()).await {
                Ok(_) => Ok(()),
                Err(last) => Err(failure.with_message(self.report(name, "it is gone", last).await)),
            }
        }
    }

    fn wait_for<'a>(&'a self, name: &'a str) -> Wait<'a> {
        Wait {
            api: &self.api,
            name,
            limit: self.limit,
            from: wait::WaitStart::Now,
        }
    }

    async fn report(&self, name: &str, what: &str, last: wait::LastObserved) -> String {
        let kind = &self.resource.kind;
        let title = format!(
            "{kind} `{name}`: still waiting after {} s until {what}",
            self.limit.as_secs()
        );
        wait::describe(&self.state, title, name, last).await
    }
}
