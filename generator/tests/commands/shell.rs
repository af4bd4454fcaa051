//! Runs commands in a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A small definition.
pub(crate) const CRD: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}, names: {type: array, items: {type: string}}}}
";

/// A temporary folder in which commands run.
pub(crate) struct Shell {
    folder: TempDir,
    pub(crate) here: PathBuf,
}

impl Shell {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let here = folder.path().to_path_buf();
        let shell = Self { folder, here };
        shell.write("widget.yaml", CRD);
        shell
    }

    /// The temporary folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The folder with an operator for widgets, created by `kopf-gen new`.
    pub(crate) fn with_operator() -> Self {
        let mut shell = Self::new();
        shell.run(&[
            "-q",
            "new",
            "widgets",
            "--crd",
            "widget.yaml",
            "--runtime-version",
            "1.0.0",
        ]);
        shell.here = shell.folder.path().join("widgets");
        shell
    }

    /// Runs the program and returns its exit code and everything that it printed.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(arguments)
            .current_dir(&self.here)
            .env_remove("NO_COLOR")
            .output()
            .expect("the program runs");
        let text = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .replace(&*self.folder.path().to_string_lossy(), "[FOLDER]")
        };
        let code = output.status.code().expect("it was not killed");
        format!(
            "exit {code}\n{}{}",
            text(&output.stdout),
            text(&output.stderr)
        )
    }

    /// Runs a line as a shell would; it must succeed.
    pub(crate) fn script(&self, line: &str) {
        let program = Path::new(env!("CARGO_BIN_EXE_kopf-gen"));
        let folder = program.parent().expect("a folder").to_string_lossy();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("sh")
            .args(["-ec", line])
            .current_dir(&self.here)
            .env("PATH", format!("{folder}:{path}"))
            .output()
            .expect("a shell");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{line}\n{text}");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.here.join(path)).expect("a text")
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.here.join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("writable");
        fs::write(path, text).expect("writable");
    }

    pub(crate) fn manifest(&self, handlers: &str) {
        let head = "apiVersion: kopf-gen.dev/v1\noperator: {name: widgets}\nresources:\n";
        self.write(
            "kopf.yaml",
            &format!("{head}  - crd: crds/widget.yaml\n    handlers:\n{handlers}"),
        );
    }
}
