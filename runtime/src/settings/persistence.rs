//! Settings for the progress and the last handled state that the operator stores on objects.

use std::sync::Arc;

use kopf_core::diffbase::DiffBaseStorage;
use kopf_core::diffbase::annotations::AnnotationsDiffBase;
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProgressStore {
    /// In annotations; progress in the status is read and removed.
    #[default]
    Smart,
    /// In annotations.
    Annotations,
    /// In the status.
    Status,
}

/// The storage of the last handled state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DiffBaseStore {
    /// In an annotation.
    #[default]
    Annotations,
    /// In the status.
    Status,
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
        let (prefix, field) = (&*settings.prefix, &*settings.status_field);
        let annotations = || AnnotationsProgress::new(prefix);
        let status = || StatusProgress::new(field);
        let progress: Arc<dyn ProgressStorage> = match settings.progress {
            ProgressStore::Smart => Arc::new(MultiProgress::smart(annotations(), status())),
            ProgressStore::Annotations => Arc::new(annotations()),
            ProgressStore::Status => Arc::new(status()),
        };
        let diffbase: Arc<dyn DiffBaseStorage> = match settings.diffbase {
            DiffBaseStore::Annotations => Arc::new(AnnotationsDiffBase::new(prefix)),
            DiffBaseStore::Status => Arc::new(StatusDiffBase::new(field)),
        };
        let ignored = settings.ignored.iter();
        Self {
            progress,
            diffbase,
            ignored: ignored
                .map(|path| FieldPath::new(path.split('.')))
                .collect(),
            finalizer: settings.finalizer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_kopf() {
        let converted = Persistence::from(PersistenceSettings::default());
        let default = Persistence::default();
        assert_eq!(format!("{converted:?}"), format!("{default:?}"));
    }
}
