//! The commands of the guides, typed one page after another on one cluster.

use std::fmt::Write as _;

use kopf_tests::TestResult;

use super::blocks::{Block, blocks, of_page, script};
use super::{FOLLOWED, follow_script_on_cluster};

/// A page, and what is typed beside its own commands.
struct Guide {
    page: &'static str,
    /// Before the commands under a heading; under the empty one, before all.
    before: &'static [(&'static str, &'static str)],
    /// At the end, with every file that the page shows.
    after: &'static str,
}

/// The pages in the order in which they are typed. Each begins in the folder `guides`.
const GUIDES: &[Guide] = &[
    Guide {
        page: "docs/commands.md",
        before: &[],
        after: "kopf-gen validate",
    },
    Guide {
        page: "docs/children.md",
        before: &[(
            "",
            "kopf-gen new websites --crd ../kopf-gen/examples/19-children-reconcile/crds/websites.yaml
             cd websites",
        )],
        after: "kopf-gen validate",
    },
    Guide {
        page: "docs/types.md",
        before: &[("", TYPES)],
        after: "grep 'pub struct Widget ' resources.rs
                grep 'pub struct Widget ' src/resources/widget/v1.rs",
    },
    Guide {
        page: "docs/deployment.md",
        before: &[
            ("", IMAGE),
            ("Applying it", "cp deploy/kustomization.yaml ../kustomization.yaml"),
            // The same objects by another tool.
            ("With Helm", "kubectl delete -k deploy/base"),
        ],
        after: "helm template deploy/chart --show-only templates/configmaps.yaml |
                    kubectl apply --dry-run=server -f -
                test -s deploy/chart/templates/configmaps.yaml
                test -s deploy/kustomization.yaml
                kubectl kustomize deploy/ | grep 'memory: 1Gi'
                helm uninstall widgets --namespace widgets",
    },
    Guide {
        page: "docs/status.md",
        before: &[],
        after: "{ cat definition.yaml; sed 's/^/      /' schema.yaml; } > measured.yaml
                kubectl apply --dry-run=server --validate=strict -f measured.yaml
                kopf-gen types measured.yaml | grep 'pub bytes: '",
    },
    Guide {
        page: "docs/inspect.md",
        before: &[("", HALF_HANDLED), ("Objects that cannot be deleted", HANGING)],
        after: "test -z \"$(kubectl get widget one -o jsonpath='{.metadata.finalizers}')\"
                kubectl --namespace team-a wait --for=delete widget/one --timeout 60s
                diff inspected.txt <(normalised < shown.txt)",
    },
    Guide {
        page: "docs/troubleshooting.md",
        before: &[("", "echo 'a line of the operator' > deployed.log")],
        after: "",
    },
    Guide {
        page: "docs/scopes.md",
        before: &[],
        after: "",
    },
    Guide {
        page: "docs/observability.md",
        before: &[],
        after: "helm template my-operator/deploy/chart -f values.yaml > all.yaml
                grep 'OTEL_EXPORTER_OTLP_ENDPOINT.*collector.monitoring:4318' all.yaml",
    },
    Guide {
        page: "docs/page.md",
        before: &[],
        after: "",
    },
    Guide {
        page: "docs/peering.md",
        before: &[
            ("Who pauses my operator?", DEPLOYED_AND_PAUSED),
            ("Peering", RECORD),
            ("Leader election", LEASE),
        ],
        after: "test -s record.yaml",
    },
    Guide {
        page: "docs/testing.md",
        before: &[("", "cd my-operator")],
        after: "",
    },
];

