//! An operator for tests with several replicas: its handler works in small steps and logs the time of
//! each.
//!
//! `REPLICA_GROUP` is the API group of the widgets. `REPLICA_LEASE` names the lease, if any;
//! `REPLICA_LEASE_SECONDS` and `REPLICA_RENEW_SECONDS` are its duration and its renew deadline.
//! `REPLICA_CREATES` names a peering to create. `REPLICA_LIFETIME`, `REPLICA_TIES`,
//! `REPLICA_STEALTH` and `REPLICA_CLOCK` are settings of peering and of the clock.

use std::env;
use std::process::ExitCode;
use std::sync::Arc;

use kopf_runtime::prelude::*;
use kopf_runtime::{
    ChangeHandler, EventHandler, LeaderElectionSettings, On, Operator, PeeringSettings, Resource,
    ResourceSpec, Scope, StatusSubresource, Ties,
};
use rustix::time::{ClockId, clock_gettime};

struct ReplicaHandlers {
    name: String,
}

/// Logs the start and the end of the work on an object, also of cancelled work.
struct WorkLog {
    object: String,
    finished: bool,
}

impl ReplicaHandlers {
    /// Works for `spec.steps` times ten milliseconds.
    async fn work(&self, cx: &mut ChangeContext<Value>) -> HandlerResult {
        let mut work_log = WorkLog::begin(cx.name());
        for _ in 0..cx.raw()["spec"]["steps"].as_u64().unwrap_or(1) {
            tokio::time::sleep(Duration::from_millis(10)).await;
            log_step("STEP", &work_log.object);
        }
        work_log.finished = true;
        cx.patch().status(json!({"by": self.name}));
        Ok(())
    }
}

impl WorkLog {
    fn begin(object: &str) -> Self {
        log_step("BEGIN", object);
        Self {
            object: object.to_owned(),
            finished: false,
        }
    }
}

impl Drop for WorkLog {
    fn drop(&mut self) {
        log_step(if self.finished { "FINISH" } else { "CUT" }, &self.object);
    }
}

/// Logs a line for the test: the step, the object, and the time of the machine's monotonic clock.
#[expect(clippy::print_stderr, reason = "the log of the operator is for people")]
fn log_step(what: &str, object: &str) {
    let now = clock_gettime(ClockId::Monotonic);
    eprintln!("NOTE {what} {object} {}.{:09}", now.tv_sec, now.tv_nsec);
}

fn seconds(name: &str) -> Option<i64> {
    env::var(name).ok()?.parse().ok()
}

fn duration(name: &str) -> Option<Duration> {
    seconds(name).map(|it| Duration::from_secs(it.unsigned_abs()))
}

fn main() -> ExitCode {
    let group = env::var("REPLICA_GROUP").unwrap_or_else(|_| "replica.kopf.test".to_owned());
    let spec = ResourceSpec {
        group: group.leak(),
        version: "v1",
        kind: "Widget",
        plural: "widgets",
        scope: Scope::Namespaced,
        status: StatusSubresource::Present,
    };
    let name = env::var("REPLICA_NAME").unwrap_or_else(|_| "ours".to_owned());
    let handlers = Arc::new(ReplicaHandlers { name: name.clone() });
    let widgets = Resource::<Value, ReplicaHandlers>::new(spec, &handlers)
        .change(
            ChangeHandler::new("work", On::create().or(On::update())),
            |handlers, cx| Box::pin(handlers.work(cx)),
        )
        .change(ChangeHandler::new("resumed", On::resume()), |_, cx| {
            Box::pin(async move {
                log_step("RESUME", cx.name());
                Ok(())
            })
        })
        .event(EventHandler::new("observe"), |_, cx| {
            Box::pin(async move {
                log_step(&cx.event_type().to_string(), cx.name());
                Ok(())
            })
        })
        .build();
    let mut peering = PeeringSettings::default();
    if let Ok(name) = env::var("REPLICA_CREATES") {
        peering = PeeringSettings::created(name);
    }
    if let Some(lifetime) = duration("REPLICA_LIFETIME") {
        peering.lifetime = lifetime;
    }
    peering.stealth = env::var_os("REPLICA_STEALTH").is_some();
    if env::var_os("REPLICA_TIES").is_some() {
        peering.ties = Ties::FirstIdentity;
    }
    let mut operator = Operator::new("replica-operator")
        .resource(widgets)
        .peering(peering)
        .identity(name);
    if let Ok(lease) = env::var("REPLICA_LEASE") {
        operator = operator.leader_election(LeaderElectionSettings {
            name: Some(lease),
            lease_duration: duration("REPLICA_LEASE_SECONDS").unwrap_or(Duration::from_secs(6)),
            renew_deadline: duration("REPLICA_RENEW_SECONDS").unwrap_or(Duration::from_secs(3)),
            retry_period: Duration::from_millis(500),
            ..LeaderElectionSettings::default()
        });
    }
    if let Some(offset) = seconds("REPLICA_CLOCK") {
        operator = operator.clock_offset(jiff::SignedDuration::from_secs(offset));
    }
    operator.main()
}
