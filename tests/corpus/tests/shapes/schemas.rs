//! Definitions as plain JSON, and the nodes of their schemas.

use serde_json::{Map, Value};

/// A definition of ours.
pub(crate) struct ShapedDefinition {
    /// The name of its file.
    pub(crate) stem: String,
    /// The text of its file.
    pub(crate) text: String,
    /// The definition.
    pub(crate) json: Value,
}

/// A node of a schema, outside of `oneOf` and the like.
#[derive(Clone)]
pub(crate) struct SchemaPlace<'a> {
    /// The schema there.
    pub(crate) schema: &'a Map<String, Value>,
    /// Its place in the schema around it.
    pub(crate) step: SchemaStep<'a>,
    /// The names of properties from the root to here.
    pub(crate) path: Vec<&'a str>,
    /// The number of schemas around it.
    pub(crate) depth: usize,
}

/// The place of a schema in the one around it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaStep<'a> {
    Root,
    Property { name: &'a str, required: bool },
    Item,
    MapValue,
}

// === impl ShapedDefinition ===

impl ShapedDefinition {
    pub(crate) fn spec(&self) -> &Value {
        &self.json["spec"]
    }

    pub(crate) fn versions(&self) -> impl Iterator<Item = &Value> {
        self.spec()["versions"].as_array().into_iter().flatten()
    }

    /// The schemas of whole objects.
    pub(crate) fn roots(&self) -> impl Iterator<Item = &Map<String, Value>> {
        self.versions()
            .filter_map(|version| version["schema"]["openAPIV3Schema"].as_object())
    }

    pub(crate) fn has_version(&self, test: impl FnMut(&Value) -> bool) -> bool {
        self.versions().any(test)
    }

    /// Whether the top level of a schema passes, given the names there and those required.
    pub(crate) fn has_top_level(&self, test: impl Fn(&[&str], &[&str]) -> bool) -> bool {
        self.roots().any(|root| {
            let implied = ["apiVersion", "kind", "metadata"];
            let names: Vec<&str> = names(root)
                .into_iter()
                .filter(|name| !implied.contains(name))
                .collect();
            test(&names, &strings(root.get("required")))
        })
    }

    /// Whether a node of a schema passes.
    pub(crate) fn has(&self, test: impl Fn(&SchemaPlace<'_>) -> bool) -> bool {
        self.places().iter().any(test)
    }

    pub(crate) fn places(&self) -> Vec<SchemaPlace<'_>> {
        let mut places = Vec::new();
        for schema in self.roots() {
            let root = SchemaPlace {
                schema,
                step: SchemaStep::Root,
                path: Vec::new(),
                depth: 1,
            };
            collect(root, &mut places);
        }
        places
    }
}

fn collect<'a>(place: SchemaPlace<'a>, places: &mut Vec<SchemaPlace<'a>>) {
    let SchemaPlace { schema, depth, .. } = place;
    let required = strings(schema.get("required"));
    let mut below = |schema: Option<&'a Value>, step: SchemaStep<'a>, path: Vec<&'a str>| {
        if let Some(schema) = schema.and_then(Value::as_object) {
            let depth = depth + 1;
            collect(
                SchemaPlace {
                    schema,
                    step,
                    path,
                    depth,
                },
                places,
            );
        }
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        let mut path = place.path.clone();
        path.push(name);
        let required = required.contains(&name.as_str());
        below(
            Some(property),
            SchemaStep::Property { name, required },
            path,
        );
    }
    below(schema.get("items"), SchemaStep::Item, place.path.clone());
    below(
        schema.get("additionalProperties"),
        SchemaStep::MapValue,
        place.path.clone(),
    );
    places.push(place);
}

/// The strings of a list.
pub(crate) fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The names of the properties of a schema.
pub(crate) fn names(schema: &Map<String, Value>) -> Vec<&str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties
        .into_iter()
        .flat_map(Map::keys)
        .map(String::as_str)
        .collect()
}

// === impl SchemaPlace ===

impl<'a> SchemaPlace<'a> {
    pub(crate) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(crate) fn is(&self, kind: &str) -> bool {
        self.text("type") == Some(kind)
    }

    pub(crate) fn text(&self, keyword: &str) -> Option<&'a str> {
        self.get(keyword)?.as_str()
    }

    pub(crate) fn flag(&self, keyword: &str) -> bool {
        self.get(keyword) == Some(&Value::Bool(true))
    }

    pub(crate) fn keeps_unknown(&self) -> bool {
        self.flag("x-kubernetes-preserve-unknown-fields")
    }

    pub(crate) fn is_int_or_string(&self) -> bool {
        self.flag("x-kubernetes-int-or-string")
    }

    /// The schema of items, or of the values of a map.
    pub(crate) fn below(&self, keyword: &str) -> Option<Self> {
        Some(Self {
            schema: self.get(keyword)?.as_object()?,
            step: self.step,
            path: self.path.clone(),
            depth: self.depth + 1,
        })
    }

    pub(crate) fn items(&self) -> Option<Self> {
        self.below("items")
    }

    pub(crate) fn map_values(&self) -> Option<Self> {
        self.below("additionalProperties")
    }

    /// The name of the property, if it is one.
    pub(crate) fn name(&self) -> Option<&'a str> {
        match self.step {
            SchemaStep::Property { name, .. } => Some(name),
            SchemaStep::Root | SchemaStep::Item | SchemaStep::MapValue => None,
        }
    }

    pub(crate) fn is_required(&self) -> bool {
        matches!(self.step, SchemaStep::Property { required: true, .. })
    }

    pub(crate) fn names(&self) -> Vec<&'a str> {
        names(self.schema)
    }

    /// The branches of `oneOf`, `anyOf` or `allOf`, but not those that spell int-or-string.
    pub(crate) fn branches(&self, keyword: &str) -> &'a [Value] {
        let branches = self.get(keyword).and_then(Value::as_array);
        branches
            .filter(|_| !self.is_int_or_string())
            .map_or(&[], Vec::as_slice)
    }

    /// The values of `enum`.
    pub(crate) fn values(&self) -> &'a [Value] {
        let values = self.get("enum").and_then(Value::as_array);
        values.map_or(&[], Vec::as_slice)
    }

    /// Whether a text value of `enum` passes.
    pub(crate) fn has_value(&self, test: impl Fn(&str) -> bool) -> bool {
        self.values().iter().filter_map(Value::as_str).any(test)
    }

    /// Whether an object below has the same properties.
    pub(crate) fn recurs(&self) -> bool {
        let names = self.names();
        let mut below = Vec::new();
        collect(self.clone(), &mut below);
        names.len() > 1
            && self.step != SchemaStep::Root
            && below
                .iter()
                .any(|other| other.depth > self.depth && other.names() == names)
    }
}
