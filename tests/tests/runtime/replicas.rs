//! Replicas of one operator with a lease, each behind a proxy of its own that records the time of its
//! requests, so that a test can check which replica acted under which lease.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use kopf_tests::child_process::{ChildProcess, Ending, Signal};
use kopf_tests::fault_proxy::ProxiedRequest;
use kopf_tests::{FaultProxy, Objects, Sandbox, TestFailure, TestResult, eventually};
use kube::api::{DynamicObject, ListParams};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

/// The times of a lease in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeaseTimes {
    lease: u64,
    renew_deadline: u64,
}

/// A lease that ends during a test.
pub(crate) const SHORT: LeaseTimes = LeaseTimes {
    lease: 6,
    renew_deadline: 3,
};

/// A lease that a running replica keeps, however slow the machine is.
pub(crate) const LONG: LeaseTimes = LeaseTimes {
    lease: 300,
    renew_deadline: 240,
};

/// The delay of a busy machine between an action and its log line. It is shorter than the time
/// between the renew deadline and the end of the lease: what is not late by more than this happened
/// before another replica could hold the lease.
pub(crate) const NOISE: Duration = Duration::from_secs(2);

/// Replicas that compete for one lease.
pub(crate) struct Replicas {
    pub(crate) sandbox: Sandbox,
    pub(crate) widgets: Objects,
    running: BTreeMap<String, ReplicaProcess>,
    ended: Vec<(String, ReplicaProcess)>,
    started: usize,
    objects: usize,
    clocks: &'static [i64],
    times: LeaseTimes,
}

impl LeaseTimes {
    pub(crate) fn lease(self) -> Duration {
        Duration::from_secs(self.lease)
    }

    fn renew_deadline(self) -> Duration {
        Duration::from_secs(self.renew_deadline)
    }
}

/// One process and its proxy.
pub(crate) struct ReplicaProcess {
    pub(crate) process: ChildProcess,
    pub(crate) proxy: FaultProxy,
    /// The times at which it was resumed after SIGSTOP.
    resumed_at: Vec<Instant>,
}

/// A step that a handler logged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LoggedStep {
    pub(crate) what: String,
    pub(crate) object: String,
    pub(crate) at: Instant,
}

/// The figures of a test, for the documentation.
#[derive(Debug, Default)]
pub(crate) struct LeaseReport {
    pub(crate) repeated: usize,
    pub(crate) writes: usize,
    pub(crate) latest_begin: Duration,
    pub(crate) latest_step: Duration,
    pub(crate) latest_write: Duration,
    /// Steps that were in progress at SIGSTOP and ended after SIGCONT.
    pub(crate) finished_after_resume: usize,
}

impl Replicas {
    /// Starts three replicas, whose clocks are wrong by these seconds in turn.
    pub(crate) async fn start(
        sandbox: Sandbox,
        clocks: &'static [i64],
        times: LeaseTimes,
    ) -> Result<Self, TestFailure> {
        let mut replicas = Self {
            widgets: sandbox.define("Widget").await?,
            sandbox,
            running: BTreeMap::new(),
            ended: Vec::new(),
            started: 0,
            objects: 0,
            clocks,
            times,
        };
        for _ in 0..3 {
            replicas.add().await?;
        }
        replicas.leader().await?;
        Ok(replicas)
    }

    /// Starts one more.
    pub(crate) async fn add(&mut self) -> TestResult {
        let clock = self.clocks[self.started % self.clocks.len()];
        self.started += 1;
        let name = format!("replica-{}", self.started);
        let identity = self.sandbox.administrator(&name);
        let proxy = FaultProxy::start(self.sandbox.control_plane(), &identity).await?;
        let process = self
            .sandbox
            .operator(env!("CARGO_BIN_EXE_replica-operator"), &identity)?
            .env("KUBECONFIG", proxy.kubeconfig())
            .env("REPLICA_GROUP", self.sandbox.group())
            .env("REPLICA_NAME", &name)
            .env("REPLICA_LEASE", "replicas")
            .env("REPLICA_LEASE_SECONDS", self.times.lease.to_string())
            .env(
                "REPLICA_RENEW_SECONDS",
                self.times.renew_deadline.to_string(),
            )
            .env("REPLICA_CLOCK", clock.to_string())
            .args(["run", "--log-format", "plain"])
            .args(["--namespace", self.sandbox.namespace()])
            .args(["--lease-namespace", self.sandbox.namespace()])
            .start()?;
        let replica = ReplicaProcess {
            process,
            proxy,
            resumed_at: Vec::new(),
        };
        self.running.insert(name, replica);
        Ok(())
    }

    pub(crate) fn replica(&self, name: &str) -> &ReplicaProcess {
        &self.running[name]
    }

    /// Waits until a running replica holds the lease.
    pub(crate) async fn leader(&self) -> Result<String, TestFailure> {
        self.leader_other_than("").await
    }

