//! The commands of the page about uninstalling remove what they say, and nothing else.

use std::fmt::Write as _;

use kopf_tests::TestResult;

use super::blocks::of_page;
use super::follow_text_on_cluster;

const PAGE: &str = "docs/uninstalling.md";

/// A crate with a peering, whose definitions other operators use, and its operator in a cluster.
const SET_UP: &str = r"
mkdir ../uninstalling
cd ../uninstalling
cat > widgets.yaml <<'EOF'
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
      schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object}}}}
EOF
kopf-gen new my-operator --crd widgets.yaml
cd my-operator
sed -i 's/^  name: my-operator$/&\n  peering: {name: shared}\n  deploy: {tool: both}/' kopf.yaml
kopf-gen add handler Widget drop --on delete
kopf-gen cluster up uninstalling
export KUBECONFIG=$(kopf-gen cluster kubeconfig uninstalling)
test -s $KUBECONFIG
deploy() {
  kubectl apply --server-side -k deploy/
  kubectl --namespace my-operator rollout status deployment/my-operator
}
widget() {
  kubectl apply -f - <<EOF
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, namespace: $1, finalizers: [$2]}
EOF
}
finalizer=kopf.zalando.org/KopfFinalizerMarker
deploy
kubectl apply -f - <<'EOF'
apiVersion: kopf.dev/v1
kind: ClusterKopfPeering
metadata: {name: of-another-operator}
EOF
widget default $finalizer
";

/// The peerings of other operators are there, and the operator and its permissions are not.
const OPERATOR_IS_GONE: &str = "
kubectl get clusterkopfpeering of-another-operator
kubectl get deployment,pod,clusterrole,clusterrolebinding --all-namespaces -o name > left
if grep my-operator left; then exit 1; fi
";

const OBJECT_IS_RELEASED: &str = "
test -z \"$(kubectl get widget one --namespace default -o jsonpath='{.metadata.finalizers}')\"
";

const NAMESPACE_HANGS: &str = "
kubectl create namespace TEAM
widget TEAM $finalizer
kubectl delete namespace TEAM --wait=false
kubectl --namespace TEAM wait widget/one --for=jsonpath='{.metadata.deletionTimestamp}' --timeout 60s
";

const NAMESPACE_IS_GONE: &str = "
kubectl wait --for=delete namespace/TEAM --timeout 60s
";

/// The program runs beside its Deployment, whose Pods run no containers.
const OPERATOR_RUNS: &str = "
deploy
cargo build
timeout 300 \"$CARGO_TARGET_DIR/debug/my-operator\" run --all-namespaces > operator.log 2>&1 &
operator=$!
kubectl wait widget/one --for=jsonpath='{.metadata.finalizers[0]}'=$finalizer --timeout 60s
";

const DEFINITION_IS_GONE: &str = "
kubectl get customresourcedefinitions -o name > left
if grep widgets left; then exit 1; fi
";

const RELEASE_RUNS: &str = "
kill $operator
kubectl apply --server-side -k crds/
kubectl wait --for=condition=established customresourcedefinition/widgets.example.com --timeout 60s
kubectl delete namespace my-operator
helm upgrade --install my-operator deploy/chart --namespace my-operator --create-namespace
kubectl --namespace my-operator rollout status deployment/my-operator
widget default ''
";

const CLUSTER_IS_GONE: &str = "
kopf-gen cluster reset uninstalling
";

/// The commands of a section.
fn commands(heading: &str) -> Vec<String> {
    let blocks = of_page(PAGE.as_ref()).into_iter();
    let of_section = blocks.filter(|it| it.heading == heading);
    of_section.map(|it| it.text).collect()
}

#[tokio::test]
async fn the_commands_for_uninstalling_remove_the_operator_and_spare_the_rest() -> TestResult {
    let [keep] = &commands("Keep the objects, remove the operator")[..] else {
        panic!("one block keeps the objects");
    };
    let [unstick, patch] =
        &commands("It is too late: a namespace or an object stays Terminating")[..]
    else {
        panic!("two blocks release objects");
    };
    let [everything] = &commands("Remove everything")[..] else {
        panic!("one block removes everything");
    };
    let [helm] = &commands("Remove everything that Helm installed")[..] else {
        panic!("one block removes a release");
    };
    assert_eq!(of_page(PAGE.as_ref()).len(), 5, "all blocks are run");
    let hangs = |team: &str| NAMESPACE_HANGS.replace("TEAM", team);
    let is_gone = |team: &str| NAMESPACE_IS_GONE.replace("TEAM", team);
    let steps = [
        SET_UP,
        keep,
        OPERATOR_IS_GONE,
        OBJECT_IS_RELEASED,
        &hangs("team-a"),
        unstick,
        &is_gone("team-a"),
        &hangs("team-b"),
        patch,
        &is_gone("team-b"),
        OPERATOR_RUNS,
        everything,
        DEFINITION_IS_GONE,
        OPERATOR_IS_GONE,
        RELEASE_RUNS,
        helm,
        DEFINITION_IS_GONE,
        OPERATOR_IS_GONE,
        CLUSTER_IS_GONE,
    ];
    let mut script = String::new();
    for step in steps {
        let _ = writeln!(script, "```sh\n{}\n```", step.trim());
    }
    follow_text_on_cluster(&script, "uninstalling").await
}
