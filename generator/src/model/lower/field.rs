//! Resolves the field of a handler to its Rust type.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::model::builtin_kinds::BuiltinKind;
use crate::model::field_lookup::UnknownField;
use crate::model::generated_types::Ty;
use crate::model::k8s_types;
use crate::model::resource::CustomResource;
use crate::model::schema_check::JsonType;
use crate::rust::{RustPath, RustType};
use crate::suggest::nearest;

/// The description of the fields of a kind.
pub(super) enum FieldSource<'a> {
    /// The schema of a CRD.
    Custom(&'a CustomResource),
    /// The structs of k8s-openapi.
    Builtin(&'static BuiltinKind),
    /// Only the fields that all objects have.
    Selected,
}

impl FieldSource<'_> {
    pub(super) fn resolve(
        &self,
        keys: &[String],
        source: SourceId,
        span: Span,
        diagnostics: &mut Diagnostics,
    ) -> Option<RustType> {
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        match self.find(&names) {
            Ok(rust) => Some(rust),
            Err(unknown) => {
                diagnostics.push(
                    self.report(&names, &unknown)
                        .at_field(source, span, &unknown),
                );
                None
            }
        }
    }

    /// The type at a path.
    fn find(&self, names: &[&str]) -> Result<RustType, UnknownField> {
        match self {
            Self::Custom(resource) => resource
                .field(resource.main_version(), names)
                .map(|field| field.rust),
            Self::Builtin(kind) => typed(names, |name| top(kind, name)),
            Self::Selected => typed(names, universal),
        }
    }

    fn report(&self, names: &[&str], unknown: &UnknownField) -> UnknownFieldReport {
        let kind = match self {
            Self::Custom(resource) => {
                format!("{} {}", resource.names.kind, resource.main_version().name)
            }
            Self::Builtin(kind) => kind.name(),
            Self::Selected => "every object".to_owned(),
        };
        let parent: Vec<&str> = unknown
            .parent
            .split('.')
            .filter(|name| !name.is_empty())
            .collect();
        let leaf = self.find(&parent).ok().and_then(|found| {
            Some(match JsonType::of_rust_type(&found)? {
                JsonType::Boolean => "a boolean",
                JsonType::String => "a string",
                JsonType::Integer | JsonType::Number => "a number",
                JsonType::List => "a list",
                JsonType::IntegerOrString | JsonType::Mapping => return None,
            })
        });
        UnknownFieldReport {
            message: format!("`{}` is not a field of {kind}", names.join(".")),
            leaf,
        }
    }
}

/// A diagnostic about a path that does not exist.
struct UnknownFieldReport {
    message: String,
    /// The type at which the path ends, if it has no fields.
    leaf: Option<&'static str>,
}

impl UnknownFieldReport {
    fn at_field(self, source: SourceId, span: Span, unknown: &UnknownField) -> Diagnostic {
        let UnknownField {
            name,
            parent,
            similar,
        } = unknown;
        let diagnostic = Diagnostic::error(Code::UnknownField, self.message);
        if let Some(leaf) = self.leaf {
            return diagnostic
                .at(source, span, format!("`{parent}` is {leaf}"))
                .help(format!(
                    "use `{parent}`, and read its content in the function"
                ));
        }
        let place = if parent.is_empty() {
            "at the top".to_owned()
        } else {
            format!("in `{parent}`")
        };
        let best = nearest(name, similar.iter().map(String::as_str))
            .or(similar.first().map(String::as_str));
        diagnostic
            .at(source, span, format!("there is no `{name}` {place}"))
            .maybe_help(best.map(|best| format!("did you mean `{best}`?")))
    }
}

/// The type at a path of a kind of k8s-openapi; JSON where the table has no type.
fn typed(names: &[&str], top: impl Fn(&str) -> Ty) -> Result<RustType, UnknownField> {
    let mut here: Option<Ty> = None;
    for (depth, name) in names.iter().enumerate() {
        let next = match &here {
            None => Ok(top(name)),
            Some(Ty::Json) => Ok(Ty::Json),
            Some(Ty::Map(value)) => Ok((**value).clone()),
            Some(Ty::Existing(known)) => match k8s_types::member(known, name) {
                Ok((ty, _)) => Ok(ty),
                Err(known) if known.is_empty() => Ok(Ty::Json),
                Err(known) => Err(known),
            },
            Some(_) => Err(Vec::new()),
        };
        here = Some(next.map_err(|known| {
            UnknownField {
                name: (*name).to_owned(),
                parent: names[..depth].join("."),
                similar: nearest(name, known.iter().copied())
                    .map(str::to_owned)
                    .into_iter()
                    .collect(),
            }
        })?);
    }
    // No type is generated for these kinds.
    let shape = |_| RustPath::external("serde_json::Value");
    Ok(here.unwrap_or(Ty::Json).rust(&shape))
}

fn top(kind: &BuiltinKind, name: &str) -> Ty {
    let api = format!("api::{}::{}", kind.module, kind.kind);
    let known = match name {
        "spec" => k8s_types::named(&format!("{api}Spec")),
        "status" => k8s_types::named(&format!("{api}Status")),
        _ => None,
    };
    known.map_or_else(|| universal(name), Ty::Existing)
}

/// The type of a field of any object.
fn universal(name: &str) -> Ty {
    match name {
        "apiVersion" | "kind" => Ty::String,
        "metadata" => k8s_types::OBJECT_META.ty(),
        _ => Ty::Json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_builtin_kinds_are_typed() {
        let pod = crate::model::builtin_kinds::find("v1/Pod").expect("a Pod");
        let text = |found: Result<RustType, _>| found.map(|ty| ty.to_string());
        let builtin = |names: &[&str]| text(typed(names, |name| top(pod, name)));
        assert_eq!(builtin(&["status", "phase"]).as_deref(), Ok("String"));
        assert_eq!(
            builtin(&["spec", "containers"]).as_deref(),
            Ok("Vec<k8s_openapi::api::core::v1::Container>")
        );
        let error = builtin(&["spec", "nodename"]).expect_err("it is spelled otherwise");
        assert_eq!(error.similar, ["nodeName"]);
    }

    #[test]
    fn fields_that_all_objects_have_are_typed_and_others_are_json() {
        let selected = |names: &[&str]| typed(names, universal).map(|ty| ty.to_string());
        assert_eq!(
            selected(&["metadata", "labels"]).as_deref(),
            Ok("std::collections::BTreeMap<String, String>")
        );
        assert_eq!(
            selected(&["spec", "any", "depth"]).as_deref(),
            Ok("serde_json::Value")
        );
        let error = selected(&["metadata", "label"]).expect_err("it is spelled otherwise");
        assert_eq!(error.similar, ["labels"]);
    }
}
