//! Applies one child: nothing if it is as it should be, otherwise one request.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kopf_core::children::desired::DesiredChild;
use kopf_core::children::options::UpdateStrategy;
use kopf_core::children::{APPLIED_ANNOTATION, OWNER_LABEL, takebacks};
use kopf_core::object::resource_version::{self, ResourceVersion};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, ResourceExt as _};

use super::conflict::Refusal;
use super::json::{ChildJson, ComparedBody};
use super::removal::Deletion;
use super::store::ConflictNote;
use super::store::child::{self, ChildEnding, StoredChild};
use super::{ChildIdentity, Children, OwnedKind};
use crate::client::answer::answer_text;
use crate::handler::error::HandlerError;
use crate::watch::ObjectKey;

/// How often a child is looked at in one application, if it comes and goes meanwhile.
const LOOKS: usize = 3;

/// One child on its way to the API server.
pub(super) struct ChildApplication<'a> {
    pub(super) children: &'a Children,
    pub(super) owner: &'a ObjectKey,
    /// The plural of the owner's kind.
    pub(super) owner_plural: &'a str,
    pub(super) kind: &'a OwnedKind,
    pub(super) identity: ChildIdentity,
    pub(super) desired: DesiredChild,
}

/// The end of an application.
pub(super) enum ApplyEnd {
    /// The child was changed or made.
    Applied(ChildJson),
    /// The child stays as it is until another client deletes it.
    Left(ChildJson),
    /// The child is being deleted, and is made anew once the watch says that it is gone.
    Replaced(ChildJson),
    /// The child is being deleted, or is about to be, and no event will tell when it is gone.
    Going(ChildJson),
}

/// The failure of an application.
pub(super) enum ApplyFailure {
    /// Another object has the name of the child.
    NotOurs(String),
    /// Other clients oppose.
    Conflict(String),
    /// Other clients change it again and again; it may be taken back after this time.
    Contested(String, Duration),
    /// Anything else.
    Other(HandlerError),
}

/// Why a child is left for a while.
const CONTESTED: &str = "other clients change it again and again";

/// A request that the API server refuses.
type Refused = (Refusal, kube::Error);

/// Marks a child as being applied until the end, whatever the end is.
struct InFlight<'a> {
    application: &'a ChildApplication<'a>,
    is_over: bool,
}

// === impl ChildApplication ===

