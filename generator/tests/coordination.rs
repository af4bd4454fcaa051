//! The files and permissions for peering and leader election: those of the chosen mode only.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use tempfile::TempDir;

const FILES: &[&str] = &[
    "deploy/base/rbac.yaml",
    "deploy/base/deployment.yaml",
    "deploy/kustomization.yaml",
    "deploy/base/peering.yaml",
    "src/generated.rs",
];

/// A crate generated from a manifest with these options under `operator`.
struct Crate {
    folder: TempDir,
}

impl Crate {
    fn with(options: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let this = Self { folder };
        this.rewrite(options);
        let output = this.generate();
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{output_text}");
        this
    }

    fn rewrite(&self, options: &str) {
        let manifest = format!(
            "apiVersion: kopf-gen.dev/v1\noperator: {{name: pods, {options}}}\n\
             resources: [{{builtin: v1/Pod, handlers: [{{on: event, fn: echo}}]}}]\n"
        );
        fs::write(self.path("kopf.yaml"), manifest).expect("writable");
    }

    fn generate(&self) -> Output {
        // The option is for a new crate.
        let options: &[&str] = match self.path("Cargo.toml").exists() {
            true => &[],
            false => &["--runtime-version", "0.0.0"],
        };
        Command::new(env!("CARGO_BIN_EXE_kopf-gen"))
            .arg("generate")
            .args(options)
            .current_dir(self.folder.path())
            .output()
            .expect("the program runs")
    }

    fn path(&self, file: &str) -> std::path::PathBuf {
        self.folder.path().join(Path::new(file))
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).unwrap_or_default()
    }

    /// The files that have some of these texts, each with those that it has.
    fn mentions(&self, texts: &[&str]) -> Vec<String> {
        let mentioned = |file: &&str| {
            let text = self.text(file);
            let found: Vec<_> = texts.iter().filter(|it| text.contains(**it)).collect();
            (!found.is_empty()).then(|| format!("{file}: {found:?}"))
        };
        FILES.iter().filter_map(mentioned).collect()
    }
}

const PEERING: &[&str] = &["peering", "Peering"];
const ELECTION: &[&str] = &["lease", "Lease", "leader", "replicas: 2", "RollingUpdate"];

#[test]
fn a_standalone_operator_has_no_peering_and_no_lease() {
    let made = Crate::with("peering: standalone");
    assert_eq!(made.mentions(ELECTION), Vec::<String>::new());
    assert_eq!(
        made.mentions(PEERING),
        ["src/generated.rs: [\"peering\", \"Peering\"]"]
    );
    let text = made.text("src/generated.rs");
    assert!(
        text.contains(".peering(PeeringSettings::standalone())"),
        "{text}"
    );
    let deployment = made.text("deploy/base/deployment.yaml");
    assert!(!deployment.contains("POD_ID"), "{deployment}");
    assert!(deployment.contains("type: Recreate"), "{deployment}");
}

#[test]
fn the_default_peering_is_permitted() {
    let made = Crate::with("");
    assert_eq!(made.mentions(ELECTION), Vec::<String>::new());
    assert_eq!(
        made.mentions(PEERING),
        ["deploy/base/rbac.yaml: [\"peering\"]"]
    );
    let rbac = made.text("deploy/base/rbac.yaml");
    assert!(
        rbac.contains("resourceNames: [default]\n    verbs: [list, watch, patch]"),
        "{rbac}"
    );
    assert!(made.text("deploy/base/deployment.yaml").contains("POD_ID"));
}

