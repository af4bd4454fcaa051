//! Plays histories from the command line.
//!
//! `run [HISTORIES] [FIRST SEED]` plays many up to the first failure, `survey` all of them, and
//! `replay SEED` shows one, shrunk if it fails; `replay SEED whole` shows it as it is.
//! `measure [REQUESTS]` measures the API server alone.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, Write};
use std::num::NonZero;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use kopf_simulation::choices::Choices;
use kopf_simulation::claims::OperatorScenario;
use kopf_simulation::explore::parallel::{PlayedBatch, survey};
use kopf_simulation::explore::{FailingSeed, play, shrink};
use kopf_simulation::server::{
    ApiRequest, ApiServer, DeletePreconditions, Endpoint, KindDefinition, SimulatedPatch, Verb,
};
use kopf_simulation::world::History;
use mimalloc::MiMalloc;
use serde_json::json;

/// With the allocator of the system, two fifths of the time of a history are spent in it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const USAGE: &str = "usage: kopf-simulation run [HISTORIES] [FIRST SEED]\n       \
                     kopf-simulation survey [HISTORIES] [FIRST SEED]\n       \
                     kopf-simulation replay SEED [whole]\n       \
                     kopf-simulation measure [REQUESTS]";

/// The histories between two lines of a survey.
const PROGRESS_INTERVAL: u64 = 10_000;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
    let mut out = io::stdout().lock();
    let result = match (words.first().map(String::as_str), number(1)) {
        (Some("replay"), Some(seed)) => {
            let is_whole = words.get(2).is_some_and(|it| it == "whole");
            replay(&mut out, seed, is_whole)
        }
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

/// Plays histories on all processors up to the first that fails.
fn run(out: &mut impl Write, first: u64, histories: u64) -> io::Result<ExitCode> {
    let begun = Instant::now();
    let mut played = PlayedBatch::default();
    survey(
        OperatorScenario::new,
        first..first + histories,
        threads(),
        |batch| {
            played.histories += batch.histories;
            played.requests += batch.requests;
            played.steps += batch.steps;
            played.failures.extend(batch.failures);
            match played.failures.is_empty() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        },
    );
    let seconds = begun.elapsed().as_secs_f64();
    writeln!(
        out,
        "{} histories, {} requests, {} steps in {seconds:.2} s: {:.0} histories and {:.0} requests \
         per second",
        played.histories,
        played.requests,
        played.steps,
        played.histories as f64 / seconds,
        played.requests as f64 / seconds,
    )?;
    for failure in &played.failures {
        writeln!(out, "seed {} fails: {}", failure.seed, failure.violation)?;
        writeln!(out, "show it by: kopf-simulation replay {}", failure.seed)?;
    }
    match played.failures.is_empty() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// The histories of a survey so far.
struct SurveyFigures {
    begun: Instant,
    played: u64,
    claims: BTreeMap<&'static str, u64>,
}

// === impl SurveyFigures ===

impl SurveyFigures {
    fn violations(&self) -> u64 {
        self.claims.values().sum()
    }

    /// Adds histories, and shows those that violate a claim.
    fn add(&mut self, out: &mut impl Write, batch: &PlayedBatch) -> io::Result<()> {
        for failure in &batch.failures {
            *self.claims.entry(failure.violation.claim).or_default() += 1;
            writeln!(out, "seed {}: {}", failure.seed, failure.violation)?;
        }
        let shown = self.played / PROGRESS_INTERVAL;
        self.played += batch.histories;
        if self.played / PROGRESS_INTERVAL > shown {
            let (played, seconds) = (self.played, self.begun.elapsed().as_secs());
            let violations = self.violations();
            writeln!(
                out,
                "{played} histories in {seconds} s, {violations} violations"
            )?;
        }
        out.flush()
    }
}

/// Shows each history that violates a claim, and counts them. Its lines may be read at any time.
fn survey_claims(out: &mut impl Write, first: u64, histories: u64) -> io::Result<ExitCode> {
    let mut figures = SurveyFigures {
        begun: Instant::now(),
        played: 0,
        claims: BTreeMap::new(),
    };
    let (seeds, mut result) = (first..first + histories, Ok(()));
    survey(OperatorScenario::new, seeds, threads(), |batch| {
        result = figures.add(out, &batch);
        match result {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    result?;
    for (claim, count) in &figures.claims {
        writeln!(out, "{count:>8}  {claim}")?;
    }
    let (played, violations) = (figures.played, figures.violations());
    writeln!(out, "{played} histories, {violations} violations")?;
    match violations {
        0 => Ok(ExitCode::SUCCESS),
        _ => Ok(ExitCode::FAILURE),
    }
}

/// One thread for each processor.
fn threads() -> NonZero<usize> {
    available_parallelism().unwrap_or(NonZero::<usize>::MIN)
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
fn replay(out: &mut impl Write, seed: u64, is_whole: bool) -> io::Result<ExitCode> {
    let mut choices = Choices::seeded(seed);
    let mut history = History::recorded();
    let (figures, result) = play(OperatorScenario::new, &mut choices, &mut history);
    let Err(violation) = result else {
        write!(out, "{history}")?;
        let (steps, requests) = (figures.steps, figures.requests);
        writeln!(out, "seed {seed} holds: {steps} steps, {requests} requests")?;
        return Ok(ExitCode::SUCCESS);
    };
    if is_whole {
        write!(out, "{history}")?;
        writeln!(out, "seed {seed} fails: {violation}")?;
        return Ok(ExitCode::FAILURE);
    }
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
