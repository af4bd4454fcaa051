//! The readable trace of a history.

use std::fmt::{self, Write as _};

use serde_json::Value;

use crate::server::{AnswerBody, ApiAnswer, ApiRequest, ApiServer, SimulatedPatch, Verb};
use crate::time::VirtualTime;

/// The longest content that a line shows.
const LONGEST_CONTENT: usize = 600;

/// What happened, line by line.
#[derive(Debug, Default)]
pub struct History {
    is_recorded: bool,
    lines: Vec<String>,
}

// === impl History ===

impl History {
    /// A history that keeps its lines.
    #[must_use]
    pub fn recorded() -> Self {
        Self {
            is_recorded: true,
            lines: Vec::new(),
        }
    }

    /// A history that keeps nothing, and costs nothing.
    #[must_use]
    pub fn unrecorded() -> Self {
        Self::default()
    }

    /// Adds a line.
    pub(crate) fn note(&mut self, now: VirtualTime, line: impl FnOnce() -> String) {
        if self.is_recorded {
            self.lines.push(format!("{now:>10}  {}", line()));
        }
    }

    /// The lines so far.
    #[must_use]
    pub fn lines(&self) -> &[String] {
        &self.lines
    }
}

impl fmt::Display for History {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines
            .iter()
            .try_for_each(|line| writeln!(formatter, "{line}"))
    }
}

/// The verb, the kind and the name of a request.
pub(crate) fn describe_target(server: &ApiServer, request: &ApiRequest) -> String {
    let plural = &server.definition(request.kind).plural;
    let mut line = format!("{} {plural}", request.verb.name());
    if let Some(name) = request.verb.object_name() {
        let _ = write!(line, " {name}");
    }
    line
}

/// A request in one line.
pub(crate) fn describe_request(server: &ApiServer, request: &ApiRequest) -> String {
    let mut line = describe_target(server, request);
    let content = match &request.verb {
        Verb::Get { .. } => return line,
        Verb::List(options) => options.continue_token.clone().unwrap_or_default(),
        Verb::Create { body } | Verb::Update { body, .. } => body.to_string(),
        Verb::Patch { patch, .. } => {
            let (SimulatedPatch::Merge(body) | SimulatedPatch::Json(body)) = patch;
            body.to_string()
        }
        Verb::Delete { preconditions, .. } => match &preconditions.uid {
            Some(uid) => format!("if its uid is {uid}"),
            None => return line,
        },
    };
    let _ = write!(line, " {}", shortened(&content));
    line
}

/// An answer in one line.
pub(crate) fn describe_answer(answer: &ApiAnswer) -> String {
    let content = match &answer.body {
        AnswerBody::Object(object) => describe_object(object),
        AnswerBody::List(list) => format!(
            "{} objects at {}{}",
            list.items.len(),
            list.resource_version,
            if list.continue_token.is_some() {
                ", and more"
            } else {
                ""
            }
        ),
        AnswerBody::Deleted(details) => format!("{} is gone", details.name),
        AnswerBody::Failure(failure) => failure.message.clone(),
        AnswerBody::Text(text) => (*text).to_owned(),
    };
    format!("{} {}", answer.code, shortened(&content))
}

/// The part of an object that matters most.
pub(crate) fn describe_object(object: &Value) -> String {
    let metadata = &object["metadata"];
    let text = |field: &str| metadata[field].as_str().unwrap_or_default();
    let mut line = format!("{} version {}", text("name"), text("resourceVersion"));
    if let Some((_, uid)) = text("uid").rsplit_once('-') {
        let _ = write!(line, " uid {}", uid.trim_start_matches('0'));
    }
    if !text("deletionTimestamp").is_empty() {
        line.push_str(" deleting");
    }
    for field in ["labels", "finalizers", "annotations"] {
        if !metadata[field].is_null() {
            let _ = write!(line, " {field} {}", metadata[field]);
        }
    }
    for part in ["spec", "status"] {
        if !object[part].is_null() {
            let _ = write!(line, " {part} {}", object[part]);
        }
    }
    line
}

fn shortened(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(LONGEST_CONTENT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
