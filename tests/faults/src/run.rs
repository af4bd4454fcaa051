//! One run: rest, trouble, rest, and the check of what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use kopf_tests::child_process::Ending;
use kopf_tests::{TestFailure, eventually};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::check::{self, Evidence};
use crate::clock;
use crate::editing::{EditCounts, ObjectUser};
use crate::footprint::Footprint;
use crate::journal::{JournalContent, JournalTail};
use crate::plan::RunPlan;
use crate::report::RunReport;
use crate::samples::{self, SampleFiles};
use crate::schedule::{Schedule, ScheduledTrouble};
use crate::stage::Stage;
use crate::trouble::Trouble;
use crate::watch_log::{ObjectVersion, WatchLog};
use crate::workload::{PROBE, TICK, TICK_EVERY};

/// The time that the operator may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time that everything stays at rest before it is measured: connections close, and each timer
/// is called again.
const QUIET: Duration = Duration::from_secs(2 * TICK_EVERY.as_secs());

/// The time after which an operator has returned what it does not need any more: its client looks
/// every 90 s for connections that were idle for 90 s.
const RETURN_PATIENCE: Duration = Duration::from_secs(200);

/// The time that a process has for its first call before it is killed anyway.
const WORK_PATIENCE: Duration = Duration::from_secs(5);

/// The interval of looks at the journal.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A trouble that takes longer than this has a bug of its own; a crowd has more time.
const TROUBLE_LIMIT: Duration = Duration::from_secs(600);

/// The time that each object of a crowd adds to that.
const TIME_PER_OBJECT: Duration = Duration::from_millis(200);

/// What a run has made.
#[derive(Debug, Default)]
pub(crate) struct MadeTrouble {
    pub(crate) kills: usize,
    pub(crate) troubles: Vec<Trouble>,
}

/// Runs the plan, with its files in `folder`.
pub(crate) async fn run(
    plan: &RunPlan,
    folder: &Path,
    files: &SampleFiles,
) -> Result<RunReport, TestFailure> {
    let begun = Instant::now();
    let schedule = Schedule::new(plan);
    let stage = Arc::new(Stage::build(folder, plan).await?);
    let (watch_log, child_log) = (WatchLog::default(), WatchLog::default());
    let mut following = JoinSet::new();
    {
        let (log, widgets) = (watch_log.clone(), stage.everywhere(&stage.widgets));
        following.spawn(async move { log.follow(&widgets).await });
        let (log, children) = (child_log.clone(), stage.everywhere(&stage.config_maps));
        following.spawn(async move { log.follow(&children).await });
    }
    let sampling = {
        let (stage, log, files) = (Arc::clone(&stage), watch_log.clone(), files.clone());
        tokio::spawn(async move { samples::sample(&stage, &log, &files).await })
    };
    let mut keeping = JoinSet::new();
    for number in 0..=stage.replicas.len() {
        let stage = Arc::clone(&stage);
        keeping.spawn(async move {
            match stage.slots().nth(number) {
                Some(slot) => slot.keep_running().await,
                None => Ok(()),
            }
        });
    }
    let counts = EditCounts::default();
    let phases = async {
        let before = first_rest(plan, &stage).await?;
        let made = storm(plan, &schedule, &stage, &counts).await?;
        stage.proxy.clear_faults();
        Ok((last_rest(&stage, before).await?, made))
    };
    let (mut evidence, made) = match phases.await {
        Ok(ended) => ended,
        Err(failure) => return Err(stage.with_logs(failure).await),
    };
    sampling.abort();
    keeping.abort_all();
    for slot in stage.slots() {
        let ending = slot.terminate().await?;
        if ending != Some(Ending::Exit(0)) {
            let left = format!("an operator that does not stop ({ending:?})");
            evidence.left_behind.push(left);
        }
        evidence.lives.extend(slot.lives().await);
    }
    evidence.left_behind.extend(stage.configurations().await?);
    evidence.requests = stage.proxy.requests().len();
    following.abort_all();
    evidence.watch = watch_log.content();
    evidence.child_watch = child_log.content();
    evidence.lives.extend(stage.rival.lives().await);
    let marks = stage.marks();
    evidence.tampered = marks.tampered;
    evidence.rejected = marks.rejected;
    evidence.deleted_children = marks.deleted_children;
    evidence.deleted_namespaces = marks.deleted_namespaces;
    evidence.admitted = counts.admitted.load(Ordering::Relaxed);
    let broken = check::check(&evidence);
    Ok(RunReport {
        plan: plan.clone(),
        schedule,
        made,
        counts,
        evidence,
        broken,
        took: begun.elapsed(),
    })
}

