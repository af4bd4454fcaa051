//! Leader election with three replicas: hand-over, crashes, suspended processes, restarts of the API
//! server, wrong clocks.
//!
//! In all cases no attempt starts and no write is sent after the holder's renew deadline, no change is
//! lost, and another replica takes over in time.

use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use kopf_runtime::{ChangeHandler, LeaderElectionSettings, On, Operator};
use kopf_tests::Component;
use kopf_tests::child_process::{Ending, Signal};
use kopf_tests::{
    Fault, FaultProxy, PeeringObject, PrivateControlPlane, RequestMatch, Sandbox, TestFailure,
    TestResult, User, eventually, workspace,
};
use kube::api::ListParams;
use serde_json::json;

use crate::fixture::HandlerFixture;
use crate::replicas::{LONG, NOISE, Replicas, SHORT, logged_steps};

/// The log text of a leader that stops because of its lease.
const GIVEN_UP: &str = "could not be renewed in time";

const RIGHT: &[i64] = &[0];

/// Clocks that are an hour late, an hour early, and right.
const WRONG: &[i64] = &[-3600, 3600, 0];

#[tokio::test]
async fn one_replica_leads_and_releases_the_lease_when_it_exits() -> TestResult {
    let sandbox = Sandbox::open("hand-over").await?;
    let mut replicas = Replicas::start(sandbox, RIGHT, LONG).await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        replicas.create_objects(20).await?;
        let leader = replicas.leader().await?;
        replicas.wait_until_busy(&leader).await?;
        let busy = Instant::now();
        assert_eq!(replicas.end(&leader, Signal::TERM).await?, Ending::Exit(0));
        let exited = Instant::now();
        replicas.create_objects(1).await?;
        // The next leader may begin before this test has seen the exit.
        let begun = replicas.first_begin_elsewhere(&leader, busy).await?;
        slowest = slowest.max(begun.saturating_duration_since(exited));
        replicas.add().await?;
    }
    let report = replicas.wait_until_settled().await?;
    assert!(slowest < LONG.lease(), "hand-over took {slowest:?}");
    assert_eq!(report.repeated, 0, "a graceful exit repeats nothing");
    report.print("a graceful exit", slowest);
    Ok(())
}

#[tokio::test]
async fn after_a_crash_another_replica_takes_over_when_the_lease_ends() -> TestResult {
    let sandbox = Sandbox::open("crash").await?;
    let mut replicas = Replicas::start(sandbox, RIGHT, SHORT).await?;
    let mut slowest = Duration::ZERO;
    for _ in 0..3 {
        replicas.create_objects(20).await?;
        let leader = replicas.leader().await?;
        replicas.wait_until_busy(&leader).await?;
        replicas.end(&leader, Signal::KILL).await?;
        let died = Instant::now();
        replicas.create_objects(1).await?;
        let begun = replicas.first_begin_elsewhere(&leader, died).await?;
        slowest = slowest.max(begun.saturating_duration_since(died));
        replicas.add().await?;
    }
    let report = replicas.wait_until_settled().await?;
    report.print("kill -9", slowest);
    Ok(())
}

#[tokio::test]
async fn a_replica_that_was_suspended_longer_than_the_lease_writes_nothing_afterwards() -> TestResult
{
    let sandbox = Sandbox::open("stopped").await?;
    let mut replicas = Replicas::start(sandbox, WRONG, SHORT).await?;
    for _ in 0..3 {
        replicas.create_objects(30).await?;
        let leader = replicas.leader().await?;
        replicas.wait_until_busy(&leader).await?;
        replicas.replica(&leader).process.signal(Signal::STOP)?;
        let stopped = Instant::now();
        replicas.first_begin_elsewhere(&leader, stopped).await?;
        replicas.resume(&leader)?;
        let process = &replicas.replica(&leader).process;
        // The handlers that were running are cancelled, not continued.
        eventually("the running handlers are cancelled", async || {
            logged_steps(process)
                .iter()
                .any(|it| it.what == "CUT" && it.at > stopped)
                .then_some(())
        })
        .await?;
        replicas.create_objects(5).await?;
    }
    let report = replicas.wait_until_settled().await?;
    assert!(report.latest_step <= NOISE, "{report:?}");
    report.print("SIGSTOP and SIGCONT", Duration::ZERO);
    Ok(())
}

