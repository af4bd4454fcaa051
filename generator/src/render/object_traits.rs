//! The traits by which the runtime reaches the parts of an object: its spec, status and conditions.

use syn::parse_quote;

use crate::model::object_parts::ObjectParts;
use crate::model::operator::{HandledKind, KindOrigin};
use crate::rust::{RustItem, ident};

/// The `impl`s for the type of a kind; none for types that are not generated.
pub(super) fn impls(kind: &HandledKind) -> Vec<RustItem> {
    let KindOrigin::Custom(resource) = &kind.origin else {
        return Vec::new();
    };
    let object = kind.object_path();
    let ObjectParts {
        spec,
        status,
        conditions,
    } = resource.object_parts(resource.main_version());
    let spec = spec.map(|spec| {
        let (field, ty) = (ident(spec.field.as_str()), spec.ty);
        parse_quote! {
            impl ::kopf_runtime::HasSpec for #object {
                type Spec = #ty;

                fn spec(&self) -> &Self::Spec {
                    &self.#field
                }

                fn spec_mut(&mut self) -> &mut Self::Spec {
                    &mut self.#field
                }
            }
        }
    });
    let status = status.map(|status| {
        let (field, ty) = (ident(status.field.as_str()), status.ty);
        parse_quote! {
            impl ::kopf_runtime::HasStatus for #object {
                type Status = #ty;

                fn status(&self) -> ::std::option::Option<&Self::Status> {
                    self.#field.as_ref()
                }

                fn status_mut(&mut self) -> &mut ::std::option::Option<Self::Status> {
                    &mut self.#field
                }
            }
        }
    });
    let conditions = conditions.map(|conditions| {
        let observed = conditions.observed_generation;
        parse_quote! {
            impl ::kopf_runtime::HasConditions for #object {
                const OBSERVED_GENERATION: bool = #observed;
            }
        }
    });
    let items = spec.into_iter().chain(status).chain(conditions);
    items.map(RustItem::code).collect()
}
