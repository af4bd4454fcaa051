//! The operator: its kinds with their handlers, run from a command line or inside a program.

mod args;
mod connect;
mod coordination;
mod crd;
mod declarations;
mod discovery;
mod embedded;
mod exit;
mod freeze;
pub(crate) mod hook;
mod identity;
mod lifecycle;
mod logging;
mod namespaces;
mod observability;
mod orchestrate;
mod shutdown;
mod streams;
#[cfg(feature = "otel")]
mod telemetry;

use std::process::ExitCode;
use std::sync::Arc;

use clap::FromArgMatches as _;
use jiff::SignedDuration;
use kopf_core::admission::configuration::WebhookNamespaces;
use kopf_core::election;
use kopf_core::handler::registry;
use kopf_core::scope::NamespacePattern;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use self::args::{Cli, LoggingArgs, PeeringArgs, Request, RunArgs, ScopeArgs};
use self::connect::{Access, connect};
use self::embedded::Insight;
pub use self::embedded::{EndedBeforeReady, RunningOperator};
use self::shutdown::Patience;
use crate::admission::{Serving, Webhooks};
use crate::client::authentication::CredentialsExhausted;
use crate::coordination::clock::WallClock;
use crate::health::endpoint::HealthEndpoint;
use crate::health::metrics::api::{ApiMetrics, metered};
use crate::index::Indices;
use crate::operator::hook::{HookFailure, OperatorHandlers};
use crate::registration::ResourceHandlers;
use crate::settings::{LeaderElectionSettings, PeeringMode, PeeringSettings, Settings};

/// An operator, as generated code puts it together.
#[must_use]
pub struct Operator {
    name: &'static str,
    resources: Vec<ResourceHandlers>,
    handlers: OperatorHandlers,
    crds: Vec<&'static str>,
    namespaces: Namespaces,
    settings: Settings,
    webhooks: Webhooks,
    peering: PeeringSettings,
    leader_election: Option<LeaderElectionSettings>,
    identity: Option<String>,
    clock: WallClock,
    liveness: Option<HealthEndpoint>,
    requests: Arc<ApiMetrics>,
    indices: Indices,
    patience: Patience,
    insight: Insight,
}

/// Where objects are handled.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Namespaces {
    /// Everywhere.
    #[default]
    All,
    /// In these namespaces only, for kinds that live in namespaces.
    Only(Vec<String>),
    /// In the namespaces that match one of the patterns, as they come and go. That takes the
    /// permission to list and watch namespaces; without it, patterns that are names are served.
    Matching(Vec<NamespacePattern>),
}

