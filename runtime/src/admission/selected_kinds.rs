//! The kinds that webhooks on selections review, as discovery finds them.

use std::sync::Arc;

use kopf_core::admission::WebhookSpec;
use kopf_core::admission::configuration::{ConfiguredWebhook, ReviewedKinds};
use kopf_core::selection::resolve::reviewed;
use kopf_core::selection::{DiscoveredResource, Selector};
use tokio::sync::watch;

use crate::client::discovery::Catalog;
use crate::client::resource::ResourceTarget;

/// The served resources, for webhooks on selections; clones follow the same discovery.
#[derive(Clone, Default)]
pub(crate) struct SelectedKinds {
    /// None if no webhook is on a selection.
    discovered: Option<watch::Receiver<Option<Arc<Catalog>>>>,
}

impl SelectedKinds {
    pub(crate) fn new(discovered: Option<watch::Receiver<Option<Arc<Catalog>>>>) -> Self {
        Self { discovered }
    }

    /// Whether the served resources are known, or are not needed.
    pub(super) fn are_known(&self) -> bool {
        let discovered = self.discovered.as_ref();
        discovered.is_none_or(|discovered| discovered.borrow().is_some())
    }

    /// The resources that a webhook on a selection reviews at present.
    pub(super) fn of(&self, selector: &Selector) -> Vec<Arc<DiscoveredResource>> {
        let catalog = self
            .discovered
            .as_ref()
            .and_then(|discovered| discovered.borrow().clone());
        catalog.map_or_else(Vec::new, |catalog| reviewed(selector, &catalog))
    }

    /// A webhook as the configuration describes it.
    pub(super) fn configured<'a>(
        &self,
        target: &'a ResourceTarget,
        spec: &'a WebhookSpec,
    ) -> ConfiguredWebhook<'a> {
        let kinds = match target {
            ResourceTarget::Kind(kind) => ReviewedKinds::One {
                group: kind.group,
                version: kind.version,
                plural: kind.plural,
            },
            ResourceTarget::Selection(selector) => ReviewedKinds::Selected {
                selector,
                resources: self.of(selector),
            },
        };
        ConfiguredWebhook { kinds, spec }
    }

    /// Waits until the served resources have changed; for ever if they cannot.
    pub(super) async fn changed(&mut self) {
        if let Some(discovered) = &mut self.discovered
            && discovered.changed().await.is_ok()
        {
            return;
        }
        std::future::pending().await
    }
}
