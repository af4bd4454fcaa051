//! The permissions of the examples: none is refused, each is used or has a reason, and the log names
//! the one that is missing.
//!
//! `KOPF_PRIVILEGES=all` takes each permission that an example uses away from it, instead of one
//! permission of each purpose.

use std::collections::BTreeMap;
use std::fs;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kopf_tests::peering::{self, define};
use kopf_tests::{
    Permission, PrivateControlPlane, Sandbox, TestFailure, TestResult, eventually, workspace,
};

use super::example::{Example, RestrictedRun, RunOptions, SHARED, examples};
use super::purpose::{Purpose, TAKEN_AWAY_ELSEWHERE, TakenAway, UNUSED, purpose_of, unused};

/// The operators that run at once.
const CONCURRENCY: usize = 4;

/// An example whose kinds no other example has.
const ALONE: &str = "21-migration";

/// An example that writes to no object, so that it can serve a cluster with the objects of others.
const READER: &str = "08-events";

/// An example that creates its peering.
const CREATOR: &str = "06-peering";

/// A permission to take away from an example.
struct MissingPermission<'a> {
    example: &'a Example,
    permission: Permission,
    clusterwide: bool,
    undefined: bool,
}

// === impl MissingPermission ===

impl<'a> MissingPermission<'a> {
    fn new(example: &'a Example, permission: &Permission) -> Self {
        Self {
            example,
            permission: permission.clone(),
            clusterwide: false,
            undefined: false,
        }
    }

    /// Checks that the log of the operator names the permission.
    async fn is_named(&self, plane: &PrivateControlPlane) -> TestResult {
        let options = RunOptions {
            missing: Some(&self.permission),
            clusterwide: self.clusterwide,
            undefined: self.undefined,
        };
        let run = self.example.start(plane.handle(), options).await?;
        let what = format!("the log of {} names {}", self.example.name, self.permission);
        let waited = eventually(&what, async || {
            run.edit().await;
            names(&run.operator.log(), &self.permission).then_some(())
        });
        let waited = waited.await;
        let log = run.operator.log();
        waited.map_err(|failure| TestFailure::new(format!("{failure:?}\n{log}")))?;
        // Without some permissions, an operator ends by itself.
        if run.operator.ending().is_none() {
            run.operator.kill().await?;
        }
        Ok(())
    }
}

/// Whether a log has the words with which the API server refuses a request without a permission.
fn names(log: &str, missing: &Permission) -> bool {
    let Permission {
        verb,
        group,
        resource,
        ..
    } = missing;
    let named = match &**resource {
        // The API server names the resource of the request.
        "*" => format!(r#"cannot {verb} resource ""#),
        resource => format!(r#"cannot {verb} resource "{resource}" in API group "{group}""#),
    };
    log.contains(&named)
}

fn find<'a>(examples: &'a [Example], name: &str) -> Result<&'a Example, TestFailure> {
    let found = examples.iter().find(|it| it.name == name);
    found.ok_or_else(|| TestFailure::new(format!("there is no example {name}")))
}

/// The permissions of an example for these purposes.
fn permissions_for(example: &Example, purpose: Purpose) -> Vec<Permission> {
    let mut permissions = example.permissions();
    permissions.retain(|it| purpose_of(example, it) == Some(purpose));
    permissions
}

/// Edits objects until the operator has used these permissions.
async fn until_used(example: &Example, run: &RestrictedRun, expected: &[Permission]) -> TestResult {
    let waited = eventually("each permission is used", async || {
        run.edit().await;
        let uses = run.uses(expected).await.ok()?;
        uses.into_iter().all(|it| it).then_some(())
    });
    if let Err(failure) = waited.await {
        let uses = run.uses(expected).await?;
        let unused = expected.iter().zip(uses).filter(|(_, is_used)| !is_used);
        let unused: Vec<String> = unused.map(|(it, _)| it.to_string()).collect();
        let message = format!("{failure:?}\n{} does not use {unused:?}", example.name);
        return Err(TestFailure::new(message));
    }
    Ok(())
}

/// Runs an example with all its permissions; returns those that it has used.
async fn used(
    example: &Example,
    plane: &PrivateControlPlane,
) -> Result<Vec<Permission>, TestFailure> {
    let run = example.start(plane.handle(), RunOptions::default()).await?;
    let all = example.permissions();
    let is_expected = |it: &&Permission| {
        let purpose = purpose_of(example, it);
        purpose.is_some_and(|purpose| unused(example, purpose, it).is_none())
    };
    let expected: Vec<Permission> = all.iter().filter(is_expected).cloned().collect();
    until_used(example, &run, &expected).await?;
    let uses = run.uses(&all).await?;
    run.end().await?;
    let used = all.into_iter().zip(uses).filter(|(_, is_used)| *is_used);
    Ok(used.map(|(it, _)| it).collect())
}

