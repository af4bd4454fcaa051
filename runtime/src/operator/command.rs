//! The commands of an operator's process: run, print or apply definitions, freeze, resume, inspect.

use std::process::ExitCode;
use std::sync::Arc;

use clap::FromArgMatches as _;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use super::args::{self, Cli, PeeringArgs, RequestedAction, RunArgs, ScopeArgs};
use super::connect::connect;
use super::error::chain;
use super::logging::{LogFormat, LogSetup, LogVerbosity};
use super::phases::start;
use super::{Error, Namespaces, Operator, logging, shutdown};
use crate::settings::{MOST_BLOCKING_THREADS, PeeringMode};

impl Operator {
    /// Does what the command line asks for; an operator that runs is stopped by a signal.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let matches = args::command(self.name, self.version).get_matches();
        let action = match Cli::from_arg_matches(&matches) {
            Ok(cli) => RequestedAction::from(cli),
            Err(error) => error.exit(),
        };
        let done = match action {
            RequestedAction::PrintCrds => self.print_crds().map_err(Error::Process),
            RequestedAction::ApplyCrds { force } => {
                logging::init(&LogSetup::default().format(LogFormat::Plain));
                self.with_cluster(async |operator, client| operator.apply_crds(client, force).await)
            }
            RequestedAction::Run(args) => {
                let _traces = logging::init_with_traces(&args.logging.setup(), self.name);
                self.run_process(&args)
            }
            RequestedAction::Freeze(args) => {
                logging::init(&args.logging.setup_of_command());
                self.with_cluster(async |operator, client| operator.freeze(client, &args).await)
            }
            RequestedAction::Resume(args) => {
                logging::init(&args.logging.setup_of_command());
                self.with_cluster(async |operator, client| operator.unfreeze(client, &args).await)
            }
            RequestedAction::Inspect(args) => {
                logging::init(&output_setup());
                self.with_cluster(async |operator, client| {
                    let inspected = operator.inspected()?;
                    inspected
                        .inspect(client, &args)
                        .await
                        .map_err(Error::Inspection)
                })
            }
            RequestedAction::Unstick(args) => {
                logging::init(&output_setup());
                self.with_cluster(async |operator, client| {
                    let inspected = operator.inspected()?;
                    inspected
                        .unstick(client, &args)
                        .await
                        .map_err(Error::Inspection)
                })
            }
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => {
                error!("{}", chain(&failure));
                ExitCode::from(failure.exit_code())
            }
        }
    }

    fn run_process(mut self, args: &RunArgs) -> Result<(), Error> {
        self.apply_scope(&args.scope);
        self.apply_peering(&args.peering);
        if args.liveness.is_some() {
            self.liveness = args.liveness.clone();
        }
        if let Some(page) = args.page.setup() {
            self.page = Some(page);
        }
        args.webhooks.apply_to(&mut self.webhooks, self.name);
        let threads = self.settings.execution.blocking_threads;
        block_on(threads, self.run_until_signal())
    }

    fn apply_scope(&mut self, args: &ScopeArgs) {
        if !args.namespace.is_empty() {
            self.namespaces = Namespaces::matching(args.namespace.iter().cloned());
        } else if args.all_namespaces {
            self.namespaces = Namespaces::All;
        } else if self.namespaces == Namespaces::All {
            warn!("neither a namespace nor --all-namespaces is given: serving the whole cluster");
        }
    }

    fn apply_peering(&mut self, args: &PeeringArgs) {
        if args.standalone {
            self.peering.mode = PeeringMode::Standalone;
            self.leader_election = None;
        }
        if let Some(name) = &args.peering {
            self.peering.mode = PeeringMode::Mandatory;
            self.peering.name.clone_from(name);
        }
        if let Some(priority) = args.priority() {
            self.peering.priority = priority;
        }
        if args.dev && self.peering.mode != PeeringMode::Standalone {
            // A developer's process takes over by its priority, not by the lease of the replicas.
            self.leader_election = None;
        }
        if let (Some(election), Some(namespace)) =
            (&mut self.leader_election, &args.lease_namespace)
        {
            election.namespace = Some(namespace.clone());
        }
        if let (Some(election), Some(name)) = (&mut self.leader_election, &args.lease) {
            election.name = Some(name.clone());
        }
        if let Some(id) = &args.id {
            self.identity = Some(id.clone());
        }
    }

    /// Connects to the cluster as `run` does, and carries out a command that ends by itself.
    fn with_cluster(
        mut self,
        act: impl AsyncFnOnce(Self, Client) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let requests = Arc::clone(&self.requests);
        let logins = std::mem::take(&mut self.handlers.logins);
        let threads = self.settings.execution.blocking_threads;
        // Login handlers need the state; other startup handlers are for an operator that runs.
        self.handlers.startups.clear();
        block_on(threads, async {
            if !logins.is_empty() {
                start(&mut self).await?;
            }
            let settings = Arc::new(self.settings.clone());
            let connection = connect(requests, logins, &settings, &self.indices).await?;
            act(self, connection.client).await
        })
    }

    async fn run_until_signal(self) -> Result<(), Error> {
        let stop = CancellationToken::new();
        let name = self.name;
        info!("{name} starts");
        shutdown::listen(stop.clone(), self.shutdown_timeout.clone()).map_err(Error::Process)?;
        self.connect_and_run(stop.cancelled()).await?;
        info!("{name} has stopped");
        Ok(())
    }
}

/// The log of a command whose output is what people want to read.
fn output_setup() -> LogSetup {
    LogSetup::default()
        .format(LogFormat::Plain)
        .verbosity(LogVerbosity::Quiet)
}

fn block_on(
    blocking_threads: usize,
    done: impl Future<Output = Result<(), Error>>,
) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Other numbers are errors of the settings, which the operator reports.
        .max_blocking_threads(blocking_threads.clamp(1, MOST_BLOCKING_THREADS))
        .build()
        .map_err(Error::Process)?;
    let done = runtime.block_on(done);
    // A handler may block a thread for ever; its grace is over.
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn as_much_blocking_work_runs_at_once_as_there_are_threads() {
        let all = Arc::new(Barrier::new(600));
        let done = block_on(600, async {
            let works = (0..600).map(|_| {
                let all = Arc::clone(&all);
                tokio::task::spawn_blocking(move || {
                    all.wait();
                })
            });
            let works: Vec<_> = works.collect();
            for work in works {
                work.await.expect("it does not panic");
            }
            Ok(())
        });
        assert!(done.is_ok());
    }
}