/// A cluster, an operator, and functions that take the place of what is not there.
const SET_UP: &str = r#"
mkdir ../guides
cd ../guides
cat > definition.yaml <<'EOF'
apiVersion: apiextensions.k8s.io/v1
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
EOF
cat > schema-of-widgets.yaml <<'EOF'
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {size: {type: integer}}}
EOF
cat definition.yaml schema-of-widgets.yaml > widgets.yaml
kopf-gen cluster up guides
export KUBECONFIG=$(kopf-gen cluster kubeconfig guides)
test -s $KUBECONFIG
kopf-gen new my-operator --crd widgets.yaml
# Other tests build a program of this name in the same folder.
sed -i 's/^name = "my-operator"$/name = "guides-operator"/' my-operator/Cargo.toml
sed -i 's/^  name: my-operator$/&\n  deploy: {tool: both}/' my-operator/kopf.yaml
(cd my-operator && kopf-gen generate && cargo build)
mkdir programs
ln -s "$CARGO_TARGET_DIR/debug/guides-operator" programs/my-operator
ln -s "$CARGO_TARGET_DIR/debug/guides-operator" programs/evc-operator
export PATH=$PWD/programs:$PATH
kubectl apply --server-side -k my-operator/crds/
kubectl apply -f ../kopf-gen/examples/06-peering/deploy/base/peering.yaml
kubectl wait --for=condition=established customresourcedefinition --all --timeout 60s

# An operator runs until it is ready, on loopback; its other commands are run as they are.
operator() {
  local program=$1
  shift
  [ "$1" = run ] || { command $program "$@"; return; }
  local arguments=("${@//0.0.0.0/127.0.0.1}")
  arguments=("${arguments[@]//:80[89]0/:0}")
  [[ " $* " = *" --liveness "* ]] || arguments+=(--liveness http://127.0.0.1:0/healthz)
  command $program "${arguments[@]}" > run.log 2>&1 &
  local process=$!
  until grep -E "$expected" run.log && command curl --silent --fail "http://$(served run.log)/readyz"; do
    kill -0 $process
    sleep 0.1
  done
  kill $process
  wait $process
}
my-operator() { operator my-operator "$@"; }
evc-operator() { operator evc-operator "$@"; }
served() { sed -n 's#.*health is served at http://\([^/]*\)/.*#\1#p' $1; }
expected=

kubectl() {
  case " $* " in
    *" logs "*) cat deployed.log ;;
    *" port-forward "*) ;;
    *) command kubectl "$@" ;;
  esac
}
curl() { command curl "${@/localhost:8080/$address}"; }
# The only terminal is that of the reader.
kopf-gen() { if [ "$1" = unstick ]; then command kopf-gen "$@" --yes; else command kopf-gen "$@"; fi; }
docker() {
  case "$1" in
    build) test -f "$4/Dockerfile"; grep "image: $3$" "$4/deploy/base/deployment.yaml" ;;
    push) grep "image: $2$" deploy/base/deployment.yaml ;;
  esac
}
"#;

const TYPES: &str = r"
mkdir types
cd types
cp ../widgets.yaml .
mkdir -p crds src chart/templates
cp widgets.yaml crds/
cp widgets.yaml chart/templates/
printf 'apiVersion: v2\nname: chart\nversion: 0.1.0\n' > chart/Chart.yaml
";

const IMAGE: &str = r"
mkdir deployment
cd deployment
kopf-gen new widgets --crd ../widgets.yaml
cd widgets
sed -i 's#^  name: widgets$#&\n  deploy: {tool: both, image: registry.example.com/team/widgets:1.0}#' kopf.yaml
kopf-gen generate
";

/// An object between the third and the fourth attempt of a handler.
const HALF_HANDLED: &str = r#"
begun=$(date -u -d '-20 minutes -2 seconds' +%Y-%m-%dT%H:%M:%S.000000+00:00)
next=$(date -u -d '+5 minutes' +%Y-%m-%dT%H:%M:%S.000000+00:00)
kubectl apply --server-side -f - <<EOF
apiVersion: example.com/v1
kind: Widget
metadata:
  name: one
  namespace: default
  finalizers: [kopf.zalando.org/KopfFinalizerMarker]
  annotations:
    kopf.zalando.org/last-handled-configuration: '{"spec":{"size":1}}'
    kopf.zalando.org/check: '{"started":"$begun","stopped":"$begun","purpose":"update","retries":1,"success":true,"failure":false}'
    kopf.zalando.org/deploy: '{"started":"$begun","delayed":"$next","purpose":"update","retries":3,"success":false,"failure":false,"message":"the image is not there"}'
