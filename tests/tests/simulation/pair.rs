//! The real API server and the simulated one, side by side.

use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http_body_util::BodyExt as _;
use kopf_simulation::server::{
    ApiRequest, ApiServer, KindDefinition, KindId, Scope, Verb, WatchOptions, WatchPoll,
};
use kopf_tests::{Sandbox, TestFailure, User};
use kube::Client;
use serde_json::{Value, json};

use super::answers::{Memory, Relations};
use super::http;

/// The time in which the real server sends the events that have happened.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(30);

/// The duration of a watch whose last event is not known: enough for a busy API server.
const REPLAY: Duration = Duration::from_secs(3);

const BOOKMARK_TRIES: usize = 5;

/// Both servers, with the kinds that both serve.
pub(crate) struct Pair {
    sandbox: Sandbox,
    client: Client,
    user: String,
    simulated: ApiServer,
    pub(crate) kinds: PairKinds,
    real_memory: Memory,
    simulated_memory: Memory,
    relations: Relations,
    differences: Vec<String>,
    requests: usize,
}

/// The kinds that both servers serve.
#[derive(Clone, Copy)]
pub(crate) struct PairKinds {
    /// A kind with a status subresource and a schema.
    pub(crate) widgets: KindId,
    /// The same without a status subresource.
    pub(crate) gadgets: KindId,
    /// A cluster-scoped kind.
    pub(crate) regions: KindId,
    /// A kind without a status subresource that keeps all fields.
    pub(crate) open: KindId,
    /// The same with a status subresource.
    pub(crate) open_with_status: KindId,
    pub(crate) leases: KindId,
    pub(crate) config_maps: KindId,
    pub(crate) namespaces: KindId,
}

// === impl Pair ===

impl Pair {
    /// Opens a sandbox on the real server, and an equal one on the simulated server.
    pub(crate) async fn open(name: &str) -> Result<Self, TestFailure> {
        Self::with_sandbox(Sandbox::open(name).await?).await
    }

    /// The same in a given sandbox.
    pub(crate) async fn with_sandbox(sandbox: Sandbox) -> Result<Self, TestFailure> {
        let mut simulated = ApiServer::new();
        simulated.create_namespace(sandbox.namespace());
        let mut custom = Vec::new();
        for (kind, scope, status) in [
            ("Widget", "Namespaced", true),
            ("Gadget", "Namespaced", false),
            ("Region", "Cluster", true),
        ] {
            let definition = definition(sandbox.group(), kind, scope, status);
            sandbox.apply(&definition.to_string()).await?;
            custom.push(simulated.define(KindDefinition::from_crd(&definition)));
        }
        for (kind, status) in [("Thing", false), ("Item", true)] {
            let definition = open_definition(sandbox.group(), kind, status);
            sandbox.apply(&definition.to_string()).await?;
            custom.push(simulated.define(KindDefinition::from_crd(&definition)));
        }
        let kinds = PairKinds {
            widgets: custom[0],
            gadgets: custom[1],
            regions: custom[2],
            open: custom[3],
            open_with_status: custom[4],
            leases: simulated.define(KindDefinition::leases()),
            config_maps: simulated.define(KindDefinition::config_maps()),
            namespaces: simulated.namespaces(),
        };
        Ok(Self {
            client: sandbox.client(),
            user: sandbox.client_user().name().to_owned(),
            sandbox,
            simulated,
            kinds,
            real_memory: Memory::default(),
            simulated_memory: Memory::default(),
            relations: Relations::default(),
            differences: Vec::new(),
            requests: 0,
        })
    }

    pub(crate) fn api_version(&self, kind: KindId) -> String {
        self.simulated.definition(kind).api_version()
    }

    pub(crate) fn kind_name(&self, kind: KindId) -> &str {
        &self.simulated.definition(kind).kind
    }

    /// A request in the sandbox's namespace, or for a cluster-scoped kind.
    pub(crate) fn request(&self, kind: KindId, verb: Verb) -> ApiRequest {
        ApiRequest {
            user: self.user.as_str().into(),
            kind,
            namespace: self.namespace(kind),
            verb,
        }
    }

