//! Checks the paths of `uses`: the fields of an object that name what it uses.

use crate::diagnostic::{Code, Diagnostic, SourceId};
use crate::load::manifest::Spanned;
use crate::load::schema::{Schema, SchemaType};
use crate::model::operator::HandledKind;
use crate::suggest::did_you_mean;

/// The items of a list, after its name.
const ITEMS: &str = "[]";

/// The problem of a path, if it has one.
pub(super) fn check(
    path: &Spanned<String>,
    owner: &HandledKind,
    schema: Option<&Schema>,
    source: SourceId,
) -> Option<Diagnostic> {
    let parts: Vec<&str> = path.value.split('.').collect();
    let is_name = |part: &&str| {
        let name = part.strip_suffix(ITEMS).unwrap_or(part);
        !name.is_empty() && !name.contains(['[', ']', '{', '}', '"', ' '])
    };
    if !parts.iter().all(is_name) {
        let message = format!("`{}` is not a field path", path.value);
        let help = "write it like `spec.secretRef.name`, or `spec.secrets[].name` for a list";
        return Some(
            Diagnostic::error(Code::UnknownField, message)
                .at(source, path.span, "not a path")
                .help(help),
        );
    }
    // The schema of a definition says nothing about metadata.
    if parts.first() == Some(&"metadata") {
        return None;
    }
    let problem = find(&parts, schema?).err()?;
    let message = format!("`{}` is no name in a field of {}", path.value, owner.kind);
    Some(
        Diagnostic::error(Code::UnknownField, message)
            .at(source, path.span, problem.label)
            .maybe_help(problem.help),
    )
}

struct PathProblem {
    label: String,
    help: Option<String>,
}

fn find(parts: &[&str], root: &Schema) -> Result<(), PathProblem> {
    let mut here = root;
    for part in parts {
        let name = part.strip_suffix(ITEMS).unwrap_or(part);
        let mut properties = here.properties.iter();
        let Some(property) = properties.find(|property| property.name == name) else {
            if here.preserve_unknown || here.additional.is_some() {
                return Ok(());
            }
            let names = here.properties.iter().map(|it| it.name.as_str());
            return Err(PathProblem {
                label: format!("there is no `{name}`"),
                help: did_you_mean(name, names),
            });
        };
        here = &property.schema;
        let is_list = here.kind == Some(SchemaType::Array);
        let takes_items = part.ends_with(ITEMS);
        match (is_list, takes_items, &here.items) {
            (true, true, Some(items)) => here = items,
            (true, false, _) => {
                return Err(PathProblem {
                    label: format!("`{name}` is a list"),
                    help: Some(format!("write `{name}[]` for each of its items")),
                });
            }
            (false, true, _) => {
                return Err(PathProblem {
                    label: format!("`{name}` is not a list"),
                    help: Some(format!("write `{name}` without `[]`")),
                });
            }
            (true, true, None) | (false, false, _) => {}
        }
    }
    match here.kind {
        Some(SchemaType::String) | None => Ok(()),
        Some(_) => Err(PathProblem {
            label: "not a text".to_owned(),
            help: Some("name the field with the name of the object".to_owned()),
        }),
    }
}
