//! Synthetic objects on a real API server, before and after decoding and encoding by the types.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};

use futures::future::join_all;
use kopf_corpus::corpus::{Corpus, SampleForm, Subset};
use kopf_corpus::defaulting;
use kopf_corpus::definition::{self, DefinitionVersion};
use kopf_corpus::difference;
use kopf_corpus::generated::{self, VersionSubset};
use kopf_corpus::rejected_fields::remove_rejected_field;
use kopf_corpus::roundtrip::{ObjectOrigin, RoundtripCase, RoundtripProgram, TestObject};
use kopf_corpus::scratch_crate::ScratchCrate;
use kopf_tests::{PrivateControlPlane, TestFailure, User, workspace};
use kube::Client;
use serde_json::Value;

use crate::server::{self, DryRunResponse};
use crate::summary::{DefinitionResult, Summary};

/// The number of definitions that are installed at the same time.
const AT_ONCE: usize = 8;

/// The number of fields to remove from an object before the test gives it up.
const MOST_REMOVALS: usize = 400;

/// Installs the definitions of a subset one after the other, and sends their objects.
pub(crate) async fn check(corpus: &Corpus, subset: Subset) -> Result<Summary, TestFailure> {
    let definitions = definitions(corpus, subset)?;
    let program = program(corpus, subset)?;
    let mut cases: BTreeMap<&str, Vec<&RoundtripCase>> = BTreeMap::new();
    for case in program.cases() {
        cases.entry(&case.stem).or_default().push(case);
    }
    let plane = start_control_plane().await?;
    let client = plane.client(&User::administrator("corpus")).await?;
    let mut summary = Summary::default();
    for batch in batches(&definitions) {
        let checks = batch
            .definitions
            .into_iter()
            .map(|NamedDefinition { stem, definition }| {
                let cases = cases.get(stem.as_str()).map_or(&[][..], Vec::as_slice);
                check_definition(&client, definition, &program, cases)
            });
        for result in join_all(checks).await {
            writeln!(io::stderr(), "{result}")?;
            summary.add(result);
        }
    }
    writeln!(io::stderr(), "{summary}")?;
    Ok(summary)
}

/// Starts a control plane, after building its program, which a run of this package alone does not.
pub(crate) async fn start_control_plane() -> Result<PrivateControlPlane, TestFailure> {
    workspace::build_program("kopf-gen")?;
    Ok(PrivateControlPlane::start().await?)
}

/// A definition under the name of its file.
struct NamedDefinition {
    stem: String,
    definition: Value,
}

fn definitions(corpus: &Corpus, subset: Subset) -> io::Result<Vec<NamedDefinition>> {
    corpus
        .files(subset)
        .into_iter()
        .map(|file| {
            let definition = server::prepared(&file.definition()?);
            Ok(NamedDefinition {
                stem: file.stem.clone(),
                definition,
            })
        })
        .collect()
}

fn program(corpus: &Corpus, subset: Subset) -> Result<RoundtripProgram, TestFailure> {
    let files = corpus.files(subset);
    let generated = generated::generate(&files, VersionSubset::Served)?;
    let cases = generated::cases(corpus, &files, &generated)?;
    let scratch = ScratchCrate::create("roundtrip", &generated::DEPENDENCIES)?;
    Ok(RoundtripProgram::build(
        &scratch,
        &generated.modules,
        cases,
    )?)
}

/// Definitions that can be installed at the same time, because each has a group of its own.
#[derive(Default)]
struct InstallBatch<'a> {
    groups: BTreeSet<String>,
    definitions: Vec<&'a NamedDefinition>,
}

fn batches(definitions: &[NamedDefinition]) -> Vec<InstallBatch<'_>> {
    let mut batches: Vec<InstallBatch<'_>> = Vec::new();
    for named in definitions {
        let group = named.definition["spec"]["group"].to_string();
        let fitting = batches
            .iter()
            .position(|batch| batch.definitions.len() < AT_ONCE && !batch.groups.contains(&group));
        let at = fitting.unwrap_or_else(|| {
            batches.push(InstallBatch::default());
            batches.len() - 1
        });
        batches[at].groups.insert(group);
        batches[at].definitions.push(named);
    }
    batches
}

