//! Enums: of strings, of integers, of alternative members and of alternative types.

use askama::Template;

use super::doc_comments;
use super::serde_attributes::{container, serde_lines};
use super::serde_rename;
use super::version_writer::{VersionWriter, print};
use crate::model::generated_types::{ShapeDocs, Ty};
use crate::model::identifier::{TypeName, variants};

#[derive(Template)]
#[template(path = "types/enum.rs")]
struct EnumView<'a> {
    docs: Vec<String>,
    attributes: Vec<String>,
    name: &'a TypeName,
    variants: Vec<VariantView>,
}

struct VariantView {
    docs: Vec<String>,
    attributes: Vec<String>,
    text: String,
}

#[derive(Template)]
#[template(path = "types/int_enum.rs")]
struct IntEnumView<'a> {
    name: &'a TypeName,
    variants: Vec<(TypeName, i64)>,
    open: bool,
}

#[derive(Template)]
#[template(path = "types/quantity.rs")]
pub(super) struct QuantityView<'a> {
    pub(super) name: &'a TypeName,
    pub(super) derives: String,
}

#[derive(Template)]
#[template(path = "types/int_or_string.rs")]
pub(super) struct IntOrStringView<'a> {
    pub(super) name: &'a TypeName,
    pub(super) derives: String,
}

impl VersionWriter<'_> {
    pub(super) fn string_enum(
        &mut self,
        values: &[String],
        name: &TypeName,
        docs: &ShapeDocs,
        more: &[String],
    ) -> String {
        let open = self.options.open_enums;
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        let mut names = variants(&texts);
        let rule = serde_rename::for_variants(
            &names
                .iter()
                .map(TypeName::as_str)
                .zip(texts.iter().copied()),
        );
        let mut views: Vec<VariantView> = names
            .iter()
            .zip(&texts)
            .map(|(name, text)| VariantView {
                docs: Vec::new(),
                attributes: (rule.variant(name.as_str()) != *text)
                    .then(|| format!("#[serde(rename = {text:?})]"))
                    .into_iter()
                    .collect(),
                text: name.to_string(),
            })
            .collect();
        if open {
            let other = other_variant(&names);
            views.push(VariantView {
                docs: vec!["/// A value that the schema does not list.".to_owned()],
                attributes: vec!["#[serde(untagged)]".to_owned()],
                text: format!("{other}(String)"),
            });
            names.push(other);
        }
        let standard: &[&str] = if open {
            &[
                "Clone",
                "Debug",
                "PartialEq",
                "Eq",
                "Deserialize",
                "Serialize",
            ]
        } else {
            &[
                "Clone",
                "Copy",
                "Debug",
                "PartialEq",
                "Eq",
                "Deserialize",
                "Serialize",
            ]
        };
        let mut attributes = vec![format!("#[derive({})]", self.derive_list(standard, more))];
        attributes.extend(serde_lines(&container(rule)));
        attributes.extend(repetition(name, &names));
        print(&EnumView {
            docs: doc_comments::outer::<&str>(&docs.text, &[]),
            attributes,
            name,
            variants: views,
        })
    }

    pub(super) fn int_enum(
        &mut self,
        values: &[i64],
        name: &TypeName,
        docs: &ShapeDocs,
        more: &[String],
    ) -> Vec<String> {
        let open = self.options.open_enums;
        let texts: Vec<String> = values.iter().map(ToString::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let names = variants(&texts);
        let mut views: Vec<VariantView> = names
            .iter()
            .map(|name| VariantView {
                docs: Vec::new(),
                attributes: Vec::new(),
                text: name.to_string(),
            })
            .collect();
        if open {
            views.push(VariantView {
                docs: vec!["/// A value that the schema does not list.".to_owned()],
                attributes: Vec::new(),
                text: "Other(i64)".to_owned(),
            });
        }
        let derives = self.derive_list(
            &[
                "Clone",
                "Copy",
                "Debug",
                "PartialEq",
                "Eq",
                "Deserialize",
                "Serialize",
            ],
            more,
        );
        let from = if open { "from" } else { "try_from" };
        let view = EnumView {
            docs: doc_comments::outer::<&str>(&docs.text, &[]),
            attributes: vec![
                format!("#[derive({derives})]"),
                format!("#[serde({from} = \"i64\", into = \"i64\")]"),
            ],
            name,
            variants: views,
        };
        let conversions = IntEnumView {
            name,
            variants: names.into_iter().zip(values.iter().copied()).collect(),
            open,
        };
        vec![print(&view), print(&conversions)]
    }

    pub(super) fn union(
        &mut self,
        members: &[(String, Ty)],
        name: &TypeName,
        docs: &ShapeDocs,
        more: &[String],
    ) -> String {
        let texts: Vec<&str> = members.iter().map(|(json, _)| json.as_str()).collect();
        let names = variants(&texts);
        let rule = serde_rename::for_variants(
            &names
                .iter()
                .map(TypeName::as_str)
                .zip(texts.iter().copied()),
        );
        let mut views = Vec::new();
        for (index, (variant, (json, ty))) in names.iter().zip(members).enumerate() {
            let member = docs.fields.get(index).cloned().unwrap_or_default();
            // Boxed, because a member can be of any size.
            let ty = match ty {
                Ty::Shape(_) | Ty::Existing(_) => format!("Box<{}>", self.ty(ty)),
                _ => self.ty(ty),
            };
            views.push(VariantView {
                docs: doc_comments::outer(&member.text, &member.limits),
                attributes: (rule.variant(variant.as_str()) != *json)
                    .then(|| format!("#[serde(rename = {json:?})]"))
                    .into_iter()
                    .collect(),
                text: format!("{variant}({ty})"),
            });
        }
        let derives = self.derive_list(
            &["Clone", "Debug", "PartialEq", "Deserialize", "Serialize"],
            more,
        );
        let mut attributes = vec![format!("#[derive({derives})]")];
        attributes.extend(serde_lines(&container(rule)));
        attributes.extend(repetition(name, &names));
        print(&EnumView {
            docs: doc_comments::outer::<&str>(&docs.text, &[]),
            attributes,
            name,
            variants: views,
        })
    }

    pub(super) fn untagged(
        &mut self,
        types: &[Ty],
        name: &TypeName,
        docs: &ShapeDocs,
        more: &[String],
    ) -> String {
        let variants = types
            .iter()
            .map(|ty| VariantView {
                docs: Vec::new(),
                attributes: Vec::new(),
                text: format!("{}({})", untagged_name(ty), self.ty(ty)),
            })
            .collect();
        let derives = self.derive_list(
            &["Clone", "Debug", "PartialEq", "Deserialize", "Serialize"],
            more,
        );
        print(&EnumView {
            docs: doc_comments::outer::<&str>(&docs.text, &[]),
            attributes: vec![
                format!("#[derive({derives})]"),
                "#[serde(untagged)]".to_owned(),
            ],
            name,
            variants,
        })
    }
}

