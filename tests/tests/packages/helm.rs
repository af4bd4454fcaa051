//! The Helm chart of an operator: linted and rendered by the real Helm, it has the objects that
//! Kustomize has; it is installed on a real control plane, beside others of its kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use kopf_tests::{
    ChildProcess, Helm, Kubectl, PrivateControlPlane, Sandbox, TestFailure, TestResult, User,
    eventually, workspace,
};
use serde_json::{Value, json};

/// The objects of a deployment by kind, namespace and name.
type ObjectsByName = BTreeMap<(String, String, String), Value>;

/// An operator with files for both tools.
struct ChartCrate {
    folder: PathBuf,
    name: String,
}

/// The program, built once for all tests.
fn kopf_gen() -> Result<&'static Path, TestFailure> {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    if let Some(program) = PROGRAM.get() {
        return Ok(program);
    }
    let program = workspace::build_program("kopf-gen")?;
    Ok(PROGRAM.get_or_init(|| program))
}

impl ChartCrate {
    /// Makes the files of a manifest, with more keys of `operator`.
    fn make(folder: &Path, manifest: &str, crds: &Path, more: &str) -> Result<Self, TestFailure> {
        std::fs::create_dir_all(folder.join("crds"))?;
        if crds.exists() {
            for entry in std::fs::read_dir(crds)? {
                let entry = entry?;
                if entry.file_name() != "kustomization.yaml" {
                    std::fs::copy(entry.path(), folder.join("crds").join(entry.file_name()))?;
                }
            }
        }
        let line = manifest.lines().find(|it| it.starts_with("  name: "));
        let line = line.ok_or_else(|| TestFailure::new("the operator has no name"))?;
        let manifest = manifest.replacen(line, &format!("{line}\n{more}"), 1);
        std::fs::write(folder.join("kopf.yaml"), manifest)?;
        let output = Command::new(kopf_gen()?)
            .current_dir(folder)
            .args(["generate", "--quiet"])
            .output()?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(TestFailure::new(errors));
        }
        Ok(Self {
            folder: folder.to_owned(),
            name: line.trim_start_matches("  name: ").to_owned(),
        })
    }

    fn of_example(folder: &Path, example: &Path, more: &str) -> Result<Self, TestFailure> {
        let manifest = std::fs::read_to_string(example.join("kopf.yaml"))?;
        // Definitions of children may be in other folders.
        for named in manifest.split("crd: ").skip(1) {
            let end = named.find([',', '}', '\n']).unwrap_or(named.len());
            let (from, to) = (example.join(&named[..end]), folder.join(&named[..end]));
            std::fs::create_dir_all(to.parent().unwrap_or(folder))?;
            std::fs::copy(from, to)?;
        }
        Self::make(folder, &manifest, &example.join("crds"), more)
    }

    fn chart(&self) -> String {
        self.folder.join("deploy/chart").display().to_string()
    }

    /// What Kustomize has, but for definitions and the namespace.
    fn base(&self) -> Result<ObjectsByName, TestFailure> {
        let mut objects = Vec::new();
        for entry in std::fs::read_dir(self.folder.join("deploy/base"))? {
            let entry = entry?;
            let others = ["kustomization.yaml", "crds.yaml", "peering.yaml"];
            if !others.iter().any(|name| entry.file_name() == *name) {
                let text = std::fs::read_to_string(entry.path())?;
                objects.extend(serde_saphyr::from_multiple::<Value>(&text)?);
            }
        }
        objects.retain(|it| it["kind"] != "Namespace");
        Ok(by_name(objects))
    }

    /// What Helm makes of the chart as a release in a namespace.
    fn rendered(
        &self,
        helm: &Helm,
        release: (&str, &str),
        values: &Value,
    ) -> Result<ObjectsByName, TestFailure> {
        let file = self.folder.join("chosen.json");
        std::fs::write(&file, values.to_string())?;
        let file = file.display().to_string();
        let (name, namespace) = release;
        let chart = self.chart();
        let arguments = ["template", name, &chart, "-n", namespace, "-f", &file];
        let text = helm.run(&arguments)?;
        Ok(by_name(serde_saphyr::from_multiple::<Value>(&text)?))
    }

    fn as_own_release(&self, helm: &Helm, values: &Value) -> Result<ObjectsByName, TestFailure> {
        self.rendered(helm, (&self.name, &self.name), values)
    }
}

