//! The requests of machines, as the simulated API server takes them, and their answers.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::machine::answer::{Answer, RequestFailure};
use kopf_core::machine::request::{
    AnswerNeed, ObjectRequest, PatchContent, PatchEndpoint, ReadVerb,
};

use crate::server::{AnswerBody, ApiAnswer, Endpoint, ListOptions, SimulatedPatch, Verb};
use crate::world::CallOutcome;

/// The part of a request that its answer is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerUse {
    Object,
    /// By the text, as only some fields or none are needed.
    Text,
}

/// The action of a request; none for a state that a watch replays.
pub(crate) fn verb(request: &ObjectRequest<'_>, name: &Arc<str>) -> Option<Verb> {
    let name = Arc::clone(name);
    Some(match request {
        ObjectRequest::Read(verb) | ObjectRequest::ReadMetadata(verb) => match verb {
            ReadVerb::Get => Verb::Get { name },
            ReadVerb::List => Verb::List(ListOptions {
                fields: Some(format!("metadata.name={name}")),
                ..ListOptions::default()
            }),
        },
        ObjectRequest::NextState { .. } => return None,
        ObjectRequest::Patch {
            endpoint, content, ..
        } => Verb::Patch {
            name,
            endpoint: match endpoint {
                PatchEndpoint::Object => Endpoint::Object,
                PatchEndpoint::Status => Endpoint::Status,
            },
            patch: match content {
                PatchContent::Merge(patch) => SimulatedPatch::Merge((*patch).clone()),
                PatchContent::Json(patch) => SimulatedPatch::Json((*patch).clone()),
            },
        },
    })
}

fn answer_use(request: &ObjectRequest<'_>) -> AnswerUse {
    match request {
        ObjectRequest::Read(_)
        | ObjectRequest::NextState { .. }
        | ObjectRequest::Patch {
            need: AnswerNeed::Object,
            ..
        } => AnswerUse::Object,
        ObjectRequest::ReadMetadata(_) | ObjectRequest::Patch { .. } => AnswerUse::Text,
    }
}

/// The answer of the API server, as the machine takes it.
pub(crate) fn answer(request: &ObjectRequest<'_>, outcome: CallOutcome) -> Answer {
    let answer = match outcome {
        CallOutcome::Answered(answer) => answer,
        CallOutcome::ConnectionLost => {
            return Answer::Failed(RequestFailure::ConnectionLost("broken".to_owned()));
        }
        CallOutcome::TimedOut => return Answer::Failed(RequestFailure::TimedOut),
    };
    let object = match answer.body {
        AnswerBody::Object(object) if answer.code < 300 => object,
        AnswerBody::List(list) => match list.items.into_iter().next() {
            Some(object) => object,
            None => return Answer::Failed(not_listed()),
        },
        _ => return Answer::Failed(failure(&answer)),
    };
    match answer_use(request) {
        AnswerUse::Object => Answer::Object(object),
        AnswerUse::Text => Answer::read(request, &object.to_string()),
    }
}

/// A list by a name that no object has.
fn not_listed() -> RequestFailure {
    RequestFailure::Status {
        code: 404,
        message: "no object of this name is listed".to_owned(),
        retry_after: None,
    }
}

pub(crate) fn failure(answer: &ApiAnswer) -> RequestFailure {
    let failure = answer.as_failure();
    RequestFailure::Status {
        code: answer.code,
        message: failure.map_or_else(String::new, |it| it.message.clone()),
        retry_after: retry_after(answer),
    }
}

/// The pause that the API server asks for.
pub(crate) fn retry_after(answer: &ApiAnswer) -> Option<Duration> {
    let details = answer.as_failure()?.details.as_ref()?;
    let seconds = u64::from(details.retry_after_seconds);
    (seconds > 0).then(|| Duration::from_secs(seconds))
}
