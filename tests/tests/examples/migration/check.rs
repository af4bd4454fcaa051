//! Holds the log of the mail server against what happened to the mailboxes.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// One line of the mail server's log.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServerCall {
    pub(super) client: String,
    pub(super) operation: String,
    pub(super) mailbox: String,
    pub(super) outcome: CallOutcome,
    /// The number of earlier attempts; daemons and timers log none.
    retry: Option<u32>,
    /// The old and the new quota.
    change: Option<[i64; 2]>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub(super) enum CallOutcome {
    Done,
    Postponed,
    Starts,
    Stops,
}

/// The two implementations of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Twin {
    Python,
    Rust,
}

/// One operator process.
#[derive(Clone, Debug)]
pub(super) struct OperatorRun {
    pub(super) twin: Twin,
    /// The name under which it calls the mail server.
    pub(super) client: String,
    pub(super) ending: RunEnding,
}

/// How an operator process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunEnding {
    /// By SIGTERM.
    Orderly,
    /// By SIGKILL.
    Killed,
}

/// What happened to one mailbox.
#[derive(Clone, Debug)]
pub(super) struct MailboxHistory {
    pub(super) name: String,
    pub(super) folders: Vec<&'static str>,
    /// The first quota, and each that followed.
    pub(super) quotas: Vec<i64>,
    /// Whether the edits are handled as an update in any case. After an edit in the middle of a
    /// creation, Python Kopf handles one only if it ends the creation before it sees the edit.
    pub(super) is_update_certain: bool,
    /// Whether an operator resumed it when it started.
    pub(super) is_resumed: bool,
    pub(super) deleted: bool,
    /// The runs in which the mailbox existed and was not in deletion from the beginning.
    pub(super) served_by: BTreeSet<String>,
}

/// What the check found in a log without faults.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedCalls {
    pub(super) attempts: usize,
    /// Attempts that were made again because their operator was killed before it recorded them.
    pub(super) repeated: usize,
}

/// A piece of work that must be done exactly once.
type Task<'a> = (&'a str, String);

/// Checks that each change was handled once, attempt by attempt, and that daemons and timers ran in
/// each run. Returns all faults.
pub(super) fn check(
    calls: &[ServerCall],
    runs: &[OperatorRun],
    mailboxes: &[MailboxHistory],
) -> Result<CheckedCalls, Vec<String>> {
    let mut faults = Vec::new();
    let mut repeated = 0;
    let mut tasks: BTreeMap<Task<'_>, Vec<Attempt<'_>>> = expected_tasks(mailboxes);
    let by_name: BTreeMap<&str, &MailboxHistory> =
        mailboxes.iter().map(|it| (it.name.as_str(), it)).collect();
    let unrecorded = possibly_unrecorded(calls, runs);
    let mut attempts = 0;
    for (place, call) in calls.iter().enumerate() {
        let Some(retry) = call.retry else { continue };
        attempts += 1;
        let task = (call.mailbox.as_str(), call.operation.clone());
        match tasks.get_mut(&task) {
            Some(attempts) => attempts.push(Attempt { place, retry, call }),
            None => faults.push(format!("not asked for: {call:?}")),
        }
    }
    for (task, mut attempts) in tasks {
        let before = attempts.len();
        drop_unrecorded(&mut attempts, &unrecorded);
        repeated += before - attempts.len();
        let in_order = attempts.iter().map(|it| it.retry).eq(0..count(&attempts));
        let done = |it: &Attempt<'_>| it.call.outcome == CallOutcome::Done;
        let done_last = attempts.iter().position(done) == attempts.len().checked_sub(1);
        let mailbox = by_name[task.0];
        if attempts.is_empty() && task.1 == "change_quota" && !mailbox.is_update_certain {
            continue;
        }
        let sees_edits = attempts.iter().all(|it| it.sees_edits(&mailbox.quotas));
        if attempts.is_empty() || !in_order || !done_last || !sees_edits {
            faults.push(format!(
                "{task:?} must be done once, after retries in order: {attempts:#?}"
            ));
        }
    }
    faults.extend(background_faults(calls, runs, mailboxes));
    if faults.is_empty() {
        Ok(CheckedCalls { attempts, repeated })
    } else {
        Err(faults)
    }
}

/// An attempt at a task, and its place in the log.
#[derive(Debug)]
struct Attempt<'a> {
    place: usize,
    retry: u32,
    call: &'a ServerCall,
}

impl Attempt<'_> {
    /// Whether it is about the update from the first quota, and about the last one if it is done.
    fn sees_edits(&self, quotas: &[i64]) -> bool {
        let Some([old, new]) = self.call.change else {
            return true;
        };
        let is_new = match self.call.outcome {
            CallOutcome::Done => quotas.last() == Some(&new),
            _ => quotas.contains(&new),
        };
        quotas.first() == Some(&old) && is_new
    }
}

