//! The shapes: a name, and how to recognise a definition that has it.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::schemas::{SchemaPlace, SchemaStep, ShapedDefinition, names, strings};

/// A name, and whether a definition has the shape.
pub(crate) type Shape = (&'static str, fn(&ShapedDefinition) -> bool);

/// The shapes of definitions that projects have, grouped as people talk about them.
pub(crate) const SHAPES: &[Shape] = &[
    // Versions.
    ("more than one version", |it| it.versions().count() > 1),
    ("more than two versions", |it| it.versions().count() > 2),
    ("six versions", |it| it.versions().count() >= 6),
    ("versions whose schemas differ", |it| {
        it.versions().count() > 1 && distinct_schemas(it) > 1
    }),
    ("versions whose schemas are equal", |it| {
        it.versions().count() > 1 && distinct_schemas(it) == 1
    }),
    ("more than one served version", |it| served(it) > 1),
    ("an unserved version beside served ones", |it| {
        served(it) > 0 && served(it) < it.versions().count()
    }),
    ("no served version", |it| {
        served(it) == 0 && it.versions().count() > 0
    }),
    ("a deprecated version", |it| {
        it.has_version(|version| version["deprecated"] == true)
    }),
    ("a deprecated version with a warning", |it| {
        it.has_version(|version| version["deprecationWarning"].is_string())
    }),
    ("a conversion webhook", |it| {
        it.spec()["conversion"]["strategy"] == "Webhook"
    }),
    // The definition around the schema.
    ("a status subresource", |it| {
        it.has_version(has_status_subresource)
    }),
    ("a status property without the subresource", |it| {
        it.has_version(|version| has_status(version) && !has_status_subresource(version))
    }),
    ("a status subresource without the property", |it| {
        it.has_version(|version| !has_status(version) && has_status_subresource(version))
    }),
    ("a scale subresource", |it| {
        it.has_version(|version| version["subresources"]["scale"].is_object())
    }),
    ("cluster-scoped", |it| it.spec()["scope"] == "Cluster"),
    ("short names", |it| {
        it.spec()["names"]["shortNames"].is_array()
    }),
    ("categories", |it| {
        it.spec()["names"]["categories"].is_array()
    }),
    ("selectable fields", |it| {
        it.has_version(|version| version["selectableFields"].is_array())
    }),
    ("printer columns", |it| has_column(it, |_| true)),
    ("a printer column with a filter", |it| {
        has_column(it, |path| path.contains("[?("))
    }),
    ("a printer column with an index", |it| {
        has_column(it, |path| path.contains("[0]"))
    }),
    ("a kind with an acronym", |it| {
        let upper = |letter: char| letter.is_ascii_uppercase();
        kind(it)
            .as_bytes()
            .windows(3)
            .any(|run| run.iter().all(|byte| upper(char::from(*byte))))
    }),
    ("a kind that is not in upper camel case", |it| {
        kind(it).starts_with(|letter: char| letter.is_ascii_lowercase())
    }),
    ("a plural that is not the kind with s or es", |it| {
        let (kind, plural) = (kind(it).to_lowercase(), text(&it.spec()["names"]["plural"]));
        !plural.is_empty() && plural != format!("{kind}s") && plural != format!("{kind}es")
    }),
    ("a singular that is not the kind", |it| {
        let singular = text(&it.spec()["names"]["singular"]);
        !singular.is_empty() && singular != kind(it).to_lowercase()
    }),
    ("the annotation of an approved group", |it| {
        it.json["metadata"]["annotations"]["api-approved.kubernetes.io"].is_string()
            && text(&it.spec()["group"]).ends_with(".k8s.io")
    }),
    ("anchors and aliases", |it| {
        it.text.contains(": &") && it.text.contains(": *")
    }),
    ("merge keys", |it| it.text.contains("<<: *")),
    ("merge keys with their tag", |it| {
        it.text.contains("!!merge <<: *")
    }),
    // The top level.
    ("no spec, but other data", |it| {
        it.has_top_level(|names, _| {
            !names.contains(&"spec") && names.iter().any(|name| *name != "status")
        })
    }),
    ("a status only", |it| {
        it.has_top_level(|names, _| names == ["status"])
    }),
    ("no fields", |it| {
        it.roots().any(|root| root.get("type").is_some())
            && it.has_top_level(|names, _| names.is_empty())
    }),
    ("a spec and further fields", |it| {
        it.has_top_level(|names, _| {
            let further = |name: &&&str| !["spec", "status"].contains(*name);
            names.contains(&"spec") && names.iter().any(|name| further(&name))
        })
    }),
    ("a required spec", |it| {
        it.has_top_level(|_, required| required.contains(&"spec"))
    }),
    ("an optional spec", |it| {
        it.has_top_level(|names, required| names.contains(&"spec") && !required.contains(&"spec"))
    }),
    ("a spec that is not an object", |it| {
        it.has(|at| at.path == ["spec"] && at.name().is_some() && !at.is("object"))
    }),
    ("restricted metadata", |it| {
        it.has(|at| at.path == ["metadata", "name"] && at.get("pattern").is_some())
            && it.has(|at| at.path == ["metadata", "name"] && at.get("maxLength").is_some())
    }),
    // Unknown fields.
    ("unknown fields preserved in a free object", |it| {
        it.has(|at| at.keeps_unknown() && at.is("object") && at.get("properties").is_none())
    }),
    ("unknown fields preserved at the root", |it| {
        it.has(|at| at.keeps_unknown() && at.step == SchemaStep::Root)
    }),
    ("unknown fields preserved beside properties", |it| {
        it.has(|at| at.keeps_unknown() && !at.names().is_empty())
    }),
    (
        "unknown fields preserved beside an empty list of properties",
        |it| {
            it.has(|at| {
                at.keeps_unknown() && at.get("properties").is_some() && at.names().is_empty()
            })
        },
    ),
    ("unknown fields preserved without a type", |it| {
        it.has(|at| at.keeps_unknown() && at.get("type").is_none())
    }),
    ("unknown fields preserved on a string", |it| {
        it.has(|at| at.keeps_unknown() && at.is("string"))
    }),
    ("unknown fields preserved on a boolean", |it| {
        it.has(|at| at.keeps_unknown() && at.is("boolean"))
    }),
    ("unknown fields preserved on an array", |it| {
        it.has(|at| at.keeps_unknown() && at.is("array"))
    }),
    ("an embedded resource with unknown fields", |it| {
        it.has(|at| at.flag("x-kubernetes-embedded-resource") && at.keeps_unknown())
    }),
    ("an embedded resource with properties", |it| {
        it.has(|at| at.flag("x-kubernetes-embedded-resource") && !at.names().is_empty())
    }),
    ("embedded resources in an array", |it| {
        it.has(|at| at.flag("x-kubernetes-embedded-resource") && at.step == SchemaStep::Item)
    }),
    // Integers or strings.
    ("an int-or-string", |it| {
        it.has(|at| at.is_int_or_string() && at.get("anyOf").is_none() && at.get("type").is_none())
    }),
    ("an int-or-string with anyOf", |it| {
        it.has(|at| at.is_int_or_string() && at.get("anyOf").is_some())
    }),
    ("an int-or-string with anyOf inside of allOf", |it| {
        it.has(|at| at.is_int_or_string() && at.get("allOf").is_some())
    }),
    ("an int-or-string with a type", |it| {
        it.has(|at| at.is_int_or_string() && at.get("type").is_some())
    }),
    ("an int-or-string with a pattern", |it| {
        it.has(|at| at.is_int_or_string() && at.get("pattern").is_some())
    }),
    ("an int-or-string with a default", |it| {
        it.has(|at| at.is_int_or_string() && at.get("default").is_some())
    }),
    // Rules, lists and maps of server-side apply.
    ("rules in CEL", |it| has_rule(it, |_| true)),
    ("rules in CEL about the former value", |it| {
        has_rule(it, |rule| text(&rule["rule"]).contains("oldSelf"))
    }),
    ("rules in CEL with an expression as message", |it| {
        has_rule(it, |rule| rule["messageExpression"].is_string())
    }),
    ("a list that is a map", |it| has_list_type(it, "map")),
    ("a list that is a set", |it| has_list_type(it, "set")),
    ("a list that is atomic", |it| has_list_type(it, "atomic")),
    ("a list that is a map with several keys", |it| {
        it.has(|at| strings(at.get("x-kubernetes-list-map-keys")).len() > 1)
    }),
    ("a map that is atomic", |it| {
        it.has(|at| at.text("x-kubernetes-map-type") == Some("atomic"))
    }),
    ("a map that is granular", |it| {
        it.has(|at| at.text("x-kubernetes-map-type") == Some("granular"))
    }),
    // Enums.
    ("an enum", |it| it.has(|at| at.values().len() > 1)),
    ("an enum with the empty string", |it| {
        it.has(|at| at.has_value(str::is_empty))
    }),
    ("an enum with a value that is no identifier", |it| {
        it.has(|at| at.has_value(|value| value.contains([' ', '-', '/', '.'])))
    }),
    ("an enum with a value that starts with a digit", |it| {
        it.has(|at| at.has_value(|value| value.starts_with(|it: char| it.is_ascii_digit())))
    }),
    ("an enum with a value of symbols only", |it| {
        it.has(|at| {
            at.has_value(|value| !value.is_empty() && !value.contains(char::is_alphanumeric))
        })
    }),
    ("an enum of integers", |it| {
        it.has(|at| at.is("integer") && !at.values().is_empty())
    }),
    ("an enum of numbers", |it| {
        it.has(|at| at.is("number") && !at.values().is_empty())
    }),
    ("an enum of booleans", |it| {
        it.has(|at| at.is("boolean") && !at.values().is_empty())
    }),
    ("an enum with null", |it| {
        it.has(|at| at.values().contains(&Value::Null))
    }),
    ("an enum without a type", |it| {
        it.has(|at| at.get("type").is_none() && !at.values().is_empty())
    }),
    ("an enum of array items", |it| {
        it.has(|at| at.step == SchemaStep::Item && !at.values().is_empty())
    }),
    ("an enum of map values", |it| {
        it.has(|at| at.step == SchemaStep::MapValue && !at.values().is_empty())
    }),
    ("an enum whose values give equal names", |it| {
        it.has(|at| {
            let values = at.values().iter().filter_map(Value::as_str);
            have_equal(values.map(str::to_lowercase))
        })
    }),
    ("an enum with one value", |it| {
        it.has(|at| at.values().len() == 1)
    }),
    ("an enum with many values", |it| {
        it.has(|at| at.values().len() >= 73)
    }),
    ("an enum with a default", |it| {
        it.has(|at| !at.values().is_empty() && at.get("default").is_some())
    }),
    // Restrictions.
    ("oneOf", |it| it.has(|at| !at.branches("oneOf").is_empty())),
    ("anyOf", |it| it.has(|at| !at.branches("anyOf").is_empty())),
    ("allOf", |it| it.has(|at| !at.branches("allOf").is_empty())),
    ("not", |it| it.has(|at| at.get("not").is_some())),
    ("oneOf of required lists", |it| {
        it.has(|at| only_required(at.branches("oneOf")))
    }),
    ("anyOf of required lists", |it| {
        it.has(|at| only_required(at.branches("anyOf")))
    }),
    ("oneOf with a branch for none", |it| {
        it.has(|at| at.branches("oneOf").iter().any(|it| it["not"].is_object()))
    }),
    ("oneOf by the value of a property", |it| {
        it.has(|at| {
            let branches = at.branches("oneOf");
            branches.iter().any(|it| it["properties"].is_object())
        })
    }),
    ("oneOf inside of allOf", |it| {
        it.has(|at| at.branches("allOf").iter().any(|it| it["oneOf"].is_array()))
    }),
    ("a pattern", |it| it.has(|at| at.get("pattern").is_some())),
    ("bounds of a string", |it| {
        it.has(|at| at.get("minLength").is_some() && at.get("maxLength").is_some())
    }),
    ("bounds of an array", |it| {
        it.has(|at| at.get("minItems").is_some() && at.get("maxItems").is_some())
    }),
    ("bounds of a map", |it| {
        it.has(|at| at.get("minProperties").is_some() && at.get("maxProperties").is_some())
    }),
    ("bounds of a number", |it| {
        it.has(|at| at.get("minimum").is_some() && at.get("maximum").is_some())
    }),
    ("exclusive bounds", |it| {
        it.has(|at| at.flag("exclusiveMinimum")) && it.has(|at| at.flag("exclusiveMaximum"))
    }),
    ("multipleOf", |it| {
        it.has(|at| at.get("multipleOf").is_some())
    }),
    ("a required property that is not declared", |it| {
        it.has(|at| {
            let names = at.names();
            let required = strings(at.get("required"));
            required.iter().any(|name| !names.contains(name))
        })
    }),
    // null and defaults.
    ("nullable", |it| it.has(|at| at.flag("nullable"))),
    ("required and nullable", |it| {
        it.has(|at| at.flag("nullable") && at.is_required())
    }),
    ("an array with nullable items", |it| {
        it.has(|at| at.flag("nullable") && at.step == SchemaStep::Item)
    }),
    ("a map with nullable values", |it| {
        it.has(|at| at.flag("nullable") && at.step == SchemaStep::MapValue)
    }),
    ("nullable with a default", |it| {
        it.has(|at| at.flag("nullable") && at.get("default").is_some())
    }),
    ("a nullable enum", |it| {
        it.has(|at| at.flag("nullable") && !at.values().is_empty())
    }),
    ("a default of a string", |it| {
        has_default(it, Value::is_string)
    }),
    ("a default of a number", |it| has_default(it, Value::is_f64)),
    ("a default of an integer", |it| {
        has_default(it, Value::is_i64)
    }),
    ("a default of a boolean", |it| {
        has_default(it, Value::is_boolean)
    }),
    ("a default of an object", |it| {
        has_default(it, |value| {
            value.as_object().is_some_and(|it| !it.is_empty())
        })
    }),
    ("a default of an empty object", |it| {
        has_default(it, |value| {
            value.as_object().is_some_and(serde_json::Map::is_empty)
        })
    }),
    ("a default of an array", |it| {
        has_default(it, |value| {
            value.as_array().is_some_and(|it| !it.is_empty())
        })
    }),
    ("a default on a required property", |it| {
        it.has(|at| at.is_required() && at.get("default").is_some())
    }),
    // Maps, objects and arrays.
    ("a map of strings", |it| {
        has_map_of(it, |value| value.is("string"))
    }),
    ("a map of integers", |it| {
        has_map_of(it, |value| value.is("integer"))
    }),
    ("a map of int-or-strings", |it| {
        has_map_of(it, |value| value.is_int_or_string())
    }),
    ("a map of objects", |it| {
        has_map_of(it, |value| !value.names().is_empty())
    }),
    ("a map of arrays", |it| {
        has_map_of(it, |value| value.is("array"))
    }),
    ("a map of maps", |it| {
        has_map_of(it, |value| value.map_values().is_some())
    }),
    ("a map of free objects", |it| {
        has_map_of(it, |value| value.is("object") && value.keeps_unknown())
    }),
    ("a map of anything", |it| {
        has_map_of(it, |value| {
            value.keeps_unknown() && value.get("type").is_none()
        })
    }),
    ("a map of maps of arrays of objects", |it| {
        has_map_of(it, |value| {
            let arrays = value.map_values();
            let objects = arrays.and_then(|arrays| arrays.items());
            objects.is_some_and(|objects| !objects.names().is_empty())
        })
    }),
    ("an empty object", |it| {
        it.has(|at| {
            let only = |key: &String| ["type", "description"].contains(&key.as_str());
            at.is("object") && at.depth > 1 && at.schema.keys().all(only)
        })
    }),
    ("an array of arrays", |it| {
        has_array_of(it, |item| item.is("array"))
    }),
    ("an array of anything", |it| {
        has_array_of(it, |item| {
            item.keeps_unknown() && item.get("type").is_none()
        })
    }),
    ("an array of maps", |it| {
        has_array_of(it, |item| item.map_values().is_some())
    }),
    ("an array of small integers", |it| {
        has_array_of(it, |item| item.text("format") == Some("int32"))
    }),
    // Scalars.
    ("an integer without a format", |it| {
        it.has(|at| at.is("integer") && at.get("format").is_none())
    }),
    ("an integer that is not negative", |it| {
        it.has(|at| at.is("integer") && at.get("minimum") == Some(&0.into()))
    }),
    ("all formats of integers", |it| {
        ["int32", "int64", "uint8", "uint16", "uint32", "uint"]
            .iter()
            .all(|format| it.has(|at| at.is("integer") && at.text("format") == Some(format)))
    }),
    ("a format of an integer that does not exist", |it| {
        it.has(|at| at.is("integer") && at.text("format") == Some("kilometres"))
    }),
    ("all formats of strings", |it| {
        ["date-time", "byte", "cidr", "duration", "uuid"]
            .iter()
            .all(|format| it.has(|at| at.is("string") && at.text("format") == Some(format)))
    }),
    ("formats of strings that do not exist", |it| {
        ["string", "int64"]
            .iter()
            .all(|format| it.has(|at| at.is("string") && at.text("format") == Some(format)))
    }),
    ("a number", |it| it.has(|at| at.is("number"))),
    // Sizes.
    ("unrolled recursion", |it| it.has(|at| at.recurs())),
    ("a depth of more than 15", |it| it.has(|at| at.depth > 15)),
    ("more than 1000 properties", |it| {
        it.places().iter().filter(|at| at.name().is_some()).count() > 1000
    }),
    ("the spec of pods", |it| {
        it.has(|at| {
            let names = at.names();
            [
                "containers",
                "initContainers",
                "volumes",
                "nodeSelector",
                "tolerations",
                "affinity",
            ]
            .iter()
            .all(|name| names.contains(name))
        })
    }),
    ("a name by path of more than 100 letters", |it| {
        it.has(|at| {
            let length: usize = at.path.iter().map(|name| name.len()).sum();
            !at.names().is_empty() && kind(it).len() + length > 100
        })
    }),
    ("a property with a name of 50 letters", |it| {
        has_name(it, |name| name.len() >= 50)
    }),
    // Names of properties.
    ("properties that are keywords", |it| {
        [
            "type", "ref", "match", "enum", "if", "for", "static", "return", "override",
            "continue", "abstract",
        ]
        .iter()
        .all(|keyword| has_name(it, |name| name == *keyword))
    }),
    ("a property that cannot be a raw identifier", |it| {
        has_name(it, |name| name == "self")
    }),
    ("properties that are equal in snake case", |it| {
        it.has(|at| {
            let names = at.names();
            let plain = |name: &str| name.replace('_', "").to_lowercase();
            let has_equal = |name: &str| {
                let mut others = names.iter().filter(|other| **other != name);
                others.any(|other| plain(other) == plain(name))
            };
            names
                .iter()
                .any(|name| name.contains('_') && has_equal(name))
        })
    }),
    ("a property in kebab case", |it| {
        has_name(it, |name| name.contains('-'))
    }),
    ("a property with a dot", |it| {
        has_name(it, |name| name.contains('.'))
    }),
    ("a property with a slash", |it| {
        has_name(it, |name| name.contains('/'))
    }),
    ("a property that starts with a dollar", |it| {
        has_name(it, |name| name.starts_with('$'))
    }),
    ("a property that starts with a digit", |it| {
        has_name(it, |name| {
            name.starts_with(|letter: char| letter.is_ascii_digit())
        })
    }),
    ("a property in snake case", |it| {
        has_name(it, |name| name.contains('_') && name.len() > 2)
    }),
    ("a property in upper case", |it| {
        has_name(it, |name| {
            name.starts_with(|letter: char| letter.is_ascii_uppercase())
        })
    }),
    ("properties called spec and status inside of spec", |it| {
        it.has(|at| at.path == ["spec", "spec"]) && it.has(|at| at.path == ["spec", "status"])
    }),
    // Conditions.
    ("conditions as in Kubernetes", |it| {
        has_conditions(it, |at| {
            strings(at.get("required")).len() == 5 && at.names().len() == 6
        })
    }),
    ("conditions with further members", |it| {
        has_conditions(it, |at| at.names().contains(&"severity"))
    }),
    ("conditions with optional members", |it| {
        has_conditions(it, |at| strings(at.get("required")).len() < 5)
    }),
    ("conditions whose time is any string", |it| {
        has_conditions(it, |at| {
            let time = at
                .get("properties")
                .map(|names| &names["lastTransitionTime"]);
            time.is_some_and(|time| time["format"].is_null())
        })
    }),
    ("a label selector", |it| {
        it.has(|at| at.names() == ["matchExpressions", "matchLabels"])
    }),
];

/// The shapes of definitions of `apiextensions.k8s.io/v1beta1`.
pub(crate) const OLD_SHAPES: &[Shape] = &[
    ("one version beside the list of versions", |it| {
        it.spec()["version"].is_string() && it.spec()["versions"].is_null()
    }),
    ("one schema for several versions", |it| {
        it.versions().count() > 1 && it.spec()["validation"].is_object()
    }),
    ("a schema per version", |it| it.roots().count() > 1),
    ("no schema", |it| {
        it.spec()["validation"].is_null() && it.roots().count() == 0
    }),
    ("unknown fields are pruned", |it| {
        it.spec()["preserveUnknownFields"] == false
    }),
    ("unknown fields are preserved by default", |it| {
        it.spec()["preserveUnknownFields"].is_null()
    }),
    ("columns with a path in the old spelling", |it| {
        it.text.contains("JSONPath:")
    }),
    ("subresources for all versions", |it| {
        it.spec()["subresources"]["scale"].is_object()
    }),
    ("a conversion webhook", |it| {
        it.spec()["conversion"]["webhookClientConfig"].is_object()
    }),
    ("no scope", |it| it.spec()["scope"].is_null()),
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn kind(definition: &ShapedDefinition) -> &str {
    text(&definition.spec()["names"]["kind"])
}

fn served(definition: &ShapedDefinition) -> usize {
    let served = |version: &&Value| version["served"] == true;
    definition.versions().filter(served).count()
}

fn distinct_schemas(definition: &ShapedDefinition) -> usize {
    let schemas = definition.versions().map(|it| it["schema"].to_string());
    schemas.collect::<BTreeSet<_>>().len()
}

fn has_status_subresource(version: &Value) -> bool {
    version["subresources"]["status"].is_object()
}

fn has_status(version: &Value) -> bool {
    let schema = version["schema"]["openAPIV3Schema"].as_object();
    schema.is_some_and(|schema| names(schema).contains(&"status"))
}

fn has_column(definition: &ShapedDefinition, test: impl Fn(&str) -> bool) -> bool {
    definition.has_version(|version| {
        let columns = version["additionalPrinterColumns"].as_array();
        let mut paths = columns
            .into_iter()
            .flatten()
            .map(|it| text(&it["jsonPath"]));
        paths.any(&test)
    })
}

fn has_rule(definition: &ShapedDefinition, test: impl Fn(&Value) -> bool) -> bool {
    definition.has(|at| {
        let rules = at.get("x-kubernetes-validations").and_then(Value::as_array);
        rules.into_iter().flatten().any(&test)
    })
}

fn has_list_type(definition: &ShapedDefinition, kind: &str) -> bool {
    definition.has(|at| at.text("x-kubernetes-list-type") == Some(kind))
}

fn has_default(definition: &ShapedDefinition, test: impl Fn(&Value) -> bool) -> bool {
    definition.has(|at| at.get("default").is_some_and(&test))
}

fn has_map_of(definition: &ShapedDefinition, test: impl Fn(&SchemaPlace<'_>) -> bool) -> bool {
    definition.has(|at| at.map_values().is_some_and(|value| test(&value)))
}

fn has_array_of(definition: &ShapedDefinition, test: impl Fn(&SchemaPlace<'_>) -> bool) -> bool {
    definition.has(|at| at.items().is_some_and(|item| test(&item)))
}

fn has_name(definition: &ShapedDefinition, test: impl Fn(&str) -> bool) -> bool {
    definition.has(|at| at.name().is_some_and(&test))
}

fn has_conditions(definition: &ShapedDefinition, test: impl Fn(&SchemaPlace<'_>) -> bool) -> bool {
    let standard = ["lastTransitionTime", "message", "reason", "status", "type"];
    definition.has(|at| {
        at.name() == Some("conditions")
            && at.items().is_some_and(|item| {
                let names = item.names();
                standard.iter().all(|name| names.contains(name)) && test(&item)
            })
    })
}

fn only_required(branches: &[Value]) -> bool {
    let only = |branch: &Value| {
        let members = branch.as_object();
        members.is_some_and(|it| it.len() == 1 && it.contains_key("required"))
    };
    branches.len() > 1 && branches.iter().all(only)
}

fn have_equal(names: impl Iterator<Item = String>) -> bool {
    let mut known = BTreeSet::new();
    let mut names = names;
    names.any(|name| !known.insert(name))
}