fn other_variant(names: &[TypeName]) -> TypeName {
    let other = TypeName::new("Other");
    let numbered = (2..).map(|n| other.then(&n.to_string()));
    [other.clone(), TypeName::new("Unknown")]
        .into_iter()
        .chain(numbered)
        .find(|name| !names.contains(name))
        .expect("there are more numbers than names")
}

fn untagged_name(ty: &Ty) -> &'static str {
    match ty {
        Ty::Bool => "Bool",
        Ty::Int(_) => "Int",
        Ty::Float => "Number",
        Ty::String => "String",
        Ty::Vec(_) => "List",
        Ty::Map(_) => "Map",
        _ => "Other",
    }
}

/// Silences clippy if all values of the schema repeat a word.
fn repetition(name: &TypeName, variants: &[TypeName]) -> Option<String> {
    if variants.len() < 3 {
        return None;
    }
    let split = |name: &TypeName| camel_words(name.as_str());
    let enum_words = split(name);
    let lists: Vec<Vec<String>> = variants.iter().map(split).collect();
    let stutter = lists.iter().any(|words| {
        words.len() > enum_words.len()
            && (words.starts_with(&enum_words) || words.ends_with(&enum_words))
    });
    let same = |word: fn(&Vec<String>) -> Option<&String>| {
        let first = lists.first().and_then(word);
        lists
            .iter()
            .all(|words| words.len() > 1 && word(words) == first)
    };
    let common = same(|words| words.first()) || same(|words| words.last());
    (stutter || common).then(|| "#[allow(clippy::enum_variant_names)]".to_owned())
}

/// The words of a type name as clippy splits it: at every capital.
fn camel_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for c in name.chars() {
        match words.last_mut() {
            Some(word) if !c.is_uppercase() => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    words
}