/// The objects without what only a release has.
fn by_name(objects: Vec<Value>) -> ObjectsByName {
    let objects = objects.into_iter().filter(|it| !it.is_null());
    let objects = objects.map(|mut object| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let key = (
            text(&object["kind"]),
            text(&metadata["namespace"]),
            text(&metadata["name"]),
        );
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("labels");
        }
        normalize(&mut object);
        (key, object)
    });
    objects.collect()
}

/// Removes the labels of releases and the ids of dashboards, and sorts lists without an order:
/// permissions and namespaces.
fn normalize(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("app.kubernetes.io/instance");
            for (key, value) in map.iter_mut() {
                if key.ends_with(".json")
                    && let Some(Ok(mut dashboard)) =
                        value.as_str().map(serde_json::from_str::<Value>)
                {
                    dashboard["uid"] = Value::Null;
                    *value = dashboard;
                }
                normalize(value);
                if ["rules", "values"].contains(&key.as_str())
                    && let Some(values) = value.as_array_mut()
                {
                    values.sort_by_key(ToString::to_string);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(normalize),
        _ => {}
    }
}

/// Examples and crates with more options.
fn manifests() -> Result<Vec<PathBuf>, TestFailure> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(workspace::root().join("examples"))? {
        folders.push(entry?.path());
    }
    for name in ["everything", "selection"] {
        folders.push(workspace::root().join("tests/golden").join(name));
    }
    folders.sort();
    Ok(folders)
}

fn assert_same(found: &ObjectsByName, expected: &ObjectsByName, what: &str) {
    let names: BTreeSet<_> = found.keys().collect();
    assert_eq!(names, expected.keys().collect::<BTreeSet<_>>(), "{what}");
    for (name, object) in found {
        assert_eq!(object, &expected[name], "{what}: {name:?}");
    }
}

const BOTH: &str = "  deploy: {tool: both}\n";

const EVERYTHING: &str =
    "  deploy: {tool: both, network_policy: true, alerts: true, dashboard: true}\n";

#[tokio::test]
async fn the_chart_of_each_example_has_the_objects_of_its_base() -> TestResult {
    let helm = Helm::obtain().await?;
    let folder = tempfile::tempdir()?;
    for (index, example) in manifests()?.iter().enumerate() {
        let what = example.display().to_string();
        let manifest = std::fs::read_to_string(example.join("kopf.yaml"))?;
        if manifest.contains("\n  deploy:") || manifest.contains("\n  namespaces:") {
            continue;
        }
        let place = folder.path().join(format!("{index}-both"));
        let plain = ChartCrate::of_example(&place, example, BOTH)?;
        helm.run(&["lint", "--strict", &plain.chart()])?;
        let found = plain.as_own_release(&helm, &json!({}))?;
        assert_same(&found, &plain.base()?, &what);

        // Values do what the keys of the manifest do.
        let place = folder.path().join(format!("{index}-everything"));
        let full = ChartCrate::of_example(&place, example, EVERYTHING)?;
        let expected = full.base()?;
        assert_same(&full.as_own_release(&helm, &json!({}))?, &expected, &what);
        let values = json!({
            "networkPolicy": {"enabled": true},
            "metrics": {"alerts": {"enabled": true}, "dashboard": {"enabled": true}},
        });
        assert_same(&plain.as_own_release(&helm, &values)?, &expected, &what);

        for (sort, namespaces) in [
            ("names", json!(["one", "two"])),
            ("patterns", json!(["o*"])),
        ] {
            let place = folder.path().join(format!("{index}-{sort}"));
            let more = format!("{BOTH}  namespaces: {namespaces}\n");
            let expected = ChartCrate::of_example(&place, example, &more)?.base()?;
            let values = json!({"watchNamespaces": namespaces});
            let found = plain.as_own_release(&helm, &values)?;
            let arguments = arguments_of(&found)?;
            for namespace in namespaces.as_array().into_iter().flatten() {
                let option = format!("--namespace={}", namespace.as_str().unwrap_or_default());
                assert!(arguments.contains(&option), "{what}: {arguments:?}");
            }
            let (found, expected) = (without_arguments(found), without_arguments(expected));
            assert_same(&found, &expected, &format!("{what}: {sort}"));
        }
    }
    Ok(())
}

