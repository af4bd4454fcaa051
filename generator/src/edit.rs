//! Edits lists of `kopf.yaml` and keeps comments, order and style.
//!
//! Written by hand: YAML libraries lose comments when they write a document.

use crate::diagnostic::{Diagnostics, Sources};
use crate::load::yaml::{self, Dialect, MapEntry, Node, Value};

/// An item to add to a list, in both styles of YAML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListItem {
    /// The lines of the block style, without indentation and dash.
    pub block: Vec<String>,
    /// The same in flow style.
    pub flow: String,
}

/// A list of the manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestList {
    /// `resources`.
    Resources,
    /// `handlers` of the resource at this index in `resources`.
    Handlers(usize),
    /// `admission` of the resource at this index in `resources`.
    Admission(usize),
    /// `operator.handlers`.
    OperatorHandlers,
    /// `indices` of the resource at this index in `resources`.
    Indices(usize),
    /// `children` of the resource at this index in `resources`.
    Children(usize),
}

// === impl ManifestList ===

impl ManifestList {
    /// The key of the list in its owner.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Handlers(_) | Self::OperatorHandlers => "handlers",
            Self::Admission(_) => "admission",
            Self::Indices(_) => "indices",
            Self::Children(_) => "children",
        }
    }
}

/// The manifest has a form that this module cannot edit safely.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kopf-gen cannot edit kopf.yaml safely in the form that it has; change it by hand")]
pub struct CannotEdit;

/// The text with one more item at the end of a list.
pub fn append(text: &str, list: ManifestList, item: &ListItem) -> Result<String, CannotEdit> {
    let root = read(text)?;
    let (owner, key) = owner(&root, list)?;
    let edited = match owner.entry(key) {
        None => with_new_key(text, owner, key, item)?,
        Some(entry) => with_item(text, owner, entry, item)?,
    };
    verify(
        &edited,
        list,
        |before, after| after.len() == before + 1,
        length(&root, list)?,
    )?;
    Ok(edited)
}

/// The text without the item at this index of a list.
pub fn remove(text: &str, list: ManifestList, index: usize) -> Result<String, CannotEdit> {
    let root = read(text)?;
    let (owner, key) = owner(&root, list)?;
    let node = &owner.entry(key).ok_or(CannotEdit)?.value;
    let items = node.as_seq().ok_or(CannotEdit)?;
    let item = items.get(index).ok_or(CannotEdit)?;
    let edited = if is_flow(text, node) {
        without_flow_item(text, items, index)
    } else if let [_] = items {
        let start = dash(text, item).ok_or(CannotEdit)?;
        let from = text[..line_start(text, start)].trim_end().len();
        format!(
            "{} []{}",
            &text[..from],
            &text[line_end(text, last_byte(text, item))..]
        )
    } else {
        let start = line_start(text, dash(text, item).ok_or(CannotEdit)?);
        let end = line_end(text, last_byte(text, item));
        format!(
            "{}{}",
            &text[..start],
            text[end..]
                .strip_prefix("\r\n")
                .or(text[end..].strip_prefix('\n'))
                .unwrap_or("")
        )
    };
    verify(
        &edited,
        list,
        |before, after| after.len() + 1 == before,
        items.len(),
    )?;
    Ok(edited)
}

fn read(text: &str) -> Result<Node, CannotEdit> {
    let mut sources = Sources::new();
    let source = sources.add("kopf.yaml", text);
    let mut diagnostics = Diagnostics::new();
    let documents = yaml::parse(&sources, source, Dialect::Core, &mut diagnostics);
    let mut documents = documents.into_iter();
    match (documents.next(), documents.next()) {
        (Some(root), None) if !diagnostics.has_errors() => Ok(root),
        _ => Err(CannotEdit),
    }
}

fn owner(root: &Node, list: ManifestList) -> Result<(&Node, &'static str), CannotEdit> {
    match list {
        ManifestList::Resources => Ok((root, list.key())),
        ManifestList::OperatorHandlers => Ok((root.get("operator").ok_or(CannotEdit)?, list.key())),
        ManifestList::Handlers(index)
        | ManifestList::Admission(index)
        | ManifestList::Indices(index)
        | ManifestList::Children(index) => {
            let resources = root
                .get("resources")
                .and_then(Node::as_seq)
                .ok_or(CannotEdit)?;
            Ok((resources.get(index).ok_or(CannotEdit)?, list.key()))
        }
    }
}

fn length(root: &Node, list: ManifestList) -> Result<usize, CannotEdit> {
    let (owner, key) = owner(root, list)?;
    Ok(owner
        .get(key)
        .and_then(Node::as_seq)
        .map_or(0, <[Node]>::len))
}

/// Reads the result again, so that a wrong edit is never written.
fn verify(
    edited: &str,
    list: ManifestList,
    expected: impl Fn(usize, &[Node]) -> bool,
    before: usize,
) -> Result<(), CannotEdit> {
    let root = read(edited)?;
    let (owner, key) = owner(&root, list)?;
    let items = owner.get(key).and_then(Node::as_seq).unwrap_or_default();
    if expected(before, items) {
        Ok(())
    } else {
        Err(CannotEdit)
    }
}

