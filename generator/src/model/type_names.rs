//! Chooses the names of generated types: short ones, which other parts of the schema do not change.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::generated_types::{
    PathStep, SchemaLocation, ShapeBody, ShapeId, Shapes, StructShape, Ty,
};
use super::identifier::{RustIdent, TypeName, singular, words};
use crate::rust::is_in_prelude;

/// The name of quantities that may be numbers, in every resource.
const QUANTITY: &str = "Quantity";

/// The name of values that are numbers or texts, in every resource.
const INT_OR_STRING: &str = "IntOrString";

/// The name of times, in every resource.
const TIME: &str = "Time";

/// The name of durations, in every resource that has any.
const DURATION: &str = "Duration";

/// The name of conditions, in every resource.
const CONDITION: &str = "Condition";

/// Field names that are too general to name a type without the name of the parent.
const GENERIC: &[&str] = &[
    "action",
    "class",
    "condition",
    "config",
    "configuration",
    "data",
    "effect",
    "entry",
    "format",
    "from",
    "input",
    "item",
    "key",
    "kind",
    "level",
    "method",
    "mode",
    "name",
    "operator",
    "option",
    "output",
    "param",
    "parameter",
    "phase",
    "policy",
    "reason",
    "ref",
    "result",
    "role",
    "scheme",
    "scope",
    "setting",
    "settings",
    "source",
    "spec",
    "state",
    "status",
    "strategy",
    "target",
    "template",
    "to",
    "type",
    "unit",
    "value",
    "version",
];

/// The names of the types of one version, including types that it re-exports from other modules.
#[derive(Clone, Debug, Default)]
pub struct TypeNames {
    /// The types that this version defines, smallest location first.
    pub defined: Vec<(ShapeId, TypeName)>,
    /// The types that other modules define: the module, the name there and the name here.
    pub shared: BTreeMap<DefiningModule, BTreeMap<TypeName, TypeName>>,
    /// Names given by options that are already taken.
    pub clashes: Vec<TypeName>,
    index: BTreeMap<ShapeId, TypeName>,
}

/// A module whose types another one re-exports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DefiningModule {
    /// Another version of the same resource, by its rank.
    Version(usize),
    /// A version of another resource.
    Resource {
        /// The module of the resource.
        resource: RustIdent,
        /// The module of the version.
        version: RustIdent,
    },
}

impl TypeNames {
    /// Re-exports a type of another module.
    pub(super) fn share(&mut self, module: DefiningModule, there: TypeName, here: TypeName) {
        self.shared.entry(module).or_default().insert(there, here);
    }

    /// The names of all types, defined here or re-exported.
    pub fn all(&self) -> impl Iterator<Item = &TypeName> {
        self.index.values()
    }

    /// Whether neither the kind nor a type has this name.
    fn is_free(&self, name: &TypeName, kind: &TypeName) -> bool {
        name != kind && !self.all().any(|used| used == name)
    }

    /// The name of a shape.
    ///
    /// # Panics
    ///
    /// If the shape is not part of this version.
    #[must_use]
    pub fn of(&self, id: ShapeId) -> &TypeName {
        self.index
            .get(&id)
            .expect("every shape of a version has a name")
    }
}

/// The name of the type of a kind.
pub(super) fn root(kind: &str) -> TypeName {
    let name = TypeName::of_kind(kind);
    // Files that import it would not have the standard name.
    if is_in_prelude(name.as_str()) {
        name.then("Object")
    } else {
        name
    }
}

/// Names the shapes of a version that are reachable from `roots`; `earlier` are the names of the
/// versions before it.
pub(super) fn allocate<'t>(
    kind: &TypeName,
    roots: impl Iterator<Item = &'t Ty>,
    shapes: &Shapes,
    earlier: &[TypeNames],
) -> TypeNames {
    let mut reachable = BTreeSet::new();
    let mut known = BTreeSet::new();
    for ty in roots {
        collect(ty, shapes, &mut reachable, &mut known);
    }
    let fixed = [QUANTITY, INT_OR_STRING, TIME, CONDITION, kind.as_str()];
    let mut taken: BTreeSet<String> = fixed.map(str::to_owned).into();
    taken.extend(known);
    let is_duration = |id: &ShapeId| matches!(shapes.body(*id), ShapeBody::Duration);
    if reachable.iter().any(is_duration) {
        taken.insert(DURATION.to_owned());
    }
    let mut names = TypeNames::default();
    let shared: BTreeSet<ShapeId> = reachable
        .iter()
        .copied()
        .filter(|id| share(*id, kind, shapes, earlier, &mut names, &mut taken))
        .collect();
    let mut own: Vec<ShapeId> = reachable.difference(&shared).copied().collect();
    own.sort_by(|a, b| rank(*a, shapes).cmp(&rank(*b, shapes)));
    for id in own {
        let name = match (&shapes.shape(id).name, fixed_name(shapes.body(id))) {
            (Some(name), _) => {
                if taken.contains(name.as_str()) {
                    names.clashes.push(name.clone());
                }
                name.clone()
            }
            (None, Some(name)) if names.is_free(&name, kind) => name,
            (None, _) => choose(kind, shapes, id, &taken),
        };
        taken.insert(name.to_string());
        names.index.insert(id, name.clone());
        names.defined.push((id, name));
    }
    names
}

