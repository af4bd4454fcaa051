//! Resolves the field of a handler to its Rust type.

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Span};
use crate::model::builtin_kinds::BuiltinKind;
use crate::model::field_lookup::UnknownField;
use crate::model::generated_types::{ExistingType, Ty};
use crate::model::handler::ImportedType;
use crate::model::k8s_types;
use crate::model::resource::CustomResource;
use crate::suggest::nearest;

/// The module of the types, relative to the module of a kind.
const TYPES: &str = "super::types";

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
    ) -> Option<ImportedType> {
        let names: Vec<&str> = keys.iter().map(String::as_str).collect();
        match self.find(&names) {
            Ok(rust) => Some(ImportedType::from_paths(&rust)),
            Err(unknown) => {
                diagnostics.push(
                    self.report(&names, &unknown)
                        .at_field(source, span, &unknown),
                );
                None
            }
        }
    }

    /// The type at a path, with the full path of each name in it.
    fn find(&self, names: &[&str]) -> Result<String, UnknownField> {
        match self {
            Self::Custom(resource) => resource
                .field(resource.main_version(), names, TYPES)
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
        let leaf = match self.find(&parent).as_deref() {
            Ok("bool") => Some("a boolean"),
            Ok("String") => Some("a string"),
            Ok("f64" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64") => {
                Some("a number")
            }
            Ok(list) if list.starts_with("Vec<") => Some("a list"),
            _ => None,
        };
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
fn typed(names: &[&str], top: impl Fn(&str) -> Ty) -> Result<String, UnknownField> {
    let mut here: Option<Ty> = None;
    for (depth, name) in names.iter().enumerate() {
        let next = match &here {
            None => Ok(top(name)),
            Some(Ty::Json) => Ok(Ty::Json),
            Some(Ty::Map(value)) => Ok((**value).clone()),
            Some(Ty::Existing(known)) => match k8s_types::member(&known.path, name) {
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
    Ok(here
        .as_ref()
        .map_or_else(|| "serde_json::Value".to_owned(), text))
}

fn top(kind: &BuiltinKind, name: &str) -> Ty {
    let api = format!("k8s_openapi::api::{}::{}", kind.module, kind.kind);
    let known = |path: String| {
        Ty::Existing(ExistingType {
            path,
            default: true,
        })
    };
    match name {
        "spec" if k8s_types::is_known(&format!("{api}Spec")) => known(format!("{api}Spec")),
        "status" if k8s_types::is_known(&format!("{api}Status")) => known(format!("{api}Status")),
        _ => universal(name),
    }
}

/// The type of a field of any object.
fn universal(name: &str) -> Ty {
    match name {
        "apiVersion" | "kind" => Ty::String,
        "metadata" => k8s_types::OBJECT_META.ty(),
        _ => Ty::Json,
    }
}

/// A type with the full path of each name in it.
fn text(ty: &Ty) -> String {
    match ty {
        Ty::Bool => "bool".to_owned(),
        Ty::Int(int) => int.name().to_owned(),
        Ty::Float => "f64".to_owned(),
        Ty::String => "String".to_owned(),
        Ty::Existing(known) => known.path.clone(),
        Ty::Vec(item) => format!("Vec<{}>", text(item)),
        Ty::Map(value) => format!("std::collections::BTreeMap<String, {}>", text(value)),
        Ty::Nullable(inner) => format!("Option<{}>", text(inner)),
        Ty::Json | Ty::Shape(_) => "serde_json::Value".to_owned(),
    }
}

// === impl ImportedType ===

impl ImportedType {
    /// Shortens the paths in a type: `Vec<a::B>` becomes `Vec<B>`, and `a::B` an import.
    fn from_paths(full: &str) -> Self {
        let mut short = String::new();
        let mut paths = Vec::new();
        let mut word = String::new();
        for c in full.chars().chain(['\0']) {
            if c.is_alphanumeric() || matches!(c, '_' | ':' | '#') {
                word.push(c);
                continue;
            }
            let name = word.rsplit("::").next().unwrap_or_default();
            short.push_str(name);
            if name.len() < word.len() {
                paths.push(word.clone());
            }
            word.clear();
            if c != '\0' {
                short.push(c);
            }
        }
        paths.sort();
        paths.dedup();
        Self { text: short, paths }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_imports() {
        let ty = ImportedType::from_paths(
            "std::collections::BTreeMap<String, Vec<super::types::a::v1::B>>",
        );
        assert_eq!(ty.text, "BTreeMap<String, Vec<B>>");
        assert_eq!(
            ty.paths,
            ["std::collections::BTreeMap", "super::types::a::v1::B"]
        );
    }

    #[test]
    fn fields_of_builtin_kinds_are_typed() {
        let pod = crate::model::builtin_kinds::find("v1/Pod").expect("a Pod");
        let builtin = |names: &[&str]| typed(names, |name| top(pod, name));
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
        let selected = |names: &[&str]| typed(names, universal);
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
