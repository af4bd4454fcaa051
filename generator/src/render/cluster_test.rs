//! `tests/cluster.rs`: a first test of the operator on a cluster.

use askama::Template;
use serde_json::Value;

use super::layout::{call, program, signature};
use super::literal;
use crate::model::handled_evidence::HandledEvidence;
use crate::model::identifier::RustIdent;
use crate::model::operator::{HandledKind, KindOrigin, Operator};
use crate::model::phrases::article;

/// The condition that holds for any object.
const ANY: &str = "|_| true";

/// The longest chain of calls in one line.
const CHAIN_WIDTH: usize = 60;

/// A test that creates an object, waits until it is handled, and deletes it.
#[derive(Debug, Template)]
#[template(path = "scaffold/cluster.rs")]
pub(super) struct ClusterTestView {
    program: String,
    definitions: Vec<String>,
    /// The object, as a literal.
    object: String,
    /// The first lines of the function.
    signature: String,
    /// The statement that gets access to the objects.
    objects: Vec<String>,
    /// The statement that waits until the object is handled.
    wait: String,
    uses_metadata: bool,
}

impl ClusterTestView {
    /// A test of `kind`, with `sample` as its object.
    pub(super) fn new(operator: &Operator, kind: &HandledKind, sample: &Value) -> Self {
        let handled = operator.kinds.iter().filter_map(|kind| match &kind.origin {
            KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
            KindOrigin::Custom(resource) => Some(&**resource),
        });
        let defined = operator.related_types.iter();
        let defined = defined.filter(|resource| resource.crd_json.is_some());
        let definitions = handled
            .chain(defined)
            .map(|resource| format!("src/generated/types/{}/crd.json", resource.module));
        let evidence = HandledEvidence::of(operator, kind);
        let (what, condition) = condition(&evidence);
        let name = RustIdent::new(&kind.type_name);
        let place = [&kind.api_version(), &kind.kind, &kind.plural];
        let place = place.map(|part| format!("{part:?}"));
        let function = format!(
            "fn {}_{}_is_handled_and_deleted",
            article(&kind.type_name),
            name.bare()
        );
        Self {
            program: program(&operator.name),
            definitions: definitions.collect(),
            object: literal::raw_json(&serde_json::to_string_pretty(sample).unwrap_or_default()),
            signature: signature(0, &function, &[], " -> TestResult {").join("\n"),
            objects: call(8, "let objects = cluster.objects", &place, ";"),
            wait: wait(what, &condition),
            uses_metadata: match evidence {
                HandledEvidence::Annotation(_)
                | HandledEvidence::Reconciliation(_)
                | HandledEvidence::Finalizer => true,
                HandledEvidence::Field(_) | HandledEvidence::Existence => false,
            },
        }
    }
}

/// The statement that waits for a condition, as rustfmt lays it out.
fn wait(what: &str, condition: &str) -> String {
    if condition == ANY {
        return format!("objects.until(\"example\", \"{what}\", {condition}).await?;");
    }
    format!(
        "objects
            .until(\"example\", \"{what}\", {condition})
            .await?;"
    )
}

/// The condition that shows that an object was handled, in words and as code.
fn condition(evidence: &HandledEvidence) -> (&'static str, String) {
    match evidence {
        HandledEvidence::Annotation(name) => ("it was handled", has_annotation(name)),
        HandledEvidence::Reconciliation(name) => ("it was reconciled", has_annotation(name)),
        HandledEvidence::Field(keys) => {
            let keys: String = keys.iter().map(|key| format!("[{key:?}]")).collect();
            let code = format!(
                "|it| {{
                !it.data{keys}.is_null()
            }}"
            );
            ("it was handled", code)
        }
        HandledEvidence::Finalizer => {
            let code = "|it| !it.finalizers().is_empty()".to_owned();
            ("it has a finalizer", code)
        }
        HandledEvidence::Existence => ("it exists", ANY.to_owned()),
    }
}

/// The check for an annotation, as rustfmt lays it out.
fn has_annotation(key: &str) -> String {
    let chain = format!("it.annotations().contains_key({key:?})");
    let chain = if chain.chars().count() > CHAIN_WIDTH {
        format!("it.annotations()\n                    .contains_key({key:?})")
    } else {
        chain
    };
    format!("|it| {{\n                {chain}\n            }}")
}