fn count(attempts: &[Attempt<'_>]) -> u32 {
    u32::try_from(attempts.len()).expect("a log is short")
}

fn expected_tasks<'a>(mailboxes: &[MailboxHistory]) -> BTreeMap<Task<'_>, Vec<Attempt<'a>>> {
    let mut tasks = BTreeMap::new();
    for mailbox in mailboxes {
        let folders = mailbox.folders.iter();
        let mut operations: Vec<String> = folders
            .map(|folder| format!("create_folders/{folder}"))
            .collect();
        let is_updated = mailbox.quotas.len() > 1;
        for (operation, is_expected) in [
            ("create_account", true),
            ("change_quota", is_updated),
            ("check_account", mailbox.is_resumed),
            ("delete_account", mailbox.deleted),
        ] {
            operations.extend(is_expected.then(|| operation.to_owned()));
        }
        for operation in operations {
            tasks.insert((mailbox.name.as_str(), operation), Vec::new());
        }
    }
    tasks
}

/// The last attempt of each killed run at each mailbox: only these may be missing on the object.
fn possibly_unrecorded(calls: &[ServerCall], runs: &[OperatorRun]) -> BTreeSet<usize> {
    let killed: BTreeSet<&str> = runs
        .iter()
        .filter(|run| run.ending == RunEnding::Killed)
        .map(|run| run.client.as_str())
        .collect();
    let mut last = BTreeMap::new();
    for (place, call) in calls.iter().enumerate() {
        if call.retry.is_some() && killed.contains(call.client.as_str()) {
            last.insert((&call.client, &call.mailbox), place);
        }
    }
    last.into_values().collect()
}

/// Leaves out each attempt that was made again under the same number, where that is unavoidable.
fn drop_unrecorded(attempts: &mut Vec<Attempt<'_>>, unrecorded: &BTreeSet<usize>) {
    let retries: Vec<u32> = attempts.iter().map(|it| it.retry).collect();
    let mut next = retries.into_iter().skip(1);
    attempts.retain(|it| !(next.next() == Some(it.retry) && unrecorded.contains(&it.place)));
}

fn background_faults(
    calls: &[ServerCall],
    runs: &[OperatorRun],
    mailboxes: &[MailboxHistory],
) -> Vec<String> {
    let mut counts: BTreeMap<(&str, &str, &str, CallOutcome), usize> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.retry.is_none()) {
        let key = (
            call.client.as_str(),
            call.mailbox.as_str(),
            call.operation.as_str(),
            call.outcome,
        );
        *counts.entry(key).or_default() += 1;
    }
    let mut faults = Vec::new();
    for run in runs {
        for mailbox in mailboxes {
            let of = |operation, outcome| {
                let key = (
                    run.client.as_str(),
                    mailbox.name.as_str(),
                    operation,
                    outcome,
                );
                counts.get(&key).copied().unwrap_or_default()
            };
            let starts = of("deliver", CallOutcome::Starts);
            let stops = of("deliver", CallOutcome::Stops);
            let ticks = of("backup", CallOutcome::Done);
            let served = mailbox.served_by.contains(&run.client);
            let fits = (starts > 0) == served
                && (ticks > 0) == served
                && run.may_have_daemons(starts, stops);
            if !fits {
                faults.push(format!(
                    "{} in run {}, served: {served}: {starts} daemons, {stops} stops, {ticks} ticks",
                    mailbox.name, run.client
                ));
            }
        }
    }
    faults
}

// === impl OperatorRun ===

