//! A custom resource: its names, its versions, and the types of each version.

use std::collections::BTreeSet;

use super::generated_types::Shapes;
use super::identifier::{RustIdent, TypeName};
use super::schema_to_type::{RootObject, SchemaMapper};
use super::type_names::{self, TypeNames};
use super::type_options::{OptionPaths, Options};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId};
use crate::load::crd::{Crd, CrdVersion, PrinterColumn, ResourceNames, ScaleSubresource, Scope};

/// A resource, as one CustomResourceDefinition describes it.
#[derive(Clone, Debug)]
pub struct CustomResource {
    /// The file that defines it.
    pub source: SourceId,
    /// The name of the definition.
    pub crd_name: String,
    /// The API group.
    pub group: String,
    /// Kind, plural and so on.
    pub names: ResourceNames,
    /// Whether objects live in namespaces.
    pub scope: Scope,
    /// The name of the root types.
    pub type_name: TypeName,
    /// The name of the module.
    pub module: RustIdent,
    /// The versions for which there are types; the storage version is first if it is among them.
    pub versions: Vec<TypedVersion>,
    /// The types of all versions.
    pub shapes: Shapes,
    /// The definition as compact JSON; none if only the names of the kind are known.
    pub crd_json: Option<String>,
}

/// A version of a resource.
#[derive(Clone, Debug)]
pub struct TypedVersion {
    /// The name, such as `v1beta1`.
    pub name: String,
    /// The name of the module.
    pub module: RustIdent,
    /// Whether objects are stored in this version.
    pub storage: bool,
    /// The deprecation warning, if the version is deprecated.
    pub deprecated: Option<String>,
    /// Whether there is a status subresource.
    pub status: bool,
    /// The scale subresource.
    pub scale: Option<ScaleSubresource>,
    /// The printer columns.
    pub columns: Vec<PrinterColumn>,
    /// The paths that field selectors may use.
    pub selectable_fields: Vec<String>,
    /// The object itself.
    pub root: RootObject,
    /// The names of its types.
    pub type_names: TypeNames,
}

/// The versions for which types are generated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VersionChoice {
    /// All that are served.
    #[default]
    Served,
    /// The one in which objects are stored.
    Storage,
    /// The versions with these names, served or not.
    Named(BTreeSet<String>),
}

impl CustomResource {
    /// Maps the schemas of a definition; `paths` collects those that options can have.
    pub fn new(
        crd: Crd,
        versions: &VersionChoice,
        options: &Options,
        paths: &mut OptionPaths,
        diagnostics: &mut Diagnostics,
    ) -> Option<Self> {
        let type_name = type_names::root(&crd.names.kind);
        let chosen = choose(&crd, versions, diagnostics)?;
        let mut shapes = Shapes::default();
        let mut mapped = Vec::new();
        for (rank, version) in chosen.into_iter().enumerate() {
            let mut mapper = SchemaMapper {
                shapes: &mut shapes,
                options,
                paths,
                diagnostics,
                source: crd.source,
                version: rank,
                steps: Vec::new(),
            };
            let root = mapper.root(&version.schema);
            mapped.push((version, root));
        }
        let mut named: Vec<TypeNames> = Vec::new();
        for (_, root) in &mapped {
            let names = type_names::allocate(&type_name, root.body.types(), &shapes, &named);
            for name in &names.clashes {
                options.report_clash(name, diagnostics);
            }
            named.push(names);
        }
        let mut modules = BTreeSet::new();
        let versions: Vec<TypedVersion> = mapped
            .into_iter()
            .zip(named)
            .map(|((version, root), type_names)| {
                let module = RustIdent::of_module(&version.name).or_numbered(&mut modules);
                TypedVersion::new(version, module, root, type_names)
            })
            .collect();
        Some(Self {
            source: crd.source,
            module: module(&crd.names.kind, &versions),
            crd_name: crd.name,
            group: crd.group,
            names: crd.names,
            scope: crd.scope,
            type_name,
            versions,
            shapes,
            crd_json: Some(crd.json),
        })
    }

    /// The version in which objects are stored, or else the first one.
    #[must_use]
    pub fn main_version(&self) -> &TypedVersion {
        &self.versions[0]
    }

    /// The version of this name.
    #[must_use]
    pub fn version(&self, name: &str) -> Option<&TypedVersion> {
        self.versions.iter().find(|version| version.name == name)
    }
}

// === impl TypedVersion ===

impl TypedVersion {
    fn new(
        version: &CrdVersion,
        module: RustIdent,
        root: RootObject,
        type_names: TypeNames,
    ) -> Self {
        Self {
            name: version.name.clone(),
            module,
            storage: version.storage,
            deprecated: version.deprecated.clone(),
            status: version.status,
            scale: version.scale.clone(),
            columns: version.columns.clone(),
            selectable_fields: version.selectable_fields.clone(),
            root,
            type_names,
        }
    }
}

/// The module of a kind, which must not have the name of a version module inside it.
fn module(kind: &str, versions: &[TypedVersion]) -> RustIdent {
    let name = RustIdent::of_module(kind);
    if versions.iter().any(|version| version.module == name) {
        RustIdent::new(&format!("{kind}_kind"))
    } else {
        name
    }
}

/// The versions to map: the storage version first, the others in the order of the CRD.
fn choose<'c>(
    crd: &'c Crd,
    versions: &VersionChoice,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<&'c CrdVersion>> {
    let pick = |wanted: &dyn Fn(&CrdVersion) -> bool| -> Vec<&'c CrdVersion> {
        let mut picked: Vec<_> = crd
            .versions
            .iter()
            .filter(|version| wanted(version))
            .collect();
        picked.sort_by_key(|version| !version.storage);
        picked
    };
    let (chosen, fallback) = match versions {
        VersionChoice::Served => (
            pick(&|version| version.served),
            pick(&|version| version.storage),
        ),
        VersionChoice::Storage => (pick(&|version| version.storage), Vec::new()),
        VersionChoice::Named(names) => (pick(&|version| names.contains(&version.name)), Vec::new()),
    };
    if !chosen.is_empty() {
        return Some(chosen);
    }
    let place = crd
        .versions
        .first()
        .map_or(crd.span, |version| version.span);
    if let Some(version) = fallback.first() {
        let message = format!(
            "`{}` serves no version; types are generated for `{}`",
            crd.name, version.name
        );
        diagnostics.push(Diagnostic::warning(Code::NoVersion, message).at(crd.source, place, ""));
        return Some(fallback);
    }
    let known: Vec<&str> = crd
        .versions
        .iter()
        .map(|version| version.name.as_str())
        .collect();
    diagnostics.push(
        Diagnostic::error(
            Code::NoVersion,
            format!("`{}` has no version to generate types for", crd.name),
        )
        .at(crd.source, place, "")
        .help(format!("it defines {}", known.join(", "))),
    );
    None
}