fn with_item(
    text: &str,
    owner: &Node,
    entry: &MapEntry,
    item: &ListItem,
) -> Result<String, CannotEdit> {
    let node = &entry.value;
    let flow_owner = is_flow(text, owner);
    match &node.value {
        Value::Seq(items) => match items.last() {
            Some(last) if is_flow(text, node) => Ok(insert(
                text,
                last_byte(text, last),
                &format!(", {}", item.flow),
            )),
            Some(last) => {
                let column = column(text, dash(text, last).ok_or(CannotEdit)?);
                Ok(insert_lines(text, last_byte(text, last), column, item))
            }
            None if flow_owner => Ok(insert(text, node.span.start + 1, &item.flow)),
            None => replace_value(text, entry, item),
        },
        Value::Null if flow_owner => Err(CannotEdit),
        Value::Null => replace_value(text, entry, item),
        _ => Err(CannotEdit),
    }
}

fn with_new_key(
    text: &str,
    owner: &Node,
    key: &str,
    item: &ListItem,
) -> Result<String, CannotEdit> {
    let last = owner
        .as_map()
        .and_then(<[MapEntry]>::last)
        .ok_or(CannotEdit)?;
    let end = last_byte(text, &last.value).max(last.key.span.end);
    if is_flow(text, owner) {
        return Ok(insert(text, end, &format!(", {key}: [{}]", item.flow)));
    }
    let column = column(text, last.key.span.start);
    let newline = line_break(text);
    let lines = block(item, column + 2, newline);
    let addition = format!("{newline}{:column$}{key}:{newline}{lines}", "");
    Ok(insert_after_line(text, end, &addition))
}

/// Replaces nothing, `[]` or `null` by a block list.
fn replace_value(text: &str, entry: &MapEntry, item: &ListItem) -> Result<String, CannotEdit> {
    let after_colon =
        text[entry.key.span.end..].find(':').ok_or(CannotEdit)? + entry.key.span.end + 1;
    let rest = &text[after_colon..line_end(text, after_colon)];
    let comment = rest.find(" #").map_or("", |at| &rest[at..]);
    let value = rest[..rest.len() - comment.len()].trim();
    if !matches!(value, "" | "[]" | "~" | "null") {
        return Err(CannotEdit);
    }
    let newline = line_break(text);
    let lines = block(item, column(text, entry.key.span.start) + 2, newline);
    let end = line_end(text, after_colon);
    Ok(format!(
        "{}{}{newline}{lines}{}",
        &text[..after_colon],
        comment.trim_end(),
        &text[end..]
    ))
}

fn without_flow_item(text: &str, items: &[Node], index: usize) -> String {
    let range = match (index.checked_sub(1), items.get(index + 1)) {
        (_, Some(next)) => items[index].span.start..next.span.start,
        (Some(previous), None) => last_byte(text, &items[previous])..last_byte(text, &items[index]),
        (None, None) => items[index].span.start..last_byte(text, &items[index]),
    };
    format!("{}{}", &text[..range.start], &text[range.end..])
}

fn insert_lines(text: &str, after: usize, column: usize, item: &ListItem) -> String {
    let newline = line_break(text);
    let lines = block(item, column, newline);
    insert_after_line(text, after, &format!("{newline}{lines}"))
}

/// The item in block style, without a line break at the end.
fn block(item: &ListItem, column: usize, newline: &str) -> String {
    let lines: Vec<_> = item
        .block
        .iter()
        .enumerate()
        .map(|(number, line)| {
            format!(
                "{:column$}{}{line}",
                "",
                if number == 0 { "- " } else { "  " }
            )
        })
        .collect();
    lines.join(newline)
}

/// Inserts after the line of the byte before `at`, because a comment may follow the value.
fn insert_after_line(text: &str, at: usize, addition: &str) -> String {
    insert(text, line_end(text, at), addition)
}

fn insert(text: &str, at: usize, addition: &str) -> String {
    format!("{}{addition}{}", &text[..at], &text[at..])
}

fn is_flow(text: &str, node: &Node) -> bool {
    text[node.span.start..].starts_with(['[', '{'])
}

/// The end of a value on its last line; the end in its span may be lines further down.
fn last_byte(text: &str, node: &Node) -> usize {
    let inner = match &node.value {
        _ if is_flow(text, node) => None,
        Value::Seq(items) => items.last().map(|item| last_byte(text, item)),
        Value::Map(entries) => entries
            .last()
            .map(|entry| last_byte(text, &entry.value).max(entry.key.span.end)),
        _ => None,
    };
    inner.unwrap_or_else(|| text[..node.span.end].trim_end().len().max(node.span.start))
}

/// The dash of an item in a block list.
fn dash(text: &str, item: &Node) -> Option<usize> {
    let before = text[..item.span.start].trim_end();
    before.ends_with('-').then(|| before.len() - 1)
}

fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    let end = text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline);
    if text[at..end].ends_with('\r') {
        end - 1
    } else {
        end
    }
}

fn line_break(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

#[cfg(test)]
mod tests;
