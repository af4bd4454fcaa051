//! Tests of the synthetic objects.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn version(spec: &Value) -> DefinitionVersion {
    let definition = json!({"spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Toy", "plural": "toys"},
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": {
            "type": "object",
            "required": ["spec"],
            "properties": {"metadata": {"type": "object"}, "spec": spec},
        }}}],
    }});
    crate::definition::versions(&definition).remove(0)
}

fn specs(spec: &Value, filling: Filling) -> Vec<Value> {
    objects(&version(spec))
        .into_iter()
        .filter(|synthetic| synthetic.filling == filling)
        .map(|synthetic| {
            assert_eq!(synthetic.violation, None, "{:#}", synthetic.object);
            synthetic.object["spec"].clone()
        })
        .collect()
}

#[test]
fn an_object_has_api_version_kind_and_metadata() {
    let object = &objects(&version(&json!({"type": "object"})))[0].object;
    assert_eq!(object["apiVersion"], "example.com/v1");
    assert_eq!(object["kind"], "Toy");
    assert_eq!(object["metadata"]["namespace"], "default");
}

#[test]
fn maximal_objects_have_every_enum_value_and_both_forms_of_int_or_string() {
    let spec = json!({"type": "object", "properties": {
        "mode": {"type": "string", "enum": ["", "a", "b", "c", "d", "e"]},
        "port": {"x-kubernetes-int-or-string": true},
    }});
    let made = specs(&spec, Filling::Maximal);
    let modes: BTreeSet<_> = made.iter().map(|spec| spec["mode"].to_string()).collect();
    assert_eq!(modes.len(), 6, "{modes:?}");
    assert!(made.iter().any(|spec| spec["port"].is_string()));
    assert!(made.iter().any(|spec| spec["port"].is_i64()));
}

#[test]
fn maximal_objects_have_unknown_members_only_where_the_schema_preserves_them() {
    let spec = json!({"type": "object", "properties": {
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"known": {"type": "string"}}},
        "closed": {"type": "object", "properties": {"known": {"type": "string"}}},
    }});
    let made = &specs(&spec, Filling::Maximal)[0];
    assert_eq!(made["open"].as_object().map(Map::len), Some(3));
    assert_eq!(made["closed"].as_object().map(Map::len), Some(1));
}

#[test]
fn minimal_objects_have_required_members_only() {
    let spec = json!({
        "type": "object",
        "required": ["list", "map"],
        "properties": {
            "list": {"type": "array", "minItems": 1, "items": {"type": "integer"}},
            "map": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
            "more": {"type": "string"},
        },
    });
    assert_eq!(
        specs(&spec, Filling::Minimal)[0],
        json!({"list": [1], "map": {"least-0": "v0"}})
    );
}

#[test]
fn hollow_objects_have_every_member_as_empty_as_allowed() {
    let spec = json!({"type": "object", "properties": {
        "text": {"type": "string"},
        "name": {"type": "string", "minLength": 1},
        "count": {"type": "integer"},
        "list": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "inner": {"type": "object", "properties": {"flag": {"type": "boolean"}}},
    }});
    assert_eq!(
        specs(&spec, Filling::Hollow)[0],
        json!({"text": "", "name": "v0", "count": 0, "list": [], "map": {}, "inner": {"flag": false}})
    );
}

#[test]
fn null_objects_have_null_exactly_where_it_is_allowed() {
    let spec = json!({"type": "object", "required": ["must"], "properties": {
        "may": {"type": "string", "nullable": true},
        "must": {"type": "string", "nullable": true},
        "not": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string", "nullable": true}},
    }});
    assert_eq!(
        specs(&spec, Filling::Null)[0],
        json!({"may": null, "must": null, "not": "v0", "list": [null, "v1"]})
    );
    assert!(specs(&json!({"type": "object"}), Filling::Null).is_empty());
}

#[test]
fn each_object_has_exactly_one_member_of_a_required_union_and_together_they_have_all() {
    let spec = json!({
        "type": "object",
        "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}, "c": {"type": "string"},
            "free": {"type": "string"},
        },
        "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}],
    });
    let made = specs(&spec, Filling::Maximal);
    let members: BTreeSet<Vec<&String>> = made
        .iter()
        .map(|spec| spec.as_object().expect("an object").keys().collect())
        .collect();
    assert_eq!(members.len(), 3, "{members:?}");
    assert!(members.iter().all(|keys| keys.len() == 2), "{members:?}");
}

#[test]
fn discriminated_branches_and_forbidden_members_are_respected() {
    let spec = json!({
        "type": "object",
        "required": ["kind"],
        "properties": {
            "kind": {"type": "string"},
            "disk": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "net": {"type": "object"},
        },
        "oneOf": [
            {"properties": {"kind": {"enum": ["Disk"]}}, "required": ["disk"]},
            {"properties": {"kind": {"enum": ["Net"]}}, "not": {"required": ["disk"]}},
        ],
    });
    let made = specs(&spec, Filling::Maximal);
    assert!(
        made.iter()
            .any(|spec| spec["kind"] == "Disk" && spec["disk"].is_object())
    );
    assert!(
        made.iter()
            .any(|spec| spec["kind"] == "Net" && spec.get("disk").is_none())
    );
}

#[test]
fn items_of_a_map_list_have_different_keys() {
    let spec = json!({"type": "object", "properties": {"ports": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
    }}});
    let made = &specs(&spec, Filling::Maximal)[0];
    assert_eq!(made["ports"], json!([{"name": "v0"}, {"name": "v1"}]));
}

#[test]
fn an_undeclared_required_member_is_made_only_where_the_schema_preserves_unknown_ones() {
    let inner = |open: bool| {
        json!({"type": "object", "properties": {"inner": {
            "type": "object",
            "required": ["ghost"],
            "properties": {"real": {"type": "string"}},
            "x-kubernetes-preserve-unknown-fields": open,
        }}})
    };
    assert_eq!(
        specs(&inner(true), Filling::Maximal)[0]["inner"]["ghost"],
        "undeclared"
    );
    assert_eq!(specs(&inner(false), Filling::Maximal)[0], json!({}));
}

#[test]
fn embedded_resources_have_kind_and_metadata() {
    let spec = json!({"type": "object", "properties": {"template": {
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }}});
    let template = &specs(&spec, Filling::Maximal)[0]["template"];
    assert_eq!(template["kind"], "Embedded");
    assert!(template["unknownScalar"].is_i64());
}

#[test]
fn an_unsatisfiable_schema_is_reported_as_a_violation() {
    let made = objects(&version(
        &json!({"type": "string", "pattern": "^a$", "minLength": 2}),
    ));
    assert!(made.iter().all(|synthetic| synthetic.violation.is_some()));
}
