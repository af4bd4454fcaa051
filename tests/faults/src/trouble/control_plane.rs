//! Trouble in the control plane: restarts, stopped processes, forgotten revisions.

use std::time::Duration;

use kopf_tests::{Component, TestFailure};
use tokio::time::sleep;

use super::Trouble;
use crate::stage::Stage;

pub(super) async fn make(
    trouble: Trouble,
    stage: &Stage,
    lasts: Duration,
) -> Result<(), TestFailure> {
    let plane = &stage.plane;
    match trouble {
        Trouble::RestartApiServer => down(stage, Component::ApiServer, lasts).await?,
        Trouble::RestartEtcd => down(stage, Component::Etcd, lasts).await?,
        Trouble::SuspendApiServer => suspended(stage, Component::ApiServer, lasts).await?,
        Trouble::SuspendEtcd => suspended(stage, Component::Etcd, lasts).await?,
        Trouble::ExpireVersions => plane.expire_resource_versions().await?,
        _ => plane.compact().await?,
    }
    Ok(())
}

async fn down(stage: &Stage, component: Component, lasts: Duration) -> Result<(), TestFailure> {
    stage.plane.kill(component).await?;
    sleep(lasts).await;
    Ok(stage.plane.revive(component).await?)
}

async fn suspended(
    stage: &Stage,
    component: Component,
    lasts: Duration,
) -> Result<(), TestFailure> {
    stage.plane.pause(component).await?;
    sleep(lasts).await;
    Ok(stage.plane.resume(component).await?)
}
