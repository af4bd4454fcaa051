//! Settings for the progress and the last handled state that the operator stores on objects.

use std::sync::Arc;

use kopf_core::diffbase::DiffBaseStorage;
use kopf_core::diffbase::annotations::AnnotationsDiffBase;
use kopf_core::diffbase::multi::MultiDiffBase;
use kopf_core::diffbase::status::StatusDiffBase;
use kopf_core::object::essence::KOPF_PREFIX;
use kopf_core::object::finalizer::KOPF_FINALIZER;
use kopf_core::object::path::FieldPath;
use kopf_core::persistence::Persistence;
use kopf_core::progress::ProgressStorage;
use kopf_core::progress::annotations::AnnotationsProgress;
use kopf_core::progress::multi::MultiProgress;
use kopf_core::progress::status::StatusProgress;

/// The storage of progress and of the last handled state on objects. The defaults are those of
/// Kopf, so that each can continue where the other has stopped.
///
/// ```
/// use kopf_runtime::{PersistenceSettings, Settings};
///
/// let settings = Settings {
///     persistence: PersistenceSettings {
///         finalizer: "my-operator.example.com/finalizer".to_owned(),
///         ..PersistenceSettings::default()
///     }
///     .into(),
///     ..Settings::default()
/// };
/// # drop(settings);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistenceSettings {
    /// The finalizer that keeps objects until their deletion handlers, daemons and timers are done.
    pub finalizer: String,
    /// The prefix of the names of annotations.
    pub prefix: String,
    /// The storage of the progress of handlers.
    pub progress: ProgressStore,
    /// The storage of the last handled state.
    pub diffbase: DiffBaseStore,
    /// The field of the status that a storage in the status uses.
    pub status_field: String,
    /// Fields whose changes are ignored, such as `spec.replicas`.
    pub ignored: Vec<String>,
}

/// The storage of the progress of handlers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProgressStore {
    /// In annotations; progress in the status is read and removed.
    #[default]
    Smart,
    /// In annotations.
    Annotations,
    /// In the status.
    Status,
    /// In annotations whose names begin with this prefix.
    AnnotationsUnder(String),
    /// In this field, such as `status.operator.progress`.
    Field(String),
    /// In several storages: all are written, and the first that has a record is read.
    Several(Vec<ProgressStore>),
}

/// The storage of the last handled state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum DiffBaseStore {
    /// In an annotation.
    #[default]
    Annotations,
    /// In the status.
    Status,
    /// In the annotation of this name, such as `example.com/last-handled`.
    Annotation(String),
    /// In this field, such as `status.operator.handled`.
    Field(String),
    /// In several storages: all are written, and the first that has a state is read.
    Several(Vec<DiffBaseStore>),
}

// === impl PersistenceSettings ===

impl Default for PersistenceSettings {
    fn default() -> Self {
        Self {
            finalizer: KOPF_FINALIZER.to_owned(),
            prefix: KOPF_PREFIX.to_owned(),
            progress: ProgressStore::default(),
            diffbase: DiffBaseStore::default(),
            status_field: "kopf".to_owned(),
            ignored: Vec::new(),
        }
    }
}

impl From<PersistenceSettings> for Persistence {
    fn from(settings: PersistenceSettings) -> Self {
        let ignored = settings.ignored.iter();
        Self {
            progress: settings.progress.storage(&settings),
            diffbase: settings.diffbase.storage(&settings),
            ignored: ignored
                .map(|path| FieldPath::parse(path).unwrap_or_else(|| FieldPath::from(&**path)))
                .collect(),
            finalizer: settings.finalizer,
        }
    }
}

// === impl ProgressStore ===

impl ProgressStore {
    fn storage(&self, settings: &PersistenceSettings) -> Arc<dyn ProgressStorage> {
        let annotations = || AnnotationsProgress::new(&settings.prefix);
        let status = || StatusProgress::new(&settings.status_field);
        match self {
            Self::Smart => Arc::new(MultiProgress::smart(annotations(), status())),
            Self::Annotations => Arc::new(annotations()),
            Self::Status => Arc::new(status()),
            Self::AnnotationsUnder(prefix) => Arc::new(AnnotationsProgress::new(prefix)),
            Self::Field(field) => Arc::new(StatusProgress::at(FieldPath::from(&**field))),
            Self::Several(stores) => {
                let storages = stores.iter().map(|store| store.storage(settings));
                Arc::new(MultiProgress::new(storages.collect()))
            }
        }
    }
}

// === impl DiffBaseStore ===

impl DiffBaseStore {
    fn storage(&self, settings: &PersistenceSettings) -> Arc<dyn DiffBaseStorage> {
        match self {
            Self::Annotations => Arc::new(AnnotationsDiffBase::new(&settings.prefix)),
            Self::Status => Arc::new(StatusDiffBase::new(&settings.status_field)),
            Self::Annotation(name) => {
                let (prefix, key) = name.rsplit_once('/').unwrap_or((&settings.prefix, name));
                Arc::new(AnnotationsDiffBase::named(prefix, key))
            }
            Self::Field(field) => Arc::new(StatusDiffBase::at(FieldPath::from(&**field))),
            Self::Several(stores) => {
                let storages = stores.iter().map(|store| store.storage(settings));
                Arc::new(MultiDiffBase::new(storages.collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_storages_are_read_in_order_and_names_are_the_users() {
        let settings = PersistenceSettings {
            progress: ProgressStore::Several(vec![
                ProgressStore::Annotations,
                ProgressStore::AnnotationsUnder("former.example.com".to_owned()),
                ProgressStore::Field("status.former.progress".to_owned()),
            ]),
            diffbase: DiffBaseStore::Several(vec![
                DiffBaseStore::Annotation("example.com/handled".to_owned()),
                DiffBaseStore::Field("status.former.handled".to_owned()),
            ]),
            ..PersistenceSettings::default()
        };
        let persistence = Persistence::from(settings);
        for own in [
            "kopf.zalando.org/touch-dummy",
            "former.example.com/touch-dummy",
            "example.com/handled",
            "example.com/handled-packed",
        ] {
            assert!(persistence.owns_annotation(own), "{own}");
        }
        assert!(!persistence.owns_annotation("example.com/other"));
        let stored = serde_json::json!({"status": {"former": {"handled": r#"{"spec":1}"#}}});
        let baseline = persistence.baseline(kopf_core::object::ObjectView::new(&stored));
        assert!(!baseline.is_absent());
    }

    #[test]
    fn the_defaults_are_those_of_kopf() {
        let converted = Persistence::from(PersistenceSettings::default());
        let default = Persistence::default();
        assert_eq!(format!("{converted:?}"), format!("{default:?}"));
    }
}
