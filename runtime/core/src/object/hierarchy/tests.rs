//! Children of an owner, with present values kept or replaced.

use super::*;

fn owner() -> Value {
    json!({
        "apiVersion": "kopf.dev/v1", "kind": "Owner",
        "metadata": {"name": "parent", "namespace": "ns", "uid": "u1", "labels": {"app": "x"}},
    })
}

#[test]
fn adoption_sets_owner_name_namespace_and_labels() {
    let owner = owner();
    let mut child = json!({"kind": "Pod"});
    adopt(&mut child, ObjectView::new(&owner), &Adoption::default());
    assert_eq!(
        child,
        json!({"kind": "Pod", "metadata": {
            "ownerReferences": [{
                "controller": true, "blockOwnerDeletion": true,
                "apiVersion": "kopf.dev/v1", "kind": "Owner", "name": "parent", "uid": "u1",
            }],
            "generateName": "parent-", "namespace": "ns", "labels": {"app": "x"},
        }})
    );
}

#[test]
fn present_values_are_kept_unless_replaced() {
    let owner = owner();
    let original =
        json!({"metadata": {"name": "own", "namespace": "there", "labels": {"app": "y"}}});
    let mut kept = original.clone();
    adopt(&mut kept, ObjectView::new(&owner), &Adoption::default());
    assert_eq!(kept["metadata"]["name"], "own");
    assert_eq!(kept["metadata"]["namespace"], "there");
    assert_eq!(kept["metadata"]["labels"]["app"], "y");

    let mut replaced = original;
    let adoption = Adoption {
        existing: Existing::Replaced,
        naming: Naming::Strict,
        ..Adoption::default()
    };
    adopt(&mut replaced, ObjectView::new(&owner), &adoption);
    assert_eq!(replaced["metadata"]["name"], "parent");
    assert_eq!(replaced["metadata"]["namespace"], "ns");
    assert_eq!(replaced["metadata"]["labels"]["app"], "x");
}

#[test]
fn a_forced_generated_name_removes_the_old_name() {
    let mut object = json!({"metadata": {"name": "own"}});
    harmonize_naming(&mut object, "n", Existing::Replaced, Naming::Generated);
    assert_eq!(object, json!({"metadata": {"generateName": "n-"}}));
    harmonize_naming(&mut object, "n", Existing::Replaced, Naming::Strict);
    assert_eq!(object, json!({"metadata": {"name": "n"}}));
}

#[test]
fn nested_templates_are_labelled_where_they_exist() {
    let mut object = json!({"spec": {"template": {}}});
    let nested = ["spec.template", "spec.jobTemplate"].map(FieldPath::from);
    label(&mut object, &[("a", "1")], Existing::Kept, &nested);
    assert_eq!(
        object,
        json!({
            "spec": {"template": {"metadata": {"labels": {"a": "1"}}}},
            "metadata": {"labels": {"a": "1"}},
        })
    );
}

#[test]
fn owners_are_added_once_and_removed_by_uid() {
    let owner = owner();
    let view = ObjectView::new(&owner);
    let mut child = json!({"metadata": {"ownerReferences": [{"uid": "other"}]}});
    let flags = OwnerFlags {
        controller: None,
        block_owner_deletion: Some(false),
    };
    append_owner_reference(&mut child, view, flags);
    append_owner_reference(&mut child, view, OwnerFlags::default());
    let references = child["metadata"]["ownerReferences"].clone();
    assert_eq!(references.as_array().map(Vec::len), Some(2));
    assert_eq!(references[1].get("controller"), None);
    assert_eq!(references[1]["blockOwnerDeletion"], false);

    remove_owner_reference(&mut child, view);
    assert_eq!(
        child["metadata"]["ownerReferences"],
        json!([{"uid": "other"}])
    );
    let other = json!({"metadata": {"uid": "other"}});
    remove_owner_reference(&mut child, ObjectView::new(&other));
    assert_eq!(child, json!({"metadata": {}}));
}

#[test]
fn a_cluster_scoped_owner_removes_the_namespace_if_forced() {
    let mut object = json!({"metadata": {"namespace": "ns"}});
    adjust_namespace(&mut object, None, Existing::Kept);
    assert_eq!(object["metadata"]["namespace"], "ns");
    adjust_namespace(&mut object, None, Existing::Replaced);
    assert_eq!(object, json!({"metadata": {}}));
}

#[test]
fn an_owner_in_a_namespace_can_own_objects_there_only() {
    let here = json!({"metadata": {"name": "a", "namespace": "here"}});
    let there = json!({"metadata": {"name": "a", "namespace": "there"}});
    let cluster_scoped = json!({"metadata": {"name": "a"}});
    let can_own = |owner, child| can_own(ObjectView::new(owner), ObjectView::new(child));
    assert!(can_own(&here, &here));
    assert!(!can_own(&here, &there));
    assert!(!can_own(&here, &cluster_scoped));
    assert!(can_own(&cluster_scoped, &there));
    assert!(can_own(&cluster_scoped, &cluster_scoped));
}