#[tokio::test]
async fn restarts_of_the_api_server_lose_no_change() -> TestResult {
    let plane = PrivateControlPlane::start().await?;
    let sandbox = Sandbox::open_on(plane.handle(), "restarts").await?;
    let mut replicas = Replicas::start(sandbox, WRONG, SHORT).await?;
    replicas.create_objects(30).await?;
    let leader = replicas.leader().await?;
    replicas.wait_until_busy(&leader).await?;
    plane.restart(Component::ApiServer).await?;
    replicas.create_objects(10).await?;

    // Longer than the lease: the holder stops.
    replicas.wait_until_settled().await?;
    replicas.create_objects(10).await?;
    let before = replicas.count(GIVEN_UP);
    plane.kill(Component::ApiServer).await?;
    eventually("the leader has stopped", async || {
        (replicas.count(GIVEN_UP) > before).then_some(())
    })
    .await?;
    plane.revive(Component::ApiServer).await?;
    replicas.create_objects(10).await?;
    let report = replicas.wait_until_settled().await?;
    report.print("restarts of the server", Duration::ZERO);
    Ok(())
}

#[tokio::test]
async fn writes_in_flight_when_the_lease_expires_are_cancelled() -> TestResult {
    let sandbox = Sandbox::open("withdrawn").await?;
    let mut replicas = Replicas::start(sandbox, RIGHT, SHORT).await?;
    let leader = replicas.leader().await?;
    replicas.create_objects(1).await?;
    replicas.wait_until_settled().await?;
    let proxy = &replicas.replica(&leader).proxy;
    let patches = RequestMatch::any().method(Method::PATCH);
    proxy.always(patches.clone().path("/leases/"), Fault::CutBefore);
    proxy.always(patches.path("/widgets/"), Fault::Delay(2 * SHORT.lease()));
    replicas.create_objects(3).await?;
    let process = &replicas.replica(&leader).process;
    for object in ["widget-2", "widget-3", "widget-4"] {
        process
            .wait_for_log(&format!("NOTE FINISH {object}"))
            .await?;
    }
    process.wait_for_log(GIVEN_UP).await?;
    let next = replicas.leader_other_than(&leader).await?;
    let report = replicas.wait_until_settled().await?;
    assert_eq!(
        report.repeated, 3,
        "no write of the first leader was executed"
    );
    // A cancelled request closes its connection, and the proxy does not forward it.
    let all = replicas.widgets.api().list(&ListParams::default()).await?;
    let late = all.iter().filter(|it| it.data["status"]["by"] != *next);
    assert_eq!(late.count(), 1, "only the object before the fault");
    Ok(())
}

#[tokio::test]
async fn replicas_with_a_lease_have_one_peering_record() -> TestResult {
    let sandbox = Sandbox::open("both").await?;
    let peering = PeeringObject::create(&sandbox, "default").await?;
    let own = format!("{}/replicas", sandbox.namespace());
    let mut replicas = Replicas::start(sandbox, RIGHT, SHORT).await?;
    replicas.create_objects(1).await?;
    replicas.wait_until_settled().await?;
    let leader = replicas.leader().await?;
    peering.wait_for(&[&own]).await?;

    let freeze = |priority: Option<i64>| {
        let record = priority.map(|priority| {
            let now = jiff::Timestamp::now().to_string();
            json!({"priority": priority, "lifetime": 600, "lastseen": now})
        });
        json!({"developer": record})
    };
    peering.write(freeze(Some(666))).await?;
    let process = &replicas.replica(&leader).process;
    process.wait_for_log("in favour of developer").await?;
    replicas.end(&leader, Signal::KILL).await?;
    let next = replicas.leader_other_than(&leader).await?;
    let process = &replicas.replica(&next).process;
    process.wait_for_log("in favour of developer").await?;
    replicas.create_objects(1).await?;
    peering.write(freeze(None)).await?;
    replicas.wait_until_settled().await?;
    assert!(replicas.workers().len() > 1, "the next leader handled");
    let process = &replicas.replica(&next).process;
    assert!(!process.log().contains("conflicting"));
    peering.wait_for(&[&own]).await
}

