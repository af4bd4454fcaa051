//! Generates whole operator crates and compares them byte by byte with the committed ones, which
//! the workspace compiles and lints. `UPDATE_GOLDEN=1` updates them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden")
}

/// Every file below a folder, without those of cargo and git.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path
                    .strip_prefix(root)
                    .expect("below root")
                    .to_string_lossy()
                    .replace('\\', "/");
                files.insert(name, fs::read_to_string(&path).expect("text"));
            }
        }
    }
    files
}

/// The prefix of the folders that `kopf-gen new` creates; the rest is the preset.
const PRESET: &str = "preset-";

fn make_from_scratch(case: &Path) -> BTreeMap<String, String> {
    let place = tempfile::tempdir().expect("a folder");
    // In this repository, because a crate in a workspace has no profile.
    fs::write(place.path().join("Cargo.toml"), "[workspace]\n").expect("writable");
    let name = case.file_name().expect("a name").to_string_lossy();
    let made = place.path().join(&*name);
    fs::create_dir(&made).expect("writable");
    let mut program = Command::new(env!("CARGO_BIN_EXE_kopf-gen"));
    if let Some(preset) = name.strip_prefix(PRESET) {
        let definitions = case.join("crds").display().to_string();
        program.args(["new", ".", "--preset", preset, "--crd", &definitions]);
    } else {
        for (name, text) in tree(case) {
            if name == "kopf.yaml"
                || name.starts_with("crds/") && !name.ends_with("/kustomization.yaml")
            {
                let path = made.join(name);
                fs::create_dir_all(path.parent().expect("below the crate")).expect("writable");
                fs::write(path, text).expect("writable");
            }
        }
        program.arg("generate");
    }
    let output = program
        .args(["--runtime-version", "0.0.0"])
        .current_dir(&made)
        .output()
        .expect("the program runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let mut files = tree(&made);
    let cargo = files.get_mut("Cargo.toml").expect("a crate has one");
    for (name, path) in [
        ("kopf-runtime", "runtime"),
        ("kopf-testing", "runtime/testing"),
    ] {
        *cargo = cargo.replace(
            &format!("{name} = \"0.0.0\""),
            &format!("{name} = {{ path = \"../../../{path}\" }}"),
        );
    }
    files
}

#[test]
fn generated_crates_equal_the_committed_ones() {
    let mut cases = 0;
    for entry in fs::read_dir(golden()).expect("golden crates") {
        let case = entry.expect("an entry").path();
        let made = make_from_scratch(&case);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            for stale in tree(&case).keys().filter(|name| !made.contains_key(*name)) {
                fs::remove_file(case.join(stale)).expect("writable");
            }
            for (name, text) in &made {
                let path = case.join(name);
                fs::create_dir_all(path.parent().expect("below the case")).expect("writable");
                fs::write(path, text).expect("writable");
            }
        }
        let committed = tree(&case);
        let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&made), names(&committed), "{}", case.display());
        // The lock file differs with every other file, and shows less.
        let (lock, texts): (Vec<_>, Vec<_>) = made
            .iter()
            .partition(|(name, _)| name.ends_with("lock.json"));
        for (name, text) in texts.into_iter().chain(lock) {
            assert_eq!(text, &committed[name], "{}/{name}", case.display());
        }
        cases += 1;
    }
    assert!(cases > 3, "one with everything, and one of each preset");
}
