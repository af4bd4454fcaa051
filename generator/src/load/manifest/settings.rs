//! What the manifest tunes about the operator as a whole.

mod kopf_only;
mod value;

use schemars::JsonSchema;

use self::kopf_only::KopfOnlySetting;
use self::value::Setting;
pub use self::value::{
    AnnotationPrefix, DiffBaseStoreWord, FieldList, FieldName, LifecycleWord, PauseList, Positive,
    PositiveDuration, PostingLevelWord, ProgressPostingWord, ProgressStoreWord, SettingValue, Word,
};
use super::duration::ManifestDuration;
use super::mapping::MappingFields;
use super::reader::ManifestReader;
use super::spanned::Spanned;
use crate::load::yaml::Node;

/// A section that is tuned, as the runtime knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedSection {
    /// Its field in the settings of the runtime.
    pub field: &'static str,
    /// Its type in the runtime.
    pub type_name: &'static str,
    /// The fields that the manifest gives, in the order of the runtime.
    pub fields: Vec<(&'static str, SettingValue)>,
    /// Whether these are all that there are.
    pub is_complete: bool,
    /// What makes a value of this type the one in the settings of the runtime.
    pub conversion: &'static str,
}

/// Defines a section: its keys, how they are read, and what they are in the runtime.
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
                kopf_only::refuse(reader, &mut fields, $key);
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
                    conversion: concat!($($conversion)?),
                })
            }
        }
    };
}

/// What is tuned; everything that is left out is as it suits most operators.
#[derive(Clone, Debug, Default, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SettingsSection {
    /// How the operator talks to the API server.
    pub networking: Option<NetworkingSection>,
    /// How objects are listed and watched.
    pub watching: Option<WatchingSection>,
    /// How namespaces are looked for.
    pub scanning: Option<ScanningSection>,
    /// How many objects are worked on at once.
    pub queueing: Option<QueueingSection>,
    /// How handlers are run.
    pub execution: Option<ExecutionSection>,
    /// How daemons and timers start and stop.
    pub background: Option<BackgroundSection>,
    /// Where facts are kept on objects.
    pub persistence: Option<PersistenceSection>,
    /// What is posted as Kubernetes events.
    pub posting: Option<PostingSection>,
    /// When the operator counts as healthy.
    pub health: Option<HealthSection>,
    /// How the operator stops.
    pub shutdown: Option<ShutdownSection>,
}

section! {
    /// How the operator talks to the API server.
    NetworkingSection = "networking" of "NetworkingSettings" {
        /// How long the server may take to answer a request about handled objects; `60s` if left out.
        request_timeout: PositiveDuration,
        /// How long a connection may take to be opened; `30s` if left out.
        connect_timeout: PositiveDuration,
    }
}

section! {
    /// How objects are listed and watched.
    WatchingSection = "watching" of "WatchingSettings" {
        /// Objects per page of a list; 250 if left out.
        page_size: Positive,
        /// A watch that is silent for longer is opened anew; `70s` if left out.
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
    /// How namespaces are looked for.
    ScanningSection = "scanning" of "ScanningSettings" {
        /// Whether they are not: of the patterns of a scope only names count then.
        disabled: bool,
    }
}

section! {
    /// How many objects are worked on at once.
    QueueingSection = "queueing" of "QueueingSettings" {
        /// Objects whose handling began recently; 16 if left out.
        worker_limit: Positive,
        /// A handler that takes longer is waiting for something, and no longer counts; `1s` if left out.
        worker_patience: ManifestDuration,
        /// Bytes that objects may take while they wait; 64 MiB if left out.
        waiting_bytes: Positive,
        /// Pauses after failures in a row to handle an object, not counting handlers'; the last repeats.
        error_delays: PauseList,
    }
}

section! {
    /// How handlers are run.
    ExecutionSection = "execution" of "ExecutionSettings" {
        /// Which of several handlers run first, and how many before the next write; `asap` if left out.
        lifecycle: Word<LifecycleWord>,
        /// The pause after an arbitrary error, unless the handler says otherwise; `60s` if left out.
        default_backoff: ManifestDuration,
    }
}

section! {
    /// How daemons and timers start and stop.
    BackgroundSection = "background" of "BackgroundSettings" {
        /// How often it is told that a daemon does not stop; `60s` if left out.
        cancellation_polling: ManifestDuration,
        /// Over how long the first ticks of many timers that start together are spread at most; `60s`
        /// if left out, 0 for not at all.
        initial_spread: ManifestDuration,
    }
}

section! {
    /// Where facts are kept on objects.
    PersistenceSection = "persistence" of "PersistenceSettings" then ".into()" {
        /// What keeps objects from going before the handlers of their deletion have been called;
        /// that of Kopf if left out.
        finalizer: String,
        /// What the names of annotations begin with; `kopf.zalando.org` if left out.
        prefix: AnnotationPrefix,
        /// Where the progress of handlers is kept; `smart` if left out.
        progress: Word<ProgressStoreWord>,
        /// Where the state that was handled last is kept; `annotations` if left out.
        diffbase: Word<DiffBaseStoreWord>,
        /// The field of the status for what is kept there; `kopf` if left out.
        status_field: FieldName,
        /// Fields that never count as changes, as in `spec.replicas`.
        ignored: FieldList,
    }
}

section! {
    /// What is posted as Kubernetes events.
    PostingSection = "posting" of "PostingSettings" {
        /// Whether anything is; true if left out.
        enabled: bool,
        /// The least level of what is posted; `info` if left out.
        level: Word<PostingLevelWord>,
        /// What is told about calls of handlers; `failures` if left out.
        progress: Word<ProgressPostingWord>,
        /// Whether log lines of handlers are posted on the object that they are about.
        loggers: bool,
        /// Who reports, as the events name it; `kopf` if left out.
        reporting_component: String,
        /// Which instance of it; `dev` if left out.
        reporting_instance: String,
        /// What the names of events begin with; `kopf-event-` if left out.
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
    /// When the operator counts as healthy.
    HealthSection = "health" of "HealthSettings" {
        /// How late a part of the operator may be before liveness fails; `30s` if left out.
        stuck_after: PositiveDuration,
        /// How long the answer of probe handlers is given to others who ask; `10s` if left out.
        probe_cache: ManifestDuration,
    }
}

section! {
    /// How the operator stops.
    ShutdownSection = "shutdown" of "ShutdownSettings" {
        /// How long handlers that run may take to finish; `25s` if left out.
        grace: ManifestDuration,
        /// How long the last events may take to be posted after that; `2s` if left out.
        posting_grace: ManifestDuration,
        /// By when cleanup handlers must be done, from the moment that the operator was asked to stop;
        /// `29s` if left out.
        deadline: ManifestDuration,
    }
}

// === impl SettingsSection ===

impl SettingsSection {
    /// How many sections there are, here and in the runtime.
    pub const SECTIONS: usize = 10;

    /// The sections with something in them, in the order of the runtime.
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
        kopf_only::refuse(self, &mut inner, "");
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

/// The settings of Kopf that have no meaning here: the key with its section, and why.
pub fn kopf_only_settings() -> impl Iterator<Item = (String, &'static str)> {
    kopf_only::KOPF_ONLY
        .iter()
        .map(KopfOnlySetting::key_and_reason)
}