fn arguments_of(objects: &ObjectsByName) -> Result<Vec<String>, TestFailure> {
    let mut objects = objects.values();
    let deployment = objects.find(|it| it["kind"] == "Deployment");
    let deployment = deployment.ok_or_else(|| TestFailure::new("there is no Deployment"))?;
    let arguments = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    Ok(serde_json::from_value(arguments.clone())?)
}

fn without_arguments(mut objects: ObjectsByName) -> ObjectsByName {
    for object in objects.values_mut().filter(|it| it["kind"] == "Deployment") {
        object["spec"]["template"]["spec"]["containers"][0]["args"] = Value::Null;
    }
    objects
}

/// A manifest with webhooks and leader election. kopf-gen refuses names with braces; descriptions in
/// a definition and the texts of alerts have them.
const MANIFEST: &str = r#"apiVersion: kopf-gen.dev/v1
operator:
  name: widgets
  leader_election: {}
resources:
  - crd: crds/widgets.yaml
    handlers:
      - {on: create, fn: create}
      - {on: update, fn: update, id: other/id}
    admission:
      - {validate: check, labels: {mode: fast}}
      - {mutate: fill, labels: {mode: present}}
"#;

const WIDGETS: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          description: 'A widget {{ .Release.Name }} {{ fail "y" }}'
          type: object
          properties: {spec: {type: object, properties: {size: {type: integer}}}}
"#;

/// A crate of the manifest.
fn widgets(folder: &Path, more: &str) -> Result<ChartCrate, TestFailure> {
    let crds = folder.join("definitions");
    std::fs::create_dir_all(&crds)?;
    std::fs::write(crds.join("widgets.yaml"), WIDGETS)?;
    ChartCrate::make(&folder.join("widgets"), MANIFEST, &crds, more)
}

#[tokio::test]
async fn texts_with_braces_are_texts_and_each_mode_of_webhooks_can_be_chosen() -> TestResult {
    let helm = Helm::obtain().await?;
    let folder = tempfile::tempdir()?;
    let managed = widgets(&folder.path().join("managed"), BOTH)?;
    helm.run(&["lint", "--strict", &managed.chart()])?;
    let definitions = Path::new(&managed.chart()).join("crds/definitions.yaml");
    let text = std::fs::read_to_string(definitions)?;
    let found = serde_saphyr::from_multiple::<Value>(&text)?;
    let expected = serde_saphyr::from_multiple::<Value>(WIDGETS)?;
    assert_eq!(found, expected);
    let base = managed.base()?;
    assert_same(
        &managed.as_own_release(&helm, &json!({}))?,
        &base,
        "managed",
    );
    let more = format!("{BOTH}  admission: {{configuration: cert-manager}}\n");
    let certified = widgets(&folder.path().join("certified"), &more)?;
    let expected = certified.base()?;
    let found = certified.as_own_release(&helm, &json!({}))?;
    assert_same(&found, &expected, "cert-manager");
    // The other mode is a value, and an argument.
    let other = json!({"webhooks": {"mode": "cert-manager"}});
    let found = managed.as_own_release(&helm, &other)?;
    let arguments = arguments_of(&found)?;
    assert!(arguments.contains(&"--webhook-mode=cert-manager".to_owned()));
    let expected = without_arguments(expected);
    assert_same(&without_arguments(found), &expected, "other mode");
    let other = json!({"webhooks": {"mode": "managed"}});
    let found = without_arguments(certified.as_own_release(&helm, &other)?);
    assert_same(&found, &without_arguments(base), "other mode");
    Ok(())
}

