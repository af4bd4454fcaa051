//! The cost of one phase: requests, CPU time, memory and bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use kopf_tests::audit::AuditedRequest;
use kopf_tests::{ChildProcess, Objects, TestResult};
use kube::ResourceExt as _;
use kube::runtime::watcher::{self, Event};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::wire::{CountingWire, WireBytes};
use crate::api_server::ApiServerProcess;
use crate::process::{self, Usage};

/// The interval of looks at what the watch has brought.
const LOOK: Duration = Duration::from_millis(20);

/// A part of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChildrenPhase {
    ColdStart,
    Edit,
    Rest,
    Deleted,
    Restart,
}

/// What was used up to a time.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    at: Instant,
    operator: Option<Usage>,
    server_cpu: f64,
    bytes: WireBytes,
    pub(super) requests: Vec<AuditedRequest>,
}

/// What was used between two times.
#[derive(Clone, Debug)]
pub(super) struct PhaseCost {
    seconds: f64,
    operator_cpu: f64,
    server_cpu: f64,
    peak_megabytes: f64,
    resident_megabytes: f64,
    bytes: WireBytes,
    verbs: BTreeMap<String, usize>,
}

/// The children as a watch of the benchmark shows them.
pub(super) struct WatchedChildren {
    /// Size and uid by name.
    known: Arc<Mutex<BTreeMap<String, (String, String)>>>,
    watching: JoinHandle<()>,
}

// === impl ChildrenPhase ===

impl ChildrenPhase {
    pub(super) const ALL: [Self; 5] = [
        Self::ColdStart,
        Self::Edit,
        Self::Rest,
        Self::Deleted,
        Self::Restart,
    ];
}

impl fmt::Display for ChildrenPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ColdStart => "cold start",
            Self::Edit => "an edit of each",
            Self::Rest => "at rest",
            Self::Deleted => "deleted children",
            Self::Restart => "start over healthy children",
        })
    }
}

// === impl Measurement ===

impl Measurement {
    /// Before an operator is started.
    pub(super) fn before(server: &ApiServerProcess, wire: &CountingWire) -> io::Result<Self> {
        Ok(Self {
            at: Instant::now(),
            operator: None,
            server_cpu: server.cpu()?,
            bytes: wire.bytes(),
            requests: Vec::new(),
        })
    }

    /// While an operator runs; its requests are to be added.
    pub(super) fn now(
        operator: &ChildProcess,
        server: &ApiServerProcess,
        wire: &CountingWire,
    ) -> io::Result<Self> {
        Ok(Self {
            operator: Some(process::usage(operator)?),
            ..Self::before(server, wire)?
        })
    }

    pub(super) fn seconds(&self) -> f64 {
        self.at.elapsed().as_secs_f64()
    }
}

// === impl PhaseCost ===

impl PhaseCost {
    pub(super) const HEADER: &str = "\
        | | s | operator CPU s | API server CPU s | resident MB | peak MB | requests | MB received | MB sent |\n\
        |---|---|---|---|---|---|---|---|---|";

    pub(super) fn between(begun: &Measurement, ended: &Measurement, seconds: f64) -> Self {
        let cpu = |it: &Measurement| it.operator.map_or(0.0, |it| it.cpu);
        let mut verbs = BTreeMap::<String, usize>::new();
        for request in &ended.requests[begun.requests.len()..] {
            let resource = request.resource.as_deref().unwrap_or("other");
            let name = format!("{} {resource}", request.verb);
            *verbs.entry(name).or_default() += 1;
        }
        let memory = |of: fn(&Usage) -> f64| ended.operator.as_ref().map_or(f64::NAN, of);
        Self {
            seconds,
            operator_cpu: cpu(ended) - cpu(begun),
            server_cpu: ended.server_cpu - begun.server_cpu,
            peak_megabytes: memory(|it| it.peak_megabytes),
            resident_megabytes: memory(|it| it.resident_megabytes),
            bytes: ended.bytes - begun.bytes,
            verbs,
        }
    }
}

impl fmt::Display for PhaseCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let requests: usize = self.verbs.values().sum();
        write!(
            f,
            "| {:.1} | {:.2} | {:.2} | {:.1} | {:.1} | {requests} | {:.3} | {:.3} |",
            self.seconds,
            self.operator_cpu,
            self.server_cpu,
            self.resident_megabytes,
            self.peak_megabytes,
            megabytes(self.bytes.received),
            megabytes(self.bytes.sent),
        )
    }
}

// === impl WatchedChildren ===

impl WatchedChildren {
    /// Watches all ConfigMaps of the sandbox, which costs the API server the same with all peers.
    pub(super) fn watch(maps: &Objects) -> Self {
        let known = Arc::<Mutex<BTreeMap<String, (String, String)>>>::default();
        let shared = Arc::clone(&known);
        let api = maps.api().clone();
        let watching = tokio::spawn(async move {
            let mut events = watcher::watcher(api, watcher::Config::default()).boxed();
            while let Some(event) = events.next().await {
                let mut known = shared.lock().unwrap_or_else(PoisonError::into_inner);
                match event {
                    Ok(Event::Apply(it) | Event::InitApply(it)) => {
                        let size = it.data["data"]["size"].as_str().map(str::to_owned);
                        if let Some(size) = size {
                            known.insert(it.name_any(), (size, it.uid().unwrap_or_default()));
                        }
                    }
                    Ok(Event::Delete(it)) => {
                        known.remove(&it.name_any());
                    }
                    Ok(Event::Init | Event::InitDone) | Err(_) => {}
                }
            }
        });
        Self { known, watching }
    }

    /// Waits until there are `count` children, all of them of this size.
    pub(super) async fn wait_for(&self, count: usize, size: &str) -> TestResult {
        loop {
            let fitting = self.count(|(known, _)| known == size);
            if fitting >= count {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    }

    /// Waits until `count` of these children are replaced by others.
    pub(super) async fn wait_for_others(
        &self,
        before: &BTreeSet<String>,
        count: usize,
    ) -> TestResult {
        while self.count(|(_, uid)| !before.contains(uid)) < count {
            sleep(LOOK).await;
        }
        Ok(())
    }

    pub(super) fn uids(&self) -> BTreeSet<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().map(|(_, uid)| uid.clone()).collect()
    }

    fn count(&self, fits: impl Fn(&(String, String)) -> bool) -> usize {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().filter(|it| fits(it)).count()
    }
}

impl Drop for WatchedChildren {
    fn drop(&mut self) {
        self.watching.abort();
    }
}
