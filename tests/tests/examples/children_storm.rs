//! `19-children-reconcile` while other clients edit its objects and their children, and while its
//! process is killed again and again.
//!
//! `tests/long children` makes more kills. The seed decides the edits and the moments of the kills.

use std::time::Duration;

use fastrand::Rng;
use http::Method;
use kopf_tests::{FaultProxy, Objects, ProxiedRequest, TestFailure, TestResult, eventually};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;

use crate::fixture::ExampleFixture;

/// The kills of the short form.
const KILLS: u64 = 10;

/// The Websites. The children of the first one are not edited, and every second one has a Service
/// at all times.
const OWNERS: usize = 6;

/// The edits in one round at most.
const EDITS: usize = 40;

/// The changes of one page in one round at most: the operator does not fight for more.
const TAKEBACKS: u32 = 2;

/// The time between two edits.
const PACE: Duration = Duration::from_millis(10);

/// The objects of all kinds, and the requests of the operator about them.
struct Storm {
    fixture: ExampleFixture,
    proxy: FaultProxy,
    websites: Objects,
    pages: Objects,
    services: Objects,
    deployments: Objects,
    random: Rng,
    edits: u64,
    /// The changes of each page in this round.
    taken: [u32; OWNERS],
}

fn name(owner: usize) -> String {
    format!("site-{owner}")
}

/// Whether a Website has a Service at all times.
fn is_always_exposed(owner: usize) -> bool {
    owner.is_multiple_of(2)
}

/// The request changes an object of one of these kinds.
fn is_write(request: &ProxiedRequest, kind: &str) -> bool {
    request.method != Method::GET && request.uri.contains(&format!("/{kind}/"))
}

fn is_child_write(request: &ProxiedRequest) -> bool {
    ["configmaps", "services", "deployments"]
        .iter()
        .any(|kind| is_write(request, kind))
}

/// A number from the environment.
fn setting(variable: &str, default: u64) -> Result<u64, TestFailure> {
    match std::env::var(variable) {
        Ok(text) => Ok(text.parse()?),
        Err(_) => Ok(default),
    }
}

// === impl Storm ===

impl Storm {
    async fn new(seed: u64) -> Result<Self, TestFailure> {
        let fixture = ExampleFixture::open("19-children-reconcile", "websites-operator").await?;
        let sandbox = &fixture.sandbox;
        let user = sandbox.administrator("operator");
        let proxy = FaultProxy::start(sandbox.control_plane(), &user).await?;
        let websites = sandbox.objects("kopf.dev/v1", "Website").await?;
        for owner in 0..OWNERS {
            let body = json!({"spec": {"page": "first"}});
            websites.create(&name(owner), body).await?;
        }
        Ok(Self {
            proxy,
            websites,
            pages: sandbox.objects("v1", "ConfigMap").await?,
            services: sandbox.objects("v1", "Service").await?,
            deployments: sandbox.objects("apps/v1", "Deployment").await?,
            random: Rng::with_seed(seed),
            edits: 0,
            taken: [0; OWNERS],
            fixture,
        })
    }

    fn start(&self) -> Result<kopf_tests::ChildProcess, TestFailure> {
        let kubeconfig = self.proxy.kubeconfig().to_string_lossy().into_owned();
        self.fixture.start_with(&[], &[("KUBECONFIG", &kubeconfig)])
    }

    /// The requests since a moment that fulfil a condition.
    fn count_since(&self, from: usize, counts: impl Fn(&ProxiedRequest) -> bool) -> usize {
        let requests = self.proxy.requests();
        requests.iter().skip(from).filter(|it| counts(it)).count()
    }

    /// Makes one edit of a Website or of one of its children, which may be gone.
    async fn edit(&mut self) -> TestResult {
        self.edits += 1;
        let owner = self.random.usize(..OWNERS);
        let edited = match self.random.u32(..6) {
            0 | 1 => {
                let patch = json!({"spec": {"page": format!("page {}", self.edits)}});
                self.websites.merge(&name(owner), patch).await.map(drop)
            }
            2 => {
                let exposed = is_always_exposed(owner) || self.random.bool();
                let patch = json!({"spec": {"exposed": exposed}});
                self.websites.merge(&name(owner), patch).await.map(drop)
            }
            action => {
                let owner = self.random.usize(1..OWNERS);
                self.edit_child(action, owner).await
            }
        };
        match edited {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            edited => Ok(edited?),
        }
    }

    async fn edit_child(&mut self, action: u32, owner: usize) -> kube::Result<()> {
        let name = &name(owner);
        let children = [&self.pages, &self.services, &self.deployments];
        let child = self.random.usize(..children.len());
        match action {
            3 if self.taken[owner] >= TAKEBACKS => Ok(()),
            3 => {
                self.taken[owner] += 1;
                let patch = json!({"data": {"index.html": "theirs"}});
                self.pages.merge(name, patch).await.map(drop)
            }
            4 => children[child].delete(name).await,
            _ => {
                let labels = json!({"kopf-gen.dev/owner-uid": null});
                let patch = json!({"metadata": {"labels": labels}});
                children[child].merge(name, patch).await.map(drop)
            }
        }
    }

