//! Defines each type once if several resources share it; the others re-export it.

use rustc_hash::FxHashMap;

use super::generated_types::{Shape, ShapeBody, ShapeDocs, ShapeId};
use super::identifier::TypeName;
use super::resource::CustomResource;
use super::type_names::DefiningModule;

/// The module that defines a type, and its name there.
struct TypeDefinition {
    resource: usize,
    version: usize,
    name: TypeName,
}

/// All definitions so far, by shape; the shapes inside are numbers of definitions.
#[derive(Default)]
struct TypeDefinitions {
    list: Vec<TypeDefinition>,
    in_project: FxHashMap<(String, Shape), ShapeId>,
    in_all: FxHashMap<(Shape, ShapeDocs), ShapeId>,
}

/// Replaces types by re-exports from the first resource that defines them.
///
/// Within a project, types with equal shapes are the same; across projects, they must also be
/// large or have equal descriptions. Every module keeps all its names, so its users need no change.
pub fn across(resources: &mut [&mut CustomResource]) {
    let mut definitions = TypeDefinitions::default();
    for index in 0..resources.len() {
        let found = definitions.add(index, resources[index]);
        for version in 0..resources[index].versions.len() {
            let names = &mut resources[index].versions[version].type_names;
            let defined = std::mem::take(&mut names.defined);
            for (id, name) in defined {
                let definition = &definitions.list[found[&id].index()];
                if definition.resource == index {
                    resources[index].versions[version]
                        .type_names
                        .defined
                        .push((id, name));
                    continue;
                }
                let there = &resources[definition.resource];
                let module = DefiningModule::Resource {
                    resource: there.module.clone(),
                    version: there.versions[definition.version].module.clone(),
                };
                let names = &mut resources[index].versions[version].type_names;
                names.share(module, definition.name.clone(), name);
            }
        }
    }
}

/// The descriptions that must be equal for a type to be the same in another project.
///
/// A type with many members is hardly equal by chance; one with few often is.
fn distinguishing_docs(resource: &CustomResource, id: ShapeId) -> ShapeDocs {
    const MANY: usize = 4;
    match resource.shapes.body(id) {
        ShapeBody::Struct(body) if body.fields.len() >= MANY => ShapeDocs::default(),
        _ => resource.shapes.docs(id).clone(),
    }
}

/// The domain that the API groups of one project share: `cilium.io`, `fluxcd.io`.
fn project(group: &str) -> String {
    let labels: Vec<&str> = group.rsplit('.').take(2).collect();
    labels.join(".")
}

// === impl TypeDefinitions ===

impl TypeDefinitions {
    /// Finds or adds the definition of every shape that a resource defines.
    fn add(&mut self, index: usize, resource: &CustomResource) -> FxHashMap<ShapeId, ShapeId> {
        let mut found = FxHashMap::default();
        // A shape mentions only shapes with smaller numbers, which are already in `found`.
        for id in resource.shapes.ids() {
            let Some((version, name)) = definition_of(resource, id) else {
                continue;
            };
            let shape = resource.shapes.shape(id).renumbered(&found);
            let in_project = (project(&resource.group), shape.clone());
            let in_all = (shape, distinguishing_docs(resource, id));
            let known = self
                .in_project
                .get(&in_project)
                .or_else(|| self.in_all.get(&in_all));
            let definition = known.copied().unwrap_or_else(|| {
                self.list.push(TypeDefinition {
                    resource: index,
                    version,
                    name,
                });
                ShapeId::from_index(self.list.len() - 1)
            });
            self.in_project.insert(in_project, definition);
            self.in_all.entry(in_all).or_insert(definition);
            found.insert(id, definition);
        }
        found
    }
}

/// The version that defines a shape, and its name there.
fn definition_of(resource: &CustomResource, id: ShapeId) -> Option<(usize, TypeName)> {
    resource
        .versions
        .iter()
        .enumerate()
        .find_map(|(index, version)| {
            let mut defined = version.type_names.defined.iter();
            defined
                .find(|(shape, _)| *shape == id)
                .map(|(_, name)| (index, name.clone()))
        })
}
