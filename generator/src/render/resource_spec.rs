//! The names of a kind, as generated code gives them to the runtime.

use syn::{Expr, parse_quote};

use crate::load::crd::Scope;
use crate::model::status_subresource::StatusSubresource;
use crate::rust::ident;

/// The names of a kind: group, version, kind and plural.
pub(super) fn resource_spec(
    [group, version, name, plural]: [&String; 4],
    scope: Scope,
    status: StatusSubresource,
) -> Expr {
    let scope = ident(match scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    });
    let status = ident(match status {
        StatusSubresource::Present => "Present",
        StatusSubresource::Absent => "Absent",
    });
    parse_quote! {
        ::kopf_runtime::ResourceSpec {
            group: #group,
            version: #version,
            kind: #name,
            plural: #plural,
            scope: ::kopf_runtime::Scope::#scope,
            status: ::kopf_runtime::StatusSubresource::#status,
        }
    }
}
