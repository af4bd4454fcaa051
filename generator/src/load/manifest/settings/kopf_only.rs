//! The settings that only Kopf has, and what replaces them here.

use crate::diagnostic::{Code, Diagnostic};
use crate::load::manifest::mapping::MappingFields;
use crate::load::manifest::reader::ManifestReader;

/// A setting that only Kopf has.
pub(super) struct KopfOnlySetting {
    section: &'static str,
    key: &'static str,
    instead: &'static str,
}

const fn kopf_only(
    section: &'static str,
    key: &'static str,
    instead: &'static str,
) -> KopfOnlySetting {
    KopfOnlySetting {
        section,
        key,
        instead,
    }
}

/// All such settings; those without a section are sections of Kopf.
pub(super) const KOPF_ONLY: &[KopfOnlySetting] = &[
    kopf_only(
        "",
        "batching",
        "objects are handled as they come; see `queueing`",
    ),
    kopf_only(
        "",
        "process",
        "the operator stops within `shutdown.grace`, and a second signal stops it at once",
    ),
    kopf_only("", "peering", "it is `operator.peering`"),
    kopf_only("", "admission", "it is `operator.admission`"),
    kopf_only(
        "networking",
        "error_backoffs",
        "requests are retried with growing pauses until they succeed",
    ),
    kopf_only(
        "networking",
        "enforce_retry_after",
        "the `retryAfterSeconds` of an answer is always respected, up to five minutes",
    ),
    kopf_only(
        "networking",
        "trust_env",
        "a proxy is that of the kubeconfig, with the feature `http-proxy` of kube",
    ),
    kopf_only(
        "persistence",
        "progress_storage",
        "it is `progress`; storages of one's own are set in code",
    ),
    kopf_only(
        "persistence",
        "diffbase_storage",
        "it is `diffbase`; storages of one's own are set in code",
    ),
    kopf_only(
        "persistence",
        "consistency_timeout",
        "the queue recognises events that are older than the last write, however late they come",
    ),
    kopf_only(
        "watching",
        "client_timeout",
        "the server ends watches by `server_timeout`, and a silent one is noticed by `inactivity_timeout`",
    ),
    kopf_only(
        "watching",
        "connect_timeout",
        "it is `networking.connect_timeout`",
    ),
    kopf_only(
        "watching",
        "chunk_size",
        "lists are always read in pages of `page_size`",
    ),
    kopf_only(
        "watching",
        "initial_streaming",
        "lists are read in pages, which costs as little memory",
    ),
    kopf_only(
        "watching",
        "label_selectors",
        "selectors are derived from the filters of the handlers",
    ),
    kopf_only(
        "watching",
        "field_selectors",
        "selectors are derived from the filters of the handlers",
    ),
    kopf_only(
        "watching",
        "shard_selectors",
        "objects are not divided among replicas",
    ),
    kopf_only(
        "queueing",
        "idle_timeout",
        "an object without events has no worker that could be idle",
    ),
    kopf_only("queueing", "exit_timeout", "it is `shutdown.grace`"),
    kopf_only(
        "queueing",
        "batch_window",
        "objects are handled as they come, and what waits is merged",
    ),
    kopf_only(
        "execution",
        "executor",
        "handlers are async, and blocking work has threads of its own",
    ),
    kopf_only(
        "execution",
        "max_workers",
        "handlers are async; the threads for blocking work are `blocking_threads`",
    ),
    kopf_only(
        "background",
        "instant_exit_timeout",
        "a daemon that stops is noticed at once",
    ),
    kopf_only(
        "background",
        "instant_exit_zero_time_cycles",
        "a daemon that stops is noticed at once",
    ),
    kopf_only(
        "posting",
        "worker_limit",
        "events are sent one after another, and repeats are merged",
    ),
    kopf_only(
        "posting",
        "idle_timeout",
        "there is no worker per object that could be idle",
    ),
    kopf_only("posting", "default_backoffs", "it is `error_backoffs`"),
    kopf_only("posting", "logging_backoffs", "it is `error_backoffs`"),
];

// === impl KopfOnlySetting ===

impl KopfOnlySetting {
    pub(super) fn key_and_reason(&self) -> (String, &'static str) {
        let key = match self.section {
            "" => self.key.to_owned(),
            section => format!("{section}.{}", self.key),
        };
        (key, self.instead)
    }
}

/// Reports such settings in a section.
pub(super) fn report(
    reader: &mut ManifestReader<'_>,
    fields: &mut MappingFields<'_>,
    section: &str,
) {
    for setting in KOPF_ONLY.iter().filter(|it| it.section == section) {
        if let Some(node) = fields.key(setting.key) {
            let message = format!(
                "`{}` is a setting of Kopf that has no meaning here",
                setting.key
            );
            reader.push(
                Diagnostic::error(Code::KopfOnlySetting, message)
                    .at(reader.source, node, "not a setting of this operator")
                    .help(setting.instead),
            );
        }
    }
}