impl OperatorRun {
    /// Whether the daemon of one mailbox may have started and stopped that often.
    fn may_have_daemons(&self, starts: usize, stops: usize) -> bool {
        // While Python Kopf stops, an event of an object whose daemon has ended starts it once more,
        // and Kopf cancels it at the end.
        let is_cancelled = self.twin == Twin::Python && (starts, stops) == (2, 1);
        match self.ending {
            RunEnding::Orderly => starts <= 1 && stops == starts || is_cancelled,
            RunEnding::Killed => starts <= 1 && stops <= starts,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(client: &str, operation: &str, retry: u32, outcome: &str) -> ServerCall {
        let line = json!({"client": client, "operation": operation, "mailbox": "one",
            "retry": retry, "outcome": outcome});
        serde_json::from_value(line).expect("a line of the log")
    }

    /// Checks the log of a mailbox that changes hands once, beside its daemons and timers.
    fn faults_of(ending: RunEnding, attempts: Vec<ServerCall>) -> Result<usize, usize> {
        faults_with(vec![1], ending, attempts)
    }

    /// The same for a mailbox with edits.
    fn faults_with(
        quotas: Vec<i64>,
        ending: RunEnding,
        attempts: Vec<ServerCall>,
    ) -> Result<usize, usize> {
        let run = |client: &str, ending| OperatorRun {
            twin: Twin::Rust,
            client: client.to_owned(),
            ending,
        };
        let runs = [run("a", ending), run("b", RunEnding::Orderly)];
        let mut calls = attempts;
        for client in ["a", "b"] {
            for (operation, outcome) in [
                ("deliver", "starts"),
                ("deliver", "stops"),
                ("backup", "done"),
            ] {
                calls.push(ServerCall {
                    retry: None,
                    ..call(client, operation, 0, outcome)
                });
            }
        }
        let mailbox = MailboxHistory {
            name: "one".to_owned(),
            folders: vec!["inbox"],
            quotas,
            is_update_certain: true,
            is_resumed: false,
            deleted: false,
            served_by: ["a", "b"].map(str::to_owned).into(),
        };
        check(&calls, &runs, &[mailbox])
            .map(|it| it.repeated)
            .map_err(|faults| faults.len())
    }

    #[test]
    fn attempts_that_go_on_where_the_other_operator_ended_are_right() {
        let calls = vec![
            call("a", "create_account", 0, "postponed"),
            call("a", "create_folders/inbox", 0, "done"),
            call("b", "create_account", 1, "postponed"),
            call("b", "create_account", 2, "done"),
        ];
        assert_eq!(faults_of(RunEnding::Orderly, calls.clone()), Ok(0));
        assert_eq!(faults_of(RunEnding::Killed, calls), Ok(0));
    }

    #[test]
    fn an_attempt_is_repeated_only_if_it_was_the_last_of_a_killed_operator() {
        let calls = vec![
            call("a", "create_account", 0, "done"),
            call("a", "create_folders/inbox", 0, "done"),
            call("b", "create_folders/inbox", 0, "done"),
        ];
        assert_eq!(faults_of(RunEnding::Killed, calls.clone()), Ok(1));
        assert_eq!(faults_of(RunEnding::Orderly, calls.clone()), Err(1));
        let mut earlier_too = calls;
        earlier_too.push(call("b", "create_account", 0, "done"));
        assert_eq!(faults_of(RunEnding::Killed, earlier_too), Err(1));
    }

    #[test]
    fn an_update_is_handled_once_up_to_the_last_edit() {
        let calls_with = |changes: &[[i64; 2]]| {
            let mut calls = vec![
                call("a", "create_account", 0, "done"),
                call("a", "create_folders/inbox", 0, "done"),
            ];
            for (retry, change) in (0..).zip(changes) {
                let is_last = changes.len() == retry as usize + 1;
                let outcome = if is_last { "done" } else { "postponed" };
                calls.push(ServerCall {
                    change: Some(*change),
                    ..call("b", "change_quota", retry, outcome)
                });
            }
            faults_with(vec![1, 2, 3], RunEnding::Orderly, calls)
        };
        assert_eq!(calls_with(&[[1, 2], [1, 3]]), Ok(0));
        assert_eq!(calls_with(&[[1, 2], [1, 2]]), Err(1), "an edit is lost");
        assert_eq!(calls_with(&[[1, 2], [2, 3]]), Err(1), "from another state");
        assert_eq!(calls_with(&[]), Err(1), "the update is lost");
    }

    #[test]
    fn a_daemon_runs_once_unless_python_kopf_starts_it_again_while_it_stops() {
        let fits = |twin, ending, starts, stops| {
            let client = String::new();
            let run = OperatorRun {
                twin,
                client,
                ending,
            };
            run.may_have_daemons(starts, stops)
        };
        for twin in [Twin::Python, Twin::Rust] {
            assert!(fits(twin, RunEnding::Orderly, 0, 0));
            assert!(fits(twin, RunEnding::Orderly, 1, 1));
            assert!(fits(twin, RunEnding::Killed, 1, 0));
            assert!(!fits(twin, RunEnding::Orderly, 1, 0), "not stopped");
            assert!(!fits(twin, RunEnding::Orderly, 2, 2), "started twice");
            assert!(!fits(twin, RunEnding::Killed, 2, 1), "started twice");
        }
        assert!(fits(Twin::Python, RunEnding::Orderly, 2, 1));
        assert!(!fits(Twin::Rust, RunEnding::Orderly, 2, 1));
    }

    #[test]
    fn lost_forgotten_and_unasked_work_is_found() {
        let account = || call("a", "create_account", 0, "done");
        assert_eq!(
            faults_of(RunEnding::Orderly, vec![account()]),
            Err(1),
            "lost"
        );
        let unfinished = call("b", "create_folders/inbox", 0, "postponed");
        assert_eq!(
            faults_of(RunEnding::Orderly, vec![account(), unfinished.clone()]),
            Err(1)
        );
        let forgotten = call("b", "create_folders/inbox", 0, "done");
        let calls = vec![account(), unfinished, forgotten.clone()];
        assert_eq!(faults_of(RunEnding::Orderly, calls), Err(1), "counted anew");
        let unasked = call("b", "delete_account", 0, "done");
        let calls = vec![account(), forgotten, unasked];
        assert_eq!(
            faults_of(RunEnding::Orderly, calls),
            Err(1),
            "not asked for"
        );
    }
}
