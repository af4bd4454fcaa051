//! Logs calls of handlers in the format of the scripts' `journal.py`.

use std::io::{self, Write as _};

use kopf_runtime::{
    ChangeContext, DiffItem, DiffOp, EventContext, FieldContext, Old, ValidationContext,
};
use serde_json::{Value, json};

/// Logs one call of a change handler.
pub(crate) fn note_change(cx: &ChangeContext<Value>) {
    // Kopf passes the field to a handler restricted to one; here it has a context of its own. The
    // id ends with the path in both.
    let path = match cx.handler_id().split_once('/') {
        Some((_, path)) if path.contains('.') => path,
        _ => "",
    };
    let part = |state: &Value| {
        let parts = path.split('.').filter(|part| !part.is_empty());
        parts.fold(state.clone(), |value, part| value[part].clone())
    };
    let old = known(cx.old_raw()).map_or(Value::Null, part);
    note_call(cx, &old, &part(cx.new_state()));
}

/// Logs one call of a field handler.
pub(crate) fn note_field_change(cx: &FieldContext<Value, Value>) {
    let old = known(cx.old_value()).unwrap_or(&Value::Null);
    note_call(cx, old, cx.new_value().unwrap_or(&Value::Null));
}

/// Logs one call of an event handler.
pub(crate) fn note_event(handler: &str, cx: &EventContext<Value>) {
    note_line(&json!({
        "handler": handler,
        "object": cx.name(),
        "type": cx.event_type().to_string(),
    }));
}

/// Logs one review by a webhook.
pub(crate) fn note_review(cx: &ValidationContext<Value>) {
    let spec = |state: Option<&Value>| state.map(|state| state["spec"].clone());
    note_line(&json!({
        "operation": cx.operation().to_string(),
        "subresource": cx.subresource(),
        "dryrun": cx.is_dry_run(),
        "old": spec(cx.old_raw()),
        "new": spec(cx.new_raw()),
    }));
}

/// Logs an action of a daemon or timer.
pub(crate) fn note_action(handler: &str, object: &str, what: &str) {
    note_line(&json!({"handler": handler, "object": object, "does": what}));
}

fn note_call(cx: &ChangeContext<Value>, old: &Value, new: &Value) {
    let mut diff: Vec<Value> = cx.diff().iter().map(difference).collect();
    diff.sort_by_key(Value::to_string);
    note_line(&json!({
        "handler": cx.handler_id(),
        "object": cx.name(),
        "reason": cx.reason().to_string(),
        "retry": cx.retry(),
        "old": old,
        "new": new,
        "diff": diff,
    }));
}

fn difference(item: &DiffItem) -> Value {
    let op = match item.op {
        DiffOp::Add => "add",
        DiffOp::Change => "change",
        DiffOp::Remove => "remove",
    };
    json!([op, item.path.parts(), item.old.known(), item.new])
}

fn known<T>(old: Old<T>) -> Option<T> {
    match old {
        Old::Absent => None,
        Old::Known(value) => Some(value),
        Old::Unknown => panic!("objects of these tests are small enough to be kept"),
    }
}

fn note_line(call: &Value) {
    let line = format!("CALL {call}\n");
    // There is nowhere else to report to.
    let _ = io::stdout().lock().write_all(line.as_bytes());
}
