//! The parts of a structural schema that restrict objects, with `allOf` merged in.

use indexmap::IndexMap;
use serde_json::{Map, Value};

/// A schema node. Descriptions and rules in CEL are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaNode {
    /// The JSON type; none means any, unless another keyword implies one.
    pub kind: Option<NodeType>,
    /// The format of a string or number.
    pub format: Option<String>,
    /// The declared members of an object.
    pub properties: IndexMap<String, SchemaNode>,
    /// The members that must be present, declared or not.
    pub required: Vec<String>,
    /// The schema of array items.
    pub items: Option<Box<SchemaNode>>,
    /// The schema of undeclared members.
    pub additional: Option<UndeclaredMembers>,
    /// The only allowed values.
    pub values: Option<Vec<Value>>,
    /// The value that the API server fills in.
    pub default: Option<Value>,
    /// Whether `null` is allowed.
    pub nullable: bool,
    /// Every pattern that a string must match.
    pub patterns: Vec<String>,
    /// Bounds of strings, arrays, objects and numbers.
    pub bounds: Bounds,
    /// Sets of alternatives, each of which must be satisfied.
    pub unions: Vec<Union>,
    /// Schemas which the value must not satisfy.
    pub nots: Vec<SchemaNode>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// The rule by which two items of an array are duplicates.
    pub identity: ItemIdentity,
}

/// A JSON type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeType {
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
}

/// The schema of undeclared members.
#[derive(Clone, Debug, PartialEq)]
pub enum UndeclaredMembers {
    /// `additionalProperties: true`.
    Any,
    /// `additionalProperties: false`.
    None,
    /// A map.
    Of(Box<SchemaNode>),
}

/// Bounds, inclusive except where a flag excludes them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Characters of a string.
    pub length: Range<u64>,
    /// Items of an array.
    pub items: Range<u64>,
    /// Members of an object.
    pub members: Range<u64>,
    /// A number.
    pub number: Range<f64>,
    /// Whether the lowest number is excluded.
    pub above: bool,
    /// Whether the highest number is excluded.
    pub below: bool,
    /// The number must be a multiple of this.
    pub multiple_of: Option<f64>,
}

/// A lowest and a highest value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Range<T> {
    /// The lowest.
    pub min: Option<T>,
    /// The highest.
    pub max: Option<T>,
}

/// Alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Union {
    /// The number of branches that must match.
    pub mode: UnionMode,
    /// The alternatives.
    pub branches: Vec<SchemaNode>,
}

/// The number of branches of a union that must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnionMode {
    /// `oneOf`.
    One,
    /// `anyOf`.
    Any,
}

/// The rule by which two items of an array are duplicates, which the API server rejects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ItemIdentity {
    /// Nothing: items may repeat.
    #[default]
    Position,
    /// The whole item: a set.
    Value,
    /// These members: a map.
    Keys(Vec<String>),
}

// === impl SchemaNode ===

impl SchemaNode {
    /// Reads a schema of a CustomResourceDefinition; skips malformed parts.
    #[must_use]
    pub fn from_json(json: &Value) -> Self {
        let Some(node) = json.as_object() else {
            return Self::default();
        };
        let flag = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or(false);
        let int_or_string = flag("x-kubernetes-int-or-string");
        let mut schema = Self {
            kind: node
                .get("type")
                .and_then(Value::as_str)
                .and_then(NodeType::named),
            format: string(node, "format"),
            properties: node
                .get("properties")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
                .map(|(name, property)| (name.clone(), Self::from_json(property)))
                .collect(),
            required: strings(node, "required"),
            items: node
                .get("items")
                .map(|items| Box::new(Self::from_json(items))),
            additional: node
                .get("additionalProperties")
                .map(UndeclaredMembers::from_json),
            values: node.get("enum").and_then(Value::as_array).cloned(),
            default: node.get("default").cloned(),
            nullable: flag("nullable"),
            patterns: string(node, "pattern").into_iter().collect(),
            bounds: Bounds::from_json(node),
            unions: [("oneOf", UnionMode::One), ("anyOf", UnionMode::Any)]
                .into_iter()
                .filter_map(|(key, mode)| {
                    let branches = schemas(node, key);
                    let spells_int_or_string = int_or_string
                        && branches.iter().all(|branch| {
                            *branch
                                == Self {
                                    kind: branch.kind,
                                    ..Self::default()
                                }
                        });
                    (!branches.is_empty() && !spells_int_or_string)
                        .then_some(Union { mode, branches })
                })
                .collect(),
            nots: node.get("not").map(Self::from_json).into_iter().collect(),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            int_or_string,
            embedded_resource: flag("x-kubernetes-embedded-resource"),
            identity: ItemIdentity::from_json(node),
        };
        for part in schemas(node, "allOf") {
            schema.restrict(&part);
        }
        schema
    }

