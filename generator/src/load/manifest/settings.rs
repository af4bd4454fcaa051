//! Reads `operator.settings`: timeouts, limits and names that override those of the runtime.

mod kopf_only;
mod store;
mod value;

use schemars::JsonSchema;

use self::kopf_only::KopfOnlySetting;
pub use self::store::Stores;
use self::value::Setting;
pub use self::value::{
    AnnotationPrefix, DiffBaseStoreWord, FieldList, FieldName, LifecycleWord, PauseList, Positive,
    PositiveDuration, PostingLevelWord, ProgressPostingWord, ProgressStoreWord, SettingValue,
    UpperLimit, Word,
};
use super::duration::ManifestDuration;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::load::yaml::Node;

/// A section of the settings of the runtime, with the values that the manifest gives.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedSection {
    /// Its field in the settings of the runtime.
    pub field: &'static str,
    /// Its type in the runtime.
    pub type_name: &'static str,
    /// The fields that the manifest gives, in the order of the runtime.
    pub fields: Vec<(&'static str, SettingValue)>,
    /// Whether the manifest gives all fields of the section.
    pub is_complete: bool,
    /// The method that converts a value of this type to that of the settings.
    pub conversion: Option<&'static str>,
}

/// Defines a section: its keys, the types of their values, and its type in the runtime.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $name:ident = $key:literal of $type_name:literal $(then $conversion:literal)? {
            $($(#[$field_doc:meta])* $field:ident: $type:ty,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: Option<Spanned<$type>>,)*
        }

        impl $name {
            fn read(reader: &mut ManifestReader<'_>, settings: &mut MappingFields<'_>) -> Option<Self> {
                let node = settings.optional($key)?;
                let mut fields = reader.fields(node, concat!("`", $key, "`"))?;
                let section = Self {
                    $($field: setting(reader, &mut fields, stringify!($field)),)*
                };
                kopf_only::report(reader, &mut fields, $key);
                fields.finish(reader);
                Some(section)
            }

            fn tuned(&self) -> Option<TunedSection> {
                let all = [$((stringify!($field), self.$field.as_ref().map(|it| it.value.value())),)*];
                let fields: Vec<_> = all
                    .iter()
                    .filter_map(|(field, value)| Some((*field, value.clone()?)))
                    .collect();
                (!fields.is_empty()).then(|| TunedSection {
                    field: $key,
                    type_name: $type_name,
                    is_complete: fields.len() == all.len(),
                    fields,
                    conversion: [$($conversion)?].first().copied(),
                })
            }
        }
    };
}

/// Settings of the operator; defaults apply to those that are left out.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsSection {
    /// Requests to the API server.
    pub networking: Option<NetworkingSection>,
    /// Listing and watching of objects.
    pub watching: Option<WatchingSection>,
    /// The search for namespaces.
    pub scanning: Option<ScanningSection>,
    /// Limits for handling many objects at once.
    pub queueing: Option<QueueingSection>,
    /// The order and the retries of handlers.
    pub execution: Option<ExecutionSection>,
    /// The start and the stop of daemons and timers.
    pub background: Option<BackgroundSection>,
    /// The annotations, the status field and the finalizer on objects.
    pub persistence: Option<PersistenceSection>,
    /// Kubernetes events that the operator posts.
    pub posting: Option<PostingSection>,
    /// The health checks of the operator.
    pub health: Option<HealthSection>,
    /// The time limits for stopping.
    pub shutdown: Option<ShutdownSection>,
}

section! {
    /// Requests to the API server.
    NetworkingSection = "networking" of "NetworkingSettings" {
        /// How long the server may take to answer a request about handled objects; `60s` if left out.
        request_timeout: PositiveDuration,
        /// How long a connection may take to be opened; `30s` if left out.
        connect_timeout: PositiveDuration,
    }
}

section! {
    /// Listing and watching of objects.
    WatchingSection = "watching" of "WatchingSettings" {
        /// Objects per page of a list; 250 if left out.
        page_size: Positive,
        /// The operator reopens a watch on which nothing arrives for this time; `70s` if left out.
        inactivity_timeout: PositiveDuration,
        /// The server ends a watch after this time up to twice of it; `5m` if left out.
        server_timeout: PositiveDuration,
        /// The first pause after a failure; it grows with each further one; `100ms` if left out.
        reconnect_backoff: PositiveDuration,
        /// The longest pause between two attempts; `30s` if left out.
        longest_backoff: PositiveDuration,
    }
}

section! {
    /// The search for namespaces.
    ScanningSection = "scanning" of "ScanningSettings" {
        /// Whether the operator does not list namespaces; it then serves only those named without a pattern.
        disabled: bool,
    }
}

section! {
    /// Limits for handling many objects at once.
    QueueingSection = "queueing" of "QueueingSettings" {
        /// How many objects are handled at once, and how many timers called; no limit if left out.
        worker_limit: UpperLimit,
        /// Without `worker_limit`, 16 objects begin at a time, not counting those that take longer
        /// than this; `1s` if left out.
        worker_patience: ManifestDuration,
        /// Bytes that objects may take while they wait; 64 MiB if left out.
        waiting_bytes: Positive,
        /// Pauses after failures in a row to handle an object, not counting handlers'; the last repeats.
        error_delays: PauseList,
    }
}

section! {
    /// The order and the retries of handlers.
    ExecutionSection = "execution" of "ExecutionSettings" {
        /// The order of handlers, and how many run before the next write; `asap` if left out.
        lifecycle: Word<LifecycleWord>,
        /// The pause after an arbitrary error, unless the handler says otherwise; `60s` if left out.
        default_backoff: ManifestDuration,
        /// Threads for blocking work of handlers; 512 if left out.
        blocking_threads: Positive,
    }
}

