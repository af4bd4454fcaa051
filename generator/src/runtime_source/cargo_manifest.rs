//! Reads and changes the source of the runtime in the `Cargo.toml` of an operator crate. What the
//! user wrote beside it stays: comments, order, features.

use std::path::Path;

use toml_edit::{DocumentMut, Item, TableLike, value};

use super::{Error, RuntimeCrate, RuntimeSource, VENDOR_FOLDER};

/// The keys of a dependency that say where it comes from.
const SOURCE_KEYS: [&str; 8] = [
    "version",
    "path",
    "git",
    "rev",
    "branch",
    "tag",
    "registry",
    "workspace",
];

/// The tables of a manifest that can have the dependency.
const SECTIONS: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// The `Cargo.toml` of an operator crate.
#[derive(Debug)]
pub struct CargoManifest(DocumentMut);

/// The source of the runtime that a manifest declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredSource {
    /// This one.
    Here(RuntimeSource),
    /// The one that the workspace declares.
    Workspace,
    /// None that this program knows, or no dependency on the runtime at all.
    Unknown,
}

// === impl CargoManifest ===

impl CargoManifest {
    /// Parses a manifest.
    ///
    /// # Errors
    /// If it is not TOML.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let document = text.parse::<DocumentMut>();
        document
            .map(Self)
            .map_err(|error| Error::Unreadable(error.to_string()))
    }

    /// The text, with all comments.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// The source of the runtime.
    #[must_use]
    pub fn source(&self) -> DeclaredSource {
        let name = RuntimeCrate::Runtime.name();
        let Some(item) = self.0.get("dependencies").and_then(|it| it.get(name)) else {
            return DeclaredSource::Unknown;
        };
        if let Some(version) = item.as_str() {
            return declared(RuntimeSource::registry(version).ok());
        }
        let text = |key: &str| item.get(key).and_then(Item::as_str);
        if item.get("workspace").and_then(Item::as_bool) == Some(true) {
            return DeclaredSource::Workspace;
        }
        if let Some(path) = text("path") {
            let vendored = Path::new(VENDOR_FOLDER).join("runtime");
            return DeclaredSource::Here(if Path::new(path) == vendored {
                RuntimeSource::Vendored
            } else {
                RuntimeSource::Folder(path.into())
            });
        }
        if let Some(url) = text("git") {
            let revision = ["rev", "tag", "branch"].into_iter().find_map(text);
            return DeclaredSource::Here(RuntimeSource::Git {
                url: url.to_owned(),
                revision: revision.map(str::to_owned),
            });
        }
        declared(text("version").and_then(|version| RuntimeSource::registry(version).ok()))
    }

    /// Makes the crate take the runtime from another source.
    ///
    /// # Errors
    /// If the crate does not depend on the runtime, or its workspace says from where.
    pub fn set_source(&mut self, source: &RuntimeSource) -> Result<(), Error> {
        if self.source() == DeclaredSource::Workspace {
            let message = "the Cargo.toml of the workspace says where kopf-runtime comes from: change it there";
            return Err(Error::NotDeclaredHere(message.to_owned()));
        }
        let mut is_found = false;
        for section in SECTIONS {
            for part in RuntimeCrate::ALL {
                let dependencies = self.0.get_mut(section).and_then(Item::as_table_like_mut);
                let item = dependencies.and_then(|it| it.get_mut(part.name()));
                if let Some(item) = item {
                    replace(item, source, part);
                    is_found = true;
                }
            }
        }
        if is_found {
            return Ok(());
        }
        let message = "Cargo.toml has no dependency `kopf-runtime`";
        Err(Error::NotDeclaredHere(message.to_owned()))
    }
}

fn declared(source: Option<RuntimeSource>) -> DeclaredSource {
    source.map_or(DeclaredSource::Unknown, DeclaredSource::Here)
}

/// Replaces the source of a dependency, and keeps its other keys.
fn replace(item: &mut Item, source: &RuntimeSource, part: RuntimeCrate) {
    let has_more = item
        .as_table_like()
        .is_some_and(|table| table.iter().any(|(key, _)| !SOURCE_KEYS.contains(&key)));
    if !has_more && !item.is_table() {
        let written: Result<DocumentMut, _> = format!("it = {}", source.dependency(part)).parse();
        if let Ok(mut written) = written
            && let Some(written) = written.remove("it")
            && let Some(new) = written.as_value()
        {
            let mut new = new.clone();
            if let Some(old) = item.as_value() {
                *new.decor_mut() = old.decor().clone();
            }
            *item = Item::Value(new);
        }
        return;
    }
    if let Some(table) = item.as_table_like_mut() {
        replace_keys(table, source, part);
    }
}

fn replace_keys(table: &mut dyn TableLike, source: &RuntimeSource, part: RuntimeCrate) {
    for key in SOURCE_KEYS {
        table.remove(key);
    }
    for (key, text) in source.keys(part) {
        table.insert(key, value(text));
    }
    table.fmt();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, source: &RuntimeSource) -> String {
        let mut manifest = CargoManifest::parse(text).unwrap();
        manifest.set_source(source).unwrap();
        assert_eq!(manifest.source(), DeclaredSource::Here(source.clone()));
        manifest.text()
    }

    #[test]
    fn only_the_source_of_the_runtime_changes() {
        let git = RuntimeSource::git("https://h/o/n", Some("abc".to_owned())).unwrap();
        let before = "# top\n[dependencies]\nkopf-runtime = \"1\" # ours\nserde = \"1\"\n\n[dev-dependencies]\nkopf-testing = { path = \"../x/testing\" }\n";
        assert_eq!(
            changed(before, &git),
            "# top\n[dependencies]\nkopf-runtime = { git = \"https://h/o/n\", rev = \"abc\" } # ours\nserde = \"1\"\n\n[dev-dependencies]\nkopf-testing = { git = \"https://h/o/n\", rev = \"abc\" }\n"
        );
        let before = "[dependencies.kopf-runtime]\npath = \"../runtime\"\nfeatures = [\"otel\"]\n";
        let after = changed(before, &RuntimeSource::Vendored);
        assert!(after.contains("features = [\"otel\"]"), "{after}");
        assert!(
            after.contains("path = \"vendor/kopf-gen/runtime\""),
            "{after}"
        );
        let before = "[dependencies]\nkopf-runtime = { git = \"https://h\", branch = \"x\", features = [\"otel\"] }\n";
        let after = changed(before, &RuntimeSource::registry("2").unwrap());
        assert!(
            !after.contains("branch") && !after.contains("git"),
            "{after}"
        );
        assert!(after.contains("features = [\"otel\"]"), "{after}");
    }

    #[test]
    fn a_source_that_the_workspace_declares_is_not_changed() {
        let text = "[dependencies]\nkopf-runtime.workspace = true\n";
        let mut manifest = CargoManifest::parse(text).unwrap();
        assert_eq!(manifest.source(), DeclaredSource::Workspace);
        assert!(manifest.set_source(&RuntimeSource::Vendored).is_err());
        let mut other = CargoManifest::parse("[dependencies]\nserde = \"1\"\n").unwrap();
        assert!(other.set_source(&RuntimeSource::Vendored).is_err());
    }
}