impl ChildApplication<'_> {
    /// The child, if it is as it should be.
    pub(super) fn in_sync(&self) -> Option<ChildJson> {
        let mut store = self.children.store();
        let owner = &self.owner.uid;
        let DesiredChild { digest, body, .. } = &self.desired;
        if !store.is_in_sync(owner, &self.identity, digest, body) {
            return None;
        }
        Some(self.known(store.child(owner, &self.identity)))
    }

    /// Whether the child exists, as far as the watch knows.
    pub(super) fn exists(&self) -> bool {
        self.stored().is_some()
    }

    /// The child as it is known: its body if bodies are kept, otherwise what is applied.
    pub(super) fn left(&self) -> ChildJson {
        self.known(self.stored().as_ref())
    }

    /// Changes or makes the child.
    pub(super) async fn send(&self) -> Result<ApplyEnd, ApplyFailure> {
        let Some(stored) = self.stored() else {
            return self.send_unknown().await;
        };
        if stored.is_ending() {
            return Ok(ApplyEnd::Replaced(self.known(Some(&stored))));
        }
        self.check_conflict(&stored)?;
        let (digest, replaced) = (stored.applied.as_deref(), stored.replaced.as_deref());
        let is_takeback = takebacks::is_takeback(&self.desired.digest, digest, replaced);
        // What other clients changed is repaired in its place.
        let is_drift = digest == Some(&*self.desired.digest);
        let repairs = is_drift || !stored.labelled;
        match self.kind.options.update {
            UpdateStrategy::OnDelete if !repairs => {
                return Ok(ApplyEnd::Left(self.known(Some(&stored))));
            }
            UpdateStrategy::Recreate if !repairs => return self.recreate(&stored).await,
            UpdateStrategy::InPlace | UpdateStrategy::OnDelete | UpdateStrategy::Recreate => {}
        }
        if is_takeback && stored.labelled {
            self.take_back()?;
        }
        match self.patch(&stored.uid).await {
            // It may exist nevertheless: only an event removes it from the store.
            Err((Refusal::OtherObject, _)) => self.send_unknown().await,
            Err((Refusal::Applied(fields), _)) => {
                Err(self.conflict(stored.version.clone(), &applied_by_others(&fields)))
            }
            applied => self.end(applied),
        }
    }

    /// Deletes the child; it is made anew once it is gone.
    async fn recreate(&self, stored: &StoredChild) -> Result<ApplyEnd, ApplyFailure> {
        if !stored.was_as_desired() {
            self.take_back()?;
        }
        let (children, identity) = (self.children, &self.identity);
        let deleted = children.delete(self.owner, identity, &stored.uid, ChildEnding::Awaited);
        match deleted.await.map_err(HandlerError::from)? {
            Deletion::Begun => Ok(ApplyEnd::Replaced(self.known(Some(stored)))),
            // No event of it will call for its owner.
            Deletion::AlreadyGone => self.send_unknown().await,
        }
    }

    /// Applies a child that the watch does not know: it may not exist, or have no label of ours.
    ///
    /// Each request names the object that it means, or that it means none: what other clients do in
    /// between is refused, and looked at again.
    async fn send_unknown(&self) -> Result<ApplyEnd, ApplyFailure> {
        let mut refused = None;
        for _ in 0..LOOKS {
            match self.make().await {
                Err((Refusal::OtherObject, error)) => refused = Some(error),
                made => return self.end(made),
            }
            let existing = self.api().get_metadata_opt(&self.identity.name).await;
            let existing = existing.map_err(HandlerError::from)?;
            let Some((uid, existing)) = existing.and_then(|it| Some((it.uid()?, it.metadata)))
            else {
                continue;
            };
            if let Some(end) = self.judge(&existing)? {
                return Ok(end);
            }
            let annotations = existing.annotations.as_ref();
            if annotations.is_some_and(|it| it.contains_key(APPLIED_ANNOTATION)) {
                self.take_back()?;
            }
            match self.patch(&uid).await {
                Err((Refusal::OtherObject, error)) => refused = Some(error),
                Err((Refusal::Applied(fields), _)) => {
                    return Err(self.conflict(None, &applied_by_others(&fields)));
                }
                applied => return self.end(applied),
            }
        }
        let child = self.children.describe(&self.identity);
        let message = format!("the {child} comes and goes meanwhile");
        let error = HandlerError::temporary(message);
        Err(ApplyFailure::Other(match refused {
            Some(refused) => error.because(refused),
            None => error,
        }))
    }

    /// Whether an object of the child's name may be changed; if not, the end of the application.
    fn judge(&self, existing: &ObjectMeta) -> Result<Option<ApplyEnd>, ApplyFailure> {
        let owner = &self.owner.uid;
        let labelled = existing.labels.as_ref().and_then(|it| it.get(OWNER_LABEL));
        let annotations = existing.annotations.as_ref();
        let applied = annotations.and_then(|it| it.get(APPLIED_ANNOTATION));
        let references = existing.owner_references.as_deref().unwrap_or_default();
        // The digest is that of the labels, too.
        let is_ours = labelled.is_some_and(|uid| **uid == **owner)
            || references.iter().any(|it| *it.uid == **owner)
            || applied == Some(&self.desired.digest);
        let is_going = match is_ours {
            true => existing.deletion_timestamp.is_some(),
            false => self.is_of_namesake(references),
        };
        if is_going {
            return Ok(Some(ApplyEnd::Going(ChildJson::Value(
                self.desired.body.clone(),
            ))));
        }
        if is_ours {
            return Ok(None);
        }
        let child = self.children.describe(&self.identity);
        let message = format!("the {child} exists, and this object does not own it");
        Err(ApplyFailure::NotOurs(message))
    }

    /// Whether a child belongs to an earlier object of the owner's name: Kubernetes deletes it soon.
    fn is_of_namesake(&self, references: &[OwnerReference]) -> bool {
        let group = |api_version: &str| api_version.split_once('/').map(|it| it.0.to_owned());
        let own = self.desired.body["metadata"]["ownerReferences"].as_array();
        own.into_iter().flatten().any(|own| {
            references.iter().any(|it| {
                own["kind"] == *it.kind
                    && own["name"] == *it.name
                    && own["uid"] != *it.uid
                    && own["apiVersion"].as_str().map(group) == Some(group(&it.api_version))
            })
        })
    }

    /// Makes the child; an object of its name is refused, whatever it is.
    async fn make(&self) -> Result<String, Refused> {
        let body = self.compared("resourceVersion", resource_version::OF_NO_OBJECT);
        let in_flight = InFlight::begin(self);
        let params = PatchParams::apply(&self.children.manager);
        let made = in_flight.end(self.apply(&params, &body).await);
        made.map_err(|(refusal, error)| match refusal {
            // Its fields matter only if the object is ours.
            Refusal::Updated | Refusal::Applied(_) => (Refusal::OtherObject, error),
            refusal => (refusal, error),
        })
    }

    /// Applies the child, and takes back the fields that other clients have updated.
    async fn patch(&self, uid: &str) -> Result<String, Refused> {
        let body = self.compared("uid", uid);
        let in_flight = InFlight::begin(self);
        let params = PatchParams::apply(&self.children.manager);
        let mut sent = self.apply(&params, &body).await;
        if let Err(kube::Error::Api(status)) = &sent
            && Refusal::read(status) == Refusal::Updated
        {
            sent = self.apply(&params.force(), &body).await;
        }
        in_flight.end(sent)
    }

    fn compared<'b>(&'b self, member: &'static str, value: &'b str) -> Patch<ComparedBody<'b>> {
        Patch::Apply(ComparedBody {
            body: &self.desired.body,
            member,
            value,
        })
    }

    /// Sends the body; the answer is not parsed into a type, as only the handler knows it.
    async fn apply(
        &self,
        params: &PatchParams,
        body: &Patch<ComparedBody<'_>>,
    ) -> Result<String, kube::Error> {
        let ChildIdentity {
            kind,
            namespace,
            name,
        } = &self.identity;
        let requests = self.children.requests(*kind, namespace.as_deref());
        let request = requests.patch(name, params, body);
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        request.extensions_mut().insert("patch");
        answer_text(&self.children.client, request).await
    }

    fn end(&self, applied: Result<String, Refused>) -> Result<ApplyEnd, ApplyFailure> {
        match applied {
            Ok(applied) => Ok(ApplyEnd::Applied(ChildJson::Text(applied))),
            Err((Refusal::Immutable(fields), error)) => {
                let child = self.children.describe(&self.identity);
                let mut message = format!("the {child} cannot change: {fields} is immutable");
                if self.kind.options.update != UpdateStrategy::Recreate {
                    message.push_str("; `update: recreate` in `children:` would make it anew");
                }
                let error = HandlerError::permanent(message).because(error);
                Err(ApplyFailure::Other(error))
            }
            Err((Refusal::OwnerFinalizers, error)) => {
                // The API server names neither the verb nor the resource.
                let plural = self.owner_plural;
                let child = self.children.describe(&self.identity);
                let message = format!(
                    "the {child} cannot have an owner: \
                     the operator cannot update resource \"{plural}/finalizers\""
                );
                let error = HandlerError::temporary(message).because(error);
                Err(ApplyFailure::Other(error))
            }
            Err((_, error)) => Err(ApplyFailure::Other(error.into())),
        }
    }

    /// Refuses an application that was opposed before, if nothing has changed since.
    fn check_conflict(&self, stored: &StoredChild) -> Result<(), ApplyFailure> {
        let store = self.children.store();
        match store.conflict(&self.owner.uid, &self.identity) {
            Some(note) if note.digest == self.desired.digest && note.version == stored.version => {
                Err(ApplyFailure::Conflict(note.message.clone()))
            }
            _ => Ok(()),
        }
    }

    fn conflict(&self, version: Option<ResourceVersion>, why: &str) -> ApplyFailure {
        let child = self.children.describe(&self.identity);
        let message = format!("the {child} is left as it is: {why}");
        let note = ConflictNote {
            digest: self.desired.digest.clone(),
            version,
            message: message.clone(),
        };
        let mut store = self.children.store();
        store.note_conflict(&self.owner.uid, &self.identity, note);
        ApplyFailure::Conflict(message)
    }

    /// Counts a change of what another client, or another process of this operator, has applied.
    fn take_back(&self) -> Result<(), ApplyFailure> {
        let counted = self.children.take_back(self.owner, &self.identity);
        counted.map_err(|wait| {
            let child = self.children.describe(&self.identity);
            let message = format!("the {child} is left as it is: {CONTESTED}");
            ApplyFailure::Contested(message, wait)
        })
    }

    fn stored(&self) -> Option<StoredChild> {
        let store = self.children.store();
        store.child(&self.owner.uid, &self.identity).cloned()
    }

    fn known(&self, stored: Option<&StoredChild>) -> ChildJson {
        let kind = self.children.kind(self.identity.kind);
        match stored.filter(|_| child::keeps_bodies(kind)) {
            Some(stored) => ChildJson::Text(stored.text.to_string()),
            None => ChildJson::Value(self.desired.body.clone()),
        }
    }

    fn api(&self) -> Api<DynamicObject> {
        let namespace = self.identity.namespace.as_deref();
        self.children.api(self.identity.kind, namespace)
    }
}