/// Creates the objects, and measures the operator at rest.
async fn first_rest(plan: &RunPlan, stage: &Stage) -> Result<Footprint, TestFailure> {
    stage.create(PROBE).await?;
    for number in 0..plan.objects {
        stage.create(&widget_name(number)).await?;
    }
    for number in 0..plan.second_objects {
        let name = second_name(number);
        stage.create_in(&stage.there(&stage.widgets), &name).await?;
    }
    stage.settle(PATIENCE).await?;
    if stage.tested.has_gates() {
        eventually("the webhooks are configured", async || {
            (stage.configurations().await.ok()?.len() == 2).then_some(())
        })
        .await?;
    }
    sleep(QUIET).await;
    measure(stage).await
}

fn widget_name(number: usize) -> String {
    format!("w{number}")
}

fn second_name(number: usize) -> String {
    format!("s{number}")
}

/// What the running operator uses; its probe reports the number of tasks.
async fn measure(stage: &Stage) -> Result<Footprint, TestFailure> {
    let from = clock::now();
    let (pid, tasks) = eventually("the operator reports what it uses", async || {
        let journal = JournalContent::read(&stage.journal).ok()?;
        let pids = stage.pids().await;
        let mut probes = pids.iter().filter_map(|pid| journal.last_probe(*pid));
        let probe = probes.rfind(|probe| probe.at > from)?;
        Some((probe.pid, probe.tasks))
    })
    .await?;
    Ok(Footprint::of(pid, tasks)?)
}

/// What the operator uses at the end, when it has returned what it does not need any more.
async fn measure_again(stage: &Stage, before: &Footprint) -> Result<Footprint, TestFailure> {
    let deadline = Instant::now() + RETURN_PATIENCE;
    loop {
        let after = measure(stage).await?;
        let has_returned = after.excess_over(before).is_empty() || !stage.replicas.is_empty();
        if has_returned || Instant::now() > deadline {
            return Ok(after);
        }
        sleep(QUIET).await;
    }
}

/// Makes the trouble of the schedule while users edit the objects.
async fn storm(
    plan: &RunPlan,
    schedule: &Schedule,
    stage: &Stage,
    counts: &EditCounts,
) -> Result<MadeTrouble, TestFailure> {
    let over = AtomicBool::new(false);
    let user = |objects, children, resource, name: String, number: usize| ObjectUser {
        stage,
        objects,
        children,
        resource,
        name,
        random: Rng::with_seed(plan.seed.wrapping_mul(10_007).wrapping_add(number as u64)),
        counts,
        over: &over,
    };
    let (widgets, gates) = (&stage.widgets, &stage.gates);
    let (here, there) = (
        stage.here(&stage.config_maps),
        stage.there(&stage.config_maps),
    );
    let first = (0..plan.objects).map(|number| {
        let objects = stage.here(widgets);
        user(objects, here.clone(), widgets, widget_name(number), number).edit()
    });
    let second = (0..plan.second_objects).map(|number| {
        let objects = stage.there(widgets);
        let name = second_name(number);
        user(objects, there.clone(), widgets, name, 3_000 + number).edit()
    });
    let gates = (0..plan.gates).map(|number| {
        let objects = stage.here(gates);
        let name = format!("g{number}");
        user(objects, here.clone(), gates, name, 5_000 + number).edit_gate()
    });
    let begin = Instant::now();
    let trouble = async {
        let end = begin + plan.window;
        let (kills, troubles) = tokio::join!(
            kill(stage, &schedule.kills),
            make_all(stage, &schedule.troubles, begin, end)
        );
        sleep_until(end).await;
        over.store(true, Ordering::Relaxed);
        Ok::<_, TestFailure>(MadeTrouble {
            kills: kills?,
            troubles: troubles?,
        })
    };
    let (made, ..) = tokio::join!(trouble, join_all(first), join_all(second), join_all(gates));
    made
}

