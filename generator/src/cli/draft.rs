//! An operator crate as a command is about to write it: the files on disk with changes over them.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use super::console::{Console, PrintedNotes};
use super::crate_folder::workspace_manifest;
use super::definition_fix::corrected_text;
use super::exit_status::CommandStatus;
use super::old_layout;
use super::runtime_args::RuntimeArgs;
use crate::crate_path::CratePath;
use crate::diagnostic::{Code, Diagnostic, Diagnostics, Severity, SourceId, Sources};
use crate::edit::{self, ListItem, ManifestList};
use crate::format::FormattedFile;
use crate::format::yaml::scalar;
use crate::load::crd::{self, Crd, NameFix};
use crate::load::input::{self, STDIN};
use crate::load::manifest::{self, FILE_NAME, ResourceSection, Spanned};
use crate::model::operator::Operator;
use crate::plan::{
    self, CrateEnvironment, FileSource, InitialHandlers, ModuleSource, PlannedFile,
    is_kustomization,
};
use crate::runtime_source::{
    CargoManifest, DeclaredSource, RuntimeCrate, RuntimeSource, vendored_files,
};
use crate::write::{LockFile, WantedFiles};
use crate::{format, pipeline, project, render};

/// The crate in `root`, with changes that are not written yet.
pub(super) struct CrateDraft {
    root: PathBuf,
    /// The manifest on disk, if there is one.
    before: Option<String>,
    manifest: String,
    /// New files, by their path in the crate.
    added: BTreeMap<String, String>,
    /// The bodies of the handlers, if the crate is new.
    initial_handlers: InitialHandlers,
    /// Group and kind of what the manifest handles; read when first needed, because that is slow.
    known: Option<BTreeSet<(String, String)>>,
}

/// The first entries of a new kind, each as one line of YAML.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InitialEntries {
    pub(super) children: &'static [&'static str],
    pub(super) handlers: &'static [&'static str],
    pub(super) indices: &'static [&'static str],
    pub(super) admission: &'static [&'static str],
}

/// Why a draft cannot be opened or changed.
#[derive(Debug, thiserror::Error)]
pub(super) enum DraftError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Edit(#[from] edit::CannotEdit),
    #[error("{0} already exists with another content; give the new file another name")]
    FileTaken(String),
}

/// An operator, with the texts and the problems of its inputs.
pub(super) struct LoadedOperator {
    pub(super) operator: Operator,
    pub(super) sources: Sources,
    pub(super) diagnostics: Diagnostics,
}

impl CrateDraft {
    /// Opens the crate whose manifest is in `root`.
    pub(super) fn open(root: &Path) -> Result<Self, DraftError> {
        let path = root.join(FILE_NAME);
        let text =
            std::fs::read_to_string(&path).map_err(|source| DraftError::Read { path, source })?;
        Ok(Self {
            root: root.to_path_buf(),
            manifest: text.clone(),
            before: Some(text),
            added: BTreeMap::new(),
            initial_handlers: InitialHandlers::Stubs,
            known: None,
        })
    }

    /// Begins a crate that does not exist yet.
    pub(super) fn begin(root: &Path, name: &str, initial_handlers: InitialHandlers) -> Self {
        let manifest = format::text(render::manifest(name));
        Self {
            root: root.to_path_buf(),
            before: None,
            manifest,
            added: BTreeMap::new(),
            initial_handlers,
            known: None,
        }
    }

    /// Whether `add_crds` added or found a kind.
    pub(super) fn has_crds(&self) -> bool {
        self.known.as_ref().is_some_and(|known| !known.is_empty())
    }

    pub(super) fn manifest(&self) -> &str {
        &self.manifest
    }

    pub(super) fn set_manifest(&mut self, text: String) {
        self.manifest = text;
    }

    /// Adds a handler to `operator.handlers`, given as one line of YAML.
    pub(super) fn add_hook(&mut self, entry: &str) -> Result<(), DraftError> {
        let item = ListItem {
            block: vec![entry.to_owned()],
            flow: entry.to_owned(),
        };
        self.manifest = edit::append(&self.manifest, ManifestList::OperatorHandlers, &item)?;
        Ok(())
    }

