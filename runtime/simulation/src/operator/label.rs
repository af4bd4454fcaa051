//! The label that some handlers ask for.

use kopf_core::handler::filter::TextTest;
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};

/// Its name.
pub(crate) const LABEL: &str = "on";

/// A handler for objects with the label.
pub(super) fn labelled(id: impl Into<HandlerId>, trigger: Trigger) -> HandlerSpec {
    let mut labelled = HandlerSpec::new(id, trigger);
    labelled.filters.labels = vec![(LABEL.to_owned(), TextTest::Present.into())];
    labelled
}
