//! Prints for each planted fault in how many runs it is found, and after how many histories.
//!
//! `planted-faults [RUNS] [HISTORIES] [FIRST SEED] [FAULT]`: each run plays at most so many
//! histories of fresh seeds, about as many as CI has time for. `planted-faults short` is for CI: a
//! run of few histories for each fault, which has to find most of them. Both leave out the faults
//! that are too rare for that, which `planted-faults rare` searches. `planted-faults replay FAULT
//! SEED` shows a history.

use std::env;
use std::io::{self, Write};
use std::num::NonZero;
use std::process::ExitCode;
use std::slice;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use kopf_core::planted::{PlantedFault, plant};
use kopf_simulation_planted::choices::Choices;
use kopf_simulation_planted::claims::OperatorScenario;
use kopf_simulation_planted::explore::{explore, play};
use kopf_simulation_planted::world::History;

/// The histories of one run.
const MOST_HISTORIES: u64 = 45_000;

/// The histories of one run of the short form.
const SHORT_HISTORIES: u64 = 500;

/// The number of faults that the short form must find; the others need more histories.
const SHORT_FOUND: usize = 40;

/// The part of the runs in which a fault must be found.
const LEAST_FOUND: f64 = 0.95;

/// No other command begins with this seed.
const FIRST_SEED: u64 = 1 << 32;

/// The histories in which a fault is searched.
#[derive(Clone, Copy)]
struct SearchPlan {
    runs: u64,
    /// The most histories of each run.
    histories: u64,
    first: u64,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<u64>().ok());
    let named = |word: &String| {
        let mut all = PlantedFault::ALL.iter().copied();
        all.find(|fault| format!("{fault:?}") == *word)
    };
    let fault = words.iter().find_map(named);
    let mut out = io::stdout().lock();
    let result = match words.first().map(String::as_str) {
        Some("replay") => show(&mut out, fault, number(2).unwrap_or_default()),
        Some("short") => {
            let plan = SearchPlan {
                runs: 1,
                histories: SHORT_HISTORIES,
                first: FIRST_SEED,
            };
            let found = table(&mut out, plan, &PlantedFault::common());
            found.map(|found| exit_code(found >= SHORT_FOUND))
        }
        Some("rare") => {
            let plan = SearchPlan {
                runs: number(1).unwrap_or(2),
                histories: number(2).unwrap_or(MOST_HISTORIES),
                first: number(3).unwrap_or(FIRST_SEED),
            };
            table(&mut out, plan, PlantedFault::RARE).map(|_| ExitCode::SUCCESS)
        }
        _ => {
            let plan = SearchPlan {
                runs: number(0).unwrap_or(20),
                histories: number(1).unwrap_or(MOST_HISTORIES),
                first: number(2).unwrap_or(FIRST_SEED),
            };
            let common = PlantedFault::common();
            let faults = fault.as_ref().map_or(&common[..], slice::from_ref);
            let found = table(&mut out, plan, faults);
            found.map(|found| exit_code(found == faults.len()))
        }
    };
    result.unwrap_or(ExitCode::FAILURE)
}

fn exit_code(is_success: bool) -> ExitCode {
    match is_success {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Searches each fault, and prints a row for it; returns how many are found in enough of the runs.
fn table(out: &mut impl Write, plan: SearchPlan, faults: &[PlantedFault]) -> io::Result<usize> {
    let runs = plan.runs;
    writeln!(out, "| fault | found in | median histories |")?;
    writeln!(out, "|---|---|---|")?;
    let mut often_found = 0;
    for fault in faults {
        let counts = search(*fault, plan);
        let found = counts.len() as u64;
        let median = counts
            .get(counts.len() / 2)
            .map_or("–".to_owned(), u64::to_string);
        let description = fault.description();
        writeln!(out, "| {description} | {found} of {runs} | {median} |")?;
        out.flush()?;
        often_found += usize::from(found as f64 >= LEAST_FOUND * runs as f64);
    }
    let all = faults.len();
    writeln!(out, "\n{often_found} of {all} faults are found")?;
    Ok(often_found)
}

/// The histories after which each run has found a fault, in order; runs without a find are left out.
fn search(fault: PlantedFault, plan: SearchPlan) -> Vec<u64> {
    let next = AtomicU64::new(0);
    let counts = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                plant(Some(fault));
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= plan.runs {
                        return;
                    }
                    let begin = plan.first + run * plan.histories;
                    let seeds = begin..begin + plan.histories;
                    let explored = explore(OperatorScenario::new, seeds);
                    if explored.failure.is_some() {
                        let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
                        counts.push(explored.histories);
                    }
                }
            });
        }
    });
    let mut counts = counts.into_inner().unwrap_or_else(PoisonError::into_inner);
    counts.sort_unstable();
    counts
}

fn show(out: &mut impl Write, fault: Option<PlantedFault>, seed: u64) -> io::Result<ExitCode> {
    plant(fault);
    let mut history = History::recorded();
    let mut choices = Choices::seeded(seed);
    let (_, result) = play(OperatorScenario::new, &mut choices, &mut history);
    write!(out, "{history}")?;
    match result {
        Ok(()) => writeln!(out, "seed {seed} holds").map(|()| ExitCode::SUCCESS),
        Err(violation) => writeln!(out, "{violation}").map(|()| ExitCode::FAILURE),
    }
}
