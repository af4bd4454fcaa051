//! What a CI system does with an operator crate: build, test on a control plane, image, and a check
//! that the generated files are up to date.

use crate::yaml::{self, Yaml, YamlDocuments, YamlMap};

/// The image is named in `kopf.yaml` only.
const IMAGE: &str =
    r#"docker build -t "$(sed -n 's/^ *image: //p' deploy/base/deployment.yaml | tr -d '"')" ."#;

const LINT: &str = "cargo clippy --all-targets --locked -- -D warnings";
const TEST: &str = "cargo test --locked";
const CHECK: &str = "kopf-gen generate --check";

/// `.github/workflows/ci.yaml`; `install` is the command that installs kopf-gen.
pub(super) fn github(install: &str) -> YamlDocuments {
    let job = |steps: Vec<YamlMap>| {
        let checkout = YamlMap::default()
            .with("uses", "actions/checkout@v4")
            // `validate --against` needs the history.
            .with("with", YamlMap::default().with("fetch-depth", 0));
        YamlMap::default()
            .with("runs-on", "ubuntu-latest")
            .with("steps", Yaml::list([checkout].into_iter().chain(steps)))
    };
    let run = |command: &str| YamlMap::default().with("run", command);
    let cache = YamlMap::default().with("uses", "actions/cache@v4").with(
        "with",
        YamlMap::default()
            .with(
                "path",
                "~/.cargo/registry\n~/.cargo/git\n~/.cache/kopf-gen\ntarget\n",
            )
            .with("key", "${{ runner.os }}-${{ hashFiles('Cargo.lock') }}")
            .with("restore-keys", "${{ runner.os }}-"),
    );
    let against = run(r#"kopf-gen validate --against "origin/$GITHUB_BASE_REF""#)
        .with("if", "github.event_name == 'pull_request'");
    let image = job(vec![run(IMAGE)]).with("needs", Yaml::flow(["test", "generated"]));
    let why = "The tests start a real control plane, whose programs they download once.";
    let jobs = YamlMap::default()
        .with_comment(&[why], "test", job(vec![cache, run(LINT), run(TEST)]))
        .with("generated", job(vec![run(install), run(CHECK), against]))
        .with("image", image);
    let on = YamlMap::default()
        .with(
            "push",
            YamlMap::default().with("branches", Yaml::flow(["main"])),
        )
        .with("pull_request", YamlMap::default());
    let workflow = YamlMap::default()
        .with("name", "CI")
        .with("on", on)
        .with("permissions", YamlMap::default().with("contents", "read"))
        .with("jobs", jobs);
    yaml::documents([(&[], workflow)])
}

/// `.gitlab-ci.yml`; `install` is the command that installs kopf-gen.
pub(super) fn gitlab(install: &str) -> YamlDocuments {
    let script = |lines: &[&str]| YamlMap::default().with("script", Yaml::list(lines.to_vec()));
    let folders = [".cargo/registry", ".cargo/git", ".cache", "target"];
    let cache = YamlMap::default()
        .with(
            "key",
            YamlMap::default().with("files", Yaml::flow(["Cargo.lock"])),
        )
        .with("paths", Yaml::list(folders));
    let against = r#"if [ -n "$CI_MERGE_REQUEST_DIFF_BASE_SHA" ]; then kopf-gen validate --against "$CI_MERGE_REQUEST_DIFF_BASE_SHA"; fi"#;
    let test = ["rustup component add clippy", LINT, TEST];
    let generated = [install, CHECK, against];
    let image = script(&[IMAGE])
        .with("stage", "deploy")
        .with("image", "docker:27")
        .with("services", Yaml::flow(["docker:27-dind"]));
    let why = "The tests start a real control plane, whose programs they download once.";
    let pipeline = YamlMap::default()
        .with("image", "rust:1-bookworm")
        .with(
            "variables",
            YamlMap::default()
                .with("CARGO_HOME", "$CI_PROJECT_DIR/.cargo")
                .with("XDG_CACHE_HOME", "$CI_PROJECT_DIR/.cache")
                .with("GIT_DEPTH", 0),
        )
        .with("cache", cache)
        .with_comment(&[why], "test", script(&test))
        .with("generated", script(&generated))
        .with("image-build", image);
    yaml::documents([(&[], pipeline)])
}
