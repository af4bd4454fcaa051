//! Applies children of the handled object in one call.

use kopf_core::object::ObjectView;
use kopf_core::object::hierarchy::{self, Adoption, Naming};
use kopf_core::object::resource_version;
use kube::api::{Patch, PatchParams};
use kube::core::Status;
use kube::{Api, ResourceExt as _};
use serde_json::Value;

use super::hierarchy::AppliedChild;
use crate::handler::error::{HandlerError, HandlerResult};
use crate::process::execute::handler_scope::OperatorServices;

/// How often a child is looked at in one application, if it comes and goes meanwhile.
const LOOKS: usize = 3;

/// The inputs of an application beside the child.
pub(super) struct ApplyInputs<'a> {
    pub(super) services: &'a OperatorServices,
    pub(super) owner: &'a Value,
}

/// One child, ready to be applied.
struct Application<'a, T> {
    inputs: &'a ApplyInputs<'a>,
    api: Api<T>,
    name: String,
    body: Value,
}

/// The meaning of a conflict.
#[derive(Debug, PartialEq, Eq)]
enum ApplyConflict {
    /// The child with the known uid does not exist any more.
    OtherObject,
    /// Other clients have updated fields of the child.
    Updated,
    /// Another client applies these fields, too.
    Applied(String),
}

impl ApplyInputs<'_> {
    /// Applies a child of the owner on the server, and returns it as the server has it then.
    ///
    /// The first application of a child asks whether it exists, and whose it is. The next ones
    /// know its uid, with which the API server refuses to touch any other object.
    pub(super) async fn apply<T: AppliedChild>(&self, child: &T) -> HandlerResult<T> {
        let mut body = serde_json::to_value(child)?;
        let owner = ObjectView::new(self.owner);
        let adoption = Adoption {
            naming: Naming::Strict,
            ..Adoption::default()
        };
        hierarchy::adopt(&mut body, owner, &adoption);
        let (kind, api_version) = (T::kind(&()), T::api_version(&()));
        let view = ObjectView::new(&body);
        let (Some(name), Some(namespace)) = (view.name(), view.namespace()) else {
            let message = format!("a {kind} to be applied needs a name and a namespace");
            return Err(HandlerError::permanent(message));
        };
        if !hierarchy::can_own(owner, view) {
            let place = owner.namespace().unwrap_or_default();
            let message = format!(
                "the {kind} {name} in the namespace {namespace} cannot have an owner in {place}: \
                 Kubernetes would delete it; declare the kind under `children` in kopf.yaml"
            );
            return Err(HandlerError::permanent(message));
        }
        let (name, namespace) = (name.to_owned(), namespace.to_owned());
        body["apiVersion"] = api_version.as_ref().into();
        body["kind"] = kind.as_ref().into();
        let mut application = Application {
            inputs: self,
            api: Api::<T>::namespaced(self.services.client.clone(), &namespace),
            name,
            body,
        };
        let uids = &self.services.applied;
        let identity = (
            api_version,
            kind,
            namespace,
            application.name.clone(),
            owner.uid(),
        );
        if let Some(uid) = uids.get(&identity) {
            application.body["metadata"]["uid"] = (*uid).into();
            match application.send().await {
                Err(error) if conflict(&error) == Some(ApplyConflict::OtherObject) => {
                    uids.forget(&identity);
                }
                applied => return application.explain(applied),
            }
        }
        let applied = application.send_unknown().await?;
        if let Some(uid) = &applied.meta().uid {
            uids.remember(&identity, uid);
        }
        Ok(applied)
    }
}

