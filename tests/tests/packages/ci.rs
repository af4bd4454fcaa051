//! The files of CI systems that `kopf-gen new --ci` writes.

use std::process::Command;

use kopf_tests::{TestResult, actionlint, gitlab_schema, workspace};
use serde_json::Value;

#[tokio::test]
async fn the_files_of_ci_systems_are_valid() -> TestResult {
    let folder = tempfile::tempdir()?;
    let new = ["new", "op", "--quiet", "--ci", "github", "--ci", "gitlab"];
    // The revision is a word of a shell command.
    let source = ["--runtime-git", "https://git.example.com/a/b#it's; $(x)"];
    let output = Command::new(workspace::build_program("kopf-gen")?)
        .current_dir(folder.path())
        .args(new)
        .args(source)
        .output()?;
    assert!(output.status.success(), "{output:?}");
    let folder = folder.path().join("op");
    let workflow = folder.join(".github/workflows/ci.yaml");
    assert_eq!(actionlint::lint(&workflow).await?, "");
    let broken = folder.join(".github/workflows/broken.yaml");
    std::fs::write(
        &broken,
        std::fs::read_to_string(&workflow)?.replace("runs-on", "runs"),
    )?;
    assert_ne!(
        actionlint::lint(&broken).await?,
        "",
        "the linter finds errors"
    );

    let pipeline = folder.join(".gitlab-ci.yml");
    assert_eq!(gitlab_schema::check(&pipeline).await?, "");
    let text = std::fs::read_to_string(&pipeline)?;
    let broken = folder.join("broken.yml");
    std::fs::write(&broken, text.replace("script:", "scripts:"))?;
    let found = gitlab_schema::check(&broken).await?;
    assert_ne!(found, "", "the schema finds errors");

    let pipeline: Value = serde_saphyr::from_str(&text)?;
    for job in ["test", "generated", "image-build"] {
        let script = pipeline[job]["script"].as_array();
        assert!(script.is_some_and(|lines| !lines.is_empty()), "{job}");
    }
    Ok(())
}