#[test]
fn a_named_peering_is_deployed() {
    let made = Crate::with("peering: {name: ours, priority: 100}");
    assert_eq!(made.mentions(ELECTION), Vec::<String>::new());
    assert!(
        made.text("deploy/base/rbac.yaml")
            .contains("resourceNames: [ours]")
    );
    assert!(
        made.text("deploy/base/kustomization.yaml")
            .contains("- peering.yaml")
    );
    // An object cannot be applied together with its definition: the operator creates it.
    let peering = made.text("deploy/base/peering.yaml");
    assert_eq!(peering.matches("kind: CustomResourceDefinition").count(), 2);
    assert!(!peering.contains("name: ours"), "{peering}");
    let text = made.text("src/generated.rs");
    assert!(
        text.contains("PeeringSettings::created(\"ours\")"),
        "{text}"
    );
    assert!(text.contains("priority: 100,"), "{text}");
    let create = "    resources: [clusterkopfpeerings, kopfpeerings]\n    verbs: [create]";
    assert!(made.text("deploy/base/rbac.yaml").contains(create));

    made.rewrite("peering: standalone");
    assert!(made.generate().status.success());
    assert!(
        !made.path("deploy/base/peering.yaml").exists(),
        "it is not needed any more"
    );
}

#[test]
fn an_operator_of_one_namespace_can_use_the_peering_of_the_cluster() {
    let made = Crate::with("namespaces: [one], peering: {name: ours, clusterwide: true}");
    let rbac = made.text("deploy/base/rbac.yaml");
    let rule = "resources: [clusterkopfpeerings]\n    resourceNames: [ours]";
    let cluster_role = rbac
        .split("---")
        .find(|it| it.contains("kind: ClusterRole\n"));
    assert!(cluster_role.is_some_and(|it| it.contains(rule)), "{rbac}");
    let text = made.text("src/generated.rs");
    assert!(text.contains("clusterwide: true,"), "{text}");

    made.rewrite("namespaces: [one], peering: {name: ours}");
    assert!(made.generate().status.success());
    let rbac = made.text("deploy/base/rbac.yaml");
    assert!(!rbac.contains("clusterkopfpeerings"), "{rbac}");
}

#[test]
fn a_peering_that_has_a_name_need_not_be_mandatory() {
    let made = Crate::with("peering: {name: ours, mandatory: false}");
    let text = made.text("src/generated.rs");
    assert!(text.contains("name: \"ours\".to_owned()"), "{text}");
    assert!(!text.contains("PeeringSettings::named"), "{text}");
}

#[test]
fn leader_election_uses_a_lease_and_no_peering() {
    let made = Crate::with("leader_election: {}");
    assert_eq!(
        made.mentions(PEERING),
        ["src/generated.rs: [\"peering\", \"Peering\"]"]
    );
    let rbac = made.text("deploy/base/rbac.yaml");
    for part in [
        "kind: Role\nmetadata:\n  name: pods\n  namespace: pods\n",
        "resources: [leases]\n    verbs: [create]",
        "resources: [leases]\n    resourceNames: [pods]\n    verbs: [get, list, watch, patch]",
        "kind: RoleBinding",
    ] {
        assert!(rbac.contains(part), "{part} in {rbac}");
    }
    let deployment = made.text("deploy/base/deployment.yaml");
    for part in ["replicas: 2", "type: RollingUpdate", "POD_ID"] {
        assert!(deployment.contains(part), "{part} in {deployment}");
    }
}

#[test]
fn peering_and_leader_election_can_be_combined() {
    let made = Crate::with("peering: {name: ours}, leader_election: {lease: one}");
    let rbac = made.text("deploy/base/rbac.yaml");
    assert!(
        rbac.contains("kopfpeerings") && rbac.contains("resourceNames: [one]"),
        "{rbac}"
    );
    let text = made.text("src/generated.rs");
    assert!(
        text.contains("PeeringSettings::created(\"ours\")"),
        "{text}"
    );
    assert!(text.contains("name: Some(\"one\".to_owned())"), "{text}");
}

#[test]
fn invalid_peering_and_election_options_are_errors() {
    let made = Crate::with("");
    made.rewrite(
        "peering: {name: Our Peers, lifetime: 500ms}, \
         leader_election: {lease: ONE, lease_duration: 5s, retry_period: 20s}",
    );
    let output = made.generate();
    assert!(!output.status.success());
    insta::assert_snapshot!(String::from_utf8_lossy(&output.stderr));
}
