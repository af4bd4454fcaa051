//! What every handler has around it, whatever it is called for.

use std::sync::Arc;

use kube::core::NamespaceResourceScope;
use kube::{Api, Client};

use crate::activity::Activity;
use crate::engine::posting::{EventSeverity, Poster, Subject};
use crate::index::Indices;
use crate::memo::AnyMemo;

/// The client, the way to tell people about the object, and the leave to do so.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) subject: Arc<Subject>,
    pub(crate) client: Client,
    pub(crate) poster: Option<Poster>,
    pub(crate) activity: Activity,
    /// None if the kind has no memos.
    pub(crate) memo: Option<AnyMemo>,
    pub(crate) indices: Indices,
}

impl Surroundings {
    pub(crate) fn api<T>(&self) -> Api<T>
    where
        T: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let client = self.client.clone();
        match &self.subject.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::default_namespaced(client),
        }
    }

    pub(crate) fn post(&self, severity: EventSeverity, reason: &str, message: &str) {
        if let Some(poster) = &self.poster {
            poster.post(&self.subject, severity, reason, message);
        }
    }
}
