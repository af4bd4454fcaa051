//! The Kustomization of the page about scopes has nothing that belongs to the whole cluster.

use kopf_tests::TestResult;

use super::follow_text_on_cluster;
use super::links::read;

const PAGE: &str = "docs/scopes.md";

/// A crate whose operator serves one namespace.
const SET_UP: &str = r"
kopf-gen new ../scoped --name my-operator --crd examples/01-minimal/crds/kopfexamples.yaml
cd ../scoped
sed -i 's/^  name: my-operator$/&\n  namespaces: [team-a]\n  peering: standalone/' kopf.yaml
kopf-gen generate
";

const CHECK: &str = r"
kubectl kustomize deploy/ > all.yaml
grep '^kind: Deployment' all.yaml
grep '^kind: RoleBinding' all.yaml
if grep -E '^kind: (Namespace|ClusterRole|ClusterRoleBinding|CustomResourceDefinition)$' all.yaml; then exit 1; fi
if grep -E '^ *namespace: ' all.yaml | grep -v team-a; then exit 1; fi
";

/// The block of the page that is a Kustomization.
fn kustomization(page: &str) -> Option<&str> {
    let blocks = page
        .split("\n```")
        .filter_map(|it| it.strip_prefix("yaml\n"));
    blocks
        .into_iter()
        .find(|block| block.contains("kind: Kustomization"))
}

#[tokio::test]
async fn an_operator_of_one_namespace_is_applied_without_cluster_wide_objects() -> TestResult {
    let page = read(PAGE.as_ref());
    let kustomization = kustomization(&page).expect("the page has a Kustomization");
    let write = format!("cat > deploy/kustomization.yaml <<'EOF'\n{kustomization}\nEOF");
    let steps = [SET_UP, &write, CHECK].map(|step| format!("```sh\n{}\n```\n", step.trim()));
    follow_text_on_cluster(&steps.concat(), "scoped").await
}