    /// Adds the restrictions of another schema, so that only values that satisfy both are valid.
    pub fn restrict(&mut self, other: &Self) {
        if self.int_or_string && other.kind.is_some() {
            self.int_or_string = false;
        }
        self.kind = self.kind.or(other.kind);
        self.format = self.format.take().or_else(|| other.format.clone());
        for (name, property) in &other.properties {
            match self.properties.get_mut(name) {
                Some(own) => own.restrict(property),
                // Restrictions of an undeclared member apply to a map or to unknown members.
                None if self.preserve_unknown || self.kind.is_none() => {
                    self.properties.insert(name.clone(), property.clone());
                }
                None => {}
            }
        }
        for name in &other.required {
            if !self.required.contains(name) {
                self.required.push(name.clone());
            }
        }
        match (&mut self.items, &other.items) {
            (Some(own), Some(items)) => own.restrict(items),
            (own @ None, Some(items)) => *own = Some(items.clone()),
            _ => {}
        }
        if let (Some(UndeclaredMembers::Of(own)), Some(UndeclaredMembers::Of(of))) =
            (&mut self.additional, &other.additional)
        {
            own.restrict(of);
        }
        self.values = match (self.values.take(), &other.values) {
            (Some(own), Some(values)) => Some(
                own.into_iter()
                    .filter(|value| values.contains(value))
                    .collect(),
            ),
            (own, values) => own.or_else(|| values.clone()),
        };
        self.patterns.extend(other.patterns.iter().cloned());
        self.bounds.restrict(&other.bounds);
        self.unions.extend(other.unions.iter().cloned());
        self.nots.extend(other.nots.iter().cloned());
    }

    /// The JSON type, also where only other keywords imply it.
    #[must_use]
    pub fn effective_kind(&self) -> Option<NodeType> {
        self.kind.or_else(|| {
            if !self.properties.is_empty()
                || self.embedded_resource
                || matches!(self.additional, Some(UndeclaredMembers::Of(_)))
            {
                Some(NodeType::Object)
            } else if self.items.is_some() {
                Some(NodeType::Array)
            } else {
                None
            }
        })
    }

    /// The schema of a member, declared or not.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Some(UndeclaredMembers::Of(schema)) => Some(schema),
            _ => None,
        })
    }

    /// Whether the API server keeps undeclared members.
    #[must_use]
    pub fn keeps_unknown(&self) -> bool {
        self.preserve_unknown || matches!(self.additional, Some(UndeclaredMembers::Any))
    }
}

// === impl NodeType ===

impl NodeType {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }
}

// === impl UndeclaredMembers ===

impl UndeclaredMembers {
    fn from_json(json: &Value) -> Self {
        match json {
            Value::Bool(true) => Self::Any,
            Value::Bool(false) => Self::None,
            schema => Self::Of(Box::new(SchemaNode::from_json(schema))),
        }
    }
}

// === impl Bounds ===

