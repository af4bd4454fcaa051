//! Handlers for EphemeralVolumeClaim objects.

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kopf_runtime::prelude::*;
use kube::api::{DeleteParams, Preconditions};

use super::Operator;
use crate::generated::ephemeral_volume_claim::{
    EphemeralVolumeClaim, EphemeralVolumeClaimHandlers, EphemeralVolumeClaimReconcile,
};
use crate::generated::indices::Pods;
use crate::generated::types::ephemeral_volume_claim::v1::{EphemeralVolumeClaimState, Time};
use crate::life::{ClaimTimes, ClaimUse, NextStep, next_step};

impl EphemeralVolumeClaimHandlers for Operator {
    /// Called when an EphemeralVolumeClaim is created, changed or found at the start, and when its
    /// PersistentVolumeClaim is changed or gone.
    async fn keep_claim(&self, cx: &mut EphemeralVolumeClaimReconcile) -> HandlerResult {
        cx.apply(volume_claim(cx.object())).await?;
        Ok(())
    }

    /// Called for an EphemeralVolumeClaim every 1s.
    async fn follow(&self, cx: &mut TimerContext<EphemeralVolumeClaim>) -> HandlerResult {
        let claim = cx.object();
        let now = Timestamp::now();
        let pods = cx.index(Pods).get(cx.namespace().unwrap_or_default());
        let selector = &claim.spec.selector;
        let selected = pods.iter().filter(|(labels, _)| {
            selector
                .iter()
                .all(|(key, value)| labels.get(key) == Some(value))
        });
        let phases: Vec<&str> = selected.map(|(_, phase)| phase.as_str()).collect();
        let before = use_of(claim);
        match next_step(&times_of(claim, now), before, &phases, now) {
            NextStep::Keep(present) if Some(present) == written_use_of(claim) => Ok(()),
            NextStep::Keep(present) => {
                let (state, since) = match present {
                    ClaimUse::Waiting => (EphemeralVolumeClaimState::Waiting, None),
                    ClaimUse::Used => (EphemeralVolumeClaimState::Used, None),
                    ClaimUse::UnusedSince(time) => (EphemeralVolumeClaimState::Unused, Some(time)),
                };
                let status = cx.status_mut();
                status.state = Some(state);
                status.unused_since = since.map(|time| Time(time.to_string()));
                Ok(())
            }
            NextStep::Delete(reason) => {
                info!("the claim is deleted: {reason}");
                let this_one = DeleteParams::default().preconditions(Preconditions {
                    uid: Some(cx.uid().to_owned()),
                    resource_version: None,
                });
                let claims = cx.api::<EphemeralVolumeClaim>();
                claims.delete(cx.name(), &this_one).await?;
                Ok(())
            }
        }
    }
}

fn times_of(claim: &EphemeralVolumeClaim, now: Timestamp) -> ClaimTimes {
    let created = claim.metadata.creation_timestamp.as_ref();
    ClaimTimes {
        created: created.map_or(now, |time| time.0),
        safe: SignedDuration::from_secs(claim.spec.safe_seconds),
        expiry: SignedDuration::from_secs(claim.spec.expiry_seconds),
        grace: SignedDuration::from_secs(claim.spec.grace_seconds),
    }
}

/// What the status says; none before its first write, or if another client has broken it.
fn written_use_of(claim: &EphemeralVolumeClaim) -> Option<ClaimUse> {
    let status = claim.status.as_ref()?;
    match status.state.as_ref()? {
        EphemeralVolumeClaimState::Waiting => Some(ClaimUse::Waiting),
        EphemeralVolumeClaimState::Used => Some(ClaimUse::Used),
        EphemeralVolumeClaimState::Unused => {
            let since = status.unused_since.as_ref()?.0.parse().ok()?;
            Some(ClaimUse::UnusedSince(since))
        }
        EphemeralVolumeClaimState::Other(_) => None,
    }
}

fn use_of(claim: &EphemeralVolumeClaim) -> ClaimUse {
    written_use_of(claim).unwrap_or(ClaimUse::Waiting)
}

fn volume_claim(claim: &EphemeralVolumeClaim) -> PersistentVolumeClaim {
    let mut pvc = PersistentVolumeClaim::default();
    let spec = pvc.spec.get_or_insert_default();
    spec.access_modes = Some(claim.spec.template.access_modes.clone());
    spec.storage_class_name = claim.spec.template.storage_class_name.clone();
    let size = Quantity(claim.spec.size.clone());
    spec.resources.get_or_insert_default().requests = Some([("storage".into(), size)].into());
    pvc
}
