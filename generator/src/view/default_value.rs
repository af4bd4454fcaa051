//! Default values as Rust expressions. The layout of rustfmt is imitated by hand, because the types
//! are printed without a formatter.

use std::collections::BTreeSet;

use super::literal;
use super::member_names::{idents, variant_names};
use super::version_writer::VersionWriter;
use crate::model::default_values::DefaultValue;
use crate::model::generated_types::{ShapeBody, ShapeId};

/// The widest line.
const LINE_WIDTH: usize = 100;

/// The widest struct literal on one line.
const STRUCT_WIDTH: usize = 18;

/// The widest list or call on one line.
const LIST_WIDTH: usize = 60;

/// The call that turns a literal into a `String`.
const OWNED: &str = ".to_owned()";

/// The start of an expression, what is inside it, and its end.
struct ExpressionGroup {
    open: String,
    parts: Vec<String>,
    close: &'static str,
    width: usize,
}

impl VersionWriter<'_> {
    /// An expression that starts at this indentation.
    pub(super) fn value(&mut self, initial: &DefaultValue, indent: usize) -> String {
        match initial {
            DefaultValue::Default => "Default::default()".to_owned(),
            DefaultValue::Bool(value) => value.to_string(),
            DefaultValue::Int(value) => value.to_string(),
            DefaultValue::Float(value) => {
                self.constants |= resembles_constant(*value);
                format!("{value:?}")
            }
            DefaultValue::String(text) => format!("{text:?}.to_owned()"),
            DefaultValue::Json(json) => literal::json(json),
            DefaultValue::Vec(items) => self.list("vec![", items.iter(), "]", indent),
            DefaultValue::Map(entries) => self.map(entries, indent),
            DefaultValue::Variant(id, index) => {
                let name = self.version.type_names.of(*id);
                format!(
                    "{name}::{}",
                    variant_names(self.resource.shapes.body(*id))[*index]
                )
            }
            DefaultValue::IntOrString(ty, inner) => {
                let variant = if matches!(**inner, DefaultValue::Int(_)) {
                    "Int"
                } else {
                    "String"
                };
                format!("{}::{variant}({})", self.ty(ty), self.value(inner, indent))
            }
            DefaultValue::Wrapped(ty, text) => format!("{}({text:?}.to_owned())", self.ty(ty)),
            DefaultValue::Struct {
                shape,
                fields,
                partial,
            } => self.struct_value(*shape, fields, *partial, indent),
            DefaultValue::Some(inner) => format!("Some({})", self.value(inner, indent)),
            DefaultValue::None => "None".to_owned(),
        }
    }

    fn list<'i>(
        &mut self,
        open: &str,
        items: impl Iterator<Item = &'i DefaultValue>,
        close: &'static str,
        indent: usize,
    ) -> String {
        let group = ExpressionGroup {
            open: open.to_owned(),
            parts: items.map(|item| self.value(item, indent + 4)).collect(),
            close,
            width: LIST_WIDTH,
        };
        group.lay_out(indent)
    }

    fn map(&mut self, entries: &[(String, DefaultValue)], indent: usize) -> String {
        let map = self.imports.add("std::collections::BTreeMap");
        let group = ExpressionGroup {
            open: format!("{map}::from(["),
            parts: entries
                .iter()
                .map(|(key, value)| {
                    let value = self.value(value, indent + 4);
                    format!("({key:?}.to_owned(), {value})")
                })
                .collect(),
            close: "])",
            width: LIST_WIDTH,
        };
        group.lay_out(indent)
    }

    fn struct_value(
        &mut self,
        id: ShapeId,
        given: &[(usize, DefaultValue)],
        partial: bool,
        indent: usize,
    ) -> String {
        let ShapeBody::Struct(body) = self.resource.shapes.body(id) else {
            return "Default::default()".to_owned();
        };
        let idents = idents(&body.fields, &mut BTreeSet::new());
        let mut parts: Vec<String> = given
            .iter()
            .map(|(index, value)| format!("{}: {}", idents[*index], self.value(value, indent + 4)))
            .collect();
        if partial {
            parts.push("..Default::default()".to_owned());
        }
        struct_literal(self.version.type_names.of(id).as_str(), parts, indent)
    }
}

/// Whether clippy would suggest a constant of `std::f64::consts` for a number.
fn resembles_constant(value: f64) -> bool {
    use std::f64::consts::*;
    const CONSTANTS: [f64; 19] = [
        E,
        FRAC_1_PI,
        FRAC_1_SQRT_2,
        FRAC_2_PI,
        FRAC_2_SQRT_PI,
        FRAC_PI_2,
        FRAC_PI_3,
        FRAC_PI_4,
        FRAC_PI_6,
        FRAC_PI_8,
        LN_2,
        LN_10,
        LOG10_2,
        LOG10_E,
        LOG2_10,
        LOG2_E,
        PI,
        SQRT_2,
        TAU,
    ];
    const NEAR: f64 = 0.01;
    CONSTANTS
        .iter()
        .any(|constant| (value.abs() - constant).abs() < NEAR)
}

/// A struct with these fields, each with its value.
pub(super) fn struct_literal(name: &str, parts: Vec<String>, indent: usize) -> String {
    let group = ExpressionGroup {
        open: format!("{name} {{"),
        parts,
        close: "}",
        width: STRUCT_WIDTH,
    };
    group.lay_out(indent)
}

impl ExpressionGroup {
    /// On one line if that is short enough, or else one line per part.
    fn lay_out(&self, indent: usize) -> String {
        let inside = self.parts.join(", ");
        if inside.len() <= self.width && !inside.contains('\n') {
            let space = if self.close == "}" { " " } else { "" };
            return format!("{}{space}{inside}{space}{}", self.open, self.close);
        }
        if let [only] = self.parts.as_slice()
            && only.contains('\n')
            && self.close != "}"
        {
            return format!(
                "{}{}{}",
                self.open,
                only.replace("\n    ", "\n"),
                self.close
            );
        }
        let margin = " ".repeat(indent + 4);
        let mut text = format!("{}\n", self.open);
        for part in &self.parts {
            // No comma may follow `..` in a struct.
            let comma = if part.starts_with("..") { "" } else { "," };
            let long = margin.len() + part.len() + 1 > LINE_WIDTH && !part.contains('\n');
            match part.split_once(": ") {
                Some((field, value)) if long && self.close == "}" => {
                    let gap = format!("\n{margin}    ");
                    match value.strip_suffix(OWNED) {
                        // A call goes to the next line alone if that is enough.
                        Some(literal) if part.len() - OWNED.len() + margin.len() <= LINE_WIDTH => {
                            text.push_str(&format!(
                                "{margin}{field}: {literal}{gap}{OWNED}{comma}\n"
                            ));
                        }
                        _ => text.push_str(&format!("{margin}{field}:{gap}{value}{comma}\n")),
                    }
                }
                _ => text.push_str(&format!("{margin}{part}{comma}\n")),
            }
        }
        text + &" ".repeat(indent) + self.close
    }
}
