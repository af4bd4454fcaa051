//! Permissions that are revoked and given back.

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