spec: {size: 2}
EOF
normalised() { sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]+Z/2026-01-01T11:40:00Z/; s/next in (4m[0-9]+s|5m)/next in 4m59s/'; }
my-operator inspect widgets/one > shown.txt
"#;

/// An object of a namespace that waits for an operator that is gone.
const HANGING: &str = r"
kubectl create namespace team-a
kubectl apply -f - <<EOF
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, namespace: team-a, finalizers: [kopf.zalando.org/KopfFinalizerMarker]}
EOF
kubectl --namespace team-a delete widget one --wait=false
";

/// A deployed operator that another one pauses.
const DEPLOYED_AND_PAUSED: &str = r#"
peering() {
  { printf 'apiVersion: kopf.dev/v1\nkind: ClusterKopfPeering\nmetadata: {name: %s}\n' $1
    now=$(date -u +%Y-%m-%dT%H:%M:%S.000000+00:00)
    sed "s/lastseen: .*/lastseen: \"$now\"/" $2; } | kubectl apply -f -
}
printf 'status: {}\n' > empty.yaml
peering evc empty.yaml
command my-operator freeze --peering evc --id colleague --lifetime 600
command my-operator run --peering evc --liveness http://127.0.0.1:0/healthz > deployed.log 2>&1 &
deployed=$!
until grep 'Pausing operations' deployed.log; do kill -0 $deployed; sleep 0.1; done
address=$(served deployed.log)
"#;

/// The record of the page is read by an operator, with a heartbeat of now.
const RECORD: &str = r"
kill $deployed
wait $deployed
peering of-the-page record.yaml
expected='in favour of ann@laptop/20260101120000/x7k \(priority 666\)'
my-operator run --peering of-the-page
expected=
peering default empty.yaml
";

/// The Lease of a deployed operator.
const LEASE: &str = r"
kubectl create namespace my-operator
kubectl apply -f - <<EOF
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: my-operator, namespace: my-operator}
spec: {holderIdentity: my-operator-7c9b}
EOF
";

const END: &str = "kopf-gen cluster reset guides\n";

/// Whether the commands of this page are typed.
pub(crate) fn types(page: &str) -> bool {
    FOLLOWED.contains(&page) || GUIDES.iter().any(|it| it.page == page)
}

/// Whether the block is a file that the commands of its page use.
pub(crate) fn writes(block: &Block) -> bool {
    let guide = GUIDES.iter().find(|it| block.page.as_os_str() == it.page);
    let used = |path: &str| {
        guide.is_some_and(|it| {
            let around = it.before.iter().map(|(_, script)| *script);
            around.chain([it.after]).any(|script| script.contains(path))
        })
    };
    block.note("file").is_some_and(used)
}

/// Everything that is typed for a page.
fn script_of(guide: &Guide) -> String {
    let blocks = of_page(guide.page.as_ref());
    let mut script_of_page = String::new();
    let mut done = Vec::new();
    for block in &blocks {
        let due = guide.before.iter().filter(|(heading, _)| {
            (heading.is_empty() || *heading == block.heading) && !done.contains(heading)
        });
        let due: Vec<_> = due.collect();
        for (heading, script) in due {
            let _ = writeln!(script_of_page, "{script}");
            done.push(*heading);
        }
        script_of_page.push_str(&script([block]));
    }
    assert_eq!(done.len(), guide.before.len(), "headings of {}", guide.page);
    format!("(\n{script_of_page}\n{}\n)\n", guide.after)
}

#[tokio::test]
async fn the_guides_work_as_written() -> TestResult {
    let pages: String = GUIDES.iter().map(script_of).collect();
    follow_script_on_cluster(&format!("{SET_UP}{pages}{END}"), "guides").await
}

#[test]
fn a_file_that_no_command_uses_is_not_checked() {
    let of = |text: &str| blocks("docs/status.md".as_ref(), text).remove(0);
    assert!(writes(&of(
        "<!-- file: schema.yaml -->\n```yaml\na: b\n```\n"
    )));
    assert!(!writes(&of(
        "<!-- file: other.yaml -->\n```yaml\na: b\n```\n"
    )));
    assert!(!writes(&of("```yaml\na: b\n```\n")));
}
