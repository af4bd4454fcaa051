//! The declarations of `reconcile` and of handlers of children in generated code.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::cause::Subject;
use kopf_core::handler::filter::{Combined, TextTest, WhenTest};
use kopf_core::handler::{HandlerId, HandlerSpec, Trigger};
use kopf_core::machine::reconcile::StatusChanges;
use kopf_core::object::path::FieldPath;
use serde_json::Value;

use super::{ErrorMode, HandlerDeclaration, Options, error_option, options};
use crate::handler::patch::field_path;

/// The declaration of `reconcile`, which keeps the children of objects as they should be.
#[derive(Debug, Clone)]
#[must_use]
pub struct ReconcileHandler {
    id: &'static str,
    options: Options,
    timing: ReconcileTiming,
}

/// The declaration of a handler of children.
#[derive(Debug, Clone)]
#[must_use]
pub struct ChildHandler {
    id: &'static str,
    options: Options,
}

/// The fields of an object that name another one: `spec.secretRef.name`, or `spec.secrets[].name`
/// for the items of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct UsedBy {
    pub(crate) name: &'static str,
    pub(crate) namespace: Option<&'static str>,
}

/// When `reconcile` is called beside changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReconcileTiming {
    pub(crate) interval: Option<Duration>,
    pub(crate) status: StatusChanges,
}

options!(ReconcileHandler);
options!(ChildHandler);
error_option!(ReconcileHandler);
error_option!(ChildHandler);

// === impl ReconcileHandler ===

impl ReconcileHandler {
    /// A handler with this id, under which its progress is kept on objects.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            options: Options::default(),
            timing: ReconcileTiming {
                interval: None,
                status: StatusChanges::Ignored,
            },
        }
    }

    /// Calls it again after this time in which nothing happened.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.timing.interval = Some(interval);
        self
    }

    /// Calls it for changes of the status, too.
    pub fn on_status_changes(mut self) -> Self {
        self.timing.status = StatusChanges::Count;
        self
    }

    pub(crate) fn declare(self) -> (HandlerDeclaration, ReconcileTiming) {
        let id = HandlerId::new(self.id);
        let declared = self.options.declare(&id, &[Trigger::Reconcile]);
        (declared, self.timing)
    }
}

// === impl ChildHandler ===

impl ChildHandler {
    /// A handler with this id.
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            options: Options::default(),
        }
    }

    pub(crate) fn declare(self) -> (HandlerSpec, Option<Arc<Value>>) {
        let spec = HandlerSpec {
            id: HandlerId::new(self.id),
            trigger: Trigger::Event,
            filters: self.options.filters,
            policy: self.options.policy,
        };
        (spec, self.options.param)
    }
}

// === impl UsedBy ===

impl UsedBy {
    /// The objects whose names are in this field.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            namespace: None,
        }
    }

    /// The field with their namespace; without it, they are in the namespace of the object.
    pub fn namespace(mut self, namespace: &'static str) -> Self {
        self.namespace = Some(namespace);
        self
    }

    /// The names, with their namespaces, that an object refers to.
    pub(crate) fn names(&self, object: &Value) -> Vec<(Option<String>, String)> {
        let own = object["metadata"]["namespace"].as_str();
        let names = texts(object, self.name);
        let namespaces = self.namespace.map(|path| texts(object, path));
        let namespaces = namespaces.unwrap_or_default();
        let names = names.into_iter().enumerate();
        let named = names.map(|(at, name)| {
            let namespace = namespaces.get(at).or_else(|| namespaces.first());
            let namespace = namespace.cloned().or_else(|| own.map(str::to_owned));
            (namespace, name)
        });
        named.collect()
    }
}

/// The texts at a path; `[]` stands for all items of a list.
fn texts(object: &Value, path: &str) -> Vec<String> {
    let mut values = vec![object];
    let mut parts = path.split("[]");
    let first = parts.next().unwrap_or_default();
    values = members(values, first);
    for part in parts {
        let items = values.into_iter().filter_map(Value::as_array).flatten();
        values = members(items.collect(), part.trim_start_matches('.'));
    }
    let texts = values.into_iter().filter_map(Value::as_str);
    texts
        .filter(|text| !text.is_empty())
        .map(str::to_owned)
        .collect()
}

fn members<'a>(values: Vec<&'a Value>, path: &str) -> Vec<&'a Value> {
    let path: FieldPath = field_path(path);
    let values = values.into_iter();
    values.filter_map(|value| path.resolve(value)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_names_in_fields_and_lists_are_read() {
        let object = json!({
            "metadata": {"namespace": "here"},
            "spec": {
                "ref": {"name": "one", "namespace": "there"},
                "secrets": [{"name": "a"}, {"other": 1}, {"name": "b"}],
                "names": ["c"],
            },
        });
        let names = |by: UsedBy| by.names(&object);
        let named = |namespace: &str, name: &str| (Some(namespace.to_owned()), name.to_owned());
        assert_eq!(names(UsedBy::new("spec.ref.name")), [named("here", "one")]);
        let elsewhere = UsedBy::new("spec.ref.name").namespace("spec.ref.namespace");
        assert_eq!(names(elsewhere), [named("there", "one")]);
        let listed = names(UsedBy::new("spec.secrets[].name"));
        assert_eq!(listed, [named("here", "a"), named("here", "b")]);
        assert_eq!(names(UsedBy::new("spec.names[]")), [named("here", "c")]);
        assert_eq!(names(UsedBy::new("spec.none.name")), []);
    }
}
