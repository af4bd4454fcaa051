//! A folder of CustomResourceDefinitions: its files, samples and fixed subsets.

use std::path::{self, Path, PathBuf};
use std::{fs, io};

use serde_json::Value;

use crate::definition;

/// The folder.
#[derive(Clone, Debug)]
pub struct Corpus {
    folder: PathBuf,
    files: Vec<DefinitionFile>,
}

/// A file with one CustomResourceDefinition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionFile {
    /// The path.
    pub path: PathBuf,
    /// Its name without the extension.
    pub stem: String,
    /// Its index in the sorted folder.
    pub index: usize,
}

/// A selection of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subset {
    /// All of them.
    All,
    /// Each n-th one.
    Every(usize),
    /// This many, drawn by a fixed seed.
    Drawn(usize),
}

/// The reasons why a folder is no corpus.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// The folder cannot be listed.
    #[error("cannot list {}, the folder of definitions: {source}", folder.display())]
    Unlisted {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The folder has no definition.
    #[error(
        "there is no definition in {}: name the folder that has the `*.yaml` files itself",
        folder.display()
    )]
    Empty {
        /// The folder.
        folder: PathBuf,
    },
}

/// A sample object of a definition.
#[derive(Clone, Debug)]
pub struct Sample {
    /// As applied, or as served.
    pub form: SampleForm,
    /// The object.
    pub object: Value,
}

/// The form of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampleForm {
    /// As a client applied it.
    Applied,
    /// As the API server returned it.
    Served,
}

/// The folder of the repository.
#[must_use]
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("this package is two folders below the repository")
        .to_owned()
}

// === impl Corpus ===

impl Corpus {
    /// The definitions of this repository, one or more for each shape of schemas.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn own() -> Result<Self, CorpusError> {
        Self::open(&repository().join("tests/corpus/definitions"))
    }

    /// The definitions of this repository that the API server rejects for their schemas.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub fn not_structural() -> Result<Self, CorpusError> {
        Self::open(&repository().join("tests/corpus/not-structural"))
    }

    /// Lists the definitions in a folder.
    ///
    /// # Errors
    /// If the folder cannot be listed, or has none.
    pub fn open(folder: &Path) -> Result<Self, CorpusError> {
        // Programs that read the files run in folders of their own.
        let listed = path::absolute(folder).and_then(|folder| yaml_files(&folder));
        let paths = listed.map_err(|source| CorpusError::Unlisted {
            folder: folder.to_owned(),
            source,
        })?;
        if paths.is_empty() {
            return Err(CorpusError::Empty {
                folder: folder.to_owned(),
            });
        }
        let files = paths
            .into_iter()
            .enumerate()
            .map(|(index, path)| DefinitionFile {
                stem: path
                    .file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                path,
                index,
            })
            .collect();
        Ok(Self {
            folder: folder.to_owned(),
            files,
        })
    }

    /// The files of a subset, in the order of the folder.
    #[must_use]
    pub fn files(&self, subset: Subset) -> Vec<&DefinitionFile> {
        match subset {
            Subset::All => self.files.iter().collect(),
            Subset::Every(step) => self.files.iter().step_by(step.max(1)).collect(),
            Subset::Drawn(count) => {
                let mut drawn: Vec<&DefinitionFile> = self.files.iter().collect();
                drawn.sort_by_key(|file| scatter(file.index));
                drawn.truncate(count);
                drawn.sort_by_key(|file| file.index);
                drawn
            }
        }
    }

    /// The sample objects of a definition, from `samples` beside the folder.
    ///
    /// # Errors
    /// If a sample is there but cannot be read.
    pub fn samples(&self, file: &DefinitionFile) -> io::Result<Vec<Sample>> {
        let mut samples = Vec::new();
        for (form, folder, extension) in [
            (SampleForm::Applied, "applied", "sample.yaml"),
            (SampleForm::Served, "served", "served.json"),
        ] {
            let folder = self.folder.join("../samples").join(folder);
            let path = folder.join(format!("{}.{extension}", file.stem));
            if path.exists() {
                let text = fs::read_to_string(&path)?;
                let objects = definition::documents(&path.display().to_string(), &text);
                samples.extend(objects.into_iter().map(|object| Sample { form, object }));
            }
        }
        Ok(samples)
    }
}

/// The files `*.yaml` of a folder, sorted.
fn yaml_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| {
        path.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    paths.sort();
    Ok(paths)
}

/// Spreads consecutive numbers (splitmix64), so that sorting by the result is a fixed shuffle.
fn scatter(index: usize) -> u64 {
    const SEED: u64 = 42;
    let mut z = (index as u64 + SEED).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

// === impl DefinitionFile ===

impl DefinitionFile {
    /// The text of the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(&self) -> io::Result<String> {
        fs::read_to_string(&self.path)
    }

    /// The definition as JSON.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn definition(&self) -> io::Result<Value> {
        let documents = definition::documents(&self.path.display().to_string(), &self.read()?);
        Ok(documents.into_iter().next().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn toy(count: usize) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for index in 0..count {
            fs::write(folder.path().join(format!("{index:03}.yaml")), "").expect("a file");
        }
        folder
    }

    #[test]
    fn subsets_are_fixed_and_in_order() {
        let folder = toy(20);
        let corpus = Corpus::open(folder.path()).expect("the corpus is there");
        let indices =
            |subset| -> Vec<usize> { corpus.files(subset).iter().map(|file| file.index).collect() };
        assert_eq!(indices(Subset::All).len(), 20);
        assert_eq!(indices(Subset::Every(7)), [0, 7, 14]);
        let drawn = indices(Subset::Drawn(5));
        assert_eq!(drawn, indices(Subset::Drawn(5)));
        assert!(drawn.is_sorted() && drawn.len() == 5, "{drawn:?}");
        assert_ne!(drawn, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_folder_without_definitions_is_an_error_with_its_path() {
        let folder = toy(0);
        let path = folder.path().display().to_string();
        for (folder, reason) in [
            (folder.path().to_owned(), "there is no definition in"),
            (folder.path().join("missing"), "cannot list"),
        ] {
            let text = Corpus::open(&folder).expect_err("no corpus").to_string();
            assert!(text.contains(&path) && text.contains(reason), "{text}");
        }
    }
}
