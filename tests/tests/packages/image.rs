//! The image of an operator: the steps of its Dockerfile, all but the container engine's own, run in
//! a folder that has nothing of this repository.
//!
//! `KOPF_IMAGE=release` runs the steps as they are, in a target folder of their own, and prints the
//! size of the program. Otherwise the program is built without optimisation, with the dependencies
//! that this workspace has built.

use std::path::{Path, PathBuf};
use std::process::Command;

use kopf_tests::{Sandbox, TestFailure, TestResult, workspace};
use serde_json::json;

const CRD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
";

/// The steps of a Dockerfile that this test knows.
#[derive(Debug, Default)]
struct ImageSteps {
    /// The commands of the first stage.
    run: Vec<String>,
    /// The file that the last stage takes from the first one.
    copied: Option<String>,
    /// The program and its arguments.
    entry_point: Vec<String>,
    arguments: Vec<String>,
}

impl ImageSteps {
    /// Reads a Dockerfile; an instruction that no test executes is an error.
    fn read(text: &str) -> Result<Self, TestFailure> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let text = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        let mut steps = Self::default();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let exec_form = || -> Result<Vec<String>, TestFailure> {
                let (_, list) = line.split_once(' ').unwrap_or_default();
                Ok(serde_json::from_str(list)?)
            };
            match words.as_slice() {
                ["FROM", _, "AS", "build"] | ["WORKDIR", "/build"] | ["COPY", ".", "."] => {}
                ["FROM", image] if image.ends_with(":nonroot") => {}
                ["RUN", rest @ ..] => {
                    let rest = rest.iter().filter(|word| !word.starts_with("--mount="));
                    steps.run.push(rest.copied().collect::<Vec<_>>().join(" "));
                }
                ["COPY", "--from=build", file, to] => {
                    assert!(to.ends_with(file), "{line}");
                    steps.copied = Some((*file).to_owned());
                }
                ["ENTRYPOINT", ..] => steps.entry_point = exec_form()?,
                ["CMD", ..] => steps.arguments = exec_form()?,
                _ => return Err(TestFailure::new(format!("unknown step: {line}"))),
            }
        }
        Ok(steps)
    }
}

/// Copies the build context: a folder without what `.dockerignore` names.
fn copy_context(from: &Path, to: &Path, ignored: &[String]) -> TestResult {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if ignored.contains(&name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            copy_context(&entry.path(), &to.join(name), &[])?;
        } else {
            std::fs::copy(entry.path(), to.join(name))?;
        }
    }
    Ok(())
}

fn succeed(command: &mut Command) -> TestResult {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(TestFailure::new(format!("{command:?}: {errors}")))
}

/// Makes a crate with its own copy of the runtime, and runs the steps of its Dockerfile; returns the
/// program of the image and its arguments.
fn build_image(folder: &Path, crd: &str) -> Result<(PathBuf, Vec<String>), TestFailure> {
    let crd_file = folder.join("widget.yaml");
    std::fs::write(&crd_file, crd)?;
    let new = ["new", "widgets-operator", "--vendor", "--quiet", "--crd"];
    let mut kopf_gen = Command::new(workspace::build_program("kopf-gen")?);
    succeed(kopf_gen.current_dir(folder).args(new).arg(&crd_file))?;
    let crate_folder = folder.join("widgets-operator");
    // The versions of this workspace, as a user has those of the first build.
    std::fs::copy(
        workspace::root().join("Cargo.lock"),
        crate_folder.join("Cargo.lock"),
    )?;
    let mut cargo = Command::new(env!("CARGO"));
    workspace::clear_cargo_variables(&mut cargo);
    let metadata = ["metadata", "--format-version=1"];
    succeed(cargo.current_dir(&crate_folder).args(metadata))?;

    let ignored = std::fs::read_to_string(crate_folder.join(".dockerignore"))?;
    let ignored: Vec<String> = ignored.lines().map(str::to_owned).collect();
    let root = folder.join("root");
    let context = root.join("build");
    copy_context(&crate_folder, &context, &ignored)?;
    std::fs::remove_dir_all(&crate_folder)?;
    let steps = ImageSteps::read(&std::fs::read_to_string(context.join("Dockerfile"))?)?;
    let is_release = std::env::var("KOPF_IMAGE").is_ok_and(|it| it == "release");
    let file = steps.copied.unwrap_or_default();
    let program = format!("{}{file}", root.display());
    assert_eq!(steps.entry_point, [format!("/usr/local/bin{file}")]);
    for step in &steps.run {
        let mut step = step.replace(&format!(" {file}"), &format!(" {program}"));
        let mut shell = Command::new("sh");
        workspace::clear_cargo_variables(&mut shell);
        if !is_release {
            // This test is in target/debug/deps.
            let this = std::env::current_exe()?;
            let target = this.ancestors().nth(3).unwrap_or(&context).to_owned();
            step = step.replace("build --release", "build");
            step = step.replace("target/release", &format!("{}/debug", target.display()));
            shell.env("CARGO_TARGET_DIR", target);
        }
        succeed(shell.current_dir(&context).args(["-ec", &step]))?;
    }
    Ok((PathBuf::from(program), steps.arguments))
}

#[tokio::test]
async fn the_dockerfile_builds_a_working_operator_from_the_crate_alone() -> TestResult {
    let sandbox = Sandbox::open("image").await?;
    let folder = tempfile::tempdir()?;
    let crd = CRD.replace("$GROUP", sandbox.group());
    sandbox.apply_shared(&crd).await?;
    let path = folder.path().to_owned();
    let (program, arguments) =
        tokio::task::spawn_blocking(move || build_image(&path, &crd)).await??;
    print_size(&program)?;
    let user = sandbox.administrator("image");
    let operator = sandbox
        .operator(&program, &user)?
        .args(arguments)
        .args(["--namespace", sandbox.namespace()])
        .start()?;
    let api_version = format!("{}/v1", sandbox.group());
    let widgets = sandbox.objects(&api_version, "Widget").await?;
    widgets.create("one", json!({"spec": {"size": 1}})).await?;
    widgets
        .wait_until("one", "it is handled", |it| {
            let annotations = it.metadata.annotations.iter().flatten();
            let mut keys = annotations.map(|(key, _)| key.as_str());
            keys.any(|key| key == "kopf.zalando.org/last-handled-configuration")
        })
        .await?;
    operator.terminate().await.map(drop)
}

/// Prints the figures, which `--nocapture` shows.
#[expect(clippy::print_stdout, reason = "figures for the documentation")]
fn print_size(program: &Path) -> TestResult {
    let size = std::fs::metadata(program)?.len();
    println!("the program has {} kB", size / 1000);
    Ok(())
}