#[tokio::test]
async fn releases_share_no_object() -> TestResult {
    let helm = Helm::obtain().await?;
    let folder = tempfile::tempdir()?;
    let widgets = widgets(folder.path(), BOTH)?;
    let namespaces = json!({"watchNamespaces": ["one"]});
    let mut seen = BTreeSet::new();
    for release in [
        ("widgets", "widgets"),
        ("widgets", "other"),
        ("mine", "other"),
        ("mine", "mine-widgets"),
        ("a.b", "other"),
        ("123", "123"),
    ] {
        let found = widgets.rendered(&helm, release, &namespaces)?;
        for key in found.into_keys() {
            assert!(seen.insert(key.clone()), "{key:?} of {release:?}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn values_reach_the_objects_and_wrong_ones_are_refused() -> TestResult {
    let helm = Helm::obtain().await?;
    let folder = tempfile::tempdir()?;
    let widgets = widgets(folder.path(), BOTH)?;
    let values = json!({
        "image": {"repository": "registry.example.com/w", "tag": "2", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "pull"}],
        "replicas": 3,
        "logFormat": "plain",
        "extraArgs": ["--verbose", "--id={{ x }}"],
        "env": [{"name": "A", "value": "{{ b }}"}],
        "resources": {"limits": {"memory": "1Gi"}},
        "serviceAccount": {"create": false, "name": "given"},
        "podAnnotations": {"a": "true"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "fullnameOverride": "true",
    });
    let found = widgets.rendered(&helm, ("mine", "other"), &values)?;
    assert!(found.keys().all(|(kind, ..)| kind != "ServiceAccount"));
    let key: (String, String, String) = ["Deployment", "other", "true"].map(str::to_owned).into();
    let deployment = &found[&key];
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "true"}));
    let pod = &pod["spec"];
    let container = &pod["containers"][0];
    assert_eq!(container["image"], "registry.example.com/w:2");
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(
        container["env"][1],
        json!({"name": "A", "value": "{{ b }}"})
    );
    assert_eq!(pod["serviceAccountName"], "given");
    for key in [
        "imagePullSecrets",
        "nodeSelector",
        "tolerations",
        "affinity",
        "priorityClassName",
    ] {
        assert_eq!(pod[key], values[key]);
    }
    let arguments = arguments_of(&found)?;
    let expected = [
        "run",
        "--all-namespaces",
        "--log-format=plain",
        "--liveness=http://0.0.0.0:8080/healthz",
        "--webhook-service=true-webhook",
        "--webhook-configuration=true.other.kopf-gen.dev",
        "--lease=true",
        "--verbose",
        "--id={{ x }}",
    ];
    assert_eq!(arguments, expected);
    for wrong in [
        json!({"replicas": 101}),
        json!({"image": {"pullPolicy": "Sometimes"}}),
        json!({"webhooks": {"mode": "by-hand"}}),
        json!({"serviceAccount": {"creates": true}}),
    ] {
        let error = widgets.rendered(&helm, ("mine", "other"), &wrong);
        let error = error
            .err()
            .map_or_else(String::new, |it| it.message().to_owned());
        assert!(error.contains("schema"), "{wrong}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn helm_installs_upgrades_and_removes_releases_and_an_operator_runs_as_one() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let helm = Helm::obtain().await?;
    let kubectl = Kubectl::obtain().await?;
    let administrator = plane.handle().kubeconfig(&User::administrator("helm"))?;
    let folder = tempfile::tempdir()?;
    let mut charts = vec![widgets(folder.path(), BOTH)?];
    for (index, example) in manifests()?.iter().enumerate() {
        let manifest = std::fs::read_to_string(example.join("kopf.yaml"))?;
        // The control plane has no cert-manager.
        if !manifest.contains("\n  deploy:") && !manifest.contains("cert-manager") {
            let place = folder.path().join(index.to_string());
            charts.push(ChartCrate::of_example(&place, example, BOTH)?);
        }
    }
    for made in &charts {
        let (chart, release) = (made.chart(), format!("mine-{}", made.name));
        let install = ["upgrade", "--install", &release, &chart, "-n", "first"];
        helm.run_on(
            &administrator,
            &[&install[..], &["--create-namespace"]].concat(),
        )?;
    }
    // A second release, and an upgrade of it.
    let chart = charts[0].chart();
    let install = [
        "upgrade",
        "--install",
        "mine-widgets",
        &chart,
        "-n",
        "second",
    ];
    for _ in 0..2 {
        helm.run_on(
            &administrator,
            &[&install[..], &["--create-namespace"]].concat(),
        )?;
    }

    // What an operator fills while it runs stays at an upgrade.
    let secret = ["-n", "first", "patch", "secret", "mine-widgets-webhook"];
    let patch = ["--type=merge", "-p", r#"{"data": {"a": "Yg=="}}"#];
    kubectl.run(&administrator, &[&secret[..], &patch].concat())?;
    let upgrade = ["upgrade", "mine-widgets", &chart, "-n", "first"];
    let upgrade = [&upgrade[..], &["--set", "replicas=3"]].concat();
    helm.run_on(&administrator, &upgrade)?;
    let get = ["-n", "first", "get", "secret", "mine-widgets-webhook"];
    let get = [&get[..], &["-o", "jsonpath={.data.a}"]].concat();
    assert_eq!(kubectl.run(&administrator, &get)?, "Yg==");

    // The operator works with the ServiceAccount and the arguments of its release alone.
    let sandbox = Sandbox::open_on(plane.handle(), "released").await?;
    let example = workspace::root().join("examples/06-peering");
    let (name, namespace) = ("mine-peering-operator", "first");
    let token = ["create", "token", name, "--namespace", namespace];
    let token = kubectl.run(&administrator, &token)?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(&administrator)?)?;
    config["users"][0]["user"] = json!({"token": token.trim()});
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, config.to_string())?;
    let deployment = ["get", "deployment", name, "-n", namespace, "-o", "json"];
    let deployment = kubectl.run(&administrator, &deployment)?;
    let arguments = arguments_of(&by_name(vec![serde_json::from_str(&deployment)?]))?;
    let arguments = arguments.into_iter();
    let operator = ChildProcess::command(workspace::build_program("peering-operator")?)
        .env("KUBECONFIG", &kubeconfig)
        .env("POD_ID", "released")
        .args(arguments.filter(|it| !it.starts_with("--liveness=")))
        .start()?;
    let object = std::fs::read_to_string(example.join("obj.yaml"))?;
    sandbox.apply(&object).await?;
    eventually("the operator has handled the object", async || {
        operator.log().contains("is handled here").then_some(())
    })
    .await?;
    operator.terminate().await?;
    let uninstall = ["uninstall", name, "-n", namespace];
    helm.run_on(&administrator, &uninstall)?;
    // The definitions and the other release stay.
    let stays = ["get", "crd", "kopfexamples.kopf.dev", "-o", "name"];
    kubectl.run(&administrator, &stays)?;
    let stays = ["get", "deployment", "mine-widgets", "-n", "second"];
    kubectl.run(&administrator, &stays).map(drop)
}
