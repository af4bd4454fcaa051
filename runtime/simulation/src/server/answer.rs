//! Answers of the API server, and its `Status` bodies.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::kind::KindDefinition;
use super::request::ObjectForm;

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct ApiAnswer {
    /// The HTTP status.
    pub code: u16,
    /// The body.
    pub body: AnswerBody,
}

/// The body of an answer.
#[derive(Debug, Clone)]
pub enum AnswerBody {
    /// An object.
    Object(Arc<Value>),
    /// A list.
    List(Box<ObjectList>),
    /// The confirmation that an object is gone.
    Deleted(Box<StatusDetails>),
    /// A failure.
    Failure(Box<Failure>),
    /// Plain text, as for a kind that is not served.
    Text(&'static str),
}

/// One page of a list.
#[derive(Debug, Clone)]
pub struct ObjectList {
    /// The objects.
    pub items: Vec<Arc<Value>>,
    /// The revision that the list shows.
    pub resource_version: String,
    /// The token of the next page.
    pub continue_token: Option<String>,
    /// The number of objects on further pages, where the API server says it.
    pub remaining: Option<usize>,
    /// `apiVersion` and `kind` of the list.
    pub type_meta: ListType,
}

/// The type of a list and of its items.
#[derive(Debug, Clone)]
pub struct ListType {
    api_version: String,
    kind: String,
    items_have_type: bool,
    is_converted: bool,
}

/// A failure as the API server reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub code: u16,
    /// The reason, such as `NotFound`; empty if the API server gives none.
    pub reason: &'static str,
    /// The message.
    pub message: String,
    /// The details.
    pub details: Option<Box<StatusDetails>>,
    /// A token to go on with, if a list has expired.
    pub continue_token: Option<String>,
}

/// The details of a `Status`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusDetails {
    /// The name of the object.
    pub name: String,
    /// The API group.
    pub group: String,
    /// The plural or the kind, as the API server has it.
    pub kind: String,
    /// The uid of the object.
    pub uid: String,
    /// The single errors.
    pub causes: Vec<FieldError>,
    /// The pause that the API server asks for.
    pub retry_after_seconds: u32,
}

/// An error of one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The reason, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The path of the field.
    pub field: String,
    /// The message without the path.
    pub message: String,
}

// === impl ApiAnswer ===

impl ApiAnswer {
    pub(crate) fn object(code: u16, object: Arc<Value>) -> Self {
        Self {
            code,
            body: AnswerBody::Object(object),
        }
    }

    /// The answer to paths that the API server does not serve.
    pub(crate) fn page_not_found() -> Self {
        Self {
            code: 404,
            body: AnswerBody::Text("404 page not found\n"),
        }
    }

    /// The object, if the answer is one.
    #[must_use]
    pub fn as_object(&self) -> Option<&Arc<Value>> {
        match &self.body {
            AnswerBody::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The failure, if the answer is one.
    #[must_use]
    pub fn as_failure(&self) -> Option<&Failure> {
        match &self.body {
            AnswerBody::Failure(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether the request was accepted.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.code < 300
    }

    /// The body as it travels.
    #[must_use]
    pub fn to_json(&self) -> Value {
        match &self.body {
            AnswerBody::Object(object) => Value::clone(object),
            AnswerBody::List(list) => list.to_json(),
            AnswerBody::Deleted(details) => json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": details.to_json(),
            }),
            AnswerBody::Failure(failure) => failure.to_json(),
            AnswerBody::Text(text) => Value::from(*text),
        }
    }
}

impl From<Failure> for ApiAnswer {
    fn from(failure: Failure) -> Self {
        Self {
            code: failure.code,
            body: AnswerBody::Failure(Box::new(failure)),
        }
    }
}

// === impl ObjectList ===

impl ObjectList {
    fn to_json(&self) -> Value {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), json!(self.resource_version));
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".to_owned(), json!(token));
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), json!(remaining));
        }
        let items: Vec<Value> = self
            .items
            .iter()
            .map(|item| {
                let mut item = Value::clone(item);
                if !self.type_meta.items_have_type
                    && let Some(fields) = item.as_object_mut()
                {
                    fields.shift_remove("apiVersion");
                    fields.shift_remove("kind");
                }
                item
            })
            .collect();
        // The real server has no list where it converts an empty one.
        let items = match self.type_meta.is_converted && items.is_empty() {
            true => Value::Null,
            false => Value::Array(items),
        };
        json!({
            "apiVersion": self.type_meta.api_version,
            "kind": self.type_meta.kind,
            "metadata": metadata,
            "items": items,
        })
    }
}

