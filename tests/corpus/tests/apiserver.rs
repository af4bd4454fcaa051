//! Synthetic objects on a real API server, before and after their way through the types.
//!
//! By default a few definitions; `KOPF_CORPUS_EVERY=1` takes all of them.

#[path = "apiserver/ledger.rs"]
mod ledger;
#[path = "apiserver/server.rs"]
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::io::{self, Write as _};

use futures::future::join_all;
use kopf_corpus::amend::amend;
use kopf_corpus::corpus::{Corpus, Part};
use kopf_corpus::defaulting;
use kopf_corpus::definition::{self, Version};
use kopf_corpus::difference;
use kopf_corpus::generated::{self, Which};
use kopf_corpus::roundtrip::{Case, Label, Labelled, Program};
use kopf_corpus::scratch::Scratch;
use kopf_tests::{PrivateControlPlane, TestFailure, TestResult, User};
use kube::Client;
use serde_json::Value;

use ledger::{Entry, Ledger};
use server::Answer;

/// So many definitions are installed at the same time.
const AT_ONCE: usize = 8;

/// So often an object is amended before it is given up.
const MOST_AMENDMENTS: usize = 400;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_takes_objects_before_and_after_the_types() -> TestResult {
    let corpus = match Corpus::locate() {
        Ok(corpus) => corpus,
        Err(missing) => {
            writeln!(io::stderr(), "\nNOT MEASURED: {missing}\n")?;
            return Ok(());
        }
    };
    let every = env::var("KOPF_CORPUS_EVERY")
        .ok()
        .and_then(|step| step.parse().ok())
        .unwrap_or(80);
    let definitions = definitions(&corpus, every)?;
    let program = program(&corpus, every)?;
    let mut cases: BTreeMap<&str, Vec<&Case>> = BTreeMap::new();
    for case in program.cases() {
        cases.entry(&case.stem).or_default().push(case);
    }
    let plane = PrivateControlPlane::start().await?;
    let client = plane.client(&User::administrator("corpus")).await?;
    let mut ledger = Ledger::default();
    for batch in batches(&definitions) {
        let visits = batch
            .definitions
            .into_iter()
            .map(|Named { stem, definition }| {
                let cases = cases.get(stem.as_str()).map_or(&[][..], Vec::as_slice);
                visit(&client, definition, &program, cases)
            });
        for entry in join_all(visits).await {
            writeln!(io::stderr(), "{entry}")?;
            ledger.add(entry);
        }
    }
    writeln!(io::stderr(), "{ledger}")?;
    assert_eq!(
        ledger.changed(),
        0,
        "objects that the server took were changed by the types"
    );
    Ok(())
}

/// A definition under the name of its file.
struct Named {
    stem: String,
    definition: Value,
}

fn definitions(corpus: &Corpus, every: usize) -> io::Result<Vec<Named>> {
    corpus
        .files(Part::Every(every))
        .into_iter()
        .map(|file| {
            let definition = server::prepared(&file.definition()?);
            Ok(Named {
                stem: file.stem.clone(),
                definition,
            })
        })
        .collect()
}

fn program(corpus: &Corpus, every: usize) -> Result<Program, TestFailure> {
    let files = corpus.files(Part::Every(every));
    let generated = generated::generate(&files, Which::Served)?;
    let cases = generated::cases(corpus, &files, &generated)?;
    let scratch = Scratch::create("roundtrip", &generated::SUPPLY)?;
    Ok(Program::build(&scratch, &generated.modules, cases)?)
}

/// Definitions that can be installed side by side, because each has a group of its own.
#[derive(Default)]
struct Batch<'a> {
    groups: BTreeSet<String>,
    definitions: Vec<&'a Named>,
}

fn batches(definitions: &[Named]) -> Vec<Batch<'_>> {
    let mut batches: Vec<Batch<'_>> = Vec::new();
    for named in definitions {
        let group = named.definition["spec"]["group"].to_string();
        let fitting = batches
            .iter()
            .position(|batch| batch.definitions.len() < AT_ONCE && !batch.groups.contains(&group));
        let at = fitting.unwrap_or_else(|| {
            batches.push(Batch::default());
            batches.len() - 1
        });
        batches[at].groups.insert(group);
        batches[at].definitions.push(named);
    }
    batches
}

async fn visit(client: &Client, definition: &Value, program: &Program, cases: &[&Case]) -> Entry {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    let mut entry = Entry::new(name);
    let versions = definition::versions(definition);
    if let Err(problem) = server::install(client, definition, &versions).await {
        entry.refuse(problem);
    } else {
        for case in cases {
            if let Err(error) = exchange(client, case, program, &mut entry).await {
                entry.break_off(error.to_string());
            }
        }
    }
    if let Err(problem) = server::uninstall(client, name).await {
        entry.break_off(problem);
    }
    entry
}

async fn exchange(
    client: &Client,
    case: &Case,
    program: &Program,
    entry: &mut Entry,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut session = program.start()?;
    for labelled in case
        .objects
        .iter()
        .filter(|one| matches!(one.label, Label::Synthetic(..)))
    {
        let Some((object, before)) = persuade(client, &case.version, labelled, entry).await? else {
            continue;
        };
        let after = match session.pass(case, &object)? {
            Ok(after) => after,
            Err(refusal) => {
                entry.change(labelled.label, format!("not decoded: {}", refusal.message));
                continue;
            }
        };
        match server::ask(client, &case.version, &after).await? {
            Answer::Refused { message, .. } => {
                entry.change(
                    labelled.label,
                    format!("refused after the types: {message}"),
                );
            }
            Answer::Accepted(stored) => {
                let (before, stored) = (
                    settled(&case.version, before),
                    settled(&case.version, stored),
                );
                let changes = difference::between(&before, &stored);
                match changes.first() {
                    Some(first) => entry.change(labelled.label, first.to_string()),
                    None => entry.keep(),
                }
            }
        }
    }
    Ok(())
}

/// Amends an object until the server takes it; gives it with what the server would store.
async fn persuade(
    client: &Client,
    version: &Version,
    labelled: &Labelled,
    entry: &mut Entry,
) -> kube::Result<Option<(Value, Value)>> {
    let mut object = labelled.object.clone();
    let mut amended = 0;
    loop {
        match server::ask(client, version, &object).await? {
            Answer::Accepted(stored) => {
                entry.take(amended);
                return Ok(Some((object, stored)));
            }
            Answer::Refused { message, causes } => {
                let helped = causes
                    .iter()
                    .filter(|cause| amend(&version.schema, &mut object, cause).is_some())
                    .count();
                amended += helped;
                if helped == 0 || amended > MOST_AMENDMENTS {
                    entry.give_up(labelled.label, message);
                    return Ok(None);
                }
            }
        }
    }
}

/// What the server would store, without what it makes up anew for each request.
fn settled(version: &Version, mut stored: Value) -> Value {
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
    defaulting::fill(&version.schema, &mut stored);
    stored
}
