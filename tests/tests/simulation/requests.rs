//! Short ways to write requests.

use kopf_simulation::server::{
    DeletePreconditions, Endpoint, KindId, ListOptions, SimulatedPatch, Verb,
};
use serde_json::{Value, json};

use super::pair::Pair;

/// An object of a kind, with the rest of its fields.
pub(crate) fn object(pair: &Pair, kind: KindId, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": pair.api_version(kind), "kind": pair.kind_name(kind),
        "metadata": {"name": name},
    });
    let Value::Object(rest) = rest else {
        return object;
    };
    for (field, value) in rest {
        match (field.as_str(), value) {
            ("metadata", Value::Object(metadata)) => {
                for (field, value) in metadata {
                    object["metadata"][field] = value;
                }
            }
            (_, value) => object[field] = value,
        }
    }
    object
}

pub(crate) fn get(name: &str) -> Verb {
    Verb::Get { name: name.into() }
}

pub(crate) fn list() -> Verb {
    Verb::List(ListOptions::default())
}

pub(crate) fn list_by_labels(selector: &str) -> Verb {
    Verb::List(ListOptions {
        labels: Some(selector.to_owned()),
        ..ListOptions::default()
    })
}

pub(crate) fn list_by_fields(selector: &str) -> Verb {
    Verb::List(ListOptions {
        fields: Some(selector.to_owned()),
        ..ListOptions::default()
    })
}

pub(crate) fn page(limit: u32, token: Option<&str>) -> Verb {
    Verb::List(ListOptions {
        limit: Some(limit),
        continue_token: token.map(str::to_owned),
        ..ListOptions::default()
    })
}

pub(crate) fn put(name: &str, body: Value) -> Verb {
    Verb::Update {
        name: name.into(),
        endpoint: Endpoint::Object,
        body,
    }
}

pub(crate) fn put_status(name: &str, body: Value) -> Verb {
    Verb::Update {
        name: name.into(),
        endpoint: Endpoint::Status,
        body,
    }
}

pub(crate) fn merge(name: &str, patch: Value) -> Verb {
    Verb::Patch {
        name: name.into(),
        endpoint: Endpoint::Object,
        patch: SimulatedPatch::Merge(patch),
    }
}

pub(crate) fn merge_status(name: &str, patch: Value) -> Verb {
    Verb::Patch {
        name: name.into(),
        endpoint: Endpoint::Status,
        patch: SimulatedPatch::Merge(patch),
    }
}

pub(crate) fn json_patch(name: &str, patch: Value) -> Verb {
    Verb::Patch {
        name: name.into(),
        endpoint: Endpoint::Object,
        patch: SimulatedPatch::Json(patch),
    }
}

pub(crate) fn json_patch_status(name: &str, patch: Value) -> Verb {
    Verb::Patch {
        name: name.into(),
        endpoint: Endpoint::Status,
        patch: SimulatedPatch::Json(patch),
    }
}

pub(crate) fn delete(name: &str) -> Verb {
    Verb::Delete {
        name: name.into(),
        preconditions: DeletePreconditions::default(),
    }
}

pub(crate) fn delete_if(name: &str, uid: Option<&str>, version: Option<&str>) -> Verb {
    Verb::Delete {
        name: name.into(),
        preconditions: DeletePreconditions {
            uid: uid.map(str::to_owned),
            resource_version: version.map(str::to_owned),
        },
    }
}
