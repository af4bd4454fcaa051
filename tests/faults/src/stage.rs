//! What a run takes place on: the control plane, the proxy, the kinds and the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{fs, io};

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kopf_cluster::Program;
use kopf_runtime::OWNER_LABEL;
use kopf_tests::{FaultProxy, PeeringObject, PrivateControlPlane, Sandbox, TestFailure};
use kube::Api;
use kube::api::{DynamicObject, ListParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::fake_clock::FakeClock;
use crate::journal::{JournalContent, LoggedStep};
use crate::operators::{OperatorRole, OperatorSlot, ReplicaSetup};
use crate::plan::RunPlan;
use crate::tested_operator::TestedOperator;
use crate::trouble::Trouble;
use crate::watch_log::{ChildVersion, LoggedVersion as _, ObjectVersion};

/// The interval of polls.
const POLL_EVERY: Duration = Duration::from_millis(250);

/// The file with the token of the operator.
const TOKEN: &str = "token";

/// The permissions of the operator, bound to its user.
const PERMISSIONS: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAMESPACE-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: operator.$NAMESPACE}]
";

/// The place of one run.
pub(crate) struct Stage {
    pub(crate) plane: PrivateControlPlane,
    pub(crate) sandbox: Sandbox,
    pub(crate) proxy: FaultProxy,
    pub(crate) widgets: ApiResource,
    pub(crate) gates: ApiResource,
    /// The kind of the children.
    pub(crate) config_maps: ApiResource,
    pub(crate) operator: OperatorSlot,
    /// More replicas of the operator, with a leader election among all of them.
    pub(crate) replicas: Vec<OperatorSlot>,
    pub(crate) rival: OperatorSlot,
    pub(crate) journal: PathBuf,
    /// The number of objects in a crowd.
    pub(crate) crowd: usize,
    pub(crate) tested: TestedOperator,
    /// The clock of the operator, if trouble with it is made.
    pub(crate) clock: Option<FakeClock>,
    folder: PathBuf,
    /// The number of tokens so far.
    tokens: AtomicUsize,
    marks: Mutex<ObjectMarks>,
}

/// Objects for which not all claims hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct ObjectMarks {
    /// Others changed the facts of the operator on these.
    pub(crate) tampered: BTreeSet<String>,
    /// The API server may reject writes to these.
    pub(crate) rejected: BTreeSet<String>,
    /// The children that users deleted.
    pub(crate) deleted_children: BTreeSet<String>,
    /// The namespaces that were deleted.
    pub(crate) deleted_namespaces: BTreeSet<String>,
}

// === impl Stage ===

impl Stage {
    /// Starts a control plane with the kinds, and prepares the operator.
    pub(crate) async fn build(folder: &Path, plan: &RunPlan) -> Result<Self, TestFailure> {
        let plane = PrivateControlPlane::start_by(Program::this_executable()?).await?;
        let sandbox = Sandbox::open_on(plane.handle(), "faults").await?;
        let widgets = sandbox.define("Widget").await?.resource().clone();
        let gates = sandbox.define("Gate").await?.resource().clone();
        PeeringObject::create(&sandbox, "default").await?;
        let proxy = FaultProxy::start(&plane, &sandbox.user("operator")).await?;
        let kubeconfig = match plan.operator {
            TestedOperator::KopfGen => kubeconfig_with_token(folder, proxy.address())?,
            _ => proxy.kubeconfig().to_owned(),
        };
        let clock = FakeClock::open(folder)?.filter(|_| plan.sorts.contains(&Trouble::JumpClock));
        let journal = folder.join("journal.jsonl");
        // A folder that is kept may have the journal of an earlier run.
        fs::write(&journal, "")?;
        let setup = ReplicaSetup {
            command: plan.operator.command(folder).await?,
            clock: clock.clone(),
            kubeconfig,
            journal: journal.clone(),
            group: sandbox.group().to_owned(),
            namespaces: format!("{}*", sandbox.namespace()),
            sabotage: plan.sabotage,
            verbose: plan.verbose,
            lease: (plan.replicas > 1).then(|| "faults".to_owned()),
            lease_namespace: sandbox.namespace().to_owned(),
        };
        let mut operator = OperatorSlot::new(&setup, OperatorRole::Main, "main");
        if plan.operator.has_gates() {
            operator = operator.with_gates();
        }
        let replicas = (1..plan.replicas)
            .map(|number| {
                let identity = format!("replica-{number}");
                OperatorSlot::new(&setup, OperatorRole::Main, &identity)
            })
            .collect();
        let rival = OperatorSlot::new(&setup, OperatorRole::Rival, "rival");
        let stage = Self {
            plane,
            sandbox,
            proxy,
            widgets,
            gates,
            config_maps: ApiResource::erase::<ConfigMap>(&()),
            operator,
            replicas,
            rival,
            journal,
            crowd: plan.crowd,
            tested: plan.operator,
            clock,
            folder: folder.to_owned(),
            tokens: AtomicUsize::new(0),
            marks: Mutex::default(),
        };
        stage.permit().await?;
        stage.create_second_namespace().await?;
        Ok(stage)
    }