impl<T: AppliedChild> Application<'_, T> {
    /// Applies a child of which no uid is known.
    ///
    /// The request names the object that it means, or that it means none: if other clients make or
    /// delete it in between, the API server refuses, and whose it is has to be asked again.
    async fn send_unknown(&mut self) -> HandlerResult<T> {
        let mut looks = 0;
        loop {
            looks += 1;
            let uid = self.owned_uid().await?;
            let version = uid.is_none().then_some(resource_version::OF_NO_OBJECT);
            let exists = uid.is_some();
            let meta = &mut self.body["metadata"];
            (meta["uid"], meta["resourceVersion"]) = (uid.into(), version.into());
            let applied = match exists {
                true => self.send().await,
                false => self.request(&self.parameters()).await,
            };
            let meaning = applied.as_ref().err().and_then(conflict);
            let is_other = match exists {
                true => meaning == Some(ApplyConflict::OtherObject),
                false => meaning.is_some(),
            };
            if !is_other || looks == LOOKS {
                return self.explain(applied);
            }
        }
    }

    /// The uid of the child, if it exists; an error if it exists and another object owns it.
    async fn owned_uid(&self) -> HandlerResult<Option<String>> {
        let Some(existing) = self.api.get_metadata_opt(&self.name).await? else {
            return Ok(None);
        };
        let owner = ObjectView::new(self.inputs.owner).uid();
        let owners = existing.owner_references();
        if owners.iter().any(|it| Some(it.uid.as_str()) == owner) {
            return Ok(existing.uid());
        }
        let (kind, name) = (T::kind(&()), &self.name);
        let message = format!("the {kind} {name} exists, and this object does not own it");
        Err(HandlerError::arbitrary(message))
    }

    /// Applies the child, and takes back the fields that other clients have updated.
    async fn send(&self) -> Result<T, kube::Error> {
        let parameters = self.parameters();
        match self.request(&parameters).await {
            Err(error) if conflict(&error) == Some(ApplyConflict::Updated) => {
                self.request(&parameters.force()).await
            }
            applied => applied,
        }
    }

    fn parameters(&self) -> PatchParams {
        PatchParams::apply(&self.inputs.services.field_manager)
    }

    async fn request(&self, parameters: &PatchParams) -> Result<T, kube::Error> {
        let body = Patch::Apply(&self.body);
        self.api.patch(&self.name, parameters, &body).await
    }

    /// Names the fields that another client applies, too.
    fn explain(&self, applied: Result<T, kube::Error>) -> HandlerResult<T> {
        let error = match applied {
            Ok(applied) => return Ok(applied),
            Err(error) => error,
        };
        let Some(ApplyConflict::Applied(fields)) = conflict(&error) else {
            return Err(error.into());
        };
        let (kind, name) = (T::kind(&()), &self.name);
        let message = format!("another client applies fields of the {kind} {name}, too: {fields}");
        Err(HandlerError::arbitrary(message))
    }
}

fn conflict(error: &kube::Error) -> Option<ApplyConflict> {
    match error {
        kube::Error::Api(status) => ApplyConflict::read(status),
        _ => None,
    }
}

// === impl ApplyConflict ===

impl ApplyConflict {
    /// The API server names the managers of fields that were updated with the word `using`, those of
    /// applied ones without it. It answers with 409 if no object exists, and with 422 if one with
    /// another uid does.
    fn read(status: &Status) -> Option<Self> {
        let mut causes = status.details.iter().flat_map(|details| &details.causes);
        match status.code {
            409 => {}
            422 if causes.any(|cause| cause.field == "metadata.uid") => {
                return Some(Self::OtherObject);
            }
            _ => return None,
        }
        let causes: Vec<_> = causes
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .collect();
        if causes.is_empty() {
            return Some(Self::OtherObject);
        }
        let applied = causes.iter().filter(|it| !it.message.contains("\" using "));
        let fields: Vec<String> = applied
            .map(|cause| format!("{} ({})", cause.field, cause.message))
            .collect();
        Some(if fields.is_empty() {
            Self::Updated
        } else {
            Self::Applied(fields.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(code: u16, causes: &Value) -> Option<ApplyConflict> {
        let status = json!({"code": code, "details": {"causes": causes}});
        ApplyConflict::read(&serde_json::from_value(status).expect("it is a status"))
    }

    #[test]
    fn another_object_has_another_uid() {
        let cause = |field: &str| json!([{"reason": "FieldValueInvalid", "field": field}]);
        let other = Some(ApplyConflict::OtherObject);
        assert_eq!(read(409, &json!([])), other);
        assert_eq!(read(422, &cause("metadata.uid")), other);
        assert_eq!(read(422, &cause("spec.size")), None);
        assert_eq!(read(403, &json!([])), None);
    }

    #[test]
    fn a_conflict_with_an_applier_is_not_one_with_an_update() {
        let cause = |message: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": ".data.a"});
        let updated = cause("conflict with \"kubectl\" using v1 at 2026-01-01T00:00:00Z");
        let scaled = cause("conflict with \"scaler\" with subresource \"scale\" using apps/v1");
        let applied = cause("conflict with \"other\"");
        let both = json!([updated, scaled]);
        assert_eq!(read(409, &both), Some(ApplyConflict::Updated));
        let fields = ".data.a (conflict with \"other\")".to_owned();
        let both = json!([updated, applied]);
        assert_eq!(read(409, &both), Some(ApplyConflict::Applied(fields)));
    }
}
