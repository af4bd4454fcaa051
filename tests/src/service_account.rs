//! Service accounts with all permissions, whose tokens a test can revoke.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::test_failure::{TestFailure, TestResult};

const ACCOUNT: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: $NAME, namespace: $NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAME-$NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: $NAME, namespace: $NAMESPACE}]
"#;

/// Creates an account, and returns a token of it.
pub async fn create_account(sandbox: &Sandbox, name: &str) -> Result<String, TestFailure> {
    let yaml = ACCOUNT.replace("$NAMESPACE", sandbox.namespace());
    sandbox.apply_shared(&yaml.replace("$NAME", name)).await?;
    let request = TokenRequest {
        spec: Some(TokenRequestSpec::default()),
        ..TokenRequest::default()
    };
    let params = PostParams::default();
    let token = accounts(sandbox)
        .create_token_request(name, &params, &request)
        .await?;
    let token = token.status.and_then(|status| status.token);
    token.ok_or_else(|| TestFailure::new("the API server grants no token"))
}

/// Deletes an account; the API server rejects its tokens within ten seconds.
pub async fn delete_account(sandbox: &Sandbox, name: &str) -> TestResult {
    let params = DeleteParams::default();
    accounts(sandbox).delete(name, &params).await?;
    Ok(())
}

/// The kubeconfig of the sandbox's client with another user, as text.
pub fn kubeconfig_of(sandbox: &Sandbox, user: &Value) -> Result<String, TestFailure> {
    let file = sandbox.control_plane().kubeconfig(sandbox.client_user())?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(file)?)?;
    config["users"][0]["user"] = user.clone();
    Ok(config.to_string())
}

fn accounts(sandbox: &Sandbox) -> Api<ServiceAccount> {
    Api::namespaced(sandbox.client(), sandbox.namespace())
}