    /// All places of the operator: one, or those of its replicas.
    pub(crate) fn slots(&self) -> impl Iterator<Item = &OperatorSlot> {
        std::iter::once(&self.operator).chain(&self.replicas)
    }

    /// The failure with the last lines of the log of each running process of the operator.
    pub(crate) async fn with_logs(&self, failure: TestFailure) -> TestFailure {
        let mut text = failure.message().to_owned();
        for slot in self.slots() {
            if let Some((pid, log)) = slot.log().await {
                let _ = write!(text, "\nthe log of process {pid}:\n{log}");
            }
        }
        TestFailure::new(text)
    }

    /// The ids of all running processes of the operator.
    pub(crate) async fn pids(&self) -> Vec<i32> {
        let mut pids = Vec::new();
        for slot in self.slots() {
            pids.extend(slot.pid().await);
        }
        pids
    }

    /// A token that no process has had.
    pub(crate) fn next_token(&self) -> String {
        format!("token-{}", self.tokens.fetch_add(1, Ordering::Relaxed))
    }

    /// Writes a token where the operator reads it.
    pub(crate) fn write_token(&self, token: &str) -> io::Result<()> {
        let unfinished = self.folder.join("token.unfinished");
        fs::write(&unfinished, token)?;
        fs::rename(&unfinished, self.folder.join(TOKEN))
    }

    /// Gives the operator its permissions.
    pub(crate) async fn permit(&self) -> Result<(), TestFailure> {
        self.sandbox.apply(PERMISSIONS).await?;
        Ok(())
    }

    /// The name of the namespace that comes and goes.
    pub(crate) fn second_namespace(&self) -> String {
        format!("{}-second", self.sandbox.namespace())
    }

    pub(crate) async fn create_second_namespace(&self) -> Result<(), TestFailure> {
        let namespaces: Api<Namespace> = Api::all(self.sandbox.client());
        let metadata = ObjectMeta {
            name: Some(self.second_namespace()),
            ..ObjectMeta::default()
        };
        let namespace = Namespace {
            metadata,
            ..Namespace::default()
        };
        let params = PostParams::default();
        done_or_there(namespaces.create(&params, &namespace).await)
    }

    /// Notes that others change the facts of the operator on this object.
    pub(crate) fn note_tampered(&self, uid: &str) {
        self.lock_marks().tampered.insert(uid.to_owned());
    }

    /// Notes that the API server may reject writes to this object.
    pub(crate) fn note_rejected(&self, uid: &str) {
        self.lock_marks().rejected.insert(uid.to_owned());
    }

    /// Notes that a user deletes this child.
    pub(crate) fn note_child_deleted(&self, uid: &str) {
        self.lock_marks().deleted_children.insert(uid.to_owned());
    }

    /// Notes that this namespace is deleted with all that is in it.
    pub(crate) fn note_namespace_deleted(&self, name: &str) {
        self.lock_marks().deleted_namespaces.insert(name.to_owned());
    }

    /// The objects for which not all claims hold.
    pub(crate) fn marks(&self) -> ObjectMarks {
        self.lock_marks().clone()
    }

    fn lock_marks(&self) -> MutexGuard<'_, ObjectMarks> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects of a kind in all namespaces, past the proxy.
    pub(crate) fn everywhere(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::all_with(self.sandbox.client(), kind)
    }

