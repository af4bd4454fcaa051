//! The module of one version.

use std::cell::RefCell;

use syn::parse_quote;

use super::doc_comments;
use super::stand_in;
use super::version_writer::{
    CLONE, DEBUG, DEFAULT, DESERIALIZE, EQ, PARTIAL_EQ, SERIALIZE, VersionWriter,
};
use crate::model::DefiningModule;
use crate::model::default_functions::DefaultFunctions;
use crate::model::default_values::Defaults;
use crate::model::generated_types::{Shape, ShapeBody, ShapeId};
use crate::model::identifier::TypeName;
use crate::model::resource::{CustomResource, TypedVersion};
use crate::rust::{Lint, RustItem, RustModule, RustPath, ident};

/// The derives of values that are numbers or strings.
const MIXED_DERIVES: &[&str] = &[CLONE, DEBUG, PARTIAL_EQ, EQ, DESERIALIZE, SERIALIZE];

/// The numbers of a schema that clippy takes for imprecise constants.
const CONSTANTS: Lint = Lint {
    names: &["clippy::approx_constant"],
    reason: Some("the numbers come from the schema"),
};

/// The module of a version.
pub(super) fn module(resource: &CustomResource, version: &TypedVersion) -> RustModule {
    let defaults = Defaults::new(&resource.shapes);
    let mut writer = VersionWriter {
        resource,
        version,
        functions: DefaultFunctions::new(resource, version, &defaults),
        defaults,
        derive_paths: RefCell::default(),
        nullable: false,
        undeclared: false,
        constants: false,
    };
    let mut items = writer.shared();
    items.extend(writer.root());
    for (id, name) in &version.type_names.defined {
        items.extend(writer.shape(*id, name));
    }
    items.extend(writer.functions());
    RustModule {
        docs: doc_comments::lines::<&str>(&summary(resource, version), &[]),
        allowed: writer.constants.then_some(CONSTANTS).into_iter().collect(),
        location: Vec::new(),
        traits: vec![RustPath::external("serde::ser::SerializeMap")],
        items,
    }
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
    fn shape(&mut self, id: ShapeId, name: &TypeName) -> Vec<RustItem> {
        let shapes = &self.resource.shapes;
        let (shape, docs) = (shapes.shape(id), shapes.docs(id));
        let names = shapes.variant_names(id);
        match &shape.body {
            ShapeBody::Struct(body) => self.structure(id, body, name, docs),
            ShapeBody::StringEnum(values) => {
                vec![self.string_enum(values, names, name, docs, shape)]
            }
            ShapeBody::IntEnum(values) => self.int_enum(values, names, name, docs, shape),
            ShapeBody::Quantity => {
                let mut items = self.quantity(name, self.mixed_derives(shape));
                items.extend(shape.derives_default().then(|| stand_in::empty_text(name)));
                items
            }
            ShapeBody::IntOrString => {
                let mut items = self.int_or_string(name, self.mixed_derives(shape));
                items.extend(shape.derives_default().then(|| stand_in::zero(name)));
                items
            }
            ShapeBody::Time => self.time(name, &shape.derives),
            ShapeBody::Duration => self.duration(name, &shape.derives),
            ShapeBody::Alias(ty) => vec![RustItem::Alias(ident(name.as_str()), self.ty(ty))],
            ShapeBody::Union(variants) => {
                vec![self.union(variants, names, name, docs, shape)]
            }
            ShapeBody::Untagged(types) => vec![self.untagged(types, name, docs, shape)],
        }
    }

    /// The derives of an enum of a number and a text.
    fn mixed_derives(&self, shape: &Shape) -> Vec<RustPath> {
        self.without(DEFAULT, self.derives(MIXED_DERIVES, &shape.derives))
    }

    /// The re-exports of types that other modules define.
    fn shared(&self) -> Vec<RustItem> {
        let mut items = Vec::new();
        for (module, names) in &self.version.type_names.shared {
            for (there, here) in names {
                let path = self.path_in(module, there);
                items.push(RustItem::Reexport(path, ident(here.as_str())));
            }
        }
        items
    }

    fn path_in(&self, module: &DefiningModule, name: &TypeName) -> RustPath {
        match module {
            DefiningModule::Version(rank) => {
                let version = &self.resource.versions[*rank].module;
                RustPath::above(1, &[version.as_str(), name.as_str()])
            }
            DefiningModule::Resource { resource, version } => {
                RustPath::above(2, &[resource.as_str(), version.as_str(), name.as_str()])
            }
        }
    }

    /// The functions that serde attributes name.
    fn functions(&mut self) -> Vec<RustItem> {
        let functions = std::mem::take(&mut self.functions);
        let mut items: Vec<RustItem> = functions
            .sorted()
            .into_iter()
            .map(|function| {
                let (name, value) = (ident(function.name.as_str()), self.value(&function.value));
                let values = self.ty(&function.ty);
                let ty = match function.nullable {
                    true => values.optional(),
                    false => values,
                };
                let mut item: syn::ItemFn = parse_quote!(fn #name() -> #ty {});
                item.block.stmts.push(syn::Stmt::Expr(value, None));
                RustItem::code(syn::Item::Fn(item))
            })
            .collect();
        if self.nullable {
            items.push(RustItem::code(parse_quote! {
                /// Distinguishes null from an absent value.
                fn present<'de, D, T>(
                    deserializer: D,
                ) -> ::std::result::Result<::std::option::Option<T>, D::Error>
                where
                    D: ::serde::Deserializer<'de>,
                    T: ::serde::Deserialize<'de>,
                {
                    T::deserialize(deserializer).map(::std::option::Option::Some)
                }
            }));
        }
        if self.undeclared {
            items.push(RustItem::code(parse_quote! {
                /// The undeclared members of the object, without `apiVersion` and `kind`.
                fn undeclared<'de, D, T>(
                    deserializer: D,
                ) -> ::std::result::Result<
                    ::std::collections::BTreeMap<::std::string::String, T>,
                    D::Error,
                >
                where
                    D: ::serde::Deserializer<'de>,
                    T: ::serde::Deserialize<'de>,
                {
                    let mut members: ::std::collections::BTreeMap<::std::string::String, T> =
                        ::serde::Deserialize::deserialize(deserializer)?;
                    members.remove("apiVersion");
                    members.remove("kind");
                    ::std::result::Result::Ok(members)
                }
            }));
        }
        items
    }
}
