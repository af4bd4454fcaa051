//! Where facts are kept on objects, in a few words instead of storages.

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

/// Where facts are kept on objects. The defaults are those of Kopf, so that either can go on where
/// the other has stopped.
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
    /// What keeps objects from going before the handlers of their deletion have been called.
    pub finalizer: String,
    /// What the names of annotations begin with.
    pub prefix: String,
    /// Where the progress of handlers is kept.
    pub progress: ProgressStore,
    /// Where the state that was handled last is kept.
    pub diffbase: DiffBaseStore,
    /// The field of the status for what is kept there.
    pub status_field: String,
    /// Fields that never count as changes, as in `spec.replicas`.
    pub ignored: Vec<String>,
}

/// Where the progress of handlers is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProgressStore {
    /// In annotations; what is in the status is read and removed.
    #[default]
    Smart,
    /// In annotations.
    Annotations,
    /// In the status.
    Status,
}

/// Where the state that was handled last is kept.
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
    fn what_is_left_out_is_as_with_kopf() {
        let made = Persistence::from(PersistenceSettings::default());
        let usual = Persistence::default();
        assert_eq!(format!("{made:?}"), format!("{usual:?}"));
    }
}
