//! Stubs of methods for the user's files: they compile, change nothing and log each call.

use std::collections::BTreeMap;

use askama::Template;

use super::file_imports::{FileImports, is_in_runtime_prelude};
use super::layout::{macro_call, opaque_macro_call, signature};
use super::method::{ContextType, MethodSignature, TestedValue, TraitMethod, filter_context};
use crate::model::param::ParamType;
use crate::rust::{RustPath, RustType};
use crate::splice::ImportedNames;

/// The module with the names that handlers use.
const PRELUDE: &str = "kopf_runtime::prelude";

/// The way in which a stub refers to names.
#[derive(Clone, Copy, Debug)]
pub(super) enum NameStyle<'a> {
    /// All names are imported, as in a new file.
    Imported(&'a FileImports),
    /// Names that the file does not import get their paths.
    Qualified {
        /// The imports of the file.
        imports: &'a ImportedNames,
        /// The module of the kind.
        module: &'a str,
        /// What that module re-exports.
        exports: &'a BTreeMap<RustPath, String>,
    },
}

#[derive(Template)]
#[template(path = "scaffold/stub.rs")]
struct StubView<'a> {
    doc: &'a [String],
    signature: Vec<String>,
    body: Vec<String>,
}

/// The text of a stub, without outer indentation and final line break.
#[must_use]
pub(super) fn stub(method: &TraitMethod, names: NameStyle<'_>) -> String {
    with_body(method, names, body(method, names))
}

/// The stub with another body.
#[must_use]
pub(super) fn with_body(method: &TraitMethod, names: NameStyle<'_>, body: Vec<String>) -> String {
    let mut arguments = Vec::new();
    if !method.shape.builds_state() {
        arguments.push("&self".to_owned());
    }
    let (head, fixed, result) = match &method.shape {
        MethodSignature::Handler {
            context, result, ..
        } => {
            let mut result = names.ty(&context.output(result.as_ref()));
            if method.shape.builds_state() {
                result.push_str("<Self>");
            }
            let context = names.ty(&context.ty());
            (
                format!("async fn {}", method.name),
                vec![format!("cx: &mut {context}")],
                result,
            )
        }
        MethodSignature::Delay { object } => (
            format!("fn {}", method.name),
            vec![format!("_object: &{}", names.ty(object))],
            names.prelude("Duration"),
        ),
        MethodSignature::Predicate { value, object, .. } => {
            let value = value.iter();
            let value = value.map(|value| format!("_value: {}", names.tested(value)));
            let context = format!("_cx: &{}", names.ty(&filter_context(object)));
            let fixed = value.chain([context]).collect();
            (format!("fn {}", method.name), fixed, "bool".to_owned())
        }
    };
    arguments.extend(fixed);
    if let Some(param) = method.shape.param() {
        arguments.push(format!("_param: {}", names.param(param)));
    }
    let view = StubView {
        doc: &method.doc,
        signature: signature(INDENT, &head, &arguments, &format!(" -> {result} {{")),
        body,
    };
    let text = view.render().expect("writing to a string cannot fail");
    let lines: Vec<&str> = text.trim_end().lines().map(str::trim_end).collect();
    lines.join("\n")
}

pub(super) const INDENT: usize = 4;

fn body(method: &TraitMethod, names: NameStyle<'_>) -> Vec<String> {
    let (context, result) = match &method.shape {
        MethodSignature::Handler {
            context, result, ..
        } => (context, result),
        MethodSignature::Delay { .. } => {
            return vec![format!("{}::ZERO", names.prelude("Duration"))];
        }
        MethodSignature::Predicate { .. } => return vec!["true".to_owned()],
    };
    let name = method.name.strip_prefix("r#").unwrap_or(&method.name);
    let arguments = match context {
        ContextType::Change(_) => vec![
            format!("\"{name} was called: {{}}\""),
            "cx.reason()".to_owned(),
        ],
        ContextType::Field(..) => vec![
            "old = ?cx.old_value()".to_owned(),
            "new = ?cx.new_value()".to_owned(),
            format!("\"{name} was called\""),
        ],
        ContextType::Event(_) => vec![
            format!("\"{name} was called: {{:?}}\""),
            "cx.event_type()".to_owned(),
        ],
        ContextType::Validation(_) | ContextType::Mutation(_) => vec![
            format!("\"{name} was called: {{}}\""),
            "cx.operation()".to_owned(),
        ],
        ContextType::Daemon(_) => return daemon_body(name, names, result.is_some()),
        ContextType::Probe => return probe_body(),
        ContextType::Index(..) => return index_body(name, names),
        ContextType::State | ContextType::Startup | ContextType::Cleanup | ContextType::Login => {
            vec![
                format!("\"{name} was called: attempt {{}}\""),
                "cx.retry() + 1".to_owned(),
            ]
        }
        ContextType::Timer(_) => vec![
            format!("\"{name} was called: {{}}\""),
            "cx.name()".to_owned(),
        ],
        ContextType::Reconcile(_) => vec![
            format!("\"{name} was called: {{:?}}\""),
            "cx.reasons()".to_owned(),
        ],
        ContextType::Child(..) => vec![
            format!("\"{name} was called: {{:?}}\""),
            "cx.event_type()".to_owned(),
        ],
    };
    let info = format!("{}!", names.prelude("info"));
    let mut lines = match context {
        ContextType::Field(..) => opaque_macro_call(2 * INDENT, &info, &arguments, ";"),
        _ => macro_call(2 * INDENT, &info, &arguments, ";"),
    };
    lines.push(match context {
        _ if result.is_some() => no_result(name, names),
        ContextType::State => "Ok(Self::default())".to_owned(),
        // Without credentials of its own, an operator uses those that kubectl would use.
        ContextType::Login => format!("{}::infer().await", names.prelude("Credentials")),
        _ => "Ok(())".to_owned(),
    });
    lines
}

