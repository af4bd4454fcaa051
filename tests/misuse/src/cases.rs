//! Each function is wrong in one way; the comment after `//~` is the error that the compiler
//! reports on that line, or on the line before if it has one of its own: its code, and a part of
//! its message.

use std::time::Duration;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kopf_runtime::prelude::*;
use kopf_runtime::{ChildOf, ChildOptions};

// === errors ===

fn a_permanent_error_has_no_delay() -> HandlerError {
    HandlerError::permanent("no").after(Duration::ZERO) //~ E0599 no method named `after`
}

fn a_converted_error_has_no_delay(error: std::io::Error) -> HandlerError {
    HandlerError::from(error).after(Duration::ZERO) //~ E0599 no method named `after`
}

fn a_failure_of_a_webhook_has_no_code(error: std::io::Error) -> AdmissionError {
    AdmissionError::from(error).with_code(422) //~ E0599 no method named `with_code`
}

fn a_handler_error_is_not_a_denial() -> HandlerResult {
    Err(AdmissionError::denied("no"))? //~ E0277 `?` couldn't convert the error
}

// === what only reads ===

fn an_index_function_does_not_change_its_object(cx: &mut IndexContext<Pod>) {
    cx.draft(); //~ E0599 no method named `draft`
}

fn an_index_function_does_not_patch(cx: &mut IndexContext<Pod>) {
    cx.patch(); //~ E0599 no method named `patch`
}

fn a_validating_webhook_does_not_change_its_object(cx: &mut ValidationContext<Pod>) {
    cx.metadata_mut(); //~ E0599 no method named `metadata_mut`
}

async fn a_webhook_applies_nothing(cx: &mut ValidationContext<Pod>) {
    let _ = cx.apply(ConfigMap::default()).await; //~ E0599 no method named `apply`
}

fn the_object_is_changed_only_in_its_draft(cx: &mut ChangeContext<Pod>) {
    cx.object().metadata.name = None; //~ E0594 cannot assign
}

fn a_shared_context_does_not_change_the_object(cx: &ChangeContext<Pod>) {
    cx.draft(); //~ E0596 cannot borrow
}

fn a_helper_of_several_handlers_only_reads(cx: &impl ObjectContext<Pod>) {
    cx.metadata_mut(); //~ E0599 no method named `metadata_mut`
}

// === types ===

async fn a_cluster_scoped_child_is_not_applied(cx: &ChangeContext<Pod>) {
    let _ = cx.apply(Namespace::default()).await; //~ E0271 type mismatch
}

/// The children of a kind as kopf-gen writes them.
enum PodChildren {}

impl ChildOf<PodChildren> for ConfigMap {
    const OPTIONS: ChildOptions = ChildOptions::new();
}

async fn a_kind_that_is_not_declared_is_no_child(cx: &mut ReconcileContext<Pod, PodChildren>) {
    let _ = cx.apply(ConfigMap::default()).await;
    let _ = cx.apply(StatefulSet::default()).await; //~ E0277 `StatefulSet` is not declared as a child
}

fn a_kind_without_conditions_has_none(cx: &mut ChangeContext<ConfigMap>) {
    cx.set_condition("Ready", true, "Done", "it is done"); //~ E0277 has no `conditions` as Kubernetes
}

fn a_kind_without_a_status_has_none(cx: &mut ChangeContext<ConfigMap>) {
    cx.status_mut(); //~ E0599 its trait bounds were not satisfied
}

#[derive(Default)]
struct Unrelated;

fn a_memo_has_the_type_of_the_manifest(cx: &ChangeContext<Pod>) {
    cx.memo::<Unrelated>(); //~ E0277 the trait bound `Unrelated: Memo<Pod>` is not satisfied
}

/// The trait of handlers as kopf-gen writes it.
trait PodHandlers {
    async fn greet(&self, cx: &mut ChangeContext<Pod>, param: &str) -> HandlerResult<i64>;
    async fn measure(&self, cx: &mut TimerContext<Pod>) -> HandlerResult<i64>;
}

struct Operator;

impl PodHandlers for Operator {
    async fn greet(&self, _: &mut ChangeContext<Pod>, _: i64) -> HandlerResult<i64> {
        //~ E0053 method `greet` has an incompatible type
        Ok(1)
    }

    async fn measure(&self, _: &mut TimerContext<Pod>) -> HandlerResult<i64> {
        Ok("5 GiB") //~ E0308 mismatched types
    }
}

// === filters ===

fn a_filter_does_not_change_its_object(cx: &mut FilterContext<Pod>) {
    cx.draft(); //~ E0599 no method named `draft`
}

async fn a_filter_applies_nothing(cx: &FilterContext<'_, Pod>) {
    let _ = cx.apply(ConfigMap::default()).await; //~ E0599 no method named `apply`
}

fn a_filter_sends_nothing(cx: &FilterContext<Pod>) {
    cx.client(); //~ E0599 no method named `client`
}