    pub(crate) async fn leader_other_than(&self, old: &str) -> Result<String, TestFailure> {
        let leases = self
            .sandbox
            .objects("coordination.k8s.io/v1", "Lease")
            .await?;
        eventually("a leader", async || {
            let lease = leases.get("replicas").await.ok()?;
            let holder = lease.data["spec"]["holderIdentity"].as_str()?;
            let (name, _) = holder.rsplit_once('_')?;
            (name != old && self.running.contains_key(name)).then(|| name.to_owned())
        })
        .await
    }

    /// The number of occurrences of a text in the logs of running replicas.
    pub(crate) fn count(&self, text: &str) -> usize {
        let logs = self.running.values().map(|it| it.process.log());
        logs.map(|log| log.matches(text).count()).sum()
    }

    /// Ends a replica, gracefully or not.
    pub(crate) async fn end(&mut self, name: &str, signal: Signal) -> Result<Ending, TestFailure> {
        let replica = self
            .running
            .remove(name)
            .ok_or_else(|| TestFailure::new(format!("{name} does not run")))?;
        replica.process.signal(signal)?;
        let ending = replica.process.wait().await?;
        self.ended.push((name.to_owned(), replica));
        Ok(ending)
    }

    /// Resumes a suspended replica.
    pub(crate) fn resume(&mut self, name: &str) -> TestResult {
        let replica = self
            .running
            .get_mut(name)
            .ok_or_else(|| TestFailure::new(format!("{name} does not run")))?;
        replica.resumed_at.push(Instant::now());
        Ok(replica.process.signal(Signal::CONT)?)
    }

