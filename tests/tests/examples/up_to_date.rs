//! Tests that `kopf-gen generate` changes no example.

use std::process::Command;

use kopf_tests::{TestResult, workspace};

#[test]
fn every_example_is_up_to_date_with_the_generator() -> TestResult {
    let generator = workspace::build_program("kopf-gen")?;
    let mut examples = 0;
    for entry in std::fs::read_dir(workspace::root().join("examples"))? {
        let example = entry?.path();
        let output = Command::new(&generator)
            .args(["generate", "--check", "--diff", "--manifest"])
            .arg(example.join("kopf.yaml"))
            .output()?;
        assert!(
            output.status.success(),
            "{} is out of date; run `kopf-gen generate` there\n{}{}",
            example.display(),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        examples += 1;
    }
    assert!(examples > 0, "there is at least one example");
    Ok(())
}

#[test]
fn the_examples_agree_on_the_kind_that_they_share() -> TestResult {
    let examples = workspace::root().join("examples");
    let definition = "crds/kopfexamples.yaml";
    let shared = std::fs::read_to_string(examples.join("01-minimal").join(definition))?;
    for entry in std::fs::read_dir(examples)? {
        let own = entry?.path().join(definition);
        if own.exists() {
            assert_eq!(std::fs::read_to_string(&own)?, shared, "{}", own.display());
        }
    }
    Ok(())
}
