//! Plays histories from the command line.
//!
//! `run [HISTORIES] [FIRST SEED]` plays many up to the first failure, `survey` all of them, and
//! `replay SEED` shows one. `measure [REQUESTS]` measures the API server alone.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use kopf_simulation::choices::Choices;
use kopf_simulation::claims::OperatorScenario;
use kopf_simulation::explore::{FailingSeed, explore, play, shrink, survey};
use kopf_simulation::server::{
    ApiRequest, ApiServer, DeletePreconditions, Endpoint, KindDefinition, SimulatedPatch, Verb,
};
use kopf_simulation::world::History;
use serde_json::json;

const USAGE: &str = "usage: kopf-simulation run [HISTORIES] [FIRST SEED]\n       \
                     kopf-simulation survey [HISTORIES] [FIRST SEED]\n       \
                     kopf-simulation replay SEED\n       \
                     kopf-simulation measure [REQUESTS]";

/// The histories between two lines of a survey.
const PROGRESS_INTERVAL: u64 = 10_000;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
    let mut out = io::stdout().lock();
    let result = match (words.first().map(String::as_str), number(1)) {
        (Some("replay"), Some(seed)) => replay(&mut out, seed),
        (Some("run"), histories) => {
            let first = number(2).unwrap_or_default();
            run(&mut out, first, histories.unwrap_or(10_000))
        }
        (Some("survey"), histories) => {
            let first = number(2).unwrap_or_default();
            survey_claims(&mut out, first, histories.unwrap_or(10_000))
        }
        (Some("measure"), requests) => measure(&mut out, requests.unwrap_or(200_000)),
        _ => writeln!(out, "{USAGE}").map(|()| ExitCode::FAILURE),
    };
    // A reader that has closed the pipe wants no more.
    result.unwrap_or(ExitCode::FAILURE)
}

fn run(out: &mut impl Write, first: u64, histories: u64) -> io::Result<ExitCode> {
    let begun = Instant::now();
    let explored = explore(OperatorScenario::new, first..first + histories);
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(
        out,
        "{} histories, {} requests, {} steps in {seconds:.2} s: {:.0} histories and {:.0} requests \
         per second",
        explored.histories,
        explored.requests,
        explored.steps,
        explored.histories as f64 / seconds,
        explored.requests as f64 / seconds,
    )?;
    let Some(failure) = explored.failure else {
        return Ok(ExitCode::SUCCESS);
    };
    writeln!(out, "seed {} fails: {}", failure.seed, failure.violation)?;
    writeln!(out, "show it by: kopf-simulation replay {}", failure.seed)?;
    Ok(ExitCode::FAILURE)
}

/// Shows each history that violates a claim, and counts them.
fn survey_claims(out: &mut impl Write, first: u64, histories: u64) -> io::Result<ExitCode> {
    let begun = Instant::now();
    let mut claims: BTreeMap<&str, u64> = BTreeMap::new();
    let mut played = 0;
    for result in survey(OperatorScenario::new, first..first + histories) {
        played += 1;
        if let Err(FailingSeed {
            seed, violation, ..
        }) = result
        {
            *claims.entry(violation.claim).or_default() += 1;
            writeln!(out, "seed {seed}: {violation}")?;
            out.flush()?;
        }
        if played % PROGRESS_INTERVAL == 0 {
            let violations: u64 = claims.values().sum();
            let seconds = begun.elapsed().as_secs();
            writeln!(
                out,
                "{played} histories in {seconds} s, {violations} violations"
            )?;
            out.flush()?;
        }
    }
    for (claim, count) in &claims {
        writeln!(out, "{count:>8}  {claim}")?;
    }
    let violations: u64 = claims.values().sum();
    writeln!(out, "{played} histories, {violations} violations")?;
    match claims.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// Measures the API server: objects are created, patched three times, read and deleted.
fn measure(out: &mut impl Write, requests: u64) -> io::Result<ExitCode> {
    let mut server = ApiServer::new();
    server.create_namespace("default");
    let kind = server.define(KindDefinition::leases());
    let begun = Instant::now();
    for number in 0..requests {
        let name: Arc<str> = format!("lease-{}", number / 6 % 100).into();
        let verb = match number % 6 {
            0 => Verb::Create {
                body: json!({"metadata": {"name": *name}, "spec": {"leaseDurationSeconds": 15}}),
            },
            4 => Verb::Get { name },
            5 => Verb::Delete {
                name,
                preconditions: DeletePreconditions::default(),
            },
            _ => Verb::Patch {
                name,
                endpoint: Endpoint::Object,
                patch: SimulatedPatch::Merge(json!({
                    "metadata": {"annotations": {"kopf.test/record": number.to_string()}},
                    "spec": {"holderIdentity": number.to_string()},
                })),
            },
        };
        let answer = server.handle(&ApiRequest {
            user: "person".into(),
            kind,
            namespace: Some("default".into()),
            verb,
        });
        if !answer.is_success() {
            writeln!(out, "request {number} fails: {:?}", answer.body)?;
            return Ok(ExitCode::FAILURE);
        }
        server.compact(1_000);
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rate = requests as f64 / seconds;
    writeln!(
        out,
        "{requests} requests in {seconds:.2} s: {rate:.0} per second"
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Shows the history of a seed; if it fails, the simplest history that fails alike.
fn replay(out: &mut impl Write, seed: u64) -> io::Result<ExitCode> {
    let mut choices = Choices::seeded(seed);
    let mut history = History::recorded();
    let (figures, result) = play(OperatorScenario::new, &mut choices, &mut history);
    let Err(violation) = result else {
        write!(out, "{history}")?;
        let (steps, requests) = (figures.steps, figures.requests);
        writeln!(out, "seed {seed} holds: {steps} steps, {requests} requests")?;
        return Ok(ExitCode::SUCCESS);
    };
    let failure = FailingSeed {
        seed,
        violation,
        decisions: choices.drawn(),
    };
    let decisions = shrink(OperatorScenario::new, &failure);
    let count = (failure.decisions.count(), decisions.count());
    let mut choices = Choices::recorded(decisions);
    let mut history = History::recorded();
    let (_, result) = play(OperatorScenario::new, &mut choices, &mut history);
    write!(out, "{history}")?;
    if let Err(violation) = result {
        writeln!(out, "seed {seed} fails: {violation}")?;
    }
    writeln!(out, "shrunk from {} to {} decisions", count.0, count.1)?;
    Ok(ExitCode::FAILURE)
}
