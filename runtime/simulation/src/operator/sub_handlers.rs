//! The sub-handlers of simulated operators: which a call registers follows from the state.

use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::object::path::FieldPath;
use serde_json::Value;

use super::label::labelled;

/// The handler with two plain sub-handlers.
pub(super) const PARENT: &str = "parent";

/// The handler with a sub-handler for objects with the label, one that has sub-handlers of its own,
/// and one for a field.
pub(super) const FAMILY: &str = "family";

const FIRST: &str = "one";
const SECOND: &str = "two";
const OF_FIELD: &str = "field";

/// The sub-handlers of all levels that a handler may have.
pub(crate) fn sub_handlers(id: &HandlerId) -> Vec<HandlerId> {
    let subs = names(id.as_str()).iter().map(|name| id.sub(name));
    subs.flat_map(|sub| std::iter::once(sub.clone()).chain(sub_handlers(&sub)))
        .collect()
}

/// The sub-handlers that a call registers: the second one is only there for some states.
pub(crate) fn registered_subs(id: &HandlerId, changing: bool, state: &Value) -> Vec<HandlerSpec> {
    let part = match parent_of(id.as_str()) {
        Some(_) => "b",
        None => "a",
    };
    let is_registered = |name: &&str| *name != SECOND || state["spec"][part] != 1;
    let registered = names(id.as_str()).iter().copied().filter(is_registered);
    registered
        .map(|name| sub_handler(id, name, changing))
        .collect()
}

fn sub_handler(parent: &HandlerId, name: &str, changing: bool) -> HandlerSpec {
    let (id, trigger) = (parent.sub(name), Trigger::Sub { changing });
    let is_filtered = is_of_family(parent.as_str()) && parent_of(parent.as_str()).is_none();
    match name {
        FIRST if is_filtered => labelled(id, trigger),
        OF_FIELD => {
            let mut spec = HandlerSpec::for_field("", trigger, field());
            spec.id = id;
            spec
        }
        _ => HandlerSpec::new(id, trigger),
    }
}

/// The field of a sub-handler, if it has one.
pub(crate) fn sub_field(id: &HandlerId) -> Option<FieldPath> {
    let (parent, name) = id.as_str().rsplit_once('/')?;
    (name == OF_FIELD && names(parent).contains(&name)).then(field)
}

fn field() -> FieldPath {
    FieldPath::from("spec.b")
}

/// Whether a handler has sub-handlers.
pub(crate) fn is_parent(id: &str) -> bool {
    !names(id).is_empty()
}

/// The handler that has registered a sub-handler.
pub(crate) fn parent_of(id: &str) -> Option<&str> {
    let (parent, name) = id.rsplit_once('/')?;
    names(parent).contains(&name).then_some(parent)
}

/// The declared handler above a sub-handler, or the handler itself.
pub(crate) fn declared_of(id: &str) -> &str {
    parent_of(id).map_or(id, declared_of)
}

/// The names of the sub-handlers that a handler may have. The ids of handlers of fields have the
/// field behind the name, so that those above have a beginning in common with their own.
fn names(id: &str) -> &'static [&'static str] {
    match id.rsplit_once('/') {
        Some((above, SECOND)) if is_of_family(id) && parent_of(above).is_none() => &[FIRST, SECOND],
        Some((_, FIRST | SECOND | OF_FIELD)) => &[],
        _ if id.starts_with(PARENT) => &[FIRST, SECOND],
        _ if is_of_family(id) => &[FIRST, SECOND, OF_FIELD],
        _ => &[],
    }
}

fn is_of_family(id: &str) -> bool {
    id.starts_with(FAMILY)
}
