//! The fault suite: an operator with handlers of all sorts on a real control plane, trouble that
//! follows from a seed, and a check of what the handlers did.

mod check;
mod clock;
mod editing;
mod fake_clock;
mod footprint;
mod journal;
mod operators;
mod peer_program;
mod plan;
mod plot;
mod report;
mod run;
mod sabotage;
mod samples;
mod schedule;
mod stage;
mod state;
mod tested_operator;
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

use crate::fake_clock::FakeClock;
use crate::plan::RunPlan;
use crate::sabotage::Sabotage;
use crate::samples::SampleFiles;
use crate::tested_operator::TestedOperator;
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
    /// The short form: two fixed seeds, about two minutes
    Short,
    /// One long run in which nothing kills the operator, with one trouble a minute
    Soak {
        /// The seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Write a plot of memory, descriptors and latency here, again and again; the table is
        /// beside it, with the extension `csv`
        #[arg(long)]
        plot: Option<PathBuf>,
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
    /// The operator: ours, or one on another framework
    #[arg(long, value_enum, default_value_t = TestedOperator::KopfGen)]
    operator: TestedOperator,
    /// The sorts of trouble beside the kills; all but `jump-clock` by default
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

/// The form of a run.
#[derive(Clone, Debug)]
enum RunForm {
    Usual,
    /// With a log in detail.
    Replay,
    /// With one trouble a minute, and perhaps a plot in this file.
    Soak(Option<PathBuf>),
}

// That of the crates that `kopf-gen new` writes.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
        FaultCommand::Run { seeds, options } => run_all(&seeds, &options, RunForm::Usual).await,
        FaultCommand::Short => run_all(&SHORT_SEEDS, &FaultOptions::short(), RunForm::Usual).await,
        FaultCommand::Soak {
            seed,
            plot,
            options,
        } => {
            let options = FaultOptions {
                kills: 0,
                ..options
            };
            run_all(&[seed], &options, RunForm::Soak(plot)).await
        }
        FaultCommand::Replay { seed, options } => {
            let keep = options.keep.clone();
            let keep = keep.unwrap_or_else(|| env::temp_dir().join(format!("faults-{seed}")));
            let options = FaultOptions {
                keep: Some(keep),
                ..options
            };
            run_all(&[seed], &options, RunForm::Replay).await
        }
    }
}

/// Runs the seeds one after another, prints a report of each, and returns whether all claims hold.
async fn run_all(
    seeds: &[u64],
    options: &FaultOptions,
    form: RunForm,
) -> Result<bool, TestFailure> {
    options.check()?;
    let mut hold = true;
    for &seed in seeds {
        let plan = options.plan(seed, &form);
        let temporary = tempfile::tempdir()?;
        let folder: &Path = options.keep.as_deref().unwrap_or(temporary.path());
        std::fs::create_dir_all(folder)?;
        let plot = match &form {
            RunForm::Soak(Some(plot)) => plot.clone(),
            _ => folder.join("samples.svg"),
        };
        let files = SampleFiles {
            table: plot.with_extension("csv"),
            plot,
        };
        let report = run::run(&plan, folder, &files).await?;
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
            minutes: 0.4,
            kills: 8,
            objects: 10,
            crowd: 30,
            replicas: 1,
            operator: TestedOperator::KopfGen,
            only: Vec::new(),
            without: Vec::new(),
            sabotage: None,
            keep: None,
        }
    }

    /// The options that only our operator has.
    fn check(&self) -> Result<(), TestFailure> {
        let own = self.replicas > 1 || self.sabotage.is_some();
        if own && self.operator != TestedOperator::KopfGen {
            let text = "only the operator `kopf-gen` has replicas and sabotage";
            return Err(TestFailure::new(text));
        }
        Ok(())
    }

    fn plan(&self, seed: u64, form: &RunForm) -> RunPlan {
        let all = if self.only.is_empty() {
            // What is known to break claims must be asked for.
            let known = |it: &Trouble| *it != Trouble::JumpClock;
            Trouble::ALL.into_iter().filter(known).collect()
        } else {
            self.only.clone()
        };
        // Replicas elect a leader; a rival takes part in a peering.
        let fits = |it: &Trouble| {
            (self.replicas < 2 || *it != Trouble::Rival)
                && (*it != Trouble::JumpClock || FakeClock::is_available())
                && self.operator.accepts(*it)
        };
        let sorts = all.into_iter().filter(fits);
        let sorts = sorts.filter(|it| !self.without.contains(it));
        RunPlan {
            seed,
            window: Duration::from_secs_f64(self.minutes * 60.0),
            kills: self.kills,
            objects: self.objects,
            second_objects: 4,
            gates: if self.operator.has_gates() { 4 } else { 0 },
            operator: self.operator,
            crowd: self.crowd,
            replicas: self.replicas.max(1),
            sorts: sorts.collect(),
            pauses: match form {
                RunForm::Soak(_) => schedule::SOAK_PAUSES,
                RunForm::Usual | RunForm::Replay => schedule::PAUSES,
            },
            sabotage: self.sabotage,
            verbose: matches!(form, RunForm::Replay),
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
            "cargo run --release -p kopf-faults -- replay {seed} --minutes {} --kills {} --objects {} --crowd {} --replicas {} --operator {}{}{}",
            self.minutes,
            self.kills,
            self.objects,
            self.crowd,
            self.replicas,
            self.operator.name(),
            list("only", &self.only),
            list("without", &self.without)
        )
    }
}