    /// Adds the kinds of a file that the manifest does not have, each with the entries `first`.
    /// Returns the names of the kinds that it already had.
    pub(super) fn add_crds(
        &mut self,
        name: &str,
        text: &str,
        kinds: &[Crd],
        first: InitialEntries,
    ) -> Result<Vec<String>, DraftError> {
        let mut known = self.known.take().unwrap_or_else(|| self.known_kinds());
        let (old, new): (Vec<&Crd>, Vec<&Crd>) = kinds
            .iter()
            .partition(|crd| known.contains(&(crd.group.clone(), crd.names.kind.clone())));
        if !new.is_empty() {
            let file = self.locate(name, text)?;
            for crd in &new {
                let item = resource_item(&file, crd, kinds, first);
                self.manifest = edit::append(&self.manifest, ManifestList::Resources, &item)?;
            }
        }
        known.extend(
            new.iter()
                .map(|crd| (crd.group.clone(), crd.names.kind.clone())),
        );
        self.known = Some(known);
        Ok(old.into_iter().map(|crd| crd.names.kind.clone()).collect())
    }

    /// The path by which the manifest names a file: its own if it is in the crate, else a copy in `crds/`.
    fn locate(&mut self, name: &str, text: &str) -> Result<String, DraftError> {
        let inside = Path::new(name).canonicalize().ok().and_then(|path| {
            let root = self.root.canonicalize().ok()?;
            let path = path.strip_prefix(root).ok()?;
            path.iter()
                .map(|part| part.to_str())
                .collect::<Option<Vec<_>>>()
                .map(|parts| parts.join("/"))
        });
        if let Some(inside) = inside {
            if self
                .read(&inside)
                .is_ok_and(|bytes| bytes != text.as_bytes())
            {
                self.added.insert(inside.clone(), text.to_owned());
            }
            return Ok(inside);
        }
        let base = match name {
            STDIN => "stdin.yaml".into(),
            name => Path::new(name)
                .file_name()
                .map_or("crd.yaml".into(), |name| name.to_string_lossy()),
        };
        let file = format!("crds/{}", portable(&base));
        let present = self.read(&file).ok().map(|bytes| bytes == text.as_bytes());
        match present {
            Some(true) => {}
            Some(false) => return Err(DraftError::FileTaken(file)),
            None => {
                self.added.insert(file.clone(), text.to_owned());
            }
        }
        Ok(file)
    }

    /// Group and kind of what the manifest handles, as far as it can be read.
    fn known_kinds(&self) -> BTreeSet<(String, String)> {
        let mut kinds = BTreeSet::new();
        for (section, _, crds) in self.definitions(NameFix::Report) {
            let is = |wanted: &Option<Spanned<String>>, name: &str| {
                wanted.as_ref().is_none_or(|wanted| wanted.value == name)
            };
            let wanted =
                |crd: &Crd| is(&section.kind, &crd.names.kind) && is(&section.group, &crd.group);
            kinds.extend(
                crds.into_iter()
                    .filter(wanted)
                    .map(|crd| (crd.group, crd.names.kind)),
            );
        }
        kinds
    }

    /// Corrects the definitions that the manifest names, if the API server would reject them.
    pub(super) fn correct_definitions(&mut self) {
        for (_, file, crds) in self.definitions(NameFix::Correct) {
            if let Some(text) = corrected_text(&file, &crds) {
                self.added.insert(file, text);
            }
        }
    }

