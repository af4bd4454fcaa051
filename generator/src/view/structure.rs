//! Structs, their fields and their defaults.

use std::collections::BTreeSet;

use askama::Template;

use super::default_value::struct_literal;
use super::doc_comments;
use super::member_names::idents;
use super::serde_attributes::{container, rule, serde_lines};
use super::serde_rename::RenameRule;
use super::version_writer::{VersionWriter, print};
use crate::model::default_values::{DefaultImpl, DefaultValue};
use crate::model::generated_types::{
    FieldDocs, FieldPresence, ShapeDocs, ShapeId, StructField, StructShape, Ty,
};
use crate::model::identifier::{RustIdent, TypeName};

#[derive(Template)]
#[template(path = "types/struct.rs")]
struct StructView<'a> {
    docs: Vec<String>,
    attributes: Vec<String>,
    name: &'a TypeName,
    fields: Vec<FieldView>,
}

/// A field, ready to print.
pub(super) struct FieldView {
    pub(super) docs: Vec<String>,
    pub(super) attributes: Vec<String>,
    pub(super) ident: RustIdent,
    pub(super) ty: String,
}

#[derive(Template)]
#[template(path = "types/default.rs")]
struct DefaultView<'a> {
    name: &'a TypeName,
    value: String,
}

#[derive(Template)]
#[template(path = "types/builder.rs")]
struct BuilderView<'a> {
    name: &'a TypeName,
    setters: Vec<SetterView>,
}

struct SetterView {
    ident: RustIdent,
    name: String,
    ty: String,
    value: &'static str,
}

/// The owner of a field, on which its serde attributes depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldOwner {
    /// The root object, whose `Serialize` is written out.
    Root,
    /// A struct whose fields have defaults of their own.
    Struct,
    /// A struct whose `Default` fills every field that is left out.
    Defaulted,
}

/// The widest line.
const LINE_WIDTH: usize = 100;

