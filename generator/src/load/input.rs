//! Reads the files that arguments name: paths, folders, globs and standard input.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::diagnostic::{Code, Diagnostic, Diagnostics, SourceId, Sources};

/// The largest file; the largest definitions of real projects have a few megabytes.
pub const LARGEST: usize = 256 << 20;

/// The name of standard input in diagnostics.
pub const STDIN: &str = "<stdin>";

/// Reads the files that the arguments name, each once, standard input first, then sorted by path.
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
            let read = bounded(io::stdin().lock(), LARGEST);
            ids.extend(add(STDIN, read, sources, diagnostics));
            continue;
        }
        let path = Path::new(argument);
        if path.is_dir() {
            walk(path, &mut paths, diagnostics);
        } else if path.exists() || !argument.contains(['*', '?']) {
            paths.insert(path.to_owned());
        } else {
            let problem = match matching_files(argument) {
                Ok(files) if !files.is_empty() => {
                    paths.extend(files);
                    continue;
                }
                Ok(_) => format!("nothing matches `{argument}`"),
                Err(error) => format!("`{argument}` is not a pattern: {error}"),
            };
            diagnostics.push(Diagnostic::error(Code::Unreadable, problem));
        }
    }
    for path in paths {
        ids.extend(add(
            &path.display().to_string(),
            read_file(&path),
            sources,
            diagnostics,
        ));
    }
    ids
}

/// Reads a file that is not larger than [`LARGEST`]; a device may have no end.
pub fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    bounded(fs::File::open(path)?, LARGEST)
}

fn bounded(input: impl Read, largest: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(largest).unwrap_or(u64::MAX);
    input
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() > largest {
        let message = format!("it has more than {} MiB", largest >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
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
        } else if is_manifest(&path) && !is_special(&path) {
            paths.insert(path);
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension))
}

/// Whether this is a pipe, a socket or a device, which may have no end.
fn is_special(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| !it.is_file())
}

/// The files that match a pattern with `*`, `?` and `**`; brackets stand for themselves.
fn matching_files(pattern: &str) -> Result<Vec<PathBuf>, glob::PatternError> {
    let matches = glob::glob(&pattern.replace('[', "[[]"))?;
    Ok(matches.flatten().filter(|path| path.is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        assert_eq!(bounded(&b"abc"[..], 3).expect("three bytes"), b"abc");
        let error = bounded(io::repeat(b'a'), 3).expect_err("no end");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_files_of_a_folder_are_read() {
        let root = tempfile::tempdir().expect("a folder");
        let socket = root.path().join("socket.yaml");
        let _socket = std::os::unix::net::UnixListener::bind(socket).expect("a socket");
        fs::write(root.path().join("a.yaml"), "a: 1").expect("a file");
        let folder = root.path().display().to_string();
        let (mut sources, mut diagnostics) = (Sources::new(), Diagnostics::new());
        let read = read(&[folder], &mut sources, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(read.len(), 1);
    }

    #[test]
    fn patterns_match_files_in_folders() {
        let root = tempfile::tempdir().expect("a folder");
        for file in ["a.yaml", "abcd", "sub[1]/b.yaml", "sub[1]/c.yml"] {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().expect("a file is in a folder")).expect("a folder");
            fs::write(path, "").expect("a file");
        }
        let matching = |pattern: &str| {
            let pattern = format!("{}/{pattern}", root.path().display());
            let files = matching_files(&pattern).expect("a valid pattern");
            let inside = |path: PathBuf| {
                let path = path.strip_prefix(root.path()).expect("a file inside");
                path.display().to_string()
            };
            files.into_iter().map(inside).collect::<Vec<_>>()
        };
        assert_eq!(matching("*.yaml"), ["a.yaml"]);
        assert_eq!(matching("a?c*"), ["abcd"]);
        assert_eq!(matching("**/*.yaml"), ["a.yaml", "sub[1]/b.yaml"]);
        assert_eq!(matching("sub[1]/*"), ["sub[1]/b.yaml", "sub[1]/c.yml"]);
        assert_eq!(matching("*.json"), [""; 0]);
    }
}