/// Why an operator could not run, or ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The declarations of the handlers of a kind contradict each other.
    #[error("the handlers of {kind} make no sense")]
    Declaration {
        /// The kind or the selection.
        kind: String,
        /// What is wrong.
        #[source]
        source: registry::Error,
    },
    /// The records of two declarations of one kind would overwrite each other.
    #[error("{kind} is declared twice: put all of its handlers into one declaration")]
    DeclaredTwice {
        /// The kind.
        kind: &'static str,
    },
    /// The records of two handlers would overwrite each other on objects that both are about.
    #[error("{one} and {other} may be about the same objects, and both have a handler `{id}`")]
    SharedId {
        /// One declaration.
        one: String,
        /// The other declaration.
        other: String,
        /// The id that both of them have.
        id: String,
    },
    /// The API server is told the names of kinds about which it has to ask.
    #[error("{selection} has webhooks, which only kinds that are declared by name can have")]
    SelectedWebhook {
        /// The selection.
        selection: String,
    },
    /// Webhooks are declared, and cannot be served or made known.
    #[error("the admission webhooks do not work")]
    Admission(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The endpoint of the health checks cannot be served.
    #[error("the health checks do not work")]
    Health(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The terms of the leader election cannot work.
    #[error("the leader election makes no sense")]
    LeaderElection(#[source] election::Error),
    /// The peering could not be used.
    #[error("the peering cannot be used: {0}")]
    Peering(String),
    /// A startup handler has failed for good: nothing was asked of the cluster.
    #[error("the operator could not start")]
    Startup(#[source] HookFailure),
    /// A cleanup handler has failed for good, or had no time left.
    #[error("the operator could not clean up")]
    Cleanup(#[source] HookFailure),
    /// An essential part ended, which only a defect can cause.
    #[error("the operator cannot go on: {0}")]
    Ended(String),
    /// A CustomResourceDefinition could not be put into the cluster.
    #[error("the CustomResourceDefinition {} was not applied", name.as_deref().unwrap_or("in the program"))]
    Definition {
        /// Its name, if it could be read.
        name: Option<String>,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Login handlers have found no credentials that the cluster accepts.
    #[error(transparent)]
    Login(CredentialsExhausted),
    /// There is no configuration of a cluster, in the environment or a kubeconfig.
    #[error("no cluster to connect to")]
    Config(#[source] Box<kube::config::InferConfigError>),
    /// The configuration of the cluster does not work.
    #[error("the client for the cluster could not be made")]
    Client(#[source] Box<kube::Error>),
    /// The operating system refused something.
    #[error("the process could not be set up")]
    Process(#[source] std::io::Error),
}

impl Namespaces {
    /// The namespaces that match one of these patterns; if all of them are names, only those.
    pub fn matching<P: Into<NamespacePattern>>(patterns: impl IntoIterator<Item = P>) -> Self {
        let patterns: Vec<NamespacePattern> = patterns.into_iter().map(Into::into).collect();
        let names = patterns.iter().map(|it| it.literal().map(str::to_owned));
        match names.collect() {
            Some(names) => Self::Only(names),
            None => Self::Matching(patterns),
        }
    }
}

impl From<&Namespaces> for WebhookNamespaces {
    fn from(namespaces: &Namespaces) -> Self {
        match namespaces {
            Namespaces::All => Self::AllBut(Vec::new()),
            Namespaces::Only(names) => Self::Only(names.clone()),
            Namespaces::Matching(patterns) => Self::Matching {
                patterns: patterns.clone(),
                but: Vec::new(),
            },
        }
    }
}

impl Error {
    fn ended(ended: &crate::task::TaskEnd) -> Self {
        Self::Ended(ended.to_string())
    }
}

impl Operator {
    /// An operator that handles nothing so far.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            resources: Vec::new(),
            handlers: OperatorHandlers::default(),
            crds: Vec::new(),
            namespaces: Namespaces::default(),
            settings: Settings::default(),
            webhooks: Webhooks::default(),
            peering: PeeringSettings::default(),
            leader_election: None,
            identity: None,
            clock: WallClock::default(),
            liveness: None,
            requests: Arc::default(),
            indices: Indices::default(),
            patience: Patience::default(),
            insight: Insight::default(),
        }
    }

    /// Handles one more kind.
    pub fn resource(mut self, resource: ResourceHandlers) -> Self {
        self.resources.push(resource);
        self
    }

    /// Calls these handlers when the operator as a whole starts and ends.
    pub fn handlers(mut self, handlers: OperatorHandlers) -> Self {
        self.handlers = handlers;
        self
    }

    /// Knows one more CustomResourceDefinition, for the `crd` command.
    pub fn crd(mut self, yaml: &'static str) -> Self {
        self.crds.push(yaml);
        self
    }

    /// Handles objects of these namespaces only.
    pub fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Changes the settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Serves webhooks in another way than the surroundings suggest.
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = webhooks;
        self
    }

    /// Gets along with other operators on the same objects in this way.
    pub fn peering(mut self, peering: PeeringSettings) -> Self {
        self.peering = peering;
        self
    }

    /// Acts only while this replica is the leader.
    ///
    /// Beside peering, the replicas are one operator to the others: only the leader is seen there.
    pub fn leader_election(mut self, settings: LeaderElectionSettings) -> Self {
        self.leader_election = Some(settings);
        self
    }

    /// Names this operator to others; by default after its pod, or user, host and time.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Tells by HTTP how it is: liveness at this address, readiness at `/readyz` and metrics at
    /// `/metrics` on the same port.
    pub fn liveness(mut self, endpoint: HealthEndpoint) -> Self {
        self.liveness = Some(endpoint);
        self
    }

    /// Tells other operators the time as if the clock of this machine was ahead by so much.
    ///
    /// For tests of what wrong clocks do.
    pub fn clock_offset(mut self, offset: SignedDuration) -> Self {
        self.clock = WallClock::ahead(offset);
        self
    }

    /// Keeps what it finds in these indices, so that others can look into them, too.
    pub fn indices(mut self, indices: Indices) -> Self {
        self.indices = indices;
        self
    }

    /// Does what the command line asks for, until a signal stops it.
    #[must_use]
    pub fn main(self) -> ExitCode {
        let matches = args::command(self.name).get_matches();
        let request = match Cli::from_arg_matches(&matches) {
            Ok(cli) => Request::from(cli),
            Err(error) => error.exit(),
        };
        let done = match request {
            Request::PrintCrds => self.print_crds().map_err(Error::Process),
            Request::ApplyCrds { force } => {
                logging::init(&LoggingArgs::plain());
                self.with_cluster(async |operator, client| operator.apply_crds(client, force).await)
            }
            Request::Run(args) => {
                let _traces = logging::init_with_traces(&args.logging, self.name);
                self.run_process(&args)
            }
            Request::Freeze(args) => {
                logging::init(&LoggingArgs::plain());
                self.with_cluster(async |operator, client| operator.freeze(client, &args).await)
            }
            Request::Resume(args) => {
                logging::init(&LoggingArgs::plain());
                self.with_cluster(async |operator, client| operator.unfreeze(client, &args).await)
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

    /// Handles objects until `stop` is ready, then lets running handlers finish.
    ///
    /// Startup handlers are called before the client is used, cleanup handlers at the end.
    ///
    /// # Errors
    /// If the declarations make no sense, a startup or cleanup handler fails for good, or an
    /// essential part ends by itself. Failures of the cluster are no errors here: they are waited
    /// for.
    pub async fn run(self, client: Client, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let client = metered(client, Arc::clone(&self.requests));
        let access = async |logins: Vec<_>, _: &Settings| {
            if !logins.is_empty() {
                warn!("login handlers are not called: the operator was given a client");
            }
            Ok(Access {
                client,
                authenticator: None,
            })
        };
        lifecycle::live(self, access, stop).await
    }

    /// The same, but finds the cluster as the command line does: by login handlers if there are
    /// any, or else by a kubeconfig or the service account of the pod.
    ///
    /// # Errors
    /// As [`run`](Self::run), and if there is no cluster or no access to it.
    pub async fn connect_and_run(self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let requests = Arc::clone(&self.requests);
        let access = async |logins, settings: &Settings| connect(requests, logins, settings).await;
        lifecycle::live(self, access, stop).await
    }

    fn run_process(mut self, args: &RunArgs) -> Result<(), Error> {
        self.restrict(&args.scope);
        self.meet(&args.peering);
        if args.liveness.is_some() {
            self.liveness = args.liveness.clone();
        }
        if let Serving::Automatic(local) = &mut self.webhooks.serving {
            args.webhooks.apply_to(local);
        }
        block_on(self.serve())
    }

    fn restrict(&mut self, args: &ScopeArgs) {
        if !args.namespace.is_empty() {
            self.namespaces = Namespaces::matching(args.namespace.iter().cloned());
        } else if args.all_namespaces {
            self.namespaces = Namespaces::All;
        } else if self.namespaces == Namespaces::All {
            warn!("neither a namespace nor --all-namespaces is given: serving the whole cluster");
        }
    }

    fn meet(&mut self, args: &PeeringArgs) {
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
            // It goes ahead of the leader, whose lease is none of its business.
            self.leader_election = None;
        }
        if let (Some(election), Some(namespace)) =
            (&mut self.leader_election, &args.lease_namespace)
        {
            election.namespace = Some(namespace.clone());
        }
        if let Some(id) = &args.id {
            self.identity = Some(id.clone());
        }
    }

    fn with_cluster(
        mut self,
        act: impl AsyncFnOnce(Self, Client) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let requests = Arc::clone(&self.requests);
        let logins = std::mem::take(&mut self.handlers.logins);
        block_on(async {
            let access = connect(requests, logins, &self.settings).await?;
            act(self, access.client).await
        })
    }

    async fn serve(self) -> Result<(), Error> {
        let stop = CancellationToken::new();
        let name = self.name;
        info!("{name} starts");
        shutdown::listen(stop.clone(), self.patience.clone()).map_err(Error::Process)?;
        self.connect_and_run(stop.cancelled()).await?;
        info!("{name} has stopped");
        Ok(())
    }
}

fn block_on(done: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(Error::Process)?;
    let done = runtime.block_on(done);
    // A handler may block a thread for ever; the grace for it is over.
    runtime.shutdown_background();
    done
}

/// An error with its causes in one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
