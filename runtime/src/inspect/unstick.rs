//! `unstick`: removes our finalizer and records from objects of an operator that is gone.

use std::io::{self, IsTerminal as _, Write as _};

use kopf_core::object::ObjectView;
use kopf_core::object::finalizer;
use kopf_core::object::patch::merge_between;
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use super::args::UnstickArgs;
use super::cluster::{InspectedObjects, KindObjects};
use super::{InspectError, InspectedObject, InspectedOperator, text};

/// How often an object is read again if another client changes it at the same time.
const MOST_CONFLICTS: usize = 5;

/// An object to release.
struct StuckObject<'a> {
    kind: &'a KindObjects,
    object: InspectedObject,
    body: Value,
}

impl InspectedOperator {
    /// Shows and removes the finalizer and the records of objects.
    pub(crate) async fn unstick(
        &self,
        client: Client,
        args: &UnstickArgs,
    ) -> Result<(), InspectError> {
        let objects =
            InspectedObjects::find(self, client, Some(&args.target), &args.namespaces).await?;
        let stuck = objects.stuck(args.deleting).await?;
        let mut stdout = io::stdout();
        for it in &stuck {
            writeln!(stdout, "{}", self.announce(it))?;
        }
        if stuck.is_empty() {
            writeln!(stdout, "Nothing to remove.")?;
            return Ok(());
        }
        if !args.yes && !confirm(stuck.len())? {
            return Err(InspectError::NotConfirmed);
        }
        for it in &stuck {
            objects.release(it).await?;
            let (kind, name) = (&it.object.kind, it.object.full_name());
            writeln!(stdout, "{kind} {name} is released")?;
        }
        Ok(())
    }

    fn announce(&self, stuck: &StuckObject<'_>) -> String {
        let inspection = &stuck.object.inspection;
        let finalizer = &self.persistence.finalizer;
        let held = finalizer::is_present(ObjectView::new(&stuck.body), finalizer);
        let finalizer = held.then(|| format!("the finalizer {}", text::printable(finalizer)));
        let handlers: Vec<_> = inspection
            .handlers
            .iter()
            .map(|it| text::printable(it.id.as_str()))
            .collect();
        let records = match handlers.as_slice() {
            [] => None,
            handlers => Some(format!("the records of {}", handlers.join(", "))),
        };
        let parts: Vec<String> = finalizer.into_iter().chain(records).collect();
        let parts = if parts.is_empty() {
            "the marks of a finished cycle".to_owned()
        } else {
            parts.join(" and ")
        };
        let (kind, name) = (&stuck.object.kind, stuck.object.full_name());
        let end = if ObjectView::new(&stuck.body).is_being_deleted() {
            "; it is being deleted"
        } else {
            ""
        };
        format!("{kind} {name}: remove {parts}{end}")
    }
}

impl<'a> InspectedObjects<'a> {
    async fn stuck(&'a self, only_deleting: bool) -> Result<Vec<StuckObject<'a>>, InspectError> {
        let mut stuck = Vec::new();
        for kind in &self.kinds {
            for object in kind.list(self.name()).await?.objects {
                let body = kind.body(&object);
                let deleting = ObjectView::new(&body).is_being_deleted();
                if (only_deleting && !deleting) || self.released(kind, &body).is_none() {
                    continue;
                }
                if let Some(object) = self.inspect(kind, &object) {
                    stuck.push(StuckObject { kind, object, body });
                }
            }
        }
        Ok(stuck)
    }

    /// Writes an object without finalizer and records. Records in the status go first: after the
    /// finalizer the object may be gone.
    async fn release(&self, stuck: &StuckObject<'_>) -> Result<(), InspectError> {
        let StuckObject { kind, object, .. } = stuck;
        let api = match &object.namespace {
            Some(namespace) => kind.in_namespace(namespace),
            None => kind.api.clone(),
        };
        let mut body = stuck.body.clone();
        for _ in 0..MOST_CONFLICTS {
            let Some(released) = self.released(kind, &body) else {
                return Ok(());
            };
            let patched = if kind.resource.has_status() && released["status"] != body["status"] {
                let mut only_status = body.clone();
                only_status["status"] = released["status"].clone();
                let patch = patch_between(&body, &only_status);
                api.patch_status(&object.name, &PatchParams::default(), &patch)
                    .await
            } else {
                let patch = patch_between(&body, &released);
                api.patch(&object.name, &PatchParams::default(), &patch)
                    .await
            };
            body = match patched {
                Ok(patched) => kind.body(&patched),
                Err(kube::Error::Api(status)) if status.code == 404 => return Ok(()),
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    match api.get_opt(&object.name).await {
                        Ok(Some(newest)) => kind.body(&newest),
                        Ok(None) => return Ok(()),
                        Err(error) => return Err(kind.failed("read", error)),
                    }
                }
                Err(error) => return Err(kind.failed("change", error)),
            };
            if ObjectView::new(&body).uid() != Some(&object.uid) {
                return Ok(());
            }
        }
        let message = "another program changes the object all the time: is the operator running?";
        let status = kube::core::Status::failure(message, "Conflict");
        Err(kind.failed("change", kube::Error::Api(Box::new(status))))
    }
}

/// The patch from one state to another, which the API server refuses if the object has changed.
fn patch_between(old: &Value, new: &Value) -> Patch<Value> {
    let mut patch = merge_between(old, new);
    patch["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"].clone();
    Patch::Merge(patch)
}

/// Asks on a terminal; elsewhere the answer is no.
fn confirm(count: usize) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let objects = if count == 1 {
        "1 object"
    } else {
        "these objects"
    };
    write!(
        io::stderr(),
        "Their handlers for deletion will not be called. Change {objects}? [y/N] "
    )?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
