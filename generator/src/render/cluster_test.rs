//! `tests/cluster.rs`: a first test of the operator on a cluster.

use askama::Template;
use serde_json::Value;

use super::layout::{call, program, signature};
use super::literal;
use crate::model::handled_evidence::HandledEvidence;
use crate::model::identifier::RustIdent;
use crate::model::operator::{HandledKind, KindOrigin, Operator};
use crate::model::phrases::article;

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
    /// The statements that get access to the objects.
    objects: Vec<String>,
    /// The statement that waits until the object is handled.
    wait: String,
    uses_metadata: bool,
}

impl ClusterTestView {
    /// A test of `kind`, with `sample` as its object, and `evidence` that it was handled.
    pub(super) fn new(
        operator: &Operator,
        kind: &HandledKind,
        sample: &Value,
        evidence: &HandledEvidence,
    ) -> Self {
        let handled = operator.kinds.iter().filter_map(|kind| match &kind.origin {
            KindOrigin::Builtin(_) | KindOrigin::Selected(_) => None,
            KindOrigin::Custom(resource) => Some(&**resource),
        });
        let defined = operator.related_types.iter();
        let defined = defined.filter(|resource| resource.crd_json.is_some());
        let definitions = handled
            .chain(defined)
            .map(|resource| format!("src/generated/types/{}/crd.json", resource.module));
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
            objects: {
                let objects = call(8, "let objects = cluster.objects", &place, ";");
                objects.into_iter().chain(children(evidence)).collect()
            },
            wait: wait(evidence),
            uses_metadata: match evidence {
                HandledEvidence::Annotation(_)
                | HandledEvidence::Reconciliation(_)
                | HandledEvidence::Finalizer => true,
                HandledEvidence::Field(_)
                | HandledEvidence::ConfigMap
                | HandledEvidence::Existence => false,
            },
        }
    }
}

/// The statement that gets access to the children, if they are the evidence.
fn children(evidence: &HandledEvidence) -> Option<String> {
    let statement = r#"let children = cluster.objects("v1", "ConfigMap", "configmaps");"#;
    (*evidence == HandledEvidence::ConfigMap).then(|| statement.to_owned())
}

/// The statement that waits until an object is handled, as rustfmt lays it out.
fn wait(evidence: &HandledEvidence) -> String {
    match evidence {
        HandledEvidence::Annotation(name) => until("it was handled", &has_annotation(name)),
        HandledEvidence::Reconciliation(name) => until("it was reconciled", &has_annotation(name)),
        HandledEvidence::Field(keys) => {
            let keys: String = keys.iter().map(|key| format!("[{key:?}]")).collect();
            let code = format!(
                "|it| {{
                !it.data{keys}.is_null()
            }}"
            );
            until("it was handled", &code)
        }
        HandledEvidence::Finalizer => {
            until("it has a finalizer", "|it| !it.finalizers().is_empty()")
        }
        HandledEvidence::ConfigMap => {
            r#"children.until("example", "it exists", |_| true).await?;"#.to_owned()
        }
        HandledEvidence::Existence => {
            r#"objects.until("example", "it exists", |_| true).await?;"#.to_owned()
        }
    }
}

/// The statement that waits for a condition of the object.
fn until(what: &str, condition: &str) -> String {
    format!(
        "objects
            .until(\"example\", \"{what}\", {condition})
            .await?;"
    )
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