    /// The definitions that the manifest names, as far as they can be read.
    fn definitions(&self, fix: NameFix) -> Vec<(ResourceSection, String, Vec<Crd>)> {
        let mut sources = Sources::new();
        let source = sources.add(FILE_NAME, self.manifest.as_str());
        let mut ignored = Diagnostics::new();
        let Some(manifest) = manifest::parse(&sources, source, &mut ignored) else {
            return Vec::new();
        };
        let mut definitions = Vec::new();
        for section in manifest.resources {
            let Some(file) = section.crd.as_ref().map(|file| file.value.clone()) else {
                continue;
            };
            let Ok(bytes) = self.read(&file) else {
                continue;
            };
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let source = sources.add(file.as_str(), text);
            let crds = crd::read(&sources, source, fix, &mut ignored);
            definitions.push((section, file, crds));
        }
        definitions
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.added.get(path) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => input::read_file(&self.root.join(path)),
        }
    }

    /// Reads the manifest and the files that it names, and reports errors.
    pub(super) fn load(&self, console: &mut Console) -> Result<LoadedOperator, CommandStatus> {
        console.begin_task("reading kopf.yaml and what it names");
        let (sources, mut diagnostics, operator) = self.read_operator();
        match operator {
            Some(operator) => Ok(LoadedOperator {
                operator,
                sources,
                diagnostics,
            }),
            None => {
                diagnostics.sort();
                console.print_diagnostics(&diagnostics, &sources, PrintedNotes::None);
                Err(CommandStatus::Invalid)
            }
        }
    }

    /// Reads the manifest and the files that it names.
    pub(super) fn read_operator(&self) -> (Sources, Diagnostics, Option<Operator>) {
        let mut sources = Sources::new();
        let mut diagnostics = Diagnostics::new();
        let manifest: SourceId = sources.add(FILE_NAME, self.manifest.as_str());
        let read = |path: &str| self.read(path);
        let operator = pipeline::read_operator(&mut sources, manifest, &read, &mut diagnostics);
        (sources, diagnostics, operator)
    }

    /// Plans every file of the crate, and reports problems of the inputs.
    pub(super) fn plan(
        &self,
        runtime: &RuntimeArgs,
        console: &mut Console,
    ) -> Result<WantedFiles, CommandStatus> {
        let source = self.runtime_source(runtime, console)?;
        self.plan_files(source.as_ref(), None, console)
    }

    /// Plans every file of a crate whose `Cargo.toml` names another source of the runtime.
    pub(super) fn plan_with_source(
        &self,
        source: &RuntimeSource,
        cargo_manifest: PlannedFile<'_>,
        console: &mut Console,
    ) -> Result<WantedFiles, CommandStatus> {
        self.plan_files(Some(source), Some(cargo_manifest), console)
    }

    /// The source of the runtime: that of the crate, or the one for a new crate.
    fn runtime_source(
        &self,
        runtime: &RuntimeArgs,
        console: &mut Console,
    ) -> Result<Option<RuntimeSource>, CommandStatus> {
        let Ok(text) = std::fs::read_to_string(self.root.join("Cargo.toml")) else {
            let source = runtime.source(&self.root);
            return source.map(Some).map_err(|error| console.fail_with(&error));
        };
        if let Some(option) = runtime.option() {
            let message = format!(
                "{option} is for a new crate; in this one, `kopf-gen runtime` changes the source of the runtime"
            );
            return Err(console.fail(&message));
        }
        let declared = CargoManifest::parse(&text).map(|manifest| manifest.source());
        Ok(match declared {
            Ok(DeclaredSource::Here(source)) => Some(source),
            // Cargo reports what it cannot read.
            Ok(DeclaredSource::Workspace | DeclaredSource::Unknown) | Err(_) => None,
        })
    }

    fn plan_files(
        &self,
        source: Option<&RuntimeSource>,
        cargo_manifest: Option<PlannedFile<'_>>,
        console: &mut Console,
    ) -> Result<WantedFiles, CommandStatus> {
        let LoadedOperator {
            operator,
            mut sources,
            mut diagnostics,
        } = self.load(console)?;
        let user = project::read_user_files(&self.root, &mut sources)
            .map_err(|error| console.fail_with(&error))?;
        console.begin_task("generating the crate");
        console.advance(0, operator.kinds.len());
        let mut files = plan::operator(&operator, &sources, &user, &mut diagnostics);
        if source == Some(&RuntimeSource::Vendored) {
            files.extend(vendored_files().map(|(path, text)| PlannedFile::vendored(path, text)));
        }
        files.extend(cargo_manifest);
        let is_new = !self.root.join("Cargo.toml").exists();
        if let Some(source) = source.filter(|_| is_new) {
            let environment = CrateEnvironment {
                runtime: source.dependency(RuntimeCrate::Runtime),
                testing: source.dependency(RuntimeCrate::Testing),
                has_workspace: workspace_manifest(&self.root).is_some(),
            };
            let scaffold = plan::new_crate(&operator, environment, self.initial_handlers);
            files.retain(|file| scaffold.iter().all(|other| other.path != file.path));
            files.extend(scaffold);
        }
        files.push(self.manifest_file());
        for (path, text) in &self.added {
            files.push(self.added_file(path, text, console)?);
        }
        let files = texts(files, operator.kinds.len(), console);
        let lock = LockFile::read(&self.root).map_err(|error| console.fail_with(&error))?;
        diagnostics.extend(old_layout::note(&self.root, &operator, &user, &lock));
        diagnostics.sort();
        console.print_diagnostics(&diagnostics, &sources, PrintedNotes::Titles(lock.notes()));
        if diagnostics.has_errors() {
            return Err(CommandStatus::Invalid);
        }
        let notes = diagnostics
            .iter()
            .filter(|it| it.severity == Severity::Note);
        let is_rejected = |it: &Diagnostic| it.code == Code::RejectedDefinition;
        Ok(WantedFiles {
            files,
            notes: notes.map(Diagnostic::title).collect(),
            has_rejected_definitions: diagnostics.iter().any(is_rejected),
        })
    }

    fn manifest_file(&self) -> PlannedFile<'_> {
        let before = self.before.as_deref().map(Into::into);
        PlannedFile::given(manifest_path(), before, self.manifest.as_str())
    }

    /// A new or corrected file with definitions.
    fn added_file<'a>(
        &self,
        path: &str,
        text: &'a str,
        console: &mut Console,
    ) -> Result<PlannedFile<'a>, CommandStatus> {
        let place = CratePath::new(path).map_err(|error| console.fail_with(&error))?;
        let before = std::fs::read_to_string(self.root.join(path));
        Ok(PlannedFile::given(place, before.ok().map(Into::into), text))
    }
}

