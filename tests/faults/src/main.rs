//! The fault suite: an operator with handlers of all sorts on a real control plane, trouble that
//! follows from a seed, and a check of what the handlers did.

mod check;
mod clock;
mod editing;
mod footprint;
mod journal;
mod operators;
mod plan;
mod report;
mod run;
mod sabotage;
mod schedule;
mod stage;
mod state;
mod trouble;
mod watch_log;
mod workload;

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use kopf_cluster::subcommand;
use kopf_tests::TestFailure;

use crate::plan::RunPlan;
use crate::sabotage::Sabotage;
use crate::trouble::Trouble;

/// The seeds of the short form.
const SHORT_SEEDS: [u64; 2] = [1, 2];

/// Trouble for an operator on a real control plane.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: FaultCommand,
}

#[derive(Debug, Subcommand)]
enum FaultCommand {
    /// Make the trouble of one or more seeds
    Run {
        /// The seeds, each a run on a control plane of its own
        #[arg(long = "seed", value_delimiter = ',', default_values_t = [1])]
        seeds: Vec<u64>,
        #[command(flatten)]
        options: FaultOptions,
    },
    /// The short form: two fixed seeds, less than three minutes
    Short,
    /// One long run in which nothing kills the operator
    Soak {
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        #[command(flatten)]
        options: FaultOptions,
    },
    /// Run a seed again with the same options, with a log in detail and all files kept
    Replay {
        /// The seed that a report has named
        seed: u64,
        #[command(flatten)]
        options: FaultOptions,
    },
}

/// The options of runs.
#[derive(Clone, Debug, Args)]
struct FaultOptions {
    /// How long trouble is made; longer, if the kills take longer
    #[arg(long, default_value_t = 1.0)]
    minutes: f64,
    /// How often the operator is killed (-9), each time in the midst of its work
    #[arg(long, default_value_t = 30)]
    kills: usize,
    /// How many objects there are
    #[arg(long, default_value_t = 24)]
    objects: usize,
    /// How many objects a crowd has
    #[arg(long, default_value_t = 100)]
    crowd: usize,
    /// How many replicas the operator has; with more than one there is a leader election
    #[arg(long, default_value_t = 1)]
    replicas: usize,
    /// The sorts of trouble beside the kills; all by default
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Trouble>,
    /// Sorts of trouble to leave out
    #[arg(long, value_enum, value_delimiter = ',')]
    without: Vec<Trouble>,
    /// Make the journal wrong on purpose: the run must fail
    #[arg(long, value_enum)]
    sabotage: Option<Sabotage>,
    /// Keep the journal and the evidence in this folder
    #[arg(long)]
    keep: Option<PathBuf>,
}

fn main() -> ExitCode {
    // First, because the process that wraps an operator has the variables of the operator.
    if let Some(outcome) = subcommand::run(env::args_os().skip(1)) {
        return end(outcome.map(|()| true));
    }
    if workload::is_requested() {
        return workload::main();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return end(Err(error.into())),
    };
    end(runtime.block_on(execute(Cli::parse().command)))
}

fn end(outcome: Result<bool, TestFailure>) -> ExitCode {
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(failure) => {
            // There is nowhere else to report to.
            let _ = writeln!(io::stderr(), "{}", failure.message());
            ExitCode::FAILURE
        }
    }
}

async fn execute(command: FaultCommand) -> Result<bool, TestFailure> {
    match command {
        FaultCommand::Run { seeds, options } => run_all(&seeds, &options, false).await,
        FaultCommand::Short => run_all(&SHORT_SEEDS, &FaultOptions::short(), false).await,
        FaultCommand::Soak { seed, options } => {
            let options = FaultOptions {
                kills: 0,
                ..options
            };
            run_all(&[seed], &options, false).await
        }
        FaultCommand::Replay { seed, options } => {
            let keep = options.keep.clone();
            let keep = keep.unwrap_or_else(|| env::temp_dir().join(format!("faults-{seed}")));
            let options = FaultOptions {
                keep: Some(keep),
                ..options
            };
            run_all(&[seed], &options, true).await
        }
    }
}

/// Runs the seeds one after another, prints a report of each, and returns whether all claims hold.
async fn run_all(
    seeds: &[u64],
    options: &FaultOptions,
    verbose: bool,
) -> Result<bool, TestFailure> {
    let mut hold = true;
    for &seed in seeds {
        let plan = options.plan(seed, verbose);
        let temporary = tempfile::tempdir()?;
        let folder: &Path = options.keep.as_deref().unwrap_or(temporary.path());
        std::fs::create_dir_all(folder)?;
        let report = run::run(&plan, folder).await?;
        report.keep(folder)?;
        let mut out = io::stdout();
        writeln!(out, "seed {seed}: the schedule\n{}", report.schedule)?;
        writeln!(out, "{report}")?;
        if !report.holds() {
            hold = false;
            let text = options.replay_command(seed);
            writeln!(out, "seed {seed} failed; again with all files: {text}")?;
        }
    }
    Ok(hold)
}

// === impl FaultOptions ===

impl FaultOptions {
    /// The options of the short form.
    fn short() -> Self {
        Self {
            minutes: 0.6,
            kills: 15,
            objects: 16,
            crowd: 50,
            replicas: 1,
            only: Vec::new(),
            without: Vec::new(),
            sabotage: None,
            keep: None,
        }
    }

    fn plan(&self, seed: u64, verbose: bool) -> RunPlan {
        let all = if self.only.is_empty() {
            Trouble::ALL.to_vec()
        } else {
            self.only.clone()
        };
        // Replicas elect a leader; a rival takes part in a peering.
        let fits = |it: &Trouble| self.replicas < 2 || *it != Trouble::Rival;
        let sorts = all.into_iter().filter(fits);
        let sorts = sorts.filter(|it| !self.without.contains(it));
        RunPlan {
            seed,
            window: Duration::from_secs_f64(self.minutes * 60.0),
            kills: self.kills,
            objects: self.objects,
            second_objects: 4,
            gates: 4,
            crowd: self.crowd,
            replicas: self.replicas.max(1),
            sorts: sorts.collect(),
            sabotage: self.sabotage,
            verbose,
        }
    }

    /// The command that makes the same trouble again.
    fn replay_command(&self, seed: u64) -> String {
        let list = |name: &str, sorts: &[Trouble]| {
            let sorts: Vec<String> = sorts.iter().map(ToString::to_string).collect();
            match sorts.as_slice() {
                [] => String::new(),
                sorts => format!(" --{name} {}", sorts.join(",")),
            }
        };
        format!(
            "cargo run --release -p kopf-faults -- replay {seed} --minutes {} --kills {} --objects {} --crowd {} --replicas {}{}{}",
            self.minutes,
            self.kills,
            self.objects,
            self.crowd,
            self.replicas,
            list("only", &self.only),
            list("without", &self.without)
        )
    }
}