impl VersionWriter<'_> {
    pub(super) fn structure(
        &mut self,
        id: ShapeId,
        body: &StructShape,
        name: &TypeName,
        docs: &ShapeDocs,
    ) -> Vec<String> {
        let derives = &self.resource.shapes.shape(id).derives;
        let default = self.defaults.of_shape(id);
        let derived = if default == DefaultImpl::Derived {
            &["Default"][..]
        } else {
            &[]
        };
        let mut taken = BTreeSet::new();
        let idents = idents(&body.fields, &mut taken);
        let owner = if default == DefaultImpl::Written && may_be_empty(body) {
            FieldOwner::Defaulted
        } else {
            FieldOwner::Struct
        };
        let fields = self.fields(body, &idents, docs, &mut taken, owner);
        let mut attributes = vec![self.derives(
            &["Clone", "Debug"],
            derived,
            &["PartialEq", "Deserialize", "Serialize"],
            derives,
        )];
        let mut arguments = container(rule(body, &idents));
        if owner == FieldOwner::Defaulted {
            arguments.push("default".to_owned());
        }
        attributes.extend(serde_lines(&arguments));
        let rest = body
            .rest
            .as_ref()
            .and(fields.last())
            .map(|field| field.ident.clone());
        let view = StructView {
            docs: doc_comments::outer::<&str>(&docs.text, &[]),
            attributes,
            name,
            fields,
        };
        let mut items = vec![print(&view)];
        if self.options.builders && !body.fields.is_empty() {
            let setters = self.setters(body, &idents);
            items.push(print(&BuilderView { name, setters }));
        }
        if default == DefaultImpl::Written {
            items.push(self.default_impl(name, body, &idents, rest, owner));
        }
        items
    }

    /// A written-out `Default`; `rest` is the field of undeclared members.
    pub(super) fn default_impl(
        &mut self,
        name: &TypeName,
        body: &StructShape,
        idents: &[RustIdent],
        rest: Option<RustIdent>,
        owner: FieldOwner,
    ) -> String {
        let mut parts: Vec<String> = Vec::new();
        if owner == FieldOwner::Root {
            parts.push("metadata: ObjectMeta::default()".to_owned());
        }
        for (field, ident) in body.fields.iter().zip(idents) {
            let value = self.field_default(field, ident, owner);
            parts.push(format!("{ident}: {value}"));
        }
        parts.extend(rest.map(|ident| format!("{ident}: BTreeMap::new()")));
        let value = struct_literal("Self", parts, 8);
        print(&DefaultView { name, value })
    }

    pub(super) fn fields(
        &mut self,
        body: &StructShape,
        idents: &[RustIdent],
        docs: &ShapeDocs,
        taken: &mut BTreeSet<RustIdent>,
        owner: FieldOwner,
    ) -> Vec<FieldView> {
        let rule = rule(body, idents);
        let none = FieldDocs::default();
        let mut views = Vec::new();
        for (index, (field, ident)) in body.fields.iter().zip(idents).enumerate() {
            let docs = docs.fields.get(index).unwrap_or(&none);
            views.push(self.field(field, ident, docs, rule, owner));
        }
        if let Some(rest) = &body.rest {
            let map = self.ty(&Ty::Map(Box::new(rest.clone())));
            let mut arguments = vec!["flatten".to_owned()];
            if owner == FieldOwner::Root {
                self.undeclared = true;
                self.imports.add("serde::Deserializer");
                arguments.push("deserialize_with = \"undeclared\"".to_owned());
            }
            views.push(FieldView {
                docs: vec!["/// Members that the schema does not declare.".to_owned()],
                attributes: serde_lines(&arguments),
                ident: RustIdent::unique("extra", taken),
                ty: format!(" {map}"),
            });
        }
        views
    }

    fn field(
        &mut self,
        field: &StructField,
        ident: &RustIdent,
        docs: &FieldDocs,
        rule: RenameRule,
        owner: FieldOwner,
    ) -> FieldView {
        let base = self.ty(&field.ty);
        let optional = self.defaults.is_optional(field);
        let mut arguments = Vec::new();
        if rule.field(ident.bare()) != field.json {
            arguments.push(format!("rename = {:?}", field.json));
        }
        if optional {
            // By default, serde reads null as an absent value.
            if field.nullable || field.ty == Ty::Json {
                self.nullable = true;
                self.imports.add("serde::Deserializer");
                if owner != FieldOwner::Defaulted {
                    arguments.push("default".to_owned());
                }
                arguments.push("deserialize_with = \"present\"".to_owned());
            }
            if owner != FieldOwner::Root {
                arguments.push("skip_serializing_if = \"Option::is_none\"".to_owned());
            }
        } else if owner != FieldOwner::Defaulted
            && let Some(initial) = self.defaults.of_field(field)
        {
            arguments.push(match initial {
                DefaultValue::Default => "default".to_owned(),
                initial => {
                    let function = self.function(field, ident, &initial);
                    format!("default = {function:?}")
                }
            });
        }
        let ty = match (optional, field.nullable) {
            (true, true) => format!("Option<Option<{base}>>"),
            (true, false) | (false, true) => format!("Option<{base}>"),
            (false, false) => base,
        };
        // A description that the type repeats is printed there only.
        let text = match self.described(&field.ty) {
            Some(text) if text == docs.text => "",
            _ => &docs.text,
        };
        FieldView {
            docs: doc_comments::outer(text, &docs.limits),
            attributes: serde_lines(&arguments),
            ident: ident.clone(),
            ty: broken(ident, &ty),
        }
    }

    fn setters(&mut self, body: &StructShape, idents: &[RustIdent]) -> Vec<SetterView> {
        let mut setters = Vec::new();
        for (field, ident) in body.fields.iter().zip(idents) {
            let base = self.ty(&field.ty);
            let optional = self.defaults.is_optional(field);
            setters.push(SetterView {
                ident: ident.clone(),
                name: format!("with_{}", ident.bare().trim_start_matches('_')),
                ty: if field.nullable {
                    format!("Option<{base}>")
                } else {
                    base
                },
                value: if optional {
                    "Some(value.into())"
                } else {
                    "value.into()"
                },
            });
        }
        setters
    }

    /// The description of a field's type, if that is generated.
    fn described(&self, ty: &Ty) -> Option<&str> {
        match ty {
            Ty::Shape(id) => Some(&self.resource.shapes.docs(*id).text),
            _ => None,
        }
    }

    /// The name of the function that returns the default of a field; equal functions are shared.
    fn function(
        &mut self,
        field: &StructField,
        ident: &RustIdent,
        initial: &DefaultValue,
    ) -> String {
        let base = self.ty(&field.ty);
        let ty = if field.nullable {
            format!("Option<{base}>")
        } else {
            base
        };
        let value = self.value(initial, 4);
        let key = (ty, value);
        if let Some(name) = self.functions.get(&key) {
            return name.clone();
        }
        let stem = format!("default_{}", ident.bare());
        let name = std::iter::once(stem.clone())
            .chain((2..).map(|n| format!("{stem}_{n}")))
            .find(|name| !self.function_names.contains(name))
            .expect("there are more numbers than names");
        self.function_names.insert(name.clone());
        self.functions.insert(key, name.clone());
        name
    }

    /// The value of a field in a written-out `Default`.
    fn field_default(
        &mut self,
        field: &StructField,
        ident: &RustIdent,
        owner: FieldOwner,
    ) -> String {
        if self.defaults.is_optional(field) {
            return "None".to_owned();
        }
        match self.defaults.of_field(field) {
            Some(DefaultValue::Default) | None if field.nullable => "None".to_owned(),
            Some(DefaultValue::Default) | None => "Default::default()".to_owned(),
            Some(initial) if owner == FieldOwner::Defaulted => self.value(&initial, 12),
            Some(initial) => self.function(field, ident, &initial) + "()",
        }
    }
}

/// Whether all members may be left out.
fn may_be_empty(body: &StructShape) -> bool {
    let mut fields = body.fields.iter();
    fields.all(|field| field.presence != FieldPresence::Required)
}

/// The type of a field, on a line of its own if the first one would be too long.
fn broken(ident: &RustIdent, ty: &str) -> String {
    let line = format!("    pub {ident}: {ty},");
    if line.len() > LINE_WIDTH {
        format!("\n        {ty}")
    } else {
        format!(" {ty}")
    }
}