    /// Edits while an operator runs, and kills it after a number of its writes, or at rest.
    async fn round(&mut self) -> TestResult {
        let from = self.proxy.requests().len();
        self.taken = [0; OWNERS];
        let operator = self.start()?;
        let limit = self.random.usize(..16);
        for _ in 0..self.random.usize(1..EDITS) {
            if self.count_since(from, is_child_write) >= limit && limit > 0 {
                break;
            }
            self.edit().await?;
            tokio::time::sleep(PACE).await;
        }
        let waited = eventually("it has written as much as it may, or all", async || {
            let sent = self.count_since(from, is_child_write);
            (sent >= limit || self.difference().await?.is_none()).then_some(())
        });
        if let Err(failure) = waited.await {
            let left = self.difference().await.flatten();
            let log = operator.log();
            return Err(
                std::io::Error::other(format!("{failure:?}; left: {left:?}\n{log}")).into(),
            );
        }
        operator.kill().await?;
        Ok(())
    }

    /// The first difference between the children and what their owners ask for, if there is one;
    /// nothing is known if a list fails.
    async fn difference(&self) -> Option<Option<String>> {
        let params = ListParams::default();
        let list = async |objects: &Objects| Some(objects.api().list(&params).await.ok()?.items);
        let pages = list(&self.pages).await?;
        let services = list(&self.services).await?;
        let deployments = list(&self.deployments).await?;
        for owner in list(&self.websites).await? {
            let spec = &owner.data["spec"];
            let page = child(&pages, &owner).map(|it| &it.data["data"]["index.html"]);
            if page != Some(&spec["page"]) {
                return Some(Some(format!("{}: the page is {page:?}", owner.name_any())));
            }
            let exposed = child(&services, &owner).is_some();
            if spec["exposed"] != exposed {
                return Some(Some(format!("{}: a Service: {exposed}", owner.name_any())));
            }
            if child(&deployments, &owner).is_none() {
                return Some(Some(format!("{} has no Deployment", owner.name_any())));
            }
        }
        Some(None)
    }

    async fn wait_for_the_last_state(&self) -> TestResult {
        eventually(
            "the children are as the last state wants them",
            async || self.difference().await?.is_none().then_some(()),
        )
        .await
    }

    /// Nothing that was always wanted was ever deleted by the operator.
    fn check_deletions(&self) {
        for request in self.proxy.requests() {
            let wanted = request.uri.contains("/configmaps/")
                || request.uri.contains("/deployments/")
                || (0..OWNERS)
                    .filter(|owner| is_always_exposed(*owner))
                    .any(|owner| request.uri.contains(&format!("/services/{}", name(owner))));
            let is_deletion = request.method == Method::DELETE;
            assert!(!(is_deletion && wanted), "pruned wrongly: {request:?}");
        }
    }
}

/// The child of an owner, with its labels.
fn child<'a>(children: &'a [DynamicObject], owner: &DynamicObject) -> Option<&'a DynamicObject> {
    let uid = owner.uid()?;
    children.iter().find(|it| {
        it.name_any() == owner.name_any()
            && it.labels().get("kopf-gen.dev/owner-uid") == Some(&uid)
            && it.metadata.deletion_timestamp.is_none()
    })
}

#[expect(clippy::print_stdout, reason = "figures for the documentation")]
#[tokio::test]
async fn children_follow_their_owners_through_edits_and_kills() -> TestResult {
    let seed = setting("KOPF_SEED", 22)?;
    let kills = setting("KOPF_CHILDREN_KILLS", KILLS)?;
    let mut storm = Storm::new(seed).await?;
    let mut untouched = None;
    for round in 0..kills {
        storm.round().await?;
        storm.check_deletions();
        if let Ok(page) = storm.pages.get(&name(0)).await {
            let known = untouched.get_or_insert_with(|| page.uid()).clone();
            assert_eq!(page.uid(), known, "round {round} of seed {seed}");
        }
    }
    let operator = storm.start()?;
    storm.wait_for_the_last_state().await?;
    operator.terminate().await?;
    storm.check_deletions();

    // At rest a start writes nothing: only what the edit after it asks for.
    let from = storm.proxy.requests().len();
    let operator = storm.start()?;
    for owner in 0..OWNERS {
        let patch = json!({"spec": {"page": "last"}});
        storm.websites.merge(&name(owner), patch).await?;
    }
    storm.wait_for_the_last_state().await?;
    operator.terminate().await?;
    let count = |kind: &str| storm.count_since(from, |it| is_write(it, kind));
    assert_eq!(count("configmaps"), OWNERS, "one for each page");
    assert_eq!((count("services"), count("deployments")), (0, 0));
    let total = storm.count_since(0, is_child_write);
    println!(
        "seed {seed}: {kills} kills, {} edits, {total} writes of children",
        storm.edits
    );
    Ok(())
}
