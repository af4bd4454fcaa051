//! `generate --watch`: updates the files after each change of the inputs.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use crate::shell::{CRD, Shell};

/// Far longer than any step takes.
const DEADLINE: Duration = Duration::from_secs(60);

struct Watch {
    child: Child,
    lines: Receiver<String>,
}

impl Watch {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .args(["generate", "--watch"])
            .current_dir(folder)
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program runs");
        let output = BufReader::new(child.stderr.take().expect("a pipe"));
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, lines }
    }

    /// Waits for a line with this text.
    fn wait_for(&self, text: &str) {
        let end = Instant::now() + DEADLINE;
        let mut lines = Vec::new();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => lines.push(line),
                Err(_) => panic!("no {text:?} in {lines:#?}"),
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It never ends by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn watch_generates_after_each_change_of_the_manifest_or_a_crd() {
    let shell = Shell::with_operator();
    let definition = "../widget.yaml";
    let manifest = |fields: &str| {
        format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: widgets}}\nresources:\n  \
             - crd: {definition}\n    handlers: [{{on: field, fn: changed, field: {fields}}}]\n"
        )
    };
    shell.write("kopf.yaml", &manifest("spec.size"));
    let watch = Watch::start(&shell.here);
    watch.wait_for("updated src/handlers/widget.rs");

    // After an error the files stay as they are.
    shell.write("kopf.yaml", &manifest("spec.colour"));
    watch.wait_for("KG0605");
    assert!(!shell.read("src/generated/widget.rs").contains("colour"));

    // A definition outside of `crds/` is watched as well.
    shell.write(
        definition,
        &CRD.replace("size: {", "colour: {type: string}, size: {"),
    );
    watch.wait_for("updated src/generated/widget.rs");
    assert!(shell.read("src/generated/widget.rs").contains("colour"));

    let next = CRD.replace("type: integer", "type: string");
    shell.write("crds/next.yaml", &next);
    watch.wait_for("everything is up to date");
}
