//! The operator: its kinds with their handlers, run from a command line or inside a program.

mod args;
mod command;
mod connect;
mod coordination;
mod crd;
mod declarations;
mod discovery;
pub(crate) mod embedded;
mod error;
mod exit;
mod freeze;
pub(crate) mod hook;
mod identity;
mod inspected;
pub(crate) mod logging;
mod namespaces;
mod observability;
mod orchestrate;
mod phases;
mod shutdown;
mod state;
mod streams;
#[cfg(feature = "otel")]
mod telemetry;

use std::sync::Arc;

use jiff::SignedDuration;

pub use self::error::Error;
pub use self::namespaces::Namespaces;
use self::shutdown::ShutdownTimeout;
use self::state::OperatorState;
use crate::admission::{ConfigurationOwner, Webhooks};
use crate::coordination::clock::WallClock;
use crate::health::endpoint::HealthEndpoint;
use crate::health::metrics::api::ApiMetrics;
use crate::index::Indices;
use crate::operator::hook::OperatorHandlers;
use crate::page::address::PageSetup;
use crate::registration::ResourceHandlers;
use crate::settings::{LeaderElectionSettings, PeeringSettings, Settings};

/// An operator with its handlers and settings, as generated code builds it.
#[must_use]
pub struct Operator {
    name: &'static str,
    version: Option<&'static str>,
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
    page: Option<PageSetup>,
    requests: Arc<ApiMetrics>,
    indices: Indices,
    shutdown_timeout: ShutdownTimeout,
    state: OperatorState,
}

impl Operator {
    /// An operator without handlers.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            version: None,
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
            page: None,
            requests: Arc::default(),
            indices: Indices::default(),
            shutdown_timeout: ShutdownTimeout::default(),
            state: OperatorState::default(),
        }
    }

    /// Sets the version that `--version` prints: usually `env!("CARGO_PKG_VERSION")`.
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = Some(version);
        self
    }

    /// Adds the handlers of one more kind, or of one more selection of kinds.
    pub fn resource(mut self, resource: ResourceHandlers) -> Self {
        self.resources.push(resource);
        self
    }

    /// Sets the startup, login, probe and cleanup handlers.
    pub fn handlers(mut self, handlers: OperatorHandlers) -> Self {
        self.handlers = handlers;
        self
    }

    /// Adds a CustomResourceDefinition, which the command `crd` prints or applies.
    pub fn crd(mut self, yaml: &'static str) -> Self {
        self.crds.push(yaml);
        self
    }

    /// Restricts the operator to these namespaces.
    pub fn namespaces(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// Replaces the settings.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Sets how webhooks are served; by default the operator decides by the cluster that it finds.
    pub fn webhooks(mut self, webhooks: Webhooks) -> Self {
        self.webhooks = webhooks;
        self
    }

    /// Names the webhook configurations that this operator writes, so that it can run beside another
    /// of its kind, for example in tests.
    pub fn webhook_configuration(mut self, name: impl Into<String>) -> Self {
        if self.webhooks.configuration != ConfigurationOwner::External {
            self.webhooks = self.webhooks.managed(name);
        }
        self
    }

    /// Sets the peering with other operators that handle the same objects.
    pub fn peering(mut self, peering: PeeringSettings) -> Self {
        self.peering = peering;
        self
    }

    /// Handles objects only while this replica is the leader.
    ///
    /// In a peering, all replicas count as one operator: only the leader writes its record there.
    pub fn leader_election(mut self, settings: LeaderElectionSettings) -> Self {
        self.leader_election = Some(settings);
        self
    }

    /// Sets the name of this operator in peerings and leases; by default the name of its pod, or one
    /// made of user, host and time.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = Some(identity.into());
        self
    }

    /// Serves liveness at this address, readiness at `/readyz` and metrics at `/metrics` of the
    /// same port.
    pub fn liveness(mut self, endpoint: HealthEndpoint) -> Self {
        self.liveness = Some(endpoint);
        self
    }

    /// Serves a page at this address that shows what the operator does.
    pub fn page(mut self, page: PageSetup) -> Self {
        self.page = Some(page);
        self
    }

    /// Shifts the time that the operator writes into peerings and leases, to test wrong clocks.
    pub fn clock_offset(mut self, offset: SignedDuration) -> Self {
        self.clock = WallClock::ahead(offset);
        self
    }

    /// Fills these indices, so that the program can read them, too.
    pub fn indices(mut self, indices: Indices) -> Self {
        self.indices = indices;
        self
    }
}
