//! The users: they create, edit and delete objects at random moments, each object by its own
//! random numbers.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use fastrand::Rng;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::stage::Stage;
use crate::state::{GOLD, TIER};
use crate::workload::children::{EDIT, child_name};

/// The pause before a failed request is sent again.
const RETRY_PAUSE: Duration = Duration::from_millis(150);

/// The time that an object may take to go away before its user goes on.
const DELETION_PATIENCE: Duration = Duration::from_secs(60);

/// The pause between two changes of a child by its user: what others change a fourth time within a
/// minute stays as it is.
const MEDDLE_PAUSE: Duration = Duration::from_secs(21);

/// What users did.
#[derive(Debug, Default)]
pub(crate) struct EditCounts {
    pub(crate) edits: AtomicU64,
    pub(crate) deletions: AtomicU64,
    pub(crate) child_edits: AtomicU64,
    pub(crate) child_deletions: AtomicU64,
    /// Gates that the webhooks denied, as they should.
    pub(crate) denied: AtomicU64,
    /// Gates that were stored although the webhooks deny them, or without what the webhooks add.
    pub(crate) admitted: AtomicU64,
    /// Gates that were stored.
    pub(crate) reviewed: AtomicU64,
}

/// The user of one object.
pub(crate) struct ObjectUser<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) objects: Api<DynamicObject>,
    pub(crate) children: Api<DynamicObject>,
    pub(crate) resource: &'a ApiResource,
    pub(crate) name: String,
    pub(crate) random: Rng,
    pub(crate) counts: &'a EditCounts,
    /// Whether the users shall stop.
    pub(crate) over: &'a AtomicBool,
}

/// What a user wants the object to be.
#[derive(Clone, Debug, PartialEq)]
struct WantedState {
    edit: u64,
    size: u64,
    gold: bool,
}

// === impl WantedState ===

impl WantedState {
    fn first() -> Self {
        Self {
            edit: 0,
            size: 1,
            gold: false,
        }
    }
}

// === impl ObjectUser ===

impl ObjectUser<'_> {
    /// Edits the object until all users stop. The object exists when this returns.
    pub(crate) async fn edit(mut self) {
        let mut wanted = WantedState::first();
        let mut earlier = wanted.clone();
        let mut edits = 0;
        let mut meddled = Instant::now();
        self.write(&wanted).await;
        while !self.over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(self.random.u64(200..2500))).await;
            let before = wanted.clone();
            // Without a return to an earlier state, the number tells all states apart.
            edits += 1;
            wanted.edit = edits;
            match self.random.u32(0..100) {
                0..50 => {}
                50..68 => wanted.size = self.random.u64(0..3),
                68..78 => wanted.gold = !wanted.gold,
                78..86 => wanted = earlier.clone(),
                86..94 => {
                    for _ in 0..2 {
                        self.write(&wanted).await;
                        sleep(Duration::from_millis(self.random.u64(0..60))).await;
                        edits += 1;
                        wanted.edit = edits;
                    }
                }
                _ => self.delete().await,
            }
            earlier = before;
            self.write(&wanted).await;
            let deletes = self.random.bool();
            if self.random.u32(0..4) == 0 && meddled.elapsed() > MEDDLE_PAUSE {
                meddled = Instant::now();
                self.meddle(deletes).await;
            }
        }
    }

    async fn write(&self, wanted: &WantedState) {
        let tier = wanted.gold.then_some(GOLD);
        let patch = json!({
            "metadata": {"labels": {TIER: tier}},
            "spec": {"edit": wanted.edit, "size": wanted.size},
        });
        loop {
            let merge = Patch::Merge(&patch);
            let patched = self
                .objects
                .patch(&self.name, &PatchParams::default(), &merge)
                .await;
            match patched {
                Ok(_) => break,
                Err(kube::Error::Api(status)) if status.is_not_found() => {
                    if self.create(wanted).await {
                        break;
                    }
                    sleep(RETRY_PAUSE).await;
                }
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
        self.counts.edits.fetch_add(1, Ordering::Relaxed);
    }

    /// Changes or deletes the first child, once: it may not exist.
    async fn meddle(&self, deletes: bool) {
        let Ok(Some(owner)) = self.objects.get_opt(&self.name).await else {
            return;
        };
        let uid = owner.metadata.uid.unwrap_or_default();
        let name = child_name(&self.name, &uid, 0);
        if !deletes {
            let patch = Patch::Merge(json!({"data": {EDIT: "9999999"}}));
            let params = PatchParams::default();
            let patched = self.children.patch(&name, &params, &patch).await;
            if patched.is_ok() {
                self.counts.child_edits.fetch_add(1, Ordering::Relaxed);
            }
        } else if let Ok(Some(child)) = self.children.get_opt(&name).await {
            self.stage
                .note_child_deleted(&child.metadata.uid.unwrap_or_default());
            let deleted = self.children.delete(&name, &DeleteParams::default()).await;
            if deleted.is_ok() {
                self.counts.child_deletions.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    async fn create(&self, wanted: &WantedState) -> bool {
        let mut object = DynamicObject::new(&self.name, self.resource);
        object.data = json!({"spec": {"edit": wanted.edit, "size": wanted.size}});
        if wanted.gold {
            let labels = [(TIER.to_owned(), GOLD.to_owned())];
            object.metadata.labels = Some(labels.into());
        }
        let params = PostParams::default();
        self.objects.create(&params, &object).await.is_ok()
    }

    /// Deletes the object and waits until it is gone.
    async fn delete(&self) {
        self.counts.deletions.fetch_add(1, Ordering::Relaxed);
        let deadline = Instant::now() + DELETION_PATIENCE;
        let params = DeleteParams::background();
        loop {
            match self.objects.delete(&self.name, &params).await {
                Err(kube::Error::Api(status)) if status.is_not_found() => return,
                _ => sleep(RETRY_PAUSE).await,
            }
            if Instant::now() > deadline {
                return;
            }
        }
    }

    /// Creates and edits gates, a part of which the webhooks deny.
    pub(crate) async fn edit_gate(mut self) {
        let mut edit = 0;
        while !self.over.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(self.random.u64(200..1500))).await;
            edit += 1;
            let denied = self.random.u32(0..3) == 0;
            let spec = json!({"edit": edit, "denied": denied, "completed": null});
            let stored = match self.objects.get_opt(&self.name).await {
                Ok(None) => {
                    let mut object = DynamicObject::new(&self.name, self.resource);
                    object.data = json!({"spec": {"edit": edit, "denied": denied}});
                    self.objects.create(&PostParams::default(), &object).await
                }
                Ok(Some(_)) => {
                    let patch = json!({"spec": spec});
                    let params = PatchParams::default();
                    let patch = Patch::Merge(&patch);
                    self.objects.patch(&self.name, &params, &patch).await
                }
                Err(_) => continue,
            };
            self.judge(denied, &stored);
        }
    }

    fn judge(&self, denied: bool, stored: &kube::Result<DynamicObject>) {
        let counter = match stored {
            Ok(object) if denied || object.data["spec"]["completed"] != Value::Bool(true) => {
                &self.counts.admitted
            }
            Ok(_) => &self.counts.reviewed,
            Err(kube::Error::Api(status)) if status.message.contains("as requested") => {
                &self.counts.denied
            }
            // The operator, its webhooks or the API server are down.
            Err(_) => return,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
