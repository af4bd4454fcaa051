//! What shows that the operator has handled an object.

use super::handler::{Handler, HandlerCause};
use super::operator::{HandledKind, Operator};
use crate::load::manifest::{SettingValue, Trigger};

/// What shows that the operator has handled an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandledEvidence {
    /// The last handled state in an annotation of this name.
    Annotation(String),
    /// The last handled state in a field with these keys.
    Field(Vec<String>),
    /// A finalizer.
    Finalizer,
    /// The record of a complete call without children, in an annotation of this name.
    Reconciliation(String),
    /// A ConfigMap of the same name.
    ConfigMap,
    /// Nothing: it exists.
    Existence,
}

// === impl HandledEvidence ===

impl HandledEvidence {
    /// The evidence for each new object of a kind whose handlers are stubs.
    #[must_use]
    pub fn of(operator: &Operator, kind: &HandledKind) -> Self {
        let all = |handler: &&Handler| handler.filters.is_empty() && handler.field().is_none();
        let mut handlers = kind.handlers.iter().filter(all);
        let creates = |handler: &Handler| match &handler.cause {
            HandlerCause::Change(change) => change.triggers.contains(&Trigger::Create),
            _ => false,
        };
        if handlers.clone().any(creates) {
            return Self::last_handled_state(operator);
        }
        if handlers.clone().any(Handler::holds_deletion) {
            return Self::Finalizer;
        }
        let reconciles = |handler: &Handler| match &handler.cause {
            // A stub applies no child, which a record has to show if children are declared.
            HandlerCause::Reconcile(_) if !kind.children.is_empty() => Some(handler.id.clone()),
            _ => None,
        };
        match (handlers.find_map(reconciles), setting(operator, "progress")) {
            (Some(id), None) => Self::Reconciliation(format!("{}/{id}", prefix(operator))),
            _ => Self::Existence,
        }
    }

    /// The last handled state, where the settings put it.
    fn last_handled_state(operator: &Operator) -> Self {
        let first = match setting(operator, "diffbase") {
            Some(SettingValue::ListVariant(_, stores)) => stores.first(),
            other => other,
        };
        let prefix = prefix(operator);
        let field = match first {
            Some(SettingValue::Variant(variant)) if variant.ends_with("Status") => {
                let field = text_setting(operator, "status_field", "kopf");
                Some(format!("status.{field}.last-handled-configuration"))
            }
            Some(SettingValue::TextVariant(variant, field)) if variant.ends_with("Field") => {
                Some(field.clone())
            }
            _ => None,
        };
        if let Some(field) = field {
            return Self::Field(field.split('.').map(str::to_owned).collect());
        }
        Self::Annotation(match first {
            Some(SettingValue::TextVariant(_, name)) if name.contains('/') => name.clone(),
            Some(SettingValue::TextVariant(_, name)) => format!("{prefix}/{name}"),
            _ => format!("{prefix}/last-handled-configuration"),
        })
    }
}

/// A setting of the storages.
fn setting<'a>(operator: &'a Operator, name: &str) -> Option<&'a SettingValue> {
    let mut sections = operator.settings.iter();
    let section = sections.find(|section| section.field == "persistence")?;
    let field = section.fields.iter().find(|(field, _)| *field == name);
    field.map(|(_, value)| value)
}

/// The prefix of annotations.
fn prefix(operator: &Operator) -> String {
    text_setting(operator, "prefix", "kopf.zalando.org")
}

fn text_setting(operator: &Operator, name: &str, default: &str) -> String {
    match setting(operator, name) {
        Some(SettingValue::Text(text)) => text.clone(),
        _ => default.to_owned(),
    }
}
