//! The object at the root of a version.

use quote::format_ident;
use syn::parse_quote;

use super::doc_comments;
use super::structure::{FieldOwner, container};
use super::version_writer::{
    CLONE, DEBUG, DEFAULT, DESERIALIZE, PARTIAL_EQ, SERIALIZE, VersionWriter,
};
use crate::load::crd::Scope;
use crate::model::default_values::DefaultImpl;
use crate::model::phrases::article;
use crate::model::resource::{CustomResource, TypedVersion};
use crate::rust::{RustField, RustItem, RustPath, RustStruct, RustType, ident};

/// The metadata of every object.
const OBJECT_META: &str = "k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta";

impl VersionWriter<'_> {
    pub(super) fn root(&mut self) -> Vec<RustItem> {
        let (resource, version) = (self.resource, self.version);
        let body = &version.root.body;
        let (names, docs) = (&version.root.names, &version.root.docs);
        let mut fields = self.fields(body, names, docs, FieldOwner::Root);
        fields.insert(
            0,
            RustField {
                docs: Vec::new(),
                serde: Vec::new(),
                name: ident("metadata"),
                ty: RustType::external(OBJECT_META),
            },
        );
        let default = self.defaults.of_struct(body);
        let mut standard = vec![CLONE, DEBUG];
        standard.extend((default == DefaultImpl::Derived).then_some(DEFAULT));
        standard.extend([PARTIAL_EQ, DESERIALIZE]);
        let mut derives = self.derives(&standard, &version.root.derives);
        // What an option asks for may be impossible.
        if default != DefaultImpl::Derived {
            derives = self.without(DEFAULT, derives);
        }
        let name = ident(resource.type_name.as_str());
        let mut items = vec![RustItem::Struct(RustStruct {
            docs: doc_comments::lines::<&str>(&root_text(resource, version), &[]),
            derives: self.without(SERIALIZE, derives),
            serde: container(names.rule),
            name: name.clone(),
            fields,
        })];
        items.extend(resource_impls(resource, version, &name));
        items.push(self.serialize_impl(&name));
        if default == DefaultImpl::Written {
            items.push(self.default_impl(&name, body, names, FieldOwner::Root));
        }
        items
    }

    /// The serialization, which writes the kind although that is not a field.
    fn serialize_impl(&self, name: &syn::Ident) -> RustItem {
        let root = &self.version.root;
        let fields = root.body.fields.iter().zip(root.names.rust());
        let members = fields.map(|(field, member)| -> syn::Stmt {
            let (json, member) = (&field.json, ident(member.as_str()));
            if self.defaults.is_optional(field) {
                parse_quote! {
                    if let ::std::option::Option::Some(#member) = &self.#member {
                        map.serialize_entry(#json, #member)?;
                    }
                }
            } else {
                parse_quote!(map.serialize_entry(#json, &self.#member)?;)
            }
        });
        let rest = root.names.other.as_ref().map(|rest| -> syn::Stmt {
            let rest = ident(rest.as_str());
            parse_quote! {
                for (key, value) in &self.#rest {
                    map.serialize_entry(key, value)?;
                }
            }
        });
        let members = members.chain(rest);
        let api_version = api_version(self.resource, self.version);
        let kind = &self.resource.names.kind;
        RustItem::code(parse_quote! {
            impl ::serde::Serialize for #name {
                fn serialize<S: ::serde::Serializer>(
                    &self,
                    serializer: S,
                ) -> ::std::result::Result<S::Ok, S::Error> {
                    let mut map = serializer.serialize_map(::std::option::Option::None)?;
                    map.serialize_entry("apiVersion", #api_version)?;
                    map.serialize_entry("kind", #kind)?;
                    map.serialize_entry("metadata", &self.metadata)?;
                    #(#members)*
                    map.end()
                }
            }
        })
    }
}

fn api_version(resource: &CustomResource, version: &TypedVersion) -> String {
    format!("{}/{}", resource.group, version.name)
}

/// The traits of k8s-openapi, by which clients know the kind.
fn resource_impls(
    resource: &CustomResource,
    version: &TypedVersion,
    name: &syn::Ident,
) -> [RustItem; 2] {
    let (group, kind) = (&resource.group, &resource.names.kind);
    let (version_name, plural) = (&version.name, &resource.names.plural);
    let api_version = api_version(resource, version);
    let scope = format_ident!(
        "{}ResourceScope",
        match resource.scope {
            Scope::Namespaced => "Namespace",
            Scope::Cluster => "Cluster",
        }
    );
    let meta = RustPath::external(OBJECT_META);
    let resource = parse_quote! {
        impl ::k8s_openapi::Resource for #name {
            const API_VERSION: &'static str = #api_version;
            const GROUP: &'static str = #group;
            const KIND: &'static str = #kind;
            const VERSION: &'static str = #version_name;
            const URL_PATH_SEGMENT: &'static str = #plural;
            type Scope = ::k8s_openapi::#scope;
        }
    };
    let metadata = parse_quote! {
        impl ::k8s_openapi::Metadata for #name {
            type Ty = #meta;

            fn metadata(&self) -> &#meta {
                &self.metadata
            }

            fn metadata_mut(&mut self) -> &mut #meta {
                &mut self.metadata
            }
        }
    };
    [RustItem::code(resource), RustItem::code(metadata)]
}

fn root_text(resource: &CustomResource, version: &TypedVersion) -> String {
    let text = if version.root.docs.text.trim().is_empty() {
        let kind = &resource.names.kind;
        let article = if article(kind) == "an" { "An" } else { "A" };
        format!(
            "{article} `{kind}` of `{}/{}`.",
            resource.group, version.name
        )
    } else {
        version.root.docs.text.clone()
    };
    format!("{text}\n\n{}", root_notes(resource, version).join(" "))
}

/// Facts about the resource for its doc comment.
fn root_notes(resource: &CustomResource, version: &TypedVersion) -> Vec<String> {
    let quoted = |names: &[String]| format!("`{}`", names.join("`, `"));
    let mut notes = Vec::new();
    if let Some(warning) = &version.deprecated {
        notes.push(format!("Deprecated. {warning}").trim_end().to_owned());
    }
    if !resource.names.short_names.is_empty() {
        notes.push(format!(
            "Short names: {}.",
            quoted(&resource.names.short_names)
        ));
    }
    if !resource.names.categories.is_empty() {
        notes.push(format!(
            "Categories: {}.",
            quoted(&resource.names.categories)
        ));
    }
    if !version.columns.is_empty() {
        let columns: Vec<String> = version
            .columns
            .iter()
            .map(|c| format!("{} (`{}`)", c.name, c.path))
            .collect();
        notes.push(format!("Printed columns: {}.", columns.join(", ")));
    }
    let subresources: Vec<&str> = [
        (version.status, "`status`"),
        (version.scale.is_some(), "`scale`"),
    ]
    .into_iter()
    .filter_map(|(there, name)| there.then_some(name))
    .collect();
    if !subresources.is_empty() {
        notes.push(format!("Subresources: {}.", subresources.join(", ")));
    }
    if !version.selectable_fields.is_empty() {
        notes.push(format!(
            "Selectable fields: {}.",
            quoted(&version.selectable_fields)
        ));
    }
    notes
}