async fn check_definition(
    client: &Client,
    definition: &Value,
    program: &RoundtripProgram,
    cases: &[&RoundtripCase],
) -> DefinitionResult {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let mut result = DefinitionResult::new(name);
    let versions = definition::versions(definition);
    if let Err(problem) = server::install(client, definition, &versions).await {
        result.refuse(problem);
    } else {
        for case in cases.iter().filter(|case| case.version.served) {
            if let Err(error) = check_case(client, case, program, &mut result).await {
                result.break_off(error.to_string());
            }
            if let Err(error) = check_samples(client, case, &mut result).await {
                result.break_off(error.to_string());
            }
        }
    }
    if let Err(problem) = server::uninstall(client, name).await {
        result.break_off(problem);
    }
    result
}

async fn check_case(
    client: &Client,
    case: &RoundtripCase,
    program: &RoundtripProgram,
    result: &mut DefinitionResult,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut session = program.start()?;
    for test_object in case
        .objects
        .iter()
        .filter(|one| matches!(one.origin, ObjectOrigin::Synthetic(..)))
    {
        let Some((object, before)) =
            send_until_accepted(client, &case.version, test_object, result).await?
        else {
            continue;
        };
        let after = match session.pass(case, &object)? {
            Ok(after) => after,
            Err(error) => {
                result.change(
                    test_object.origin,
                    format!("not decoded: {}", error.message),
                );
                continue;
            }
        };
        match server::dry_run(client, &case.version, &after).await? {
            DryRunResponse::Refused { message, .. } => {
                result.change(
                    test_object.origin,
                    format!("refused after the types: {message}"),
                );
            }
            DryRunResponse::Accepted(stored) => {
                let (before, stored) = (
                    without_server_fields(&case.version, before),
                    without_server_fields(&case.version, stored),
                );
                let changes = difference::between(&before, &stored);
                match changes.first() {
                    Some(first) => result.change(test_object.origin, first.to_string()),
                    None => result.keep(),
                }
            }
        }
    }
    Ok(())
}

/// Sends the applied samples, and compares what the API server would serve with the served ones.
async fn check_samples(
    client: &Client,
    case: &RoundtripCase,
    result: &mut DefinitionResult,
) -> kube::Result<()> {
    let samples = |form| {
        let of_form = move |one: &&TestObject| one.origin == ObjectOrigin::Sample(form);
        case.objects.iter().filter(of_form).map(|one| &one.object)
    };
    for applied in samples(SampleForm::Applied) {
        let name = &applied["metadata"]["name"];
        let served = samples(SampleForm::Served).find(|one| one["metadata"]["name"] == *name);
        let response = server::dry_run(client, &case.version, applied).await?;
        match (response, served) {
            (DryRunResponse::Refused { message, .. }, _) => {
                result.serve_otherwise(format!("the sample {name} is refused: {message}"));
            }
            (DryRunResponse::Accepted(stored), Some(served))
                if without_metadata_of_server(stored.clone())
                    == without_metadata_of_server(served.clone()) => {}
            (DryRunResponse::Accepted(stored), _) => {
                result.serve_otherwise(format!("the sample {name} is served as {stored}"));
            }
        }
    }
    Ok(())
}

/// Removes rejected fields until the API server accepts the object; the object, and the stored one.
async fn send_until_accepted(
    client: &Client,
    version: &DefinitionVersion,
    test_object: &TestObject,
    result: &mut DefinitionResult,
) -> kube::Result<Option<(Value, Value)>> {
    let mut object = test_object.object.clone();
    let mut removed = 0;
    loop {
        match server::dry_run(client, version, &object).await? {
            DryRunResponse::Accepted(stored) => {
                result.accept(removed);
                return Ok(Some((object, stored)));
            }
            DryRunResponse::Refused { message, causes } => {
                let helped = causes
                    .iter()
                    .filter(|cause| {
                        remove_rejected_field(&version.schema, &mut object, cause).is_some()
                    })
                    .count();
                removed += helped;
                if helped == 0 || removed > MOST_REMOVALS {
                    result.give_up(test_object.origin, message);
                    return Ok(None);
                }
            }
        }
    }
}

/// The stored object, with defaults, without the fields that the API server sets for each request,
/// and without `null` where that means the same as no member.
fn without_server_fields(version: &DefinitionVersion, stored: Value) -> Value {
    let mut stored = without_metadata_of_server(stored);
    defaulting::fill(&version.schema, &mut stored);
    defaulting::drop_nulls(&version.schema, &mut stored);
    stored
}

/// The stored object without the metadata that the API server sets anew for each request.
fn without_metadata_of_server(mut stored: Value) -> Value {
    if let Some(metadata) = stored["metadata"].as_object_mut() {
        for name in [
            "creationTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "uid",
        ] {
            metadata.shift_remove(name);
        }
    }
    stored
}
