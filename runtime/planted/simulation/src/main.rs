//! Prints for each planted fault in how many runs it is found, and after how many histories.
//!
//! `planted-faults [RUNS] [HISTORIES] [FIRST SEED] [FAULT]`: each run plays at most so many
//! histories of fresh seeds. `planted-faults replay FAULT SEED` shows a history.

use std::env;
use std::io::{self, Write};
use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, available_parallelism};

use kopf_core::planted::{PlantedFault, plant};
use kopf_simulation_planted::choices::Choices;
use kopf_simulation_planted::claims::OperatorScenario;
use kopf_simulation_planted::explore::{explore, play};
use kopf_simulation_planted::world::History;

/// The histories of one run.
const MOST_HISTORIES: u64 = 30_000;

/// The part of the runs in which a fault must be found.
const LEAST_FOUND: f64 = 0.95;

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
        _ => {
            let (runs, histories) = (number(0).unwrap_or(20), number(1).unwrap_or(MOST_HISTORIES));
            table(
                &mut out,
                runs,
                histories,
                number(2).unwrap_or(1 << 32),
                fault,
            )
        }
    };
    result.unwrap_or(ExitCode::FAILURE)
}

fn table(
    out: &mut impl Write,
    runs: u64,
    histories: u64,
    first: u64,
    only: Option<PlantedFault>,
) -> io::Result<ExitCode> {
    writeln!(out, "| fault | found in | median histories |")?;
    writeln!(out, "|---|---|---|")?;
    let mut all_found = true;
    let faults = PlantedFault::ALL.iter().copied();
    for fault in faults.filter(|fault| only.is_none_or(|only| only == *fault)) {
        let counts = search(fault, runs, histories, first);
        let found = counts.len() as u64;
        let median = counts
            .get(counts.len() / 2)
            .map_or("–".to_owned(), u64::to_string);
        let description = fault.description();
        writeln!(out, "| {description} | {found} of {runs} | {median} |")?;
        out.flush()?;
        all_found &= found as f64 >= LEAST_FOUND * runs as f64;
    }
    match all_found {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

/// The histories after which each run has found a fault, in order; runs without a find are left out.
fn search(fault: PlantedFault, runs: u64, histories: u64, first: u64) -> Vec<u64> {
    let next = AtomicU64::new(0);
    let counts = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                plant(Some(fault));
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= runs {
                        return;
                    }
                    let begin = first + run * histories;
                    let explored = explore(OperatorScenario::new, begin..begin + histories);
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
