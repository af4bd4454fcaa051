//! Deletions: at once, or when the last finalizer is gone.

use std::sync::Arc;

use serde_json::{Value, json};

use super::answer::{AnswerBody, ApiAnswer, Failure, StatusDetails};
use super::kind::{KindId, WriteStrategy};
use super::object_view::{generation, set, text_of};
use super::request::DeletePreconditions;
use super::store::{ObjectPath, StoredObject};
use super::write::cluster_path;
use super::{ApiServer, Served};

// === impl ApiServer ===

impl ApiServer {
    pub(super) fn delete(
        &mut self,
        kind: KindId,
        path: &ObjectPath,
        preconditions: &DeletePreconditions,
    ) -> Result<ApiAnswer, Failure> {
        let definition = self.definition_arc(kind);
        let Some(StoredObject {
            object: old,
            unowned,
            ..
        }) = self.store.get(kind, path).cloned()
        else {
            return Err(Failure::not_found(&definition, &path.name));
        };
        self.check_preconditions(kind, &old, preconditions)?;
        if self.is_released(&definition, &old) {
            self.store.remove(kind, path);
            let details = StatusDetails {
                uid: text_of(&old, "uid").to_owned(),
                ..StatusDetails::of_object(&definition, &path.name)
            };
            return Ok(ApiAnswer {
                code: 200,
                body: AnswerBody::Deleted(Box::new(details)),
            });
        }
        if !text_of(&old, "deletionTimestamp").is_empty() {
            return Ok(ApiAnswer::object(200, old));
        }
        let mut new = Value::clone(&old);
        set(
            &mut new,
            "deletionTimestamp",
            Some(json!(self.now.whole_seconds())),
        );
        if definition.strategy == WriteStrategy::Namespace {
            new["status"]["phase"] = json!("Terminating");
        } else {
            set(&mut new, "deletionGracePeriodSeconds", Some(json!(0)));
        }
        if generation(&old) > 0 {
            set(&mut new, "generation", Some(json!(generation(&old) + 1)));
        }
        Ok(ApiAnswer::object(
            200,
            self.store.put(kind, path.clone(), new, unowned),
        ))
    }

    fn check_preconditions(
        &self,
        kind: KindId,
        object: &Value,
        preconditions: &DeletePreconditions,
    ) -> Result<(), Failure> {
        let definition = self.definition_arc(kind);
        for (noun, field, guess, wanted) in [
            (
                "UID",
                "uid",
                "deleted and then recreated",
                &preconditions.uid,
            ),
            (
                "ResourceVersion",
                "resourceVersion",
                "modified",
                &preconditions.resource_version,
            ),
        ] {
            let present = text_of(object, field);
            if let Some(wanted) = wanted.as_ref().filter(|it| *it != present) {
                let name = text_of(object, "name");
                let dot = if definition.group.is_empty() { "" } else { "." };
                let message = format!(
                    "Operation cannot be fulfilled on {}{dot}{} \"{name}\": the {noun} in the \
                     precondition ({wanted}) does not match the {noun} in record ({present}). The \
                     object might have been {guess}",
                    definition.kind, definition.group,
                );
                let mut failure = Failure::new(409, "Conflict", message).about(&definition, name);
                if let Some(details) = &mut failure.details {
                    details.kind.clone_from(&definition.kind);
                }
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Does what the controllers of namespaces do: deletes what is in a namespace that is being
    /// deleted, and the namespace itself when nothing is left in it. Returns whether it is gone.
    pub fn finish_namespace(&mut self, name: &str) -> bool {
        let path = cluster_path(name);
        let Some(stored) = self.store.get(self.namespaces, &path) else {
            return true;
        };
        if stored.object["status"]["phase"] != "Terminating" {
            return false;
        }
        let namespace: Arc<str> = name.into();
        let mut left = false;
        for kind in (0..self.kinds.len()).map(KindId) {
            let inside = self.store.objects(kind);
            let inside: Vec<ObjectPath> = inside
                .filter(|(path, _)| path.namespace == namespace)
                .map(|(path, _)| path.clone())
                .collect();
            for path in inside {
                // It exists, so its deletion has begun or is complete now.
                let _ = self.delete(kind, &path, &DeletePreconditions::default());
                left |= self.store.get(kind, &path).is_some();
            }
        }
        if !left {
            self.store.remove(self.namespaces, &path);
        }
        !left
    }

    /// Stops to serve a kind, and forgets its objects.
    pub fn undefine(&mut self, kind: KindId) {
        let paths: Vec<ObjectPath> = self.store.objects(kind).map(|(it, _)| it.clone()).collect();
        for path in paths {
            self.store.remove(kind, &path);
        }
        let Served { is_served, .. } = &mut self.kinds[kind.0];
        *is_served = false;
    }
}