/// Runs examples where they use the permissions that they do not use in one namespace; returns these.
async fn used_otherwise<'a>(
    examples: &'a [Example],
    plane: &PrivateControlPlane,
    sandbox: &Sandbox,
) -> Result<Vec<MissingPermission<'a>>, TestFailure> {
    let mut removals = Vec::new();
    for (name, purpose) in [
        (ALONE, Purpose::Definition),
        (READER, Purpose::ClusterPeering),
        (CREATOR, Purpose::ClusterPeering),
    ] {
        let example = find(examples, name)?;
        let clusterwide = purpose == Purpose::ClusterPeering;
        let undefined = purpose == Purpose::Definition;
        let options = RunOptions {
            missing: None,
            clusterwide,
            undefined,
        };
        let run = example.start(plane.handle(), options).await?;
        let expected = permissions_for(example, purpose);
        until_used(example, &run, &expected).await?;
        run.end().await?;
        forget_peering(sandbox).await?;
        removals.extend(expected.iter().map(|it| MissingPermission {
            clusterwide,
            undefined,
            ..MissingPermission::new(example, it)
        }));
    }
    Ok(removals)
}

/// Deletes the cluster-wide peering of the example that creates it.
async fn forget_peering(sandbox: &Sandbox) -> TestResult {
    let peerings = sandbox.objects("kopf.dev/v1", "ClusterKopfPeering").await?;
    match peerings.delete("peering-example").await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => Ok(deleted?),
    }
}

/// The removals that no other test makes; one for each purpose and verb, unless all are wanted.
fn chosen(removals: Vec<MissingPermission<'_>>) -> Vec<MissingPermission<'_>> {
    let all = std::env::var("KOPF_PRIVILEGES").as_deref() == Ok("all");
    let mut chosen = BTreeMap::new();
    for (number, removal) in removals.into_iter().enumerate() {
        let purpose = purpose_of(removal.example, &removal.permission);
        let verb = removal.permission.verb.clone();
        let is_elsewhere = |it: &TakenAway| {
            Some(it.purpose) == purpose && (it.verbs.is_empty() || it.verbs.contains(&&*verb))
        };
        if !TAKEN_AWAY_ELSEWHERE.iter().any(is_elsewhere) {
            let number = if all { number } else { 0 };
            chosen.entry((purpose, verb, number)).or_insert(removal);
        }
    }
    chosen.into_values().collect()
}

/// Takes permissions away, and returns a message for each that no log names.
async fn unnamed(removals: Vec<MissingPermission<'_>>, plane: &PrivateControlPlane) -> Vec<String> {
    let results: Vec<TestResult> = stream::iter(&removals)
        .map(|removal| removal.is_named(plane))
        .buffer_unordered(CONCURRENCY)
        .collect()
        .await;
    let failures = results.into_iter().filter_map(Result::err);
    failures.map(|it| format!("{it:?}")).collect()
}

#[test]
fn each_permission_of_the_examples_has_a_purpose_and_each_reason_has_a_proof() -> TestResult {
    for example in examples()? {
        for permission in example.permissions() {
            let purpose = purpose_of(&example, &permission);
            assert!(purpose.is_some(), "{}: {permission}", example.name);
        }
    }
    let proofs = UNUSED.iter().map(|it| it.proof);
    for (file, function) in proofs.chain(TAKEN_AWAY_ELSEWHERE.iter().map(|it| it.proof)) {
        let source = fs::read_to_string(workspace::root().join("tests/tests").join(file))?;
        assert!(source.contains(&format!("fn {function}()")), "{function}");
    }
    Ok(())
}

#[tokio::test]
async fn each_permission_is_used_or_explained_and_named_when_it_is_missing() -> TestResult {
    let examples = examples()?;
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "peerings").await?;
    define(&sandbox, peering::GROUP).await?;
    define(&sandbox, peering::LEGACY_GROUP).await?;

    // Before other runs define the kinds, and make objects.
    let removals = used_otherwise(&examples, &plane, &sandbox).await?;
    let mut failures = unnamed(chosen(removals), &plane).await;
    let mut removals = Vec::new();
    let of_examples: Vec<(&Example, Vec<Permission>)> = stream::iter(&examples)
        .map(async |example| Ok::<_, TestFailure>((example, used(example, &plane).await?)))
        .buffered(CONCURRENCY)
        .try_collect()
        .await?;
    for (example, permissions) in &of_examples {
        // Its application works in the namespace `default`, which all of its runs would share.
        if example.name != SHARED {
            removals.extend(
                permissions
                    .iter()
                    .map(|it| MissingPermission::new(example, it)),
            );
        }
    }
    failures.extend(unnamed(chosen(removals), &plane).await);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}
