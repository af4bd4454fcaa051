//! The packages that a registry would get.

use kopf_tests::{TestFailure, TestResult, workspace};

/// The files that the package of a crate has.
fn packaged(package: &str) -> Result<Vec<String>, TestFailure> {
    let listed = workspace::cargo()
        .args(["package", "--package", package])
        .args(["--list", "--allow-dirty", "--offline"])
        .output()?;
    if !listed.status.success() {
        let errors = String::from_utf8_lossy(&listed.stderr).into_owned();
        return Err(TestFailure::new(errors));
    }
    let text = String::from_utf8(listed.stdout)?;
    Ok(text.lines().map(str::to_owned).collect())
}

#[test]
fn the_package_of_kopf_gen_has_its_templates_and_the_sources_of_the_runtime() -> TestResult {
    let files = packaged("kopf-gen")?;
    let mut expected = Vec::new();
    for (folder, below) in [
        ("templates", "templates"),
        ("runtime/src", "runtime-sources/runtime/src"),
        ("runtime/core/src", "runtime-sources/runtime/core/src"),
        ("runtime/cluster/src", "runtime-sources/runtime/cluster/src"),
        ("runtime/testing/src", "runtime-sources/runtime/testing/src"),
    ] {
        collect(&workspace::root().join(folder), below, &mut expected)?;
    }
    expected.extend(["README.md", "askama.toml", "build.rs"].map(str::to_owned));
    for manifest in [
        "",
        "runtime/",
        "runtime/core/",
        "runtime/cluster/",
        "runtime/testing/",
    ] {
        expected.push(format!("runtime-sources/{manifest}Cargo.toml.in"));
    }
    expected.retain(|it| !files.contains(it));
    assert_eq!(expected, Vec::<String>::new(), "they are missing");
    Ok(())
}

/// The files of a folder, unit tests left out, under another path.
fn collect(folder: &std::path::Path, below: &str, files: &mut Vec<String>) -> TestResult {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{below}/{name}");
        if matches!(name.as_str(), "tests" | "tests.rs") {
            continue;
        } else if entry.path().is_dir() {
            collect(&entry.path(), &path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

#[test]
fn each_published_crate_has_the_metadata_of_a_registry() -> TestResult {
    let metadata = workspace::cargo()
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .output()?;
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    // Without `publish`, a crate can be published anywhere.
    let published: Vec<_> = packages.filter(|it| it["publish"].is_null()).collect();
    let mut names: Vec<_> = published
        .iter()
        .filter_map(|it| it["name"].as_str())
        .collect();
    names.sort_unstable();
    let all = [
        "kopf-cluster",
        "kopf-core",
        "kopf-gen",
        "kopf-runtime",
        "kopf-testing",
    ];
    assert_eq!(names, all);
    for package in published {
        for key in [
            "description",
            "license",
            "repository",
            "readme",
            "rust_version",
        ] {
            assert!(package[key].is_string(), "{}: {key}", package["name"]);
        }
        assert!(!packaged(package["name"].as_str().unwrap_or_default())?.is_empty());
    }
    Ok(())
}
