//! References to objects, and children of owners, are the same as those that Kopf builds.

use kopf_core::object::path::FieldPath;
use kopf_runtime::hierarchy::{
    self, Adoption, Existing, Naming, OwnerFlags, object_reference, owner_reference,
};
use kopf_tests::{PythonKopf, TestResult};
use serde_json::{Value, json};

const BUILD: &str = "
import json, sys
import kopf
from kopf._cogs.structs.bodies import Body
results = []
for owner, child, controller, block, forced, strict, nested in json.loads(sys.argv[1]):
    body = Body(owner)
    copy = lambda: json.loads(json.dumps(child))
    adopted, appended, labelled = copy(), copy(), copy()
    kopf.adopt(adopted, owner=body, forced=forced, strict=strict, nested=nested)
    kopf.append_owner_reference(
        appended, owner=body, controller=controller, block_owner_deletion=block)
    removed = json.loads(json.dumps(appended))
    kopf.remove_owner_reference(removed, owner=body)
    kopf.label(labelled, {'a': '1', 'app': 'y'}, forced=forced, nested=nested)
    results.append([
        kopf.build_object_reference(body),
        kopf.build_owner_reference(body, controller=controller, block_owner_deletion=block),
        adopted, appended, removed, labelled,
    ])
print(json.dumps(results))
";

fn owners() -> [Value; 3] {
    [
        json!({
            "apiVersion": "kopf.dev/v1", "kind": "Owner",
            "metadata": {"name": "parent", "namespace": "ns", "uid": "u1", "labels": {"app": "x"}},
        }),
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {"name": "node", "uid": "u2"},
        }),
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "odd", "namespace": "", "uid": "u3", "labels": {}},
        }),
    ]
}

fn children() -> [Value; 4] {
    let template = json!({"metadata": {"labels": {"app": "own"}}, "spec": {}});
    [
        json!({"kind": "Pod"}),
        json!({"metadata": {"name": "own", "namespace": "other", "labels": {"app": "own"}}}),
        json!({"metadata": {"generateName": "own-"}, "spec": {"template": template}}),
        json!({"metadata": {"ownerReferences": [
            {"apiVersion": "v1", "kind": "Pod", "name": "odd", "uid": "u3"},
            {"apiVersion": "v1", "kind": "Pod", "name": "else", "uid": "u4"},
        ]}}),
    ]
}

/// The same without nulls and empty maps and lists, which Kopf adds where there is nothing to say.
fn without_empty(value: &Value) -> Value {
    let is_empty = |value: &Value| match value {
        Value::Object(entries) => entries.is_empty(),
        Value::Array(items) => items.is_empty(),
        other => other.is_null(),
    };
    match value {
        Value::Object(entries) => {
            let entries = entries.iter();
            let kept = entries.map(|(key, value)| (key.clone(), without_empty(value)));
            kept.filter(|(_, value)| !is_empty(value)).collect()
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn references_and_children_are_built_the_same() -> TestResult {
    let (mut cases, mut ours) = (Vec::new(), Vec::new());
    let flags = [
        (Some(true), Some(true)),
        (Some(false), None),
        (None, Some(false)),
    ];
    for owner in owners() {
        for child in children() {
            for (controller, block_owner_deletion) in flags {
                for (forced, strict) in [(false, false), (false, true), (true, false), (true, true)]
                {
                    cases.push(json!([
                        owner,
                        child,
                        controller,
                        block_owner_deletion,
                        forced,
                        strict,
                        ["spec.template"],
                    ]));
                    let flags = OwnerFlags {
                        controller,
                        block_owner_deletion,
                    };
                    ours.push(build(&owner, &child, flags, forced, strict)?);
                }
            }
        }
    }
    let kopf = PythonKopf::obtain().await?;
    let kopf = kopf.evaluate(BUILD, &Value::from(cases.clone()).to_string())?;
    let kopf: Vec<Value> = serde_json::from_str(&kopf)?;
    assert_eq!(kopf.len(), ours.len());
    for ((case, kopf), ours) in cases.iter().zip(&kopf).zip(&ours) {
        assert_eq!(without_empty(kopf), without_empty(ours), "{case}");
    }
    Ok(())
}

fn build(
    owner: &Value,
    child: &Value,
    flags: OwnerFlags,
    forced: bool,
    strict: bool,
) -> Result<Value, serde_json::Error> {
    let existing = if forced {
        Existing::Replaced
    } else {
        Existing::Kept
    };
    let adoption = Adoption {
        flags: OwnerFlags::default(),
        existing,
        naming: if strict {
            Naming::Strict
        } else {
            Naming::Generated
        },
        nested: vec![FieldPath::from("spec.template")],
    };
    let mut adopted = child.clone();
    hierarchy::adopt(&mut adopted, owner, &adoption)?;
    let mut appended = child.clone();
    hierarchy::append_owner_reference(&mut appended, owner, flags)?;
    let mut removed = appended.clone();
    hierarchy::remove_owner_reference(&mut removed, owner)?;
    let mut labelled = child.clone();
    let labels = [("a", "1"), ("app", "y")];
    hierarchy::label(&mut labelled, &labels, existing, &["spec.template"])?;
    Ok(json!([
        object_reference(owner),
        owner_reference(owner, flags),
        adopted,
        appended,
        removed,
        labelled,
    ]))
}
