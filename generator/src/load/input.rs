//! The files that the user means: paths, folders, globs and standard input.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources};

/// What standard input is called.
pub const STDIN: &str = "<stdin>";

/// Reads everything that the arguments name, sorted by path and each file once.
#[must_use]
pub fn read(
    arguments: &[String],
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Vec<SourceId> {
    let mut paths = BTreeSet::new();
    let mut ids = Vec::new();
    for argument in arguments {
        if argument == "-" {
            let mut bytes = Vec::new();
            let read = io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes);
            ids.extend(add(STDIN, read, sources, diagnostics));
            continue;
        }
        let path = Path::new(argument);
        if path.is_dir() {
            walk(path, &mut paths, diagnostics);
        } else if path.exists() || !argument.contains(['*', '?']) {
            paths.insert(path.to_owned());
        } else {
            let before = paths.len();
            expand(path, &mut paths);
            if paths.len() == before {
                let message = format!("nothing matches `{argument}`");
                diagnostics.push(Diagnostic::error(Code::Unreadable, message));
            }
        }
    }
    for path in paths {
        ids.extend(add(
            &path.display().to_string(),
            fs::read(&path),
            sources,
            diagnostics,
        ));
    }
    ids
}

fn add(
    name: &str,
    bytes: io::Result<Vec<u8>>,
    sources: &mut Sources,
    diagnostics: &mut Diagnostics,
) -> Option<SourceId> {
    let problem = match bytes.map(String::from_utf8) {
        Ok(Ok(text)) => return Some(sources.add(name, text)),
        Ok(Err(error)) => format!("`{name}` is not UTF-8: {}", error.utf8_error()),
        Err(error) => format!("cannot read `{name}`: {error}"),
    };
    diagnostics.push(Diagnostic::error(Code::Unreadable, problem));
    None
}

fn walk(folder: &Path, paths: &mut BTreeSet<PathBuf>, diagnostics: &mut Diagnostics) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", folder.display());
            diagnostics.push(Diagnostic::error(Code::Unreadable, message));
            return;
        }
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            walk(&path, paths, diagnostics);
        } else if is_manifest(&path) {
            paths.insert(path);
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

/// Adds the files that match a pattern with `*`, `?` and `**`.
fn expand(pattern: &Path, paths: &mut BTreeSet<PathBuf>) {
    let parts: Vec<&str> = pattern.iter().filter_map(|part| part.to_str()).collect();
    let (start, parts) = match parts.split_first() {
        Some((first, rest)) if Path::new(first).is_absolute() => (PathBuf::from(first), rest),
        _ => (PathBuf::new(), parts.as_slice()),
    };
    descend(&start, parts, paths);
}

fn descend(folder: &Path, parts: &[&str], paths: &mut BTreeSet<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else {
        if folder.is_file() {
            paths.insert(folder.to_owned());
        }
        return;
    };
    if !part.contains(['*', '?']) {
        descend(&folder.join(part), rest, paths);
        return;
    }
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    if *part == "**" {
        descend(folder, rest, paths);
    }
    for entry in fs::read_dir(here).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path = folder.join(&name);
        if *part == "**" {
            if path.is_dir() {
                descend(&path, parts, paths);
            }
        } else if name
            .to_str()
            .is_some_and(|name| matches(part.as_bytes(), name.as_bytes()))
        {
            descend(&path, rest, paths);
        }
    }
}

/// Whether a name matches a pattern with `*` and `?`.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) => (0..=name.len()).any(|skip| matches(rest, &name[skip..])),
        (Some((b'?', rest)), Some((_, tail))) => matches(rest, tail),
        (Some((p, rest)), Some((n, tail))) => p == n && matches(rest, tail),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_names() {
        assert!(matches(b"*.yaml", b"a.yaml"));
        assert!(matches(b"a?c*", b"abcd"));
        assert!(!matches(b"*.yaml", b"a.yml"));
        assert!(!matches(b"a", b"ab"));
    }
}
