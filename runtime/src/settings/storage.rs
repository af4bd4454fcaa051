//! The traits of a custom storage, and the types in their signatures.
//!
//! The operator stores the progress of handlers and the last handled state on the object itself, as
//! [`Persistence`] says. A custom storage implements [`ProgressStorage`] or [`DiffBaseStorage`]; you
//! put it into the settings before the operator starts, mostly in a startup handler:
//!
//! ```
//! # use std::sync::Arc;
//! # use kopf_runtime::Settings;
//! # use kopf_runtime::storage::StatusProgress;
//! # fn startup(settings: &mut Settings) {
//! settings.persistence.progress = Arc::new(StatusProgress::new("my-operator"));
//! # }
//! ```

pub use kopf_core::diffbase::DiffBaseStorage;
pub use kopf_core::diffbase::annotations::AnnotationsDiffBase;
pub use kopf_core::diffbase::multi::MultiDiffBase;
pub use kopf_core::diffbase::status::StatusDiffBase;
pub use kopf_core::handler::HandlerId;
pub use kopf_core::object::ObjectView;
pub use kopf_core::object::diff::Baseline;
pub use kopf_core::object::essence::Essence;
pub use kopf_core::object::patch::ObjectPatch;
pub use kopf_core::object::path::FieldPath;
pub use kopf_core::persistence::Persistence;
pub use kopf_core::progress::ProgressStorage;
pub use kopf_core::progress::annotations::AnnotationsProgress;
pub use kopf_core::progress::multi::MultiProgress;
pub use kopf_core::progress::record::Record;
pub use kopf_core::progress::status::StatusProgress;