    /// The sandbox's namespace, if the kind is namespaced.
    pub(crate) fn namespace(&self, kind: KindId) -> Option<Arc<str>> {
        let scope = self.simulated.definition(kind).scope;
        (scope == Scope::Namespaced).then(|| self.sandbox.namespace().into())
    }

    /// Sends all further requests as this user.
    pub(crate) async fn act_as(&mut self, user: &User) -> Result<(), TestFailure> {
        self.client = self.sandbox.control_plane().client(user).await?;
        user.name().clone_into(&mut self.user);
        Ok(())
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    pub(crate) fn simulated(&mut self) -> &mut ApiServer {
        &mut self.simulated
    }

    /// Sends a request to both servers, and compares the answers. Returns the simulated one.
    pub(crate) async fn send(
        &mut self,
        context: &str,
        request: &ApiRequest,
    ) -> Result<Value, TestFailure> {
        self.requests += 1;
        let definition = self.simulated.definition(request.kind);
        let to_real = self.real_memory.resolve(request);
        let response = self
            .client
            .send(http::request(definition, &to_real)?)
            .await?;
        let real_code = response.status().as_u16();
        let bytes = response.into_body().collect().await?.to_bytes();
        let real: Value = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));

        let to_simulated = self.simulated_memory.resolve(request);
        let answer = self.simulated.handle(&to_simulated);
        let simulated = answer.to_json();