#[tokio::test]
async fn the_generated_role_suffices_for_leader_election() -> TestResult {
    let sandbox = Sandbox::open("role").await?;
    let widgets = sandbox.define("Widget").await?;
    PeeringObject::create(&sandbox, "default").await?;
    let golden = workspace::root().join("tests/golden/everything/deploy/base/rbac.yaml");
    let rbac = std::fs::read_to_string(golden)?;
    let own = rbac.split("\n---\n").filter(|it| {
        it.contains("kind: Role\nmetadata") || it.contains("kind: RoleBinding\nmetadata")
    });
    for document in own {
        let document = document.replace("namespace: everything-operator", "namespace: $NAMESPACE");
        sandbox.apply(&document).await?;
    }
    let account = format!(
        "system:serviceaccount:{}:everything-operator",
        sandbox.namespace()
    );
    sandbox.apply(&widgets_for(&account)).await?;

    let start = |name: &str| {
        let operator = sandbox
            .operator(env!("CARGO_BIN_EXE_replica-operator"), &User::new(&account))?
            .env("REPLICA_GROUP", sandbox.group())
            .env("REPLICA_NAME", name)
            .env("REPLICA_LEASE", "the-one")
            .args(["run", "--namespace", sandbox.namespace()])
            .args(["--lease-namespace", sandbox.namespace()]);
        Ok::<_, TestFailure>(operator.start()?)
    };
    let first = start("first")?;
    // The role does not allow peering, which is optional here.
    first.wait_for_log("may not be used").await?;
    widgets.create("one", json!({"spec": {}})).await?;
    first.wait_for_log("NOTE FINISH one").await?;
    let second = start("second")?;
    second.wait_for_log("is the leader").await?;
    assert_eq!(first.terminate().await?, Ending::Exit(0));
    widgets.create("two", json!({"spec": {}})).await?;
    second.wait_for_log("NOTE FINISH two").await?;
    assert_eq!(second.terminate().await?, Ending::Exit(0));
    Ok(())
}

/// The permissions of the handlers, in addition to the generated role.
fn widgets_for(account: &str) -> String {
    format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: widgets}}
rules:
  - {{apiGroups: [$GROUP], resources: ['*'], verbs: ['*']}}
  - {{apiGroups: [''], resources: [events], verbs: [create]}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: widgets}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: widgets}}
subjects:
  - {{apiGroup: rbac.authorization.k8s.io, kind: User, name: '{account}'}}
"
    )
}

#[tokio::test]
async fn a_lease_that_exists_and_may_not_be_read_is_asked_for_with_pauses() -> TestResult {
    let mut fixture = HandlerFixture::new("unreadable-lease").await?;
    let lease = format!(
        "{{apiVersion: coordination.k8s.io/v1, kind: Lease, \
          metadata: {{name: unreadable, namespace: {}}}, \
          spec: {{holderIdentity: other, leaseDurationSeconds: 3600}}}}",
        fixture.sandbox.namespace()
    );
    fixture.sandbox.apply(&lease).await?;
    let election = LeaderElectionSettings {
        name: Some("unreadable".to_owned()),
        namespace: Some(fixture.sandbox.namespace().to_owned()),
        ..LeaderElectionSettings::default()
    };
    let user = fixture.new_user();
    let proxy = FaultProxy::start(fixture.sandbox.control_plane(), &user).await?;
    let leases = RequestMatch::any().method(Method::GET).path("/leases");
    proxy.always(leases, Fault::Answer(StatusCode::FORBIDDEN));
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("unreadable").resource(handlers);
    let operator = operator.leader_election(election);
    let operator = fixture.run(operator, proxy.client().await?, user);
    let posts = eventually("it has tried three times", async || {
        let requests = proxy.requests().into_iter();
        let posts: Vec<Instant> = requests
            .filter(|it| it.method == Method::POST && it.uri.contains("/leases"))
            .map(|it| it.arrived)
            .collect();
        (posts.len() >= 3).then_some(posts)
    })
    .await?;
    let taken = posts[2] - posts[0];
    assert!(
        taken > Duration::from_secs(1),
        "three attempts in {taken:?}"
    );
    operator.stop().await
}

#[tokio::test]
async fn a_lease_that_has_another_version_than_known_is_released_too() -> TestResult {
    let mut fixture = HandlerFixture::new("stale-release").await?;
    let user = fixture.new_user();
    let proxy = FaultProxy::start(fixture.sandbox.control_plane(), &user).await?;
    let unseen = RequestMatch::any().path("leases").watches();
    proxy.always(unseen, Fault::Delay(Duration::from_secs(600)));
    let election = LeaderElectionSettings {
        name: Some("shared".to_owned()),
        namespace: Some(fixture.sandbox.namespace().to_owned()),
        lease_duration: Duration::from_secs(120),
        renew_deadline: Duration::from_secs(110),
        retry_period: Duration::from_secs(100),
    };
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("stale")
        .resource(handlers)
        .leader_election(election)
        .identity("one");
    let operator = fixture.run(operator, proxy.client().await?, user);
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let leases = fixture
        .sandbox
        .objects("coordination.k8s.io/v1", "Lease")
        .await?;
    let touched = json!({"metadata": {"annotations": {"touched": "yes"}}});
    let held = leases.merge("shared", touched).await?;
    assert!(held.data["spec"]["holderIdentity"].is_string(), "{held:?}");
    operator.stop().await?;
    let free = leases.get("shared").await?;
    assert!(free.data["spec"]["holderIdentity"].is_null(), "{free:?}");
    Ok(())
}
