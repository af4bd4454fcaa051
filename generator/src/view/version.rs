//! The module of one version: its types, ready to print.

use std::collections::{BTreeMap, BTreeSet};

use askama::Template;

use super::doc_comments;
use super::enumeration::{IntOrStringView, QuantityView};
use super::imports::{ImportList, declaration, sort_key};
use super::version_writer::{VersionWriter, print};
use crate::model::DefiningModule;
use crate::model::default_values::Defaults;
use crate::model::generated_types::{ShapeBody, ShapeId};
use crate::model::identifier::TypeName;
use crate::model::resource::{CustomResource, TypedVersion};
use crate::model::type_options::Options;

#[derive(Template)]
#[template(path = "types/version.rs")]
struct VersionView {
    docs: Vec<String>,
    imports: Vec<String>,
    shared: Vec<String>,
    items: Vec<String>,
    functions: BTreeSet<FunctionView>,
    nullable: bool,
    undeclared: bool,
    constants: bool,
}

/// A function that gives the default of a field.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FunctionView {
    name: String,
    ty: String,
    value: String,
}

/// The derives of values that are numbers or strings.
const MIXED_DERIVES: &[&str] = &[
    "Clone",
    "Debug",
    "PartialEq",
    "Eq",
    "Deserialize",
    "Serialize",
];

/// The text of the module of a version.
pub(super) fn render(
    resource: &CustomResource,
    version: &TypedVersion,
    options: &Options,
) -> String {
    let mut writer = VersionWriter {
        resource,
        version,
        options,
        defaults: Defaults::new(&resource.shapes),
        imports: ImportList::default(),
        functions: BTreeMap::new(),
        function_names: BTreeSet::new(),
        nullable: false,
        undeclared: false,
        constants: false,
    };
    writer.imports.reserve(resource.type_name.as_str());
    for name in version.type_names.all() {
        writer.imports.reserve(name.as_str());
    }
    let mut items = writer.root();
    for (id, name) in &version.type_names.defined {
        items.extend(writer.shape(*id, name));
    }
    let view = VersionView {
        docs: doc_comments::inner::<&str>(&summary(resource, version), &[]),
        shared: writer.shared(),
        imports: writer.imports.lines(),
        items,
        functions: writer
            .functions
            .into_iter()
            .map(|((ty, value), name)| FunctionView { name, ty, value })
            .collect::<BTreeSet<_>>(),
        nullable: writer.nullable,
        undeclared: writer.undeclared,
        constants: writer.constants,
    };
    print(&view)
}

fn summary(resource: &CustomResource, version: &TypedVersion) -> String {
    let stored = if version.storage {
        ", in which objects are stored"
    } else {
        ""
    };
    format!(
        "Version `{}` of `{}`{stored}.",
        version.name, resource.crd_name
    )
}

// === impl VersionWriter ===

impl VersionWriter<'_> {
    fn shape(&mut self, id: ShapeId, name: &TypeName) -> Vec<String> {
        let shapes = &self.resource.shapes;
        let (shape, docs) = (shapes.shape(id), shapes.docs(id));
        match &shape.body {
            ShapeBody::Struct(body) => self.structure(id, body, name, docs),
            ShapeBody::StringEnum(values) => {
                vec![self.string_enum(values, name, docs, &shape.derives)]
            }
            ShapeBody::IntEnum(values) => self.int_enum(values, name, docs, &shape.derives),
            ShapeBody::Quantity => {
                let derives = self.derive_list(MIXED_DERIVES, &shape.derives);
                vec![print(&QuantityView { name, derives })]
            }
            ShapeBody::IntOrString => {
                self.imports
                    .add("k8s_openapi::apimachinery::pkg::util::intstr");
                let derives = self.derive_list(MIXED_DERIVES, &shape.derives);
                vec![print(&IntOrStringView { name, derives })]
            }
            ShapeBody::Alias(ty) => vec![format!("pub type {name} = {};", self.ty(ty))],
            ShapeBody::Union(variants) => vec![self.union(variants, name, docs, &shape.derives)],
            ShapeBody::Untagged(types) => vec![self.untagged(types, name, docs, &shape.derives)],
        }
    }

    /// The re-exports of types that other modules define.
    fn shared(&self) -> Vec<String> {
        let mut modules: Vec<(String, Vec<String>)> = self
            .version
            .type_names
            .shared
            .iter()
            .map(|(module, names)| {
                (
                    self.module_path(module),
                    names.iter().map(renamed).collect(),
                )
            })
            .collect();
        modules.sort_by_key(|(module, names)| sort_key(module, names.iter()));
        modules
            .iter()
            .flat_map(|(module, names)| {
                declaration("pub use", module, names.iter().map(String::as_str))
            })
            .collect()
    }

    fn module_path(&self, module: &DefiningModule) -> String {
        match module {
            DefiningModule::Version(rank) => {
                format!("super::{}", self.resource.versions[*rank].module)
            }
            DefiningModule::Resource { resource, version } => {
                format!("super::super::{resource}::{version}")
            }
        }
    }
}

fn renamed((there, here): (&TypeName, &TypeName)) -> String {
    if there == here {
        here.to_string()
    } else {
        format!("{there} as {here}")
    }
}