/// A daemon that logs every minute until it is stopped.
fn daemon_body(name: &str, names: NameStyle<'_>, has_result: bool) -> Vec<String> {
    let minute = format!("{}::from_secs(60)", names.prelude("Duration"));
    let info = format!("{}!(\"{name} is running\");", names.prelude("info"));
    vec![
        format!("while cx.sleep({minute}).await {{"),
        format!("    {info}"),
        "}".to_owned(),
        if has_result {
            no_result(name, names)
        } else {
            "Ok(())".to_owned()
        },
    ]
}

/// A stub cannot know a result.
fn no_result(name: &str, names: NameStyle<'_>) -> String {
    let error = names.prelude("HandlerError");
    format!("Err({error}::permanent(\"{name} has no result yet\"))")
}

/// A probe that succeeds; it is called too often for a log line.
fn probe_body() -> Vec<String> {
    vec![
        "cx.set_result(&\"healthy\")?;".to_owned(),
        "Ok(())".to_owned(),
    ]
}

/// An index function without entries; it logs at the debug level, because there may be many
/// objects.
fn index_body(name: &str, names: NameStyle<'_>) -> Vec<String> {
    let arguments = [
        format!("\"{name} was called: {{}}\""),
        "cx.name()".to_owned(),
    ];
    let debug = format!("{}!", names.prelude("debug"));
    let mut lines = macro_call(2 * INDENT, &debug, &arguments, ";");
    lines.push("Ok(Vec::new())".to_owned());
    lines
}

// === impl NameStyle ===

impl NameStyle<'_> {
    pub(super) fn prelude(self, name: &str) -> String {
        self.write(PRELUDE, name)
    }

    /// A type, with paths for the names that are not imported.
    pub(super) fn ty(self, ty: &RustType) -> String {
        ty.print(&mut |path| self.path(path))
    }

    fn param(self, param: &ParamType) -> String {
        match param {
            ParamType::Text => "&str".to_owned(),
            ParamType::Integer => "i64".to_owned(),
            ParamType::Float => "f64".to_owned(),
            ParamType::Flag => "bool".to_owned(),
            ParamType::Json => format!("&{}", self.ty(&RustType::json())),
            ParamType::Named(ty) => format!("&{}", self.ty(ty)),
        }
    }

    fn tested(self, value: &TestedValue) -> String {
        match value {
            TestedValue::Text => "Option<&str>".to_owned(),
            TestedValue::Field(field) => format!("Option<&{}>", self.ty(field)),
        }
    }

    fn path(self, path: &RustPath) -> String {
        let (module, name) = (path.module(), path.name());
        if let Some(exported) = self.exports().get(path) {
            return self.of_kind(exported);
        }
        if is_in_runtime_prelude(path) {
            return self.prelude(name);
        }
        match self {
            Self::Imported(imports) => imports.external.text(path),
            Self::Qualified { imports, .. } => {
                if path.needs_no_import() || imports.bring(name, &module) {
                    name.to_owned()
                } else {
                    format!("{module}::{name}")
                }
            }
        }
    }

    const fn exports(&self) -> &BTreeMap<RustPath, String> {
        match self {
            Self::Imported(imports) => &imports.exports,
            Self::Qualified { exports, .. } => exports,
        }
    }

    pub(super) fn of_kind(self, name: &str) -> String {
        match self {
            Self::Imported(_) => name.to_owned(),
            Self::Qualified { module, .. } => self.write(module, name),
        }
    }

    fn write(self, module: &str, name: &str) -> String {
        match self {
            // A name of the kind hides one of the prelude.
            Self::Imported(imports) if !imports.from_kind.contains(name) => name.to_owned(),
            Self::Qualified { imports, .. } if imports.bring(name, module) => name.to_owned(),
            Self::Imported(_) | Self::Qualified { .. } => format!("{module}::{name}"),
        }
    }
}
