//! The contexts of startup and cleanup handlers.

use std::sync::Arc;

use kube::Client;

use super::handler::HookAttempt;
use crate::admission::Webhooks;
use crate::index::{Index, IndexView, Indices};
use crate::settings::{PeeringSettings, Settings};

/// The context of startup handlers, which run before the operator sends any request.
///
/// Settings that a handler changes stay changed, also if the attempt fails.
#[derive(Debug)]
pub struct StartupContext {
    pub(super) attempt: HookAttempt,
    pub(crate) settings: Settings,
    pub(crate) peering: PeeringSettings,
    pub(crate) webhooks: Webhooks,
    indices: Indices,
}

/// The context of cleanup handlers, which run after all other handlers have ended.
pub struct CleanupContext {
    pub(super) attempt: HookAttempt,
    client: Option<Client>,
    settings: Arc<Settings>,
    indices: Indices,
}

// === impl StartupContext ===

impl StartupContext {
    pub(crate) fn new(
        settings: Settings,
        peering: PeeringSettings,
        webhooks: Webhooks,
        indices: Indices,
    ) -> Self {
        Self {
            attempt: HookAttempt::none(),
            settings,
            peering,
            webhooks,
            indices,
        }
    }

    /// The indices, to be read later: they are empty during the startup.
    pub fn indices(&self) -> &Indices {
        &self.indices
    }

    /// The settings with which the operator is going to run.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// The peering settings with which the operator is going to run.
    pub fn peering(&mut self) -> &mut PeeringSettings {
        &mut self.peering
    }

    /// The options with which the operator is going to serve its webhooks.
    pub fn webhooks(&mut self) -> &mut Webhooks {
        &mut self.webhooks
    }
}

// === impl CleanupContext ===

impl CleanupContext {
    pub(crate) fn new(client: Option<Client>, settings: Arc<Settings>, indices: Indices) -> Self {
        Self {
            attempt: HookAttempt::none(),
            client,
            settings,
            indices,
        }
    }

    /// An index of the operator, in its last state.
    pub fn index<I: Index>(&self, index: I) -> IndexView<I> {
        self.indices.get(index)
    }

    /// The settings with which the operator ran.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A client for the cluster; none if the operator ends because it found no cluster.
    pub fn client(&self) -> Option<&Client> {
        self.client.as_ref()
    }
}