/// Kills one process after another in the midst of its work.
async fn kill(stage: &Stage, kills: &[Duration]) -> Result<usize, TestFailure> {
    let slots: Vec<_> = stage.slots().collect();
    let mut journal = JournalTail::open(&stage.journal)?;
    for (number, work) in kills.iter().enumerate() {
        let slot = slots[number % slots.len()];
        // Trouble, or another leader, may keep the process from any work.
        let deadline = Instant::now() + WORK_PATIENCE;
        while Instant::now() < deadline {
            let pid = slot.pid().await.unwrap_or_default();
            if journal.has_call_of(pid)? {
                break;
            }
            sleep(LOOK_EVERY).await;
        }
        sleep(*work).await;
        slot.kill().await?;
    }
    Ok(kills.len())
}

async fn make_all(
    stage: &Stage,
    troubles: &[ScheduledTrouble],
    begin: Instant,
    end: Instant,
) -> Result<Vec<Trouble>, TestFailure> {
    let mut made = Vec::new();
    for scheduled in troubles {
        sleep_until(begin + scheduled.at).await;
        // Troubles before this one may have taken longer than planned.
        if Instant::now() > end {
            break;
        }
        let trouble = scheduled.trouble;
        let limit = TROUBLE_LIMIT + TIME_PER_OBJECT * u32::try_from(stage.crowd)?;
        timeout(limit, trouble.make(stage, scheduled.lasts))
            .await
            .map_err(|_| TestFailure::new(format!("{trouble} does not end")))??;
        made.push(trouble);
    }
    Ok(made)
}

/// Waits until everything is at rest, and collects what there is.
async fn last_rest(stage: &Stage, before: Footprint) -> Result<Evidence, TestFailure> {
    let settled = stage.settle(PATIENCE).await?;
    let quiet_from = clock::now();
    if stage.tested.has_records() {
        wait_for_ticks(stage, &settled, quiet_from).await?;
    }
    sleep(QUIET).await;
    let before_quiet = versions_at_rest(stage).await?;
    let after = measure_again(stage, &before).await?;
    sleep(QUIET).await;
    let written_at_rest = versions_at_rest(stage)
        .await?
        .difference(&before_quiet)
        .map(|(name, _)| name.clone())
        .collect();
    let widgets = stage.settle(Duration::ZERO).await?;
    // After its start, the API server answers the first list of a kind with 429.
    let gates = eventually("the gates are listed", async || {
        stage.list(&stage.gates).await.ok()
    })
    .await?;
    Ok(Evidence {
        journal: JournalContent::read(&stage.journal)?,
        widgets,
        gates,
        children: stage.list_children().await?,
        written_at_rest,
        quiet_from,
        rest: clock::now(),
        pids: stage.pids().await,
        elected: !stage.replicas.is_empty(),
        tested: stage.tested,
        // A leader uses more than the others, and another process may lead now.
        footprints: stage.replicas.is_empty().then_some((before, after)),
        ..Evidence::default()
    })
}

/// Waits until the timer of each object was called after this time, and not for ever.
async fn wait_for_ticks(
    stage: &Stage,
    widgets: &BTreeMap<String, ObjectVersion>,
    from: u64,
) -> Result<(), TestFailure> {
    let mut waiting: BTreeSet<&str> = widgets.values().map(|it| it.uid.as_str()).collect();
    let mut journal = JournalTail::open(&stage.journal)?;
    let deadline = Instant::now() + PATIENCE;
    while !waiting.is_empty() && Instant::now() < deadline {
        sleep(LOOK_EVERY).await;
        for call in journal.read()?.calls() {
            if call.handler == TICK && call.at > from {
                waiting.remove(call.uid.as_str());
            }
        }
    }
    Ok(())
}

/// The versions of all objects and children that the operator keeps, by name.
async fn versions_at_rest(stage: &Stage) -> Result<BTreeSet<(String, u64)>, TestFailure> {
    let widgets = stage.list(&stage.widgets).await?;
    let existing: BTreeSet<&str> = widgets.values().map(|it| it.uid.as_str()).collect();
    let children = stage.list_children().await?;
    // The garbage collector may be about to delete the others.
    let children = children
        .into_values()
        .filter(|child| existing.contains(child.owner.as_str()))
        .map(|child| (format!("the child {}", child.name), child.version));
    let versions = widgets.iter().map(|(name, it)| (name.clone(), it.version));
    Ok(versions.chain(children).collect())
}
