//! The unit test in the user's file of handlers, which needs no cluster.

use askama::Template;
use serde_json::{Value, json};

use super::file_imports::FileImports;
use super::literal;
use crate::model::handler::Handler;
use crate::model::operator::HandledKind;

/// A first unit test of a handler, for the end of its file.
#[derive(Debug, Template)]
#[template(path = "scaffold/unit_test.rs")]
pub(super) struct UnitTestView {
    /// The statement that calls the handler; empty for a test of the children.
    call: Vec<String>,
    /// The object, as an expression.
    object: String,
}

impl UnitTestView {
    /// A test of a handler that takes a context alone; none if the kind has no sample.
    pub(super) fn of_handler(
        kind: &HandledKind,
        handler: &Handler,
        imports: &FileImports,
    ) -> Option<Self> {
        Some(Self {
            call: call(&handler.method, imports),
            object: object(kind.sample.as_ref()?)?,
        })
    }

    /// A test of the children; none if the kind has no sample.
    pub(super) fn of_children(kind: &HandledKind) -> Option<Self> {
        // The object is decoded without the context, which would give it a name.
        let mut named = json!({"metadata": {"name": "one"}});
        let sample = kind.sample.as_ref()?.as_object()?;
        named.as_object_mut()?.extend(sample.clone());
        Some(Self {
            call: Vec::new(),
            object: object(&named)?,
        })
    }
}

/// The call of a handler, in lines as rustfmt breaks them.
fn call(method: &str, imports: &FileImports) -> Vec<String> {
    const CHAIN_WIDTH: usize = 60;
    let state = imports.state();
    let state = match state.strip_prefix("super::") {
        Some(_) => format!("super::{state}"),
        None => state.to_owned(),
    };
    let links = [
        format!("{state}::default()"),
        format!(".{method}(&mut cx)"),
        ".await".to_owned(),
        ".unwrap();".to_owned(),
    ];
    let line = links.concat();
    if line.len() <= CHAIN_WIDTH + 1 {
        return vec![line];
    }
    let [first, others @ ..] = links;
    let others = others.map(|link| format!("    {link}"));
    [first].into_iter().chain(others).collect()
}

/// A sample, indented for a statement of a test.
fn object(sample: &Value) -> Option<String> {
    const INDENT: usize = 8;
    let text = serde_json::to_string_pretty(sample).ok()?;
    if !literal::is_plain(sample) {
        let text = literal::raw_json(&text);
        return Some(format!(
            "serde_json::from_str::<serde_json::Value>({text}).unwrap()"
        ));
    }
    let lines = text.lines().enumerate().map(|(number, line)| {
        let content = line.trim_start();
        // JSON is indented by two spaces, Rust by four.
        let spaces = 2 * (line.len() - content.len()) + if number == 0 { 0 } else { INDENT };
        format!("{:spaces$}{content}", "")
    });
    Some(format!("json!({})", lines.collect::<Vec<_>>().join("\n")))
}