        self.real_memory.observe(&real);
        self.simulated_memory.observe(&simulated);
        let relation = self.relations.observe(&real, &simulated);
        let (real_form, simulated_form) = (
            self.real_memory.comparable(&real),
            self.simulated_memory.comparable(&simulated),
        );
        let same = real_code == answer.code && real_form == simulated_form;
        if !same || relation.is_err() {
            self.differences.push(format!(
                "{context}: {:.500}\n  real      {real_code} {real_form}\n  simulated {} \
                 {simulated_form}\n  {relation:?}",
                format!("{:?}", to_simulated.verb),
                answer.code
            ));
        }
        Ok(simulated)
    }

    /// Compares the events that both servers replay, up to the creation of the object `last`; if
    /// the watch does not select that one, for some seconds.
    pub(crate) async fn compare_watch(
        &mut self,
        context: &str,
        kind: KindId,
        options: &WatchOptions,
        last: Option<&str>,
    ) -> Result<(), TestFailure> {
        let namespace = self.namespace(kind);
        let definition = self.simulated.definition(kind).clone();
        let mut options = options.clone();
        options.timeout = options.timeout.or(last.is_none().then_some(REPLAY));
        let to_real = self.real_memory.resolve_watch(&options);
        let request = http::watch(&definition, namespace.as_deref(), &to_real)?;
        let mut real = self.read_events(request, last).await?;
        if options.bookmarks && options.timeout.is_some() {
            // A busy API server may be too late for the bookmark before the end of the watch.
            let is_bookmark = |event: &Value| event["type"] == "BOOKMARK";
            for _ in 0..BOOKMARK_TRIES {
                if real.iter().any(is_bookmark) {
                    break;
                }
                let request = http::watch(&definition, namespace.as_deref(), &to_real)?;
                real = self.read_events(request, last).await?;
            }
        }
        let to_simulated = self.simulated_memory.resolve_watch(&options);
        let simulated = self.simulated_events(kind, namespace.as_ref(), &to_simulated);
        let compared = real.iter().zip(&simulated);
        let relation: Result<(), String> = compared
            .filter(|(event, _)| event["type"] != "BOOKMARK")
            .try_for_each(|(real, simulated)| {
                self.relations
                    .observe(&real["object"], &simulated["object"])
            });
        let comparable = |memory: &Memory, events: &[Value]| -> Vec<Value> {
            let mut events: Vec<Value> = events.iter().map(|it| memory.comparable(it)).collect();
            // Other writers move the real server's revision, which makes further bookmarks.
            events.dedup_by(|one, other| one["type"] == "BOOKMARK" && one == other);
            events
        };
        let real = comparable(&self.real_memory, &real);
        let simulated = comparable(&self.simulated_memory, &simulated);
        if real != simulated || relation.is_err() {
            let show = |events: &[Value]| {
                let lines: Vec<String> = events.iter().map(|it| format!("\n    {it}")).collect();
                lines.concat()
            };
            self.differences.push(format!(
                "{context}: watch {options:?}\n  real{}\n  simulated{}\n  {relation:?}",
                show(&real),
                show(&simulated)
            ));
        }
        Ok(())
    }

    async fn read_events(
        &self,
        request: ::http::Request<kube::client::Body>,
        last: Option<&str>,
    ) -> Result<Vec<Value>, TestFailure> {
        let response = self.client.send(request).await?;
        if !response.status().is_success() {
            let bytes = response.into_body().collect().await?.to_bytes();
            return Ok(vec![serde_json::from_slice(&bytes)?]);
        }
        let stream = response.into_body().into_data_stream();
        let stream = stream.map_err(std::io::Error::other);
        let mut lines = stream.into_async_read().lines();
        let mut events: Vec<Value> = Vec::new();
        let read = async {
            while let Some(line) = futures::TryStreamExt::try_next(&mut lines).await? {
                let event: Value = serde_json::from_str(&line)?;
                let is_last = event["type"] == "ADDED"
                    && event["object"]["metadata"]["name"].as_str() == last
                    && last.is_some();
                events.push(event);
                if is_last {
                    break;
                }
            }
            Ok::<(), TestFailure>(())
        };
        match tokio::time::timeout(EVENTS_TIMEOUT, read).await {
            Ok(read) => read?,
            Err(_) => events.push(json!("no further event")),
        }
        Ok(events)
    }

    fn simulated_events(
        &self,
        kind: KindId,
        namespace: Option<&Arc<str>>,
        options: &WatchOptions,
    ) -> Vec<Value> {
        let user = &self.user;
        let mut watch = match self.simulated.watch(user, kind, namespace, options) {
            Ok(watch) => watch,
            Err(answer) => return vec![answer.to_json()],
        };
        let mut events = Vec::new();
        while let WatchPoll::Event(event) = self.simulated.poll(&mut watch) {
            events.push(event.to_json());
        }
        if options.timeout.is_some() && options.bookmarks {
            events.extend(self.simulated.bookmark(&mut watch).map(|it| it.to_json()));
        }
        events
    }

    /// Fails if the servers have differed.
    pub(crate) fn finish(self) -> Result<(), TestFailure> {
        if self.differences.is_empty() {
            return Ok(());
        }
        let count = self.differences.len();
        Err(TestFailure::new(format!(
            "{count} of {} requests differ:\n{}",
            self.requests,
            self.differences.join("\n")
        )))
    }

    /// Whether the servers have differed so often that more says nothing new.
    pub(crate) fn differs_often(&self) -> bool {
        self.differences.len() >= 5
    }
}

/// The definition of a kind, which both servers read.
fn definition(group: &str, kind: &str, scope: &str, status: bool) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 10},
        "color": {"type": "string", "enum": ["red", "green"]},
        "short": {"type": "string", "maxLength": 5, "minLength": 2},
        "list": {"type": "array", "maxItems": 3, "items": {
            "type": "object", "required": ["key"],
            "properties": {"key": {"type": "string"}, "n": {"type": "integer"}},
        }},
        "texts": {"type": "object", "additionalProperties": {"type": "string"}},
        "maybe": {"type": "string", "nullable": true},
        "filled": {"type": "string", "default": "yes"},
        "port": {"x-kubernetes-int-or-string": true},
        "any": any,
    }});
    let status_schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"phase": {"type": "string"}}});
    let mut version = json!({
        "name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {
            "type": "object", "properties": {"spec": spec, "status": status_schema},
        }},
    });
    if status {
        version["subresources"] = json!({"status": {}});
    }
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": singular},
            "versions": [version],
        },
    })
}

/// The definition of a kind that keeps all fields.
fn open_definition(group: &str, kind: &str, status: bool) -> Value {
    let mut definition = definition(group, kind, "Namespaced", status);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
        json!({"spec": any, "status": any});
    definition
}
