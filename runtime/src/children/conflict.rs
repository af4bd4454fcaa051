//! What the API server's refusal of an application means.

use kube::core::Status;

/// The reason for which the API server refuses an application.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The child with the known uid does not exist any more.
    OtherObject,
    /// Other clients have updated fields of the child.
    Updated,
    /// Another client applies these fields, too.
    Applied(String),
    /// These fields cannot be changed.
    Immutable(String),
    /// We may not update the finalizers of the owner, and its deletion would wait for the child.
    OwnerFinalizers,
    /// Anything else.
    Other,
}

impl Refusal {
    /// The API server names the managers of fields that were updated with the word `using`, those of
    /// applied ones without it. It answers with 409 if no object exists, and with 422 if one with
    /// another uid does.
    pub(super) fn read(status: &Status) -> Self {
        let causes = status.details.iter().flat_map(|details| &details.causes);
        let causes: Vec<_> = causes.collect();
        match status.code {
            409 => {}
            422 if causes.iter().any(|cause| cause.field == "metadata.uid") => {
                return Self::OtherObject;
            }
            422 => return Self::immutable(&causes, &status.message),
            403 if status.message.contains("blockOwnerDeletion") => {
                return Self::OwnerFinalizers;
            }
            _ => return Self::Other,
        }
        let conflicts = causes.iter();
        let conflicts: Vec<_> = conflicts
            .filter(|cause| cause.reason == "FieldManagerConflict")
            .collect();
        if conflicts.is_empty() {
            return Self::OtherObject;
        }
        let applied = conflicts
            .iter()
            .filter(|it| !it.message.contains("\" using "));
        let fields: Vec<String> = applied
            .map(|cause| format!("{} ({})", cause.field, cause.message))
            .collect();
        if fields.is_empty() {
            Self::Updated
        } else {
            Self::Applied(fields.join(", "))
        }
    }

    fn immutable(causes: &[&kube::core::response::StatusCause], message: &str) -> Self {
        let is_immutable = |text: &str| {
            let text = text.to_ascii_lowercase();
            text.contains("immutable")
                || text.contains("forbidden: updates to")
                || text.contains("may not be changed")
        };
        let fields = causes.iter().filter(|cause| is_immutable(&cause.message));
        let mut fields: Vec<&str> = fields.map(|cause| cause.field.as_str()).collect();
        fields.dedup();
        match fields.as_slice() {
            [] if is_immutable(message) => Self::Immutable("a field".to_owned()),
            [] => Self::Other,
            fields => Self::Immutable(fields.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(code: u16, causes: &Value) -> Refusal {
        let status = json!({"code": code, "details": {"causes": causes}});
        Refusal::read(&serde_json::from_value(status).expect("it is a status"))
    }

    #[test]
    fn another_object_has_another_uid() {
        let cause = |field: &str| json!([{"reason": "FieldValueInvalid", "field": field}]);
        assert_eq!(read(409, &json!([])), Refusal::OtherObject);
        assert_eq!(read(422, &cause("metadata.uid")), Refusal::OtherObject);
        assert_eq!(read(422, &cause("spec.size")), Refusal::Other);
        assert_eq!(read(403, &json!([])), Refusal::Other);
    }

    #[test]
    fn a_conflict_with_an_applier_is_not_one_with_an_update() {
        let cause = |message: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": ".data.a"});
        let updated = cause("conflict with \"kubectl\" using v1 at 2026-01-01T00:00:00Z");
        let applied = cause("conflict with \"other\"");
        assert_eq!(read(409, &json!([updated])), Refusal::Updated);
        let fields = ".data.a (conflict with \"other\")".to_owned();
        assert_eq!(
            read(409, &json!([updated, applied])),
            Refusal::Applied(fields)
        );
    }

    #[test]
    fn fields_that_cannot_change_are_named() {
        let cause =
            json!([{"field": "spec.selector", "message": "Invalid value: {}: field is immutable"}]);
        let fields = "spec.selector".to_owned();
        assert_eq!(read(422, &cause), Refusal::Immutable(fields));
        let cause = json!([{"field": "spec", "message": "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden"}]);
        assert_eq!(read(422, &cause), Refusal::Immutable("spec".to_owned()));
    }
}
