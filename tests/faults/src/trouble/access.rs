//! Permissions that are revoked and given back, and credentials that end.

use std::time::Duration;

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kopf_tests::TestFailure;
use kube::Api;
use kube::api::DeleteParams;
use tokio::time::sleep;

use super::until_done;
use crate::stage::Stage;

pub(super) async fn revoke(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let bindings: Api<ClusterRoleBinding> = Api::all(stage.sandbox.client());
    let name = format!("{}-operator", stage.sandbox.namespace());
    let params = DeleteParams::default();
    until_done(async || bindings.delete(&name, &params).await.is_ok()).await;
    sleep(lasts).await;
    until_done(async || stage.permit().await.is_ok()).await;
    Ok(())
}

/// Makes the token of the operator invalid, and writes the next one into its file after a while.
pub(super) async fn rotate_token(stage: &Stage, lasts: Duration) -> Result<(), TestFailure> {
    let token = stage.next_token();
    stage.proxy.require_token(&token);
    // Watches that are open would not notice.
    stage.proxy.cut_all();
    sleep(lasts).await;
    stage.write_token(&token)?;
    Ok(())
}