// === impl ListType ===

impl ListType {
    pub(crate) fn of(definition: &KindDefinition, form: ObjectForm) -> Self {
        match form {
            ObjectForm::Whole => Self {
                api_version: definition.api_version(),
                kind: format!("{}List", definition.kind),
                items_have_type: definition.strategy.items_have_type(),
                is_converted: false,
            },
            ObjectForm::Metadata => Self {
                api_version: "meta.k8s.io/v1".to_owned(),
                kind: "PartialObjectMetadataList".to_owned(),
                items_have_type: true,
                is_converted: true,
            },
        }
    }
}

// === impl StatusDetails ===

impl StatusDetails {
    /// Details with the plural of the kind, as storage errors have them.
    pub(crate) fn of_object(definition: &KindDefinition, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            group: definition.group.clone(),
            kind: definition.plural.clone(),
            ..Self::default()
        }
    }

    fn to_json(&self) -> Value {
        let mut details = Map::new();
        for (key, value) in [
            ("name", &self.name),
            ("group", &self.group),
            ("kind", &self.kind),
            ("uid", &self.uid),
        ] {
            if !value.is_empty() {
                details.insert(key.to_owned(), json!(value));
            }
        }
        if !self.causes.is_empty() {
            let causes: Vec<Value> = self.causes.iter().map(FieldError::to_json).collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            let seconds = json!(self.retry_after_seconds);
            details.insert("retryAfterSeconds".to_owned(), seconds);
        }
        Value::Object(details)
    }
}

// === impl FieldError ===

impl FieldError {
    pub(crate) fn new(
        reason: &'static str,
        field: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            reason,
            field: field.into(),
            message: message.into(),
        }
    }

    pub(crate) fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new("FieldValueInvalid", field, message)
    }

    fn to_json(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            cause["field"] = json!(self.field);
        }
        cause
    }
}

// === impl Failure ===

impl Failure {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn not_found(definition: &KindDefinition, name: &str) -> Self {
        let message = format!("{} \"{name}\" not found", definition.resource_name());
        Self::new(404, "NotFound", message).about(definition, name)
    }

    pub(crate) fn conflict(definition: &KindDefinition, name: &str, cause: &str) -> Self {
        let resource = definition.resource_name();
        let message = format!("Operation cannot be fulfilled on {resource} \"{name}\": {cause}");
        Self::new(409, "Conflict", message).about(definition, name)
    }

    /// The answer to a stale resource version.
    pub(crate) fn modified(definition: &KindDefinition, name: &str) -> Self {
        let cause = "the object has been modified; please apply your changes to the latest \
                     version and try again";
        Self::conflict(definition, name, cause)
    }

    /// The answer to a JSON patch that cannot be applied.
    pub(crate) fn unprocessable() -> Self {
        Self {
            details: Some(Box::default()),
            ..Self::new(
                422,
                "Invalid",
                "the server rejected our request due to an error in our request",
            )
        }
    }

    /// The answer to an object with invalid fields.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: Vec<FieldError>) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let mut messages: Vec<String> = Vec::new();
        for FieldError { field, message, .. } in &errors {
            let message = format!("{field}: {message}");
            if !messages.contains(&message) {
                messages.push(message);
            }
        }
        let list = match messages.as_slice() {
            [single] => single.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        Self {
            details: Some(Box::new(StatusDetails {
                name: name.to_owned(),
                group: group.to_owned(),
                kind: kind.to_owned(),
                causes: errors,
                ..StatusDetails::default()
            })),
            ..Self::new(
                422,
                "Invalid",
                format!("{kind}{dot}{group} \"{name}\" is invalid: {list}"),
            )
        }
    }

    /// The failure with details of an object.
    pub(crate) fn about(self, definition: &KindDefinition, name: &str) -> Self {
        Self {
            details: Some(Box::new(StatusDetails::of_object(definition, name))),
            ..self
        }
    }

    /// The failure with a pause to keep.
    pub(crate) fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The body as it travels.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"]["continue"] = json!(token);
        }
        status
    }
}