section! {
    /// The start and the stop of daemons and timers.
    BackgroundSection = "background" of "BackgroundSettings" {
        /// How often the log reports that a daemon does not stop; `60s` if left out.
        cancellation_polling: ManifestDuration,
        /// The longest time over which the first calls of timers that start together are spread; `60s`
        /// if left out, 0 for no spread.
        initial_spread: ManifestDuration,
    }
}

section! {
    /// The annotations, the status field and the finalizer on objects.
    PersistenceSection = "persistence" of "PersistenceSettings" then "into" {
        /// The finalizer that makes deletion wait for delete handlers; that of Kopf if left out.
        finalizer: String,
        /// The prefix of annotation names; `kopf.zalando.org` if left out.
        prefix: AnnotationPrefix,
        /// The storage of the progress of handlers, or several; `smart` if left out.
        progress: Stores<ProgressStoreWord>,
        /// The storage of the last handled state, or several; `annotations` if left out.
        diffbase: Stores<DiffBaseStoreWord>,
        /// The field of the status for progress and state; `kopf` if left out.
        status_field: FieldName,
        /// Fields that never count as changes, as in `spec.replicas`.
        ignored: FieldList,
    }
}

section! {
    /// Kubernetes events that the operator posts.
    PostingSection = "posting" of "PostingSettings" {
        /// Whether the operator posts events; true if left out.
        enabled: bool,
        /// The lowest level of events that are posted; `info` if left out.
        level: Word<PostingLevelWord>,
        /// The calls of handlers that are posted; `failures` if left out.
        progress: Word<ProgressPostingWord>,
        /// Whether log lines of handlers are posted on the object that they are about.
        loggers: bool,
        /// The reporting component of the events; `kopf` if left out.
        reporting_component: String,
        /// The reporting instance of the events; `dev` if left out.
        reporting_instance: String,
        /// The prefix of the names of events; `kopf-event-` if left out.
        event_name_prefix: String,
        /// Requests that the events of one object may cause at once; 25 if left out.
        burst: Positive,
        /// The time after which the events of one object may cause one more request; `5m` if left out.
        refill: ManifestDuration,
        /// Events that may wait to be sent; 1000 if left out.
        backlog: Positive,
        /// Pauses before an event is sent again; after the last one it is dropped.
        error_backoffs: PauseList,
    }
}

section! {
    /// The health checks of the operator.
    HealthSection = "health" of "HealthSettings" {
        /// How late the heartbeat of a task may be before liveness fails; `30s` if left out.
        stuck_after: PositiveDuration,
        /// How long the results of probe handlers are cached; `10s` if left out.
        probe_cache: ManifestDuration,
    }
}

section! {
    /// The time limits for stopping.
    ShutdownSection = "shutdown" of "ShutdownSettings" {
        /// How long running handlers may take to finish; `25s` if left out.
        grace: ManifestDuration,
        /// How long the last events may take to be posted after that; `2s` if left out.
        posting_grace: ManifestDuration,
        /// The time limit for cleanup handlers, from the signal to stop; `29s` if left out.
        deadline: ManifestDuration,
    }
}

// === impl SettingsSection ===

impl SettingsSection {
    /// The number of sections, here and in the runtime.
    pub const SECTIONS: usize = 10;

    /// The sections that are not empty, in the order of the runtime.
    #[must_use]
    pub fn tuned(&self) -> Vec<TunedSection> {
        let sections: [_; Self::SECTIONS] = [
            self.networking.as_ref().and_then(NetworkingSection::tuned),
            self.watching.as_ref().and_then(WatchingSection::tuned),
            self.scanning.as_ref().and_then(ScanningSection::tuned),
            self.queueing.as_ref().and_then(QueueingSection::tuned),
            self.execution.as_ref().and_then(ExecutionSection::tuned),
            self.background.as_ref().and_then(BackgroundSection::tuned),
            self.persistence
                .as_ref()
                .and_then(PersistenceSection::tuned),
            self.posting.as_ref().and_then(PostingSection::tuned),
            self.health.as_ref().and_then(HealthSection::tuned),
            self.shutdown.as_ref().and_then(ShutdownSection::tuned),
        ];
        sections.into_iter().flatten().collect()
    }
}

impl ManifestReader<'_> {
    pub(super) fn settings(&mut self, fields: &mut MappingFields<'_>) -> Option<SettingsSection> {
        let node = fields.optional("settings")?;
        let mut inner = self.fields(node, "`settings`")?;
        let section = SettingsSection {
            networking: NetworkingSection::read(self, &mut inner),
            watching: WatchingSection::read(self, &mut inner),
            scanning: ScanningSection::read(self, &mut inner),
            queueing: QueueingSection::read(self, &mut inner),
            execution: ExecutionSection::read(self, &mut inner),
            background: BackgroundSection::read(self, &mut inner),
            persistence: PersistenceSection::read(self, &mut inner),
            posting: PostingSection::read(self, &mut inner),
            health: HealthSection::read(self, &mut inner),
            shutdown: ShutdownSection::read(self, &mut inner),
        };
        kopf_only::report(self, &mut inner, "");
        inner.finish(self);
        Some(section)
    }
}

fn setting<T: Setting>(
    reader: &mut ManifestReader<'_>,
    fields: &mut MappingFields<'_>,
    key: &'static str,
) -> Option<Spanned<T>> {
    let node: &Node = fields.optional(key)?;
    let value = T::read(reader, node, key)?;
    Some(Spanned {
        value,
        span: node.span,
    })
}

/// The settings that only Kopf has: the key with its section, and the replacement.
pub fn kopf_only_settings() -> impl Iterator<Item = (String, &'static str)> {
    kopf_only::KOPF_ONLY
        .iter()
        .map(KopfOnlySetting::key_and_reason)
}
