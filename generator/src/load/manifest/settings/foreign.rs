//! The settings of Kopf that have no meaning here, and what to do instead.

use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::fields::{Fields, Reader};

/// A setting of Kopf.
pub(super) struct Foreign {
    section: &'static str,
    key: &'static str,
    why: &'static str,
}

const fn foreign(section: &'static str, key: &'static str, why: &'static str) -> Foreign {
    Foreign { section, key, why }
}

/// All of them; those without a section are sections of Kopf.
pub(super) const FOREIGN: &[Foreign] = &[
    foreign(
        "",
        "batching",
        "objects are handled as they come; see `queueing`",
    ),
    foreign(
        "",
        "process",
        "the operator stops within `shutdown.grace`, and a second signal stops it at once",
    ),
    foreign("", "peering", "it is `operator.peering`"),
    foreign("", "admission", "it is `operator.admission`"),
    foreign(
        "networking",
        "error_backoffs",
        "requests are repeated with growing pauses until they land",
    ),
    foreign(
        "networking",
        "enforce_retry_after",
        "Retry-After is always respected",
    ),
    foreign(
        "networking",
        "trust_env",
        "a proxy is that of the kubeconfig, with the feature `http-proxy` of kube",
    ),
    foreign(
        "persistence",
        "progress_storage",
        "it is `progress`; storages of one's own are set in code",
    ),
    foreign(
        "persistence",
        "diffbase_storage",
        "it is `diffbase`; storages of one's own are set in code",
    ),
    foreign(
        "persistence",
        "consistency_timeout",
        "events that are older than the last write are recognised, however late they are",
    ),
    foreign(
        "watching",
        "client_timeout",
        "the server ends watches by `server_timeout`, and a silent one is noticed by `inactivity_timeout`",
    ),
    foreign(
        "watching",
        "connect_timeout",
        "it is `networking.connect_timeout`",
    ),
    foreign(
        "watching",
        "chunk_size",
        "lists are always read in pages of `page_size`",
    ),
    foreign(
        "watching",
        "initial_streaming",
        "lists are read in pages, which costs as little memory",
    ),
    foreign(
        "watching",
        "label_selectors",
        "selectors are derived from the filters of the handlers",
    ),
    foreign(
        "watching",
        "field_selectors",
        "selectors are derived from the filters of the handlers",
    ),
    foreign(
        "watching",
        "shard_selectors",
        "objects are not divided among replicas",
    ),
    foreign(
        "queueing",
        "idle_timeout",
        "an object without news has no worker that could be idle",
    ),
    foreign("queueing", "exit_timeout", "it is `shutdown.grace`"),
    foreign(
        "queueing",
        "batch_window",
        "objects are handled as they come, and what waits is merged",
    ),
    foreign(
        "execution",
        "executor",
        "handlers are async, and blocking work has threads of its own",
    ),
    foreign(
        "execution",
        "max_workers",
        "handlers are async: see `queueing.worker_limit`",
    ),
    foreign(
        "background",
        "instant_exit_timeout",
        "a daemon that stops is noticed at once",
    ),
    foreign(
        "background",
        "instant_exit_zero_time_cycles",
        "a daemon that stops is noticed at once",
    ),
    foreign(
        "posting",
        "worker_limit",
        "events are sent one after another, and repeats are merged",
    ),
    foreign(
        "posting",
        "idle_timeout",
        "there is no worker per object that could be idle",
    ),
    foreign("posting", "default_backoffs", "it is `error_backoffs`"),
    foreign("posting", "logging_backoffs", "it is `error_backoffs`"),
];

// === impl Foreign ===

impl Foreign {
    pub(super) fn told(&self) -> (String, &'static str) {
        let key = match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        };
        (key, self.why)
    }
}

/// Reports the settings of Kopf in a section.
pub(super) fn refuse(reader: &mut Reader<'_>, fields: &mut Fields<'_>, section: &str) {
    for setting in FOREIGN.iter().filter(|it| it.section == section) {
        if let Some(node) = fields.key(setting.key) {
            let message = format!(
                "`{}` is a setting of Kopf that has no meaning here",
                setting.key
            );
            reader.push(
                Diagnostic::error(Code::ManifestForeign, message)
                    .at(reader.source, node, "not a setting of this operator")
                    .help(setting.why),
            );
        }
    }
}
