//! What the manifest tunes about the operator as a whole.

use schemars::JsonSchema;

use super::fields::{Fields, Planned, Reader};
use super::{ManifestDuration, Spanned};

/// What is tuned; everything that is left out is as it suits most operators.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsSection {
    /// How daemons and timers start and stop.
    pub background: Option<BackgroundSection>,
}

/// How daemons and timers start and stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct BackgroundSection {
    /// How often it is told that a daemon does not stop; `60s` if left out.
    pub cancellation_polling: Option<Spanned<ManifestDuration>>,
    /// Over how long the first ticks of many timers that start together are spread at most; `60s`
    /// if left out, 0 for not at all.
    pub initial_spread: Option<Spanned<ManifestDuration>>,
}

const PLANNED: &[Planned] = &[
    Planned {
        key: "watching",
        purpose: "how objects are listed and watched",
    },
    Planned {
        key: "queueing",
        purpose: "how many objects are worked on at once",
    },
    Planned {
        key: "execution",
        purpose: "how handlers are run",
    },
    Planned {
        key: "posting",
        purpose: "what is posted as Kubernetes events",
    },
    Planned {
        key: "shutdown",
        purpose: "how the operator stops",
    },
];

impl Reader<'_> {
    pub(super) fn settings(&mut self, fields: &mut Fields<'_>) -> Option<SettingsSection> {
        let node = fields.optional("settings")?;
        let mut inner = self.fields(node, "`settings`")?;
        let background = self.background(&mut inner);
        inner.finish(self, PLANNED);
        Some(SettingsSection { background })
    }

    fn background(&mut self, fields: &mut Fields<'_>) -> Option<BackgroundSection> {
        let node = fields.optional("background")?;
        let mut inner = self.fields(node, "`background`")?;
        let section = BackgroundSection {
            cancellation_polling: self.duration(&mut inner, "cancellation_polling"),
            initial_spread: self.duration(&mut inner, "initial_spread"),
        };
        inner.finish(self, &[]);
        Some(section)
    }
}
