//! The module of a resource: its versions and the embedded definition.

use syn::parse_quote;

use super::{doc_comments, literal, version};
use crate::model::resource::{CustomResource, TypedVersion};
use crate::plan::TypesLayout;
use crate::rust::{Lint, RustItem, RustModule, RustPath, ident};

/// A crate uses only a part of its types.
const UNUSED: Lint = Lint {
    names: &["dead_code", "unused_imports"],
    reason: Some("not all of it is used"),
};

/// The module of a resource.
pub(super) fn resource(resource: &CustomResource, layout: TypesLayout) -> RustModule {
    let mut versions: Vec<&TypedVersion> = resource.versions.iter().collect();
    versions.sort_by(|a, b| a.module.cmp(&b.module));
    let mut items: Vec<RustItem> = versions
        .into_iter()
        .map(|version| RustItem::Module {
            name: ident(version.module.as_str()),
            keeps_layout: layout == TypesLayout::Inline,
            body: match layout {
                TypesLayout::Inline => Some(version::module(resource, version)),
                TypesLayout::Files => None,
            },
        })
        .collect();
    if let Some(json) = &resource.crd_json {
        items.extend(definition(resource, json, layout));
    }
    RustModule {
        docs: doc_comments::lines::<&str>(&summary(resource), &[]),
        allowed: vec![UNUSED],
        items,
        ..RustModule::default()
    }
}

/// The embedded definition, as text and as an object.
fn definition(resource: &CustomResource, json: &str, layout: TypesLayout) -> [RustItem; 2] {
    let json: syn::Expr = match layout {
        TypesLayout::Inline => literal::json_text(json),
        TypesLayout::Files => {
            let file = format!("{}/crd.json", resource.module.bare());
            parse_quote!(include_str!(#file))
        }
    };
    let definition = RustPath::external(
        "k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition",
    );
    [
        RustItem::code(parse_quote! {
            /// The CRD from which these types were generated, as JSON.
            pub const CRD: &str = #json;
        }),
        RustItem::code(parse_quote! {
            /// The CRD from which these types were generated.
            pub fn crd() -> #definition {
                ::serde_json::from_str(CRD).expect("the generator has parsed this CRD")
            }
        }),
    ]
}

/// One module with a module per resource.
pub(super) fn bundle(resources: &[CustomResource]) -> RustModule {
    bundled(resources, |resource| {
        Some(self::resource(resource, TypesLayout::Inline))
    })
}

/// One module that declares the modules of all resources.
pub(super) fn index(resources: &[CustomResource]) -> RustModule {
    bundled(resources, |_| None)
}

fn bundled(
    resources: &[CustomResource],
    body: impl Fn(&CustomResource) -> Option<RustModule>,
) -> RustModule {
    let mut resources: Vec<&CustomResource> = resources.iter().collect();
    resources.sort_by(|a, b| a.module.cmp(&b.module));
    let items = resources.into_iter().map(|resource| RustItem::Module {
        name: ident(resource.module.as_str()),
        keeps_layout: true,
        body: body(resource),
    });
    RustModule {
        docs: vec!["Types of custom resources.".to_owned()],
        items: items.collect(),
        ..RustModule::default()
    }
}

fn summary(resource: &CustomResource) -> String {
    let storage = resource.versions.iter().find(|version| version.storage);
    let stored = storage.map(|version| format!(" Objects are stored as `{}`.", version.name));
    format!(
        "`{}` of `{}`.{}",
        resource.names.kind,
        resource.group,
        stored.unwrap_or_default()
    )
}