    /// The objects of a kind in the namespace of the sandbox, past the proxy.
    pub(crate) fn here(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.sandbox.client(), self.sandbox.namespace(), kind)
    }

    /// The same in the namespace that comes and goes.
    pub(crate) fn there(&self, kind: &ApiResource) -> Api<DynamicObject> {
        Api::namespaced_with(self.sandbox.client(), &self.second_namespace(), kind)
    }

    /// All objects of a kind, by namespace and name.
    pub(crate) async fn list(
        &self,
        kind: &ApiResource,
    ) -> kube::Result<BTreeMap<String, ObjectVersion>> {
        let list = self.everywhere(kind).list(&ListParams::default()).await?;
        let versions = list.items.iter().map(|object| {
            let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
            let name = object.metadata.name.as_deref().unwrap_or_default();
            let value = serde_json::to_value(object).unwrap_or(Value::Null);
            (format!("{namespace}/{name}"), ObjectVersion::of(&value))
        });
        Ok(versions.collect())
    }

    /// The children of all objects, by uid.
    pub(crate) async fn list_children(&self) -> kube::Result<BTreeMap<String, ChildVersion>> {
        let params = ListParams::default().labels(OWNER_LABEL);
        let list = self.everywhere(&self.config_maps).list(&params).await?;
        let children = list.items.iter().map(|object| {
            let value = serde_json::to_value(object).unwrap_or(Value::Null);
            let child = ChildVersion::logged(&value, false);
            (child.uid.clone(), child)
        });
        Ok(children.collect())
    }

    /// Waits until the operator has nothing left to do, at most for this time, and returns all
    /// widgets.
    pub(crate) async fn settle(
        &self,
        patience: Duration,
    ) -> Result<BTreeMap<String, ObjectVersion>, TestFailure> {
        let deadline = Instant::now() + patience;
        loop {
            let listed = self.list(&self.widgets).await;
            let children = self.list_children().await.unwrap_or_default();
            let late = Instant::now() > deadline;
            let handled = self.handled_states()?;
            let is_settled = |it: &ObjectVersion| {
                it.is_settled(self.tested)
                    && (!self.tested.has_children() || it.has_children(&children))
                    && (self.tested.has_records() || handled.get(&it.uid) == Some(&it.state.whole))
            };
            match listed {
                Ok(widgets) if late || widgets.values().all(is_settled) => return Ok(widgets),
                Err(error) if late => return Err(error.into()),
                _ => sleep(POLL_EVERY).await,
            }
        }
    }

    /// The state of each object for which the handler of edits has succeeded last, if the objects
    /// themselves do not say how far the operator is.
    fn handled_states(&self) -> io::Result<BTreeMap<String, String>> {
        if self.tested.has_records() {
            return Ok(BTreeMap::new());
        }
        let journal = JournalContent::read(&self.journal)?;
        let handler = self.tested.handler_of_edits();
        let ended = journal
            .calls()
            .filter(|call| call.handler == handler && call.step == LoggedStep::Success);
        let states = ended.map(|call| (call.uid.clone(), call.state.whole.clone()));
        Ok(states.collect())
    }

    /// The webhook configurations of the operator that have webhooks. A process that did not create
    /// a configuration empties it when it stops.
    pub(crate) async fn configurations(&self) -> kube::Result<Vec<String>> {
        let (client, name) = (self.sandbox.client(), self.sandbox.group());
        let mut found = Vec::new();
        let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
        let webhooks = mutating.get_opt(name).await?.and_then(|it| it.webhooks);
        if webhooks.is_some_and(|webhooks| !webhooks.is_empty()) {
            found.push(format!("the MutatingWebhookConfiguration {name}"));
        }
        let validating: Api<ValidatingWebhookConfiguration> = Api::all(client);
        let webhooks = validating.get_opt(name).await?.and_then(|it| it.webhooks);
        if webhooks.is_some_and(|webhooks| !webhooks.is_empty()) {
            found.push(format!("the ValidatingWebhookConfiguration {name}"));
        }
        Ok(found)
    }

    /// Creates a widget.
    pub(crate) async fn create(&self, name: &str) -> Result<(), TestFailure> {
        self.create_in(&self.here(&self.widgets), name).await
    }

    /// Creates a widget in the namespace of these.
    pub(crate) async fn create_in(
        &self,
        objects: &Api<DynamicObject>,
        name: &str,
    ) -> Result<(), TestFailure> {
        let mut object = DynamicObject::new(name, &self.widgets);
        object.data = json!({"spec": {"edit": 0, "size": 1}});
        done_or_there(objects.create(&PostParams::default(), &object).await)
    }
}

/// Writes a kubeconfig for the proxy with a token that is in a file.
fn kubeconfig_with_token(folder: &Path, proxy: SocketAddr) -> io::Result<PathBuf> {
    let file = folder.join("kubeconfig");
    let token = folder.join(TOKEN);
    fs::write(&token, "first")?;
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "faults",
        "clusters": [{"name": "faults", "cluster": {"server": format!("http://{proxy}")}}],
        "users": [{"name": "faults", "user": {"tokenFile": token}}],
        "contexts": [{"name": "faults", "context": {"cluster": "faults", "user": "faults"}}],
    });
    fs::write(&file, config.to_string())?;
    Ok(file)
}

/// The result of a creation whose answer may have been lost before.
fn done_or_there<T>(created: kube::Result<T>) -> Result<(), TestFailure> {
    match created {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}
