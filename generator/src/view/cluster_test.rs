//! `tests/cluster.rs`: a first test of the operator on a cluster.

use askama::Template;

use super::layout::{call, program, signature};
use super::literal;
use super::phrases::article;
use crate::load::crd::Scope;
use crate::load::manifest::{SettingValue, Trigger};
use crate::model::handler::{Handler, HandlerCause};
use crate::model::identifier::RustIdent;
use crate::model::operator::{HandledKind, KindOrigin, Operator};

/// A test that creates an object, waits until it is handled, and deletes it.
#[derive(Debug, Template)]
#[template(path = "scaffold/cluster.rs")]
pub struct ClusterTestView {
    program: String,
    definitions: Vec<String>,
    /// The object, as a literal.
    object: String,
    /// The first lines of the function.
    signature: String,
    /// The statement that gets access to the objects.
    objects: Vec<String>,
    what: &'static str,
    condition: String,
    uses_metadata: bool,
}

impl ClusterTestView {
    /// A test of the first namespaced custom kind of `operator`; `None` if it has no such kind.
    #[must_use]
    pub fn new(operator: &Operator) -> Option<Self> {
        let custom = |kind: &&HandledKind| matches!(kind.origin, KindOrigin::Custom(_));
        let customs = || operator.kinds.iter().filter(custom);
        let definitions = customs().filter_map(|kind| match &kind.origin {
            KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
            KindOrigin::Custom(resource) => {
                let module = &resource.module;
                Some(format!("src/generated/types/{module}/crd.json"))
            }
        });
        let mut namespaced = customs().filter(|kind| kind.scope == Scope::Namespaced);
        let kind = namespaced.find(|kind| kind.is_watched())?;
        let sample = kind.sample.as_ref()?;
        let (what, condition) = handled_condition(operator, kind);
        let name = RustIdent::new(&kind.type_name);
        let place = [&kind.api_version(), &kind.kind, &kind.plural];
        let place = place.map(|part| format!("{part:?}"));
        let function = format!(
            "fn {}_{}_is_handled_and_deleted",
            article(&kind.type_name),
            name.bare()
        );
        Some(Self {
            program: program(&operator.name),
            definitions: definitions.collect(),
            object: literal::raw_json(&serde_json::to_string_pretty(sample).unwrap_or_default()),
            signature: signature(0, &function, &[], " -> TestResult {").join("\n"),
            objects: call(8, "let objects = cluster.objects", &place, ";"),
            what,
            uses_metadata: condition.contains("annotations()")
                || condition.contains("finalizers()"),
            condition,
        })
    }
}

/// The condition that shows that an object was handled, in words and as code.
fn handled_condition(operator: &Operator, kind: &HandledKind) -> (&'static str, String) {
    let all = |handler: &&Handler| handler.filters.is_empty() && handler.field().is_none();
    let mut handlers = kind.handlers.iter().filter(all);
    let creates = |handler: &Handler| match &handler.cause {
        HandlerCause::Change(change) => change.triggers.contains(&Trigger::Create),
        _ => false,
    };
    if handlers.clone().any(creates) {
        return ("it was handled", has_last_handled_state(operator));
    }
    if handlers.any(Handler::holds_deletion) {
        let condition = "|it| !it.finalizers().is_empty()".to_owned();
        return ("it has a finalizer", condition);
    }
    ("it exists", "|_| true".to_owned())
}

/// The check for the last handled state, where the settings put it.
fn has_last_handled_state(operator: &Operator) -> String {
    let setting = |name: &str| {
        let mut sections = operator.settings.iter();
        let section = sections.find(|section| section.field == "persistence")?;
        let field = section.fields.iter().find(|(field, _)| *field == name);
        field.map(|(_, value)| value)
    };
    let text = |name: &str, default: &str| match setting(name) {
        Some(SettingValue::Text(text)) => text.clone(),
        _ => default.to_owned(),
    };
    let first = match setting("diffbase") {
        Some(SettingValue::ListVariant(_, stores)) => stores.first(),
        other => other,
    };
    let prefix = text("prefix", "kopf.zalando.org");
    let field = match first {
        Some(SettingValue::Variant(variant)) if variant.ends_with("Status") => {
            let field = text("status_field", "kopf");
            Some(format!("status.{field}.last-handled-configuration"))
        }
        Some(SettingValue::TextVariant(variant, field)) if variant.ends_with("Field") => {
            Some(field.clone())
        }
        _ => None,
    };
    if let Some(field) = field {
        let keys: String = field.split('.').map(|key| format!("[{key:?}]")).collect();
        return format!(
            "|it| {{
                !it.data{keys}.is_null()
            }}"
        );
    }
    let key = match first {
        Some(SettingValue::TextVariant(_, name)) if name.contains('/') => name.clone(),
        Some(SettingValue::TextVariant(_, name)) => format!("{prefix}/{name}"),
        _ => format!("{prefix}/last-handled-configuration"),
    };
    format!(
        "|it| {{
                it.annotations()
                    .contains_key({key:?})
            }}"
    )
}
