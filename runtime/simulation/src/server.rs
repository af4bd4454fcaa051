//! The simulated API server: deterministic, in memory, without a clock of its own.
//!
//! It follows the real kube-apiserver, against which `cargo test -p kopf-tests --test simulation`
//! holds it. What it leaves out: the owners in managed fields, server-side apply, tables, protobuf,
//! conversion between versions, CEL rules and everything that controllers do.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::time::VirtualTime;

mod access;
mod admission;
mod answer;
mod decode;
mod delete;
mod kind;
mod list;
mod metadata;
mod object_view;
mod ownership;
mod patch;
mod request;
mod schema;
mod selector;
mod store;
mod watch;
mod write;

use access::CheckedAccess;
use store::{ObjectPath, ObjectStore};

pub use access::AccessRule;
pub use admission::{AdmissionAction, AdmissionRule, AdmissionStage};
pub use answer::{AnswerBody, ApiAnswer, Failure, FieldError, ListType, ObjectList, StatusDetails};
pub use kind::{KindDefinition, KindId, Scope, StatusSubresource};
pub(crate) use object_view::version;
pub use request::{
    ApiRequest, DeletePreconditions, Endpoint, ListOptions, ObjectForm, SimulatedPatch, Verb,
    WatchOptions,
};
pub use watch::{OpenWatch, ServerEvent, ServerEventType, WatchPoll};

/// The revision of a server that has nothing stored: a real one is never new.
const FIRST_REVISION: u64 = 1000;

/// A simulated API server.
#[derive(Debug)]
pub struct ApiServer {
    store: ObjectStore,
    kinds: Vec<Served>,
    namespaces: KindId,
    webhooks: Vec<AdmissionRule>,
    access: Vec<AccessRule>,
    now: VirtualTime,
    /// The source of uids and names.
    numbers: u64,
}

#[derive(Debug)]
struct Served {
    definition: Arc<KindDefinition>,
    is_served: bool,
}

impl Default for ApiServer {
    fn default() -> Self {
        Self::new()
    }
}

// === impl ApiServer ===

impl ApiServer {
    /// A server with namespaces only.
    #[must_use]
    pub fn new() -> Self {
        let mut server = Self {
            store: ObjectStore::new(FIRST_REVISION),
            kinds: Vec::new(),
            namespaces: KindId(0),
            webhooks: Vec::new(),
            access: Vec::new(),
            now: VirtualTime::default(),
            numbers: 0,
        };
        static NAMESPACES: OnceLock<Arc<KindDefinition>> = OnceLock::new();
        let namespaces = NAMESPACES.get_or_init(|| KindDefinition::namespaces().into());
        server.namespaces = server.define(Arc::clone(namespaces));
        server
    }

    /// Serves a kind.
    pub fn define(&mut self, definition: impl Into<Arc<KindDefinition>>) -> KindId {
        let definition = definition.into();
        let known = self.kinds.iter().position(|it| {
            it.definition.plural == definition.plural && it.definition.group == definition.group
        });
        if let Some(index) = known {
            self.kinds[index] = Served {
                definition,
                is_served: true,
            };
            return KindId(index);
        }
        self.kinds.push(Served {
            definition,
            is_served: true,
        });
        self.store.add_kind()
    }

    /// The kind of namespaces.
    #[must_use]
    pub fn namespaces(&self) -> KindId {
        self.namespaces
    }

    /// The definition of a kind.
    #[must_use]
    pub fn definition(&self, kind: KindId) -> &KindDefinition {
        &self.kinds[kind.0].definition
    }

    /// Creates a namespace, if it does not exist.
    pub fn create_namespace(&mut self, name: &str) {
        let body = json!({"metadata": {"name": name}});
        // A second creation fails, which leaves the first one in place.
        let _ = self.create(self.namespaces, None, &body);
    }

    /// Replaces the webhooks.
    pub fn set_webhooks(&mut self, webhooks: Vec<AdmissionRule>) {
        self.webhooks = webhooks;
    }

    /// Replaces the permissions that users lack.
    pub fn set_access_rules(&mut self, rules: Vec<AccessRule>) {
        self.access = rules;
    }

    /// The revision of the last write.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.store.revision()
    }

    /// The present time of the server.
    #[must_use]
    pub fn now(&self) -> VirtualTime {
        self.now
    }

    /// Moves the time of the server.
    pub fn set_now(&mut self, now: VirtualTime) {
        self.now = now;
    }

    /// Forgets all writes but the last ones: older versions and pages answer with 410.
    pub fn compact(&mut self, keep: usize) {
        self.store.compact(keep);
    }

    /// The present state of an object, past all permissions.
    #[must_use]
    pub fn peek(&self, kind: KindId, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        let path = ObjectPath {
            namespace: namespace.into(),
            name: name.into(),
        };
        self.store.get(kind, &path).map(|stored| &stored.object)
    }

    /// All present objects of a kind, past all permissions.
    pub fn peek_all(&self, kind: KindId) -> impl Iterator<Item = &Arc<Value>> {
        self.store.objects(kind).map(|(_, stored)| &stored.object)
    }

    /// Answers a request.
    pub fn handle(&mut self, request: &ApiRequest) -> ApiAnswer {
        match self.try_handle(request) {
            Ok(answer) => answer,
            Err(failure) => failure.into(),
        }
    }

    fn try_handle(&mut self, request: &ApiRequest) -> Result<ApiAnswer, Failure> {
        let kind = request.kind;
        let Served {
            definition,
            is_served,
        } = &self.kinds[kind.0];
        if !is_served {
            return Ok(ApiAnswer::page_not_found());
        }
        CheckedAccess::of(request).check(&self.access, definition)?;
        let path = |name: &Arc<str>| ObjectPath {
            namespace: request.namespace.clone().unwrap_or_else(|| "".into()),
            name: Arc::clone(name),
        };
        match &request.verb {
            Verb::Get { name } => match self.store.get(kind, &path(name)) {
                Some(stored) => Ok(ApiAnswer::object(200, Arc::clone(&stored.object))),
                None => Err(Failure::not_found(definition, name)),
            },
            Verb::List(options) => self.list(kind, request.namespace.as_ref(), options),
            Verb::Create { body } => {
                decode::check_length(body)?;
                self.create(kind, request.namespace.as_ref(), body)
            }
            Verb::Update {
                name,
                endpoint,
                body,
            } => {
                decode::check_length(body)?;
                self.update(kind, path(name), *endpoint, body)
            }
            Verb::Patch {
                name,
                endpoint,
                patch,
            } => {
                let (SimulatedPatch::Merge(body) | SimulatedPatch::Json(body)) = patch;
                decode::check_length(body)?;
                self.patch(kind, path(name), *endpoint, patch)
            }
            Verb::Delete {
                name,
                preconditions,
            } => self.delete(kind, &path(name), preconditions),
        }
    }

    /// Opens a watch.
    pub fn watch(
        &self,
        user: &str,
        kind: KindId,
        namespace: Option<&Arc<str>>,
        options: &WatchOptions,
    ) -> Result<OpenWatch, ApiAnswer> {
        let Served {
            definition,
            is_served,
        } = &self.kinds[kind.0];
        if !is_served {
            return Err(ApiAnswer::page_not_found());
        }
        let access = CheckedAccess {
            user,
            kind,
            verb: "watch",
            endpoint: Endpoint::Object,
            namespace: namespace.map(|it| &**it),
            name: None,
        };
        access.check(&self.access, definition)?;
        Ok(self.open(kind, namespace.cloned(), options)?)
    }

    /// A number that no other call returns.
    fn take_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }
}
