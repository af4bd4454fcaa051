//! The children of widgets: as many ConfigMaps as the size says, each with the number of the edit.

use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChildOf, ChildOptions, ReconcileContext, ResourceSpec, Scope, StatusSubresource,
};

use super::{CallPlan, RECONCILED, begin};
use crate::journal::{Journal, LoggedStep};
use crate::state::DigestedState;

/// The kind of the children.
pub(super) const CONFIG_MAP: ResourceSpec = ResourceSpec {
    group: "",
    version: "v1",
    kind: "ConfigMap",
    plural: "configmaps",
    scope: Scope::Namespaced,
    status: StatusSubresource::Absent,
};

/// The key of the number of the edit in the data of a child.
pub(crate) const EDIT: &str = "edit";

/// The marker of the kind with children.
pub(super) enum WidgetChildren {}

impl ChildOf<WidgetChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

/// The name of a child. It has a part of the uid, because the garbage collector may take a while
/// for the children of an earlier object of that name.
pub(crate) fn child_name(owner: &str, uid: &str, number: u64) -> String {
    let part: String = uid.chars().take(8).collect();
    format!("{owner}-{part}-{number}")
}

/// Applies the children, and fails or succeeds as the plan of the call says.
pub(super) async fn reconcile(
    journal: &Arc<Journal>,
    cx: &mut ReconcileContext<Value, WidgetChildren>,
) -> HandlerResult {
    let call = begin(journal, RECONCILED, cx.retry(), cx.raw());
    let state = DigestedState::of(cx.raw());
    let plan = CallPlan::of(cx.uid(), RECONCILED, &state);
    for number in 0..state.children() {
        // The attempt that fails has applied a part of them, and must not delete the others.
        if number > 0 && cx.retry() < plan.retries {
            break;
        }
        let mut map = ConfigMap::default();
        map.metadata.name = Some(child_name(cx.name(), cx.uid(), number));
        map.data = Some([(EDIT.to_owned(), state.edit.to_string())].into());
        if let Err(error) = cx.apply(map).await {
            call.end(LoggedStep::Retry);
            return Err(error);
        }
    }
    tokio::time::sleep(plan.duration).await;
    if cx.retry() < plan.retries {
        call.end(LoggedStep::Retry);
        let delay = Duration::from_millis(300);
        return Err(HandlerError::temporary_after(delay, "not yet"));
    }
    call.end(LoggedStep::Success);
    Ok(())
}