/// The texts of the planned files; the progress line counts the kinds.
fn texts(planned: Vec<PlannedFile<'_>>, kinds: usize, console: &mut Console) -> Vec<FormattedFile> {
    let mut done = 0;
    let planned = planned.into_iter().inspect(|file| {
        if matches!(file.source, FileSource::Module(ModuleSource::Kind(_))) {
            console.advance(done, kinds);
            done += 1;
        }
    });
    pipeline::formatted(planned)
}

fn resource_item(file: &str, crd: &Crd, kinds: &[Crd], first: InitialEntries) -> ListItem {
    let lists = [
        ("children", first.children),
        ("handlers", first.handlers),
        ("indices", first.indices),
        ("admission", first.admission),
    ];
    let lists = lists.iter().filter(|(_, entries)| !entries.is_empty());
    let kind = &crd.names.kind;
    let same_kind = kinds.iter().filter(|it| it.names.kind == *kind);
    let mut block = vec![format!("crd: {}", scalar(file))];
    if kinds.len() > 1 {
        block.push(format!("kind: {}", scalar(kind)));
    }
    if same_kind.count() > 1 {
        block.push(format!("group: {}", scalar(&crd.group)));
    }
    let mut flow = block.clone();
    for (key, entries) in lists {
        let line = format!("{key}: [{}]", entries.join(", "));
        // Names alone fit on one line.
        if entries.iter().any(|entry| entry.starts_with('{')) {
            block.push(format!("{key}:"));
            block.extend(entries.iter().map(|entry| format!("  - {entry}")));
        } else {
            block.push(line.clone());
        }
        flow.push(line);
    }
    ListItem {
        block,
        flow: format!("{{{}}}", flow.join(", ")),
    }
}

/// The name of a file, without the characters that some file systems reject, and not one that
/// Kustomize reads.
fn portable(name: &str) -> String {
    let replaced = |c: char| match c {
        '<' | '>' | ':' | '"' | '/' | '\\' | '|' | '?' | '*' => '-',
        c if c.is_control() => '-',
        c => c,
    };
    let name: String = name.chars().map(replaced).collect();
    if is_kustomization(&name) {
        return format!("crd-{name}");
    }
    name
}

fn manifest_path() -> CratePath {
    CratePath::new(FILE_NAME).expect("it is a constant")
}