    /// Creates objects whose handler takes 200 ms each.
    pub(crate) async fn create_objects(&mut self, count: usize) -> TestResult {
        for _ in 0..count {
            self.objects += 1;
            let name = format!("widget-{}", self.objects);
            let body = json!({"spec": {"steps": 20}});
            eventually("the object is created", async || {
                match self.widgets.create(&name, body.clone()).await {
                    Ok(_) => Some(()),
                    Err(kube::Error::Api(status)) if status.is_already_exists() => Some(()),
                    Err(_) => None,
                }
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until a handler of this replica runs.
    pub(crate) async fn wait_until_busy(&self, name: &str) -> TestResult {
        eventually("a handler runs", async || {
            let logged_steps = logged_steps(&self.replica(name).process);
            let begun = logged_steps.iter().filter(|it| it.what == "BEGIN").count();
            let ended = logged_steps
                .iter()
                .filter(|it| it.what == "FINISH" || it.what == "CUT");
            (begun > ended.count()).then_some(())
        })
        .await
    }

    /// Waits until all objects are handled, and checks that each step was made under a valid lease.
    pub(crate) async fn wait_until_settled(&self) -> Result<LeaseReport, TestFailure> {
        eventually("all objects are handled", async || {
            let all = self.widgets.api().list(&ListParams::default()).await.ok()?;
            let handled = all.items.iter().filter(|it| is_handled(it)).count();
            (handled == self.objects && all.items.len() == self.objects).then_some(())
        })
        .await?;
        let mut report = LeaseReport::default();
        let mut finished: BTreeMap<String, usize> = BTreeMap::new();
        let all = self
            .running
            .iter()
            .chain(self.ended.iter().map(|(name, it)| (name, it)));
        for (name, replica) in all {
            let requests = replica.proxy.requests();
            let mut history = LeaseHistory::of(self.times, &requests, &replica.resumed_at);
            for note in logged_steps(&replica.process) {
                let late = history.lateness(note.at);
                match note.what.as_str() {
                    "FINISH" => *finished.entry(note.object).or_default() += 1,
                    "CUT" => {}
                    _ if history.allows_after_resume(note.at) => {}
                    "STEP" => report.latest_step = report.latest_step.max(late),
                    _ => {
                        assert!(
                            late <= NOISE,
                            "{name}: {note:?} is {late:?} after the lease"
                        );
                        report.latest_begin = report.latest_begin.max(late);
                    }
                }
            }
            for write in requests.iter().filter(|it| is_write(it)) {
                let late = history.lateness(write.arrived);
                if history.allows_after_resume(write.arrived) {
                    continue;
                }
                assert!(
                    late <= NOISE,
                    "{name}: {write:?} is {late:?} after the lease"
                );
                // A write sent in time must end before another replica may start.
                let ended = history.lateness(write.answered);
                let margin = self.times.lease() - self.times.renew_deadline();
                assert!(ended <= margin, "{name}: {write:?} ended {ended:?} late");
                report.latest_write = report.latest_write.max(late);
                report.writes += 1;
            }
            report.finished_after_resume += history.finished_after_resume;
        }
        report.repeated = finished.values().filter(|count| **count > 1).count();
        assert_eq!(finished.len(), self.objects, "every object was handled");
        Ok(report)
    }

    /// Waits for the first start of a handler after a time in another replica than this one.
    ///
    /// That may be a later leader than the next: a slow machine may cost that its lease.
    pub(crate) async fn first_begin_elsewhere(
        &self,
        than: &str,
        after: Instant,
    ) -> Result<Instant, TestFailure> {
        eventually("another replica begins", async || {
            let others = self.running.iter().filter(|(name, _)| *name != than);
            let logged_steps = others.flat_map(|(_, it)| logged_steps(&it.process));
            let begun = logged_steps.filter(|it| it.what == "BEGIN" && it.at > after);
            begun.map(|it| it.at).min()
        })
        .await
    }

    /// The replicas that called a handler.
    pub(crate) fn workers(&self) -> BTreeSet<&str> {
        let all = self
            .running
            .iter()
            .chain(self.ended.iter().map(|(name, it)| (name, it)));
        all.filter(|(_, it)| {
            logged_steps(&it.process)
                .iter()
                .any(|it| it.what == "BEGIN")
        })
        .map(|(name, _)| name.as_str())
        .collect()
    }
}

impl LeaseReport {
    /// Prints the figures, which `--nocapture` shows.
    #[expect(clippy::print_stdout, reason = "figures for the documentation")]
    pub(crate) fn print(&self, title: &str, slowest: Duration) {
        println!("after {title}: next leader active within {slowest:?}, {self:?}");
    }
}

fn is_handled(object: &DynamicObject) -> bool {
    let annotations = object.metadata.annotations.iter().flatten();
    let ours: Vec<_> = annotations
        .filter(|(key, _)| key.starts_with("kopf.zalando.org/"))
        .collect();
    ours.len() == 1 && object.data["status"]["by"].is_string()
}

/// Whether a request writes something on behalf of the handlers.
fn is_write(request: &ProxiedRequest) -> bool {
    let write = request.method == Method::PATCH || request.method == Method::POST;
    write && !request.uri.contains("/leases") && request.status.is_some_and(|it| it.is_success())
}

/// The times at which a replica held the lease, from the requests at its proxy.
struct LeaseHistory {
    times: LeaseTimes,
    /// The times of successful lease requests, as the proxy received them.
    granted: Vec<Instant>,
    /// The times of SIGCONT, and the number of steps that may follow each.
    resumed_at: Vec<(Instant, usize)>,
    finished_after_resume: usize,
}

impl LeaseHistory {
    fn of(times: LeaseTimes, requests: &[ProxiedRequest], resumed_at: &[Instant]) -> Self {
        let granted = |it: &&ProxiedRequest| {
            let is_write = it.method == Method::PATCH || it.method == Method::POST;
            let accepted = matches!(it.status, Some(StatusCode::OK | StatusCode::CREATED));
            is_write && it.uri.contains("/leases") && accepted
        };
        // A thread that is suspended between its check of the clock and the step makes that step
        // when it resumes: no program can prevent that. It must not make the next step.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            times,
            granted: requests
                .iter()
                .filter(granted)
                .map(|it| it.arrived)
                .collect(),
            resumed_at: resumed_at.iter().map(|at| (*at, threads)).collect(),
            finished_after_resume: 0,
        }
    }

    /// The time by which an action exceeded the renew deadline.
    fn lateness(&self, at: Instant) -> Duration {
        let last = self.granted.iter().filter(|granted| **granted <= at).max();
        match last {
            Some(granted) => at.saturating_duration_since(*granted + self.times.renew_deadline()),
            None => Duration::MAX,
        }
    }

    /// Whether a late action was in progress when the replica was suspended.
    fn allows_after_resume(&mut self, at: Instant) -> bool {
        if self.lateness(at) <= NOISE {
            return false;
        }
        let resume = self.resumed_at.iter_mut().find(|(resume, left)| {
            *left > 0 && at >= *resume && at.saturating_duration_since(*resume) <= NOISE
        });
        let Some((_, left)) = resume else {
            return false;
        };
        *left -= 1;
        self.finished_after_resume += 1;
        true
    }
}

/// The steps that the handlers of a process logged so far.
pub(crate) fn logged_steps(process: &ChildProcess) -> Vec<LoggedStep> {
    let (here, there) = (Instant::now(), clock_gettime(ClockId::Monotonic));
    let there = Duration::new(
        there.tv_sec.unsigned_abs(),
        there.tv_nsec.unsigned_abs() as u32,
    );
    let log = process.log();
    let note = |line: &str| {
        let mut words = line.strip_prefix("NOTE ")?.split(' ');
        let (what, object) = (words.next()?.to_owned(), words.next()?.to_owned());
        let (seconds, nanos) = words.next()?.split_once('.')?;
        let at = Duration::new(seconds.parse().ok()?, nanos.parse().ok()?);
        let at = here.checked_sub(there.checked_sub(at)?)?;
        Some(LoggedStep { what, object, at })
    };
    log.lines().filter_map(note).collect()
}