impl Bounds {
    fn from_json(node: &Map<String, Value>) -> Self {
        let count = |key: &str| node.get(key).and_then(Value::as_u64);
        let number = |key: &str| node.get(key).and_then(Value::as_f64);
        let flag = |key: &str| node.get(key).and_then(Value::as_bool).unwrap_or(false);
        Self {
            length: Range::new(count("minLength"), count("maxLength")),
            items: Range::new(count("minItems"), count("maxItems")),
            members: Range::new(count("minProperties"), count("maxProperties")),
            number: Range::new(number("minimum"), number("maximum")),
            above: flag("exclusiveMinimum"),
            below: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
        }
    }

    fn restrict(&mut self, other: &Self) {
        self.length.restrict(other.length);
        self.items.restrict(other.items);
        self.members.restrict(other.members);
        self.above |= other.above && other.number.min >= self.number.min;
        self.below |= other.below && other.number.max.is_some();
        self.number.restrict(other.number);
        self.multiple_of = self.multiple_of.or(other.multiple_of);
    }
}

// === impl Range ===

impl<T: Copy + PartialOrd> Range<T> {
    const fn new(min: Option<T>, max: Option<T>) -> Self {
        Self { min, max }
    }

    fn restrict(&mut self, other: Self) {
        if other
            .min
            .is_some_and(|min| self.min.is_none_or(|own| min > own))
        {
            self.min = other.min;
        }
        if other
            .max
            .is_some_and(|max| self.max.is_none_or(|own| max < own))
        {
            self.max = other.max;
        }
    }

    /// Whether a value lies between the bounds.
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        self.min.is_none_or(|min| value >= min) && self.max.is_none_or(|max| value <= max)
    }
}

// === impl ItemIdentity ===

impl ItemIdentity {
    fn from_json(node: &Map<String, Value>) -> Self {
        match node.get("x-kubernetes-list-type").and_then(Value::as_str) {
            Some("set") => Self::Value,
            Some("map") => Self::Keys(strings(node, "x-kubernetes-list-map-keys")),
            _ if node.get("uniqueItems").and_then(Value::as_bool) == Some(true) => Self::Value,
            _ => Self::Position,
        }
    }
}

fn string(node: &Map<String, Value>, key: &str) -> Option<String> {
    node.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn strings(node: &Map<String, Value>, key: &str) -> Vec<String> {
    node.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|value| value.as_str().map(str::to_owned))
        .collect()
}

fn schemas(node: &Map<String, Value>, key: &str) -> Vec<SchemaNode> {
    node.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .map(SchemaNode::from_json)
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_of_is_merged_into_the_node() {
        let schema = SchemaNode::from_json(&json!({
            "type": "object",
            "properties": {"a": {"type": "string", "maxLength": 9}},
            "allOf": [
                {"required": ["a"]},
                {"properties": {"a": {"maxLength": 5, "pattern": "^x"}}},
                {"oneOf": [{"required": ["a"]}]},
            ],
        }));
        let a = &schema.properties["a"];
        assert_eq!(schema.required, ["a"]);
        assert_eq!(a.bounds.length.max, Some(5));
        assert_eq!(a.patterns, ["^x"]);
        assert_eq!(schema.unions.len(), 1);
    }

    #[test]
    fn the_any_of_of_int_or_string_is_no_union() {
        let schema = SchemaNode::from_json(&json!({
            "x-kubernetes-int-or-string": true,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        }));
        assert!(schema.int_or_string);
        assert_eq!(schema.unions, []);
    }

    #[test]
    fn restricting_values_leaves_the_common_ones() {
        let mut schema = SchemaNode::from_json(&json!({"type": "string", "enum": ["a", "b", "c"]}));
        schema.restrict(&SchemaNode::from_json(&json!({"enum": ["c", "b", "z"]})));
        assert_eq!(schema.values, Some(vec![json!("b"), json!("c")]));
    }

    #[test]
    fn a_branch_with_a_type_decides_int_or_string() {
        let mut schema = SchemaNode::from_json(&json!({"x-kubernetes-int-or-string": true}));
        schema.restrict(&SchemaNode::from_json(
            &json!({"type": "integer", "minimum": 3}),
        ));
        assert_eq!(schema.effective_kind(), Some(NodeType::Integer));
        assert_eq!(schema.bounds.number.min, Some(3.0));
    }
}
