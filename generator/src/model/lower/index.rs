//! Lowers an index of the manifest to the handler that fills it.

use std::collections::BTreeMap;

use super::lowering::{Lowering, method_name, snake};
use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId};
use crate::load::manifest::{HandlerSection, IndexSection, Manifest, OneOrMany, Spanned, Trigger};
use crate::model::handler::{Handler, HandlerCause, IndexOptions};
use crate::model::identifier::TypeName;
use crate::model::index::{Index, IndexType, InvalidIndexType};
use crate::model::operator::HandledKind;
use crate::rust::{RustPath, is_in_prelude};

/// The type of keys and values that the manifest does not declare.
const DEFAULT_TYPE: &str = "String";

/// The paths of the kinds' types by their names; names that several kinds share are left out.
pub(super) fn kind_types(kinds: &[&HandledKind]) -> BTreeMap<String, RustPath> {
    let unique = |kind: &&&HandledKind| {
        let same = kinds
            .iter()
            .filter(|other| other.type_name == kind.type_name);
        // All selections have the same type.
        kind.selector().is_some() || same.count() == 1
    };
    let path = |kind: &HandledKind| match kind.selector() {
        Some(_) => RustPath::external(&format!("kopf_runtime::{}", kind.type_name)),
        None => RustPath::this_crate(&["generated", &kind.module, &kind.type_name]),
    };
    let kinds = kinds.iter().filter(unique);
    kinds
        .map(|kind| (kind.type_name.clone(), path(kind)))
        .collect()
}

impl Lowering<'_> {
    /// The handler that fills an index; `None` if the entry is wrong.
    pub(super) fn index(
        mut self,
        section: &IndexSection,
        written: &HandlerSection,
    ) -> Option<Handler> {
        let kinds = self.kind_types;
        if let Some(value) = section.value.as_ref().filter(|_| section.field.is_none()) {
            let message = "`value` needs `field`: it is about the value of a field";
            self.push(
                Diagnostic::error(Code::HandlerOption, message)
                    .at(self.source, value.span, "the value of which field?")
                    .help("`values` is the type of the values in the index"),
            );
            return None;
        }
        self.check_name(&section.index)?;
        let keys = self.rust_type(section.keys.as_ref(), |text| {
            IndexType::of_keys(text, kinds)
        });
        let values = self.rust_type(section.values.as_ref(), |text| {
            IndexType::of_values(text, kinds)
        });
        // The options that it shares with handlers are checked as for a handler.
        let handler = self.handler(written).into_iter().next()?;
        let field = handler.field().cloned();
        let index = Index {
            name: section.index.value.clone(),
            type_name: type_name(&section.index.value),
            keys: keys?,
            values: values?,
        };
        Some(Handler {
            cause: HandlerCause::Index(IndexOptions { field, index }),
            ..handler
        })
    }

    /// The name of an index is the name of a function and, in camel case, of a type.
    fn check_name(&mut self, name: &Spanned<String>) -> Option<()> {
        let text = &name.value;
        let message = format!("an index cannot be called `{text}`");
        let diagnostic = Diagnostic::error(Code::HandlerName, message);
        if method_name(text).is_none() {
            let suggestion = method_name(&snake(std::slice::from_ref(text)));
            let help = suggestion.unwrap_or_else(|| "pods_by_node".to_owned());
            self.push(
                diagnostic
                    .at(self.source, name.span, "not a function name in snake case")
                    .help(format!("write it like `{help}`")),
            );
            return None;
        }
        let type_name = type_name(text);
        if is_in_prelude(&type_name) {
            let label = format!("its type would be `{type_name}`, which has a meaning already");
            self.push(diagnostic.at(self.source, name.span, label));
            return None;
        }
        Some(())
    }

    fn rust_type(
        &mut self,
        written: Option<&Spanned<String>>,
        read: impl Fn(&str) -> Result<IndexType, InvalidIndexType>,
    ) -> Option<IndexType> {
        let Some(written) = written else {
            return read(DEFAULT_TYPE).ok();
        };
        let help = |problem: &InvalidIndexType| match problem {
            InvalidIndexType::Unknown(name) => {
                format!("a type of your own is written with its path: `crate::handlers::{name}`")
            }
            InvalidIndexType::Syntax(_) => {
                "write it like `String` or `\"(String, u32)\"`".to_owned()
            }
            InvalidIndexType::NotOwned(_) => {
                "write `String` instead of `&str`, and so on".to_owned()
            }
            InvalidIndexType::NotAKey(_) => "put it into the values".to_owned(),
        };
        match read(&written.value) {
            Ok(found) => Some(found),
            Err(problem) => {
                let diagnostic = Diagnostic::error(Code::IndexType, problem.to_string());
                self.push(
                    diagnostic
                        .at(self.source, written.span, "not a type for an index")
                        .help(help(&problem)),
                );
                None
            }
        }
    }
}

fn type_name(index: &str) -> String {
    TypeName::new(index).to_string()
}

/// One name is one index, so all its kinds must agree on its types.
pub(super) fn check_shared(
    manifest: &Manifest,
    kinds: &[HandledKind],
    diagnostics: &mut Diagnostics,
) {
    let written = |name: &str| place(manifest, name);
    let mut known: Vec<&Index> = Vec::new();
    for index in kinds.iter().flat_map(HandledKind::indices) {
        let Some(first) = known.iter().find(|it| it.type_name == index.type_name) else {
            known.push(index);
            continue;
        };
        if *first == index {
            continue;
        }
        let message = if first.name == index.name {
            format!("the index `{}` would have two types", index.name)
        } else {
            format!(
                "`{}` and `{}` look the same as types",
                first.name, index.name
            )
        };
        let spans = written(&index.name);
        let mut diagnostic = Diagnostic::error(Code::IndexType, message);
        for (source, span) in spans {
            let label = "all kinds of an index agree on `keys` and `values`";
            diagnostic = diagnostic.at(source, span, label);
        }
        diagnostics.push(diagnostic.help("give one of them another name"));
    }
}

fn place(manifest: &Manifest, name: &str) -> Vec<(SourceId, crate::diagnostic::Span)> {
    let sections = manifest.resources.iter().flat_map(|it| &it.indices);
    let named = sections.filter(|section| section.index.value == name);
    named
        .map(|section| (manifest.source, section.index.span))
        .collect()
}

/// The entry as a handler, with the options that both have.
pub(super) fn as_handler(section: &IndexSection) -> HandlerSection {
    HandlerSection {
        span: section.span,
        on: Some(OneOrMany::One(Spanned {
            value: Trigger::Event,
            span: section.span,
        })),
        function: section.index.clone(),
        timer: None,
        daemon: None,
        id: None,
        kind: None,
        status: None,
        field: section.field.clone().map(OneOrMany::One),
        value: section.value.clone(),
        old: None,
        new: None,
        labels: section.labels.clone(),
        annotations: section.annotations.clone(),
        when: section.when.clone(),
        param: section.param.clone(),
        param_type: None,
        result: None,
        errors: section.errors,
        timeout: section.timeout,
        retries: section.retries,
        backoff: section.backoff,
        optional: None,
        deleted: None,
        interval: None,
        sharp: None,
        idle: None,
        initial_delay: None,
        cancellation_backoff: None,
        cancellation_timeout: None,
        cancellation_polling: None,
    }
}