/// The reserved name of a type that has the same name in every resource.
fn fixed_name(body: &ShapeBody) -> Option<TypeName> {
    match body {
        ShapeBody::Quantity => Some(TypeName::new(QUANTITY)),
        ShapeBody::IntOrString => Some(TypeName::new(INT_OR_STRING)),
        ShapeBody::Time => Some(TypeName::new(TIME)),
        ShapeBody::Duration => Some(TypeName::new(DURATION)),
        ShapeBody::Struct(body) if is_condition(body) => Some(TypeName::new(CONDITION)),
        _ => None,
    }
}

/// Whether an object has the members of `metav1.Condition`, and possibly more.
fn is_condition(body: &StructShape) -> bool {
    ["lastTransitionTime", "message", "reason", "status", "type"]
        .iter()
        .all(|name| body.fields.iter().any(|field| field.json == *name))
}

/// Shapes that the user named come first, so that no other type takes their names.
fn rank(id: ShapeId, shapes: &Shapes) -> (bool, &SchemaLocation) {
    (shapes.shape(id).name.is_none(), shapes.location(id))
}

fn collect(
    ty: &Ty,
    shapes: &Shapes,
    reachable: &mut BTreeSet<ShapeId>,
    known: &mut BTreeSet<String>,
) {
    ty.for_each_existing(&mut |k| {
        k.rust
            .for_each_path(&mut |path| known.extend([path.name().to_owned()]));
    });
    let mut found = Vec::new();
    ty.for_each_shape(&mut |id| found.push(id));
    for id in found {
        if reachable.insert(id) {
            for inner in shapes.body(id).types() {
                collect(inner, shapes, reachable, known);
            }
        }
    }
}

/// Re-exports the type of an earlier version, unless its name is taken in this version.
fn share(
    id: ShapeId,
    kind: &TypeName,
    shapes: &Shapes,
    earlier: &[TypeNames],
    names: &mut TypeNames,
    taken: &mut BTreeSet<String>,
) -> bool {
    let found = earlier.iter().enumerate().find_map(|(rank, names)| {
        let (_, name) = names.defined.iter().find(|(defined, _)| *defined == id)?;
        Some((rank, name.clone()))
    });
    let Some((rank, name)) = found else {
        return false;
    };
    let top = |field: &str| name == kind.then(TypeName::new(field).as_str());
    let top_elsewhere = (top("spec") || top("status")) && shapes.location(id).steps.len() != 1;
    let reserved =
        fixed_name(shapes.body(id)).as_ref() == Some(&name) && names.is_free(&name, kind);
    if top_elsewhere || (!reserved && !taken.insert(name.to_string())) {
        return false;
    }
    names.index.insert(id, name.clone());
    names.share(DefiningModule::Version(rank), name.clone(), name);
    true
}

fn choose(kind: &TypeName, shapes: &Shapes, id: ShapeId, taken: &BTreeSet<String>) -> TypeName {
    let candidates = candidates(kind, shapes, id);
    let last = candidates.last().cloned().unwrap_or_else(|| kind.clone());
    let numbered = (2..).map(|n| last.then(&n.to_string()));
    candidates
        .iter()
        .cloned()
        .chain(numbered)
        .find(|name| !taken.contains(name.as_str()) && !is_in_prelude(name.as_str()))
        .expect("there are more numbers than names")
}

/// The names to try, shortest first.
fn candidates(kind: &TypeName, shapes: &Shapes, id: ShapeId) -> Vec<TypeName> {
    let Some((first, below)) = shapes.location(id).steps.split_first() else {
        return vec![kind.clone()];
    };
    let top = kind.then(noun(first).as_str());
    if below.is_empty() {
        return vec![top];
    }
    let mut names = Vec::new();
    // The name of one field says nothing about the others.
    if let Some(ending) = common_ending(shapes, id) {
        let name = TypeName::new(&ending);
        names.extend((!is_generic(&ending)).then(|| name.clone()));
        names.push(kind.then(name.as_str()));
    }
    let mut suffix = String::new();
    for (index, step) in below.iter().enumerate().rev() {
        suffix = noun(step).then(&suffix).to_string();
        let last = index + 1 == below.len();
        if !(last && is_generic(&step.field)) {
            names.push(TypeName::new_joined(&suffix));
        }
    }
    names.push(kind.then(&suffix));
    names.push(top.then(&suffix));
    names
}

/// The words in which the names of all fields of a type end, if they differ.
fn common_ending(shapes: &Shapes, id: ShapeId) -> Option<String> {
    let mut names = shapes.last_steps(id).map(|step| words(&noun_text(step)));
    let mut ending = names.next()?;
    let mut differs = false;
    for name in names {
        let pairs = ending.iter().rev().zip(name.iter().rev());
        let same = pairs.take_while(|(one, other)| one == other).count();
        differs |= same < ending.len().max(name.len());
        ending.drain(..ending.len() - same);
    }
    (differs && !ending.is_empty()).then(|| ending.join("_"))
}

fn is_generic(field: &str) -> bool {
    GENERIC.contains(&singular(field).to_lowercase().as_str())
}

fn noun(step: &PathStep) -> TypeName {
    TypeName::new(&noun_text(step))
}

fn noun_text(step: &PathStep) -> Cow<'_, str> {
    if step.item {
        singular(&step.field).into()
    } else {
        step.field.as_str().into()
    }
}
