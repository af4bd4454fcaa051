//! The judgements of kopf-gen and of a real API server on a definition.

use http::Request;
use kopf_gen::diagnostic::{Diagnostics, Severity, Sources};
use kopf_gen::pipeline;
use kopf_tests::TestFailure;
use kube::Client;
use serde_json::{Value, json};

const DRY_RUN: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

/// The beginning of a help with a reason of the API server.
const REASON: &str = "the reason of the API server: ";

/// The beginning of a warning with a reason of the API server.
const REJECTED: &str = "the API server rejects this definition: ";

/// The judgement of kopf-gen.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// Whether there is an error, or a warning with a reason of the API server.
    pub(crate) rejects: bool,
    /// The reasons of the API server that kopf-gen expects.
    pub(crate) reasons: Vec<String>,
    /// Everything that kopf-gen reports.
    pub(crate) reported: Vec<String>,
}

/// The judgement of kopf-gen, as `generate` reports it.
pub(crate) fn of_generator(definition: &str) -> Judgement {
    let mut sources = Sources::new();
    let mut diagnostics = Diagnostics::new();
    let manifest = json!({
        "apiVersion": "kopf-gen.dev/v1",
        "operator": {"name": "judge"},
        "resources": [{"crd": "definition.yaml"}],
    });
    let manifest = sources.add("kopf.yaml", manifest.to_string());
    let read = |_: &str| Ok(definition.as_bytes().to_vec());
    let _ = pipeline::read_operator(&mut sources, manifest, &read, &mut diagnostics);
    let mut judgement = Judgement::default();
    for diagnostic in &diagnostics {
        let help = diagnostic.help.as_deref().unwrap_or_default();
        let reason = help.strip_prefix(REASON);
        let reason = reason.or_else(|| diagnostic.message.strip_prefix(REJECTED));
        judgement.rejects |= diagnostic.severity == Severity::Error || reason.is_some();
        judgement.reasons.extend(reason.map(str::to_owned));
        judgement.reported.push(diagnostic.message.clone());
    }
    judgement
}

/// The reason for which the API server rejects a definition; `None` if it accepts it.
pub(crate) async fn of_server(
    client: &Client,
    definition: &str,
) -> Result<Option<String>, TestFailure> {
    let format = match definition.starts_with('{') {
        true => "application/json",
        false => "application/yaml",
    };
    let request = Request::post(DRY_RUN)
        .header("content-type", format)
        .body(definition.as_bytes().to_vec())?;
    match client.request::<Value>(request).await {
        Ok(_) => Ok(None),
        Err(kube::Error::Api(status)) if status.code < 500 => Ok(Some(status.message.clone())),
        Err(error) => Err(error.into()),
    }
}

/// Whether the API server could not even read the definition: then it checks nothing else.
pub(crate) fn is_unreadable(answer: &str) -> bool {
    answer.contains("cannot be handled as a CustomResourceDefinition")
}

/// The difference between the two judgements, if there is one.
pub(crate) async fn difference(
    client: &Client,
    what: &str,
    definition: &Value,
) -> Result<Option<String>, TestFailure> {
    let text = definition.to_string();
    let ours = of_generator(&text);
    let theirs = of_server(client, &text).await?;
    let answer = theirs.as_deref().unwrap_or("accepted");
    if ours.rejects != theirs.is_some() {
        let reported = ours.reported;
        return Ok(Some(format!("{what}: {reported:?}, but {answer}")));
    }
    let mut reasons = ours.reasons.iter();
    let wrong = reasons.find(|reason| !answer.contains(*reason) && !is_unreadable(answer));
    Ok(wrong.map(|reason| format!("{what}: {reason:?}, but {answer}")))
}