fn applied_by_others(fields: &str) -> String {
    format!("another client applies its fields, too: {fields}")
}

impl From<HandlerError> for ApplyFailure {
    fn from(error: HandlerError) -> Self {
        Self::Other(error)
    }
}

// === impl InFlight ===

impl<'a> InFlight<'a> {
    fn begin(application: &'a ChildApplication<'a>) -> Self {
        let mut store = application.children.store();
        store.begin_apply(&application.owner.uid, &application.identity);
        Self {
            application,
            is_over: false,
        }
    }

    /// Notes the child as the API server has it, or the refusal.
    fn end(mut self, sent: Result<String, kube::Error>) -> Result<String, Refused> {
        let applied = sent.map_err(|error| {
            let refusal = match &error {
                kube::Error::Api(status) => Refusal::read(status),
                _ => Refusal::Other,
            };
            (refusal, error)
        })?;
        self.is_over = true;
        let ChildApplication {
            children,
            identity,
            desired,
            ..
        } = self.application;
        let kind = children.kind(identity.kind);
        let child = StoredChild::read(kind, &applied, &children.manager);
        self.finish(child.map(|(child, _)| (child, desired.digest.as_str())));
        Ok(applied)
    }

    fn finish(&self, applied: Option<(StoredChild, &str)>) {
        let ChildApplication {
            children,
            owner,
            identity,
            ..
        } = self.application;
        let kind = children.kind(identity.kind);
        let mut store = children.store();
        let requeue = store.end_apply(&owner.uid, kind, identity, applied);
        drop(store);
        children.requeue(requeue);
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.finish(None);
        }
    }
}
