//! `21-migration`: mailboxes in every state change hands between a Python operator and its twin.

#[path = "migration/check.rs"]
mod check;
#[path = "migration/mailboxes.rs"]
mod mailboxes;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kopf_tests::child_process::Ending;
use kopf_tests::{ChildProcess, Objects, PythonKopf, TestFailure, TestResult, workspace};
use kube::ResourceExt as _;
use kube::api::{DynamicObject, ListParams};
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::ExampleFixture;
use check::{CallOutcome, MailboxHistory, OperatorRun, RunEnding, ServerCall, Twin, check};
use mailboxes::{FOLDERS, MailboxState, QUOTAS, in_background, is_settled};

/// The number of mailboxes that change hands each time, if another one is wanted.
const MAILBOXES_VARIABLE: &str = "KOPF_MIGRATION_MAILBOXES";

/// The mailbox that shows that the first operator has listed the objects; it may find it by that.
const FIRST_MAILBOX: &str = "first";

/// The pause between two looks at the mailboxes and the log.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The mail server of the example: a folder with a log.
struct MailServerFolder {
    folder: TempDir,
    calls: Vec<ServerCall>,
    /// What the calls were, without their order.
    facts: BTreeSet<(String, String, String, CallOutcome)>,
}

/// The operators that replace each other, and all that happened.
struct Migration {
    fixture: ExampleFixture,
    kopf: PythonKopf,
    mailboxes: Objects,
    server: MailServerFolder,
    operator: Option<ChildProcess>,
    runs: Vec<OperatorRun>,
    histories: BTreeMap<String, MailboxHistory>,
    /// The number of mailboxes of each state.
    per_state: usize,
    total: usize,
}

#[tokio::test]
async fn mailboxes_in_every_state_change_hands_and_nothing_is_lost_or_run_again() -> TestResult {
    let total = std::env::var(MAILBOXES_VARIABLE).map_or(Ok(50), |it| it.parse())?;
    let mut migration = Migration::open(total).await?;
    let begun = Instant::now();
    migration.start(Twin::Python)?;
    migration.wait_for_first_list().await?;
    let takeovers = [
        (RunEnding::Orderly, Twin::Rust),
        (RunEnding::Orderly, Twin::Python),
        (RunEnding::Killed, Twin::Rust),
        (RunEnding::Killed, Twin::Python),
    ];
    for (takeover, (ending, next)) in takeovers.into_iter().enumerate() {
        migration.take_over(takeover, ending, next).await?;
    }
    migration.stop(RunEnding::Orderly).await?;
    migration.server.read()?;
    let histories: Vec<MailboxHistory> = migration.histories.into_values().collect();
    let mut calls = migration.server.calls;
    calls.retain(|call| call.mailbox != FIRST_MAILBOX);
    let checked = check(&calls, &migration.runs, &histories).map_err(|faults| {
        TestFailure::new(format!("{} faults:\n{}", faults.len(), faults.join("\n")))
    })?;
    #[expect(clippy::print_stdout, reason = "figures for people")]
    {
        println!(
            "{} mailboxes in 4 takeovers, {} s: {} attempts, {} of them repeated after a kill",
            histories.len(),
            begun.elapsed().as_secs(),
            checked.attempts,
            checked.repeated
        );
    }
    Ok(())
}

// === impl Migration ===

impl Migration {
    async fn open(total: usize) -> Result<Self, TestFailure> {
        let fixture = ExampleFixture::open("21-migration", "mailbox-operator").await?;
        let mailboxes = fixture
            .sandbox
            .objects("mail.example.com/v1", "Mailbox")
            .await?;
        Ok(Self {
            mailboxes,
            fixture,
            kopf: PythonKopf::obtain().await?,
            server: MailServerFolder::open()?,
            operator: None,
            runs: Vec::new(),
            histories: BTreeMap::new(),
            per_state: total.div_ceil(MailboxState::ALL.len()),
            total,
        })
    }

    /// Starts the next operator process.
    fn start(&mut self, twin: Twin) -> TestResult {
        let client = format!("{}-{twin:?}", self.runs.len());
        let sandbox = &self.fixture.sandbox;
        let variables = [
            (
                "MAIL_SERVER",
                self.server.folder.path().to_str().unwrap_or_default(),
            ),
            ("MAIL_CLIENT", client.as_str()),
        ];
        self.operator = Some(match twin {
            Twin::Rust => self.fixture.start_with(&[], &variables)?,
            Twin::Python => {
                let script = workspace::root().join("examples/21-migration/python/mailboxes.py");
                let identity = sandbox.administrator(&client.to_lowercase());
                let kopf = self.kopf.operator(sandbox, &identity, &script)?;
                let add = |kopf: kopf_tests::child_process::ChildProcessBuilder, (name, value)| {
                    kopf.env(name, value)
                };
                variables.into_iter().fold(kopf, add).start()?
            }
        });
        // Until the end is known.
        let ending = RunEnding::Orderly;
        self.runs.push(OperatorRun {
            twin,
            client,
            ending,
        });
        Ok(())
    }

    /// Waits until an operator has listed the objects: it resumes none that is created later.
    async fn wait_for_first_list(&mut self) -> TestResult {
        let body = MailboxState::Done.body(1);
        self.mailboxes.create(FIRST_MAILBOX, body).await?;
        self.wait("the first mailbox is handled", |_, objects| {
            objects.get(FIRST_MAILBOX).is_some_and(is_settled)
        })
        .await?;
        self.mailboxes.delete(FIRST_MAILBOX).await?;
        self.wait("the first mailbox is gone", |_, objects| objects.is_empty())
            .await
    }

    async fn stop(&mut self, ending: RunEnding) -> TestResult {
        let operator = self.operator.take().expect("an operator runs");
        match ending {
            RunEnding::Orderly => {
                let code = operator.terminate().await?;
                assert_eq!(code, Ending::Exit(0), "{}", operator.log());
            }
            RunEnding::Killed => drop(operator.kill().await?),
        }
        self.runs.last_mut().expect("an operator ran").ending = ending;
        Ok(())
    }

    fn client(&self) -> String {
        self.runs.last().expect("an operator runs").client.clone()
    }

    /// Brings new mailboxes into every state, replaces the operator, and lets the next one finish.
    async fn take_over(&mut self, takeover: usize, ending: RunEnding, next: Twin) -> TestResult {
        self.server.begin_maintenance()?;
        self.prepare(takeover).await?;
        self.stop(ending).await?;
        self.change_without_operator(takeover).await?;
        self.start(next)?;
        self.continue_in_maintenance(takeover, next).await?;
        self.server.end_maintenance()?;
        self.finish(takeover).await
    }

    fn of_states(&self, takeover: usize) -> Vec<(MailboxState, String)> {
        let states = MailboxState::ALL.into_iter();
        let numbered = states.flat_map(|state| (0..self.per_state).map(move |it| (state, it)));
        numbered
            .map(|(state, number)| (state, state.name(takeover, number)))
            .collect()
    }

    async fn create(&mut self, state: MailboxState, name: String) -> TestResult {
        // Not more retries per second than a Python operator can do.
        let patience = self.total.div_ceil(50);
        self.mailboxes.create(&name, state.body(patience)).await?;
        let history = MailboxHistory {
            name: name.clone(),
            folders: FOLDERS.into(),
            quotas: vec![QUOTAS[0]],
            is_update_certain: true,
            is_resumed: false,
            deleted: false,
            served_by: BTreeSet::new(),
        };
        self.histories.insert(name, history);
        Ok(())
    }

    /// Changes the quota of a mailbox to the next one.
    async fn edit(&mut self, name: &str) -> TestResult {
        let quota = QUOTAS[self.history(name).quotas.len()];
        let edit = json!({"spec": {"quota": quota}});
        self.mailboxes.merge(name, edit).await?;
        self.history(name).quotas.push(quota);
        Ok(())
    }

    async fn delete(&mut self, name: &str) -> TestResult {
        self.mailboxes.delete(name).await?;
        self.history(name).deleted = true;
        Ok(())
    }

    fn history(&mut self, name: &str) -> &mut MailboxHistory {
        self.histories
            .get_mut(name)
            .expect("the mailbox was created")
    }

    /// With the first operator: all mailboxes come to rest, but for what the server postpones.
    async fn prepare(&mut self, takeover: usize) -> TestResult {
        let mut all = self.of_states(takeover);
        all.retain(|(state, _)| *state != MailboxState::New);
        let client = self.client();
        for (state, name) in all.clone() {
            self.create(state, name.clone()).await?;
            self.history(&name).served_by.insert(client.clone());
        }
        self.wait("the mailboxes are created", |server, objects| {
            all.iter().all(|(state, name)| {
                (state.is_in_creation() || objects.get(name).is_some_and(is_settled))
                    && state
                        .done_before()
                        .iter()
                        .all(|it| server.has(&client, name, it, CallOutcome::Done))
                    && in_background()
                        .into_iter()
                        .all(|(it, outcome)| server.has(&client, name, it, outcome))
            })
        })
        .await?;
        for (state, name) in &all {
            match state {
                MailboxState::Updating | MailboxState::EditedInUpdate => self.edit(name).await?,
                MailboxState::Deleting => self.delete(name).await?,
                _ => {}
            }
        }
        self.wait_for_postponed(&all).await
    }

    async fn wait_for_postponed(&mut self, all: &[(MailboxState, String)]) -> TestResult {
        let client = self.client();
        self.wait("the server has postponed operations", |server, _| {
            all.iter().all(|(state, name)| {
                let postponed = state.postponed();
                postponed.is_none_or(|it| server.has(&client, name, it, CallOutcome::Postponed))
            })
        })
        .await
    }

    async fn change_without_operator(&mut self, takeover: usize) -> TestResult {
        for (state, name) in self.of_states(takeover) {
            match state {
                MailboxState::New => self.create(state, name).await?,
                MailboxState::Edited | MailboxState::EditedInUpdate => self.edit(&name).await?,
                MailboxState::Deleted => self.delete(&name).await?,
                _ => {}
            }
        }
        Ok(())
    }

    /// With the second operator: it retries what the first one has retried, and no other thing.
    async fn continue_in_maintenance(&mut self, takeover: usize, next: Twin) -> TestResult {
        let all = self.of_states(takeover);
        let client = self.client();
        for (state, name) in all.iter().filter(|(state, _)| !state.is_deleted()) {
            let history = self.history(name);
            history.served_by.insert(client.clone());
            history.is_resumed = state.is_resumed();
        }
        self.wait_for_postponed(&all).await?;
        self.wait(
            "the second operator serves all mailboxes",
            |server, objects| {
                all.iter().all(|(state, name)| match state {
                    MailboxState::Deleted => !objects.contains_key(name),
                    MailboxState::Deleting => true,
                    _ => {
                        (state.postponed().is_some() || objects.get(name).is_some_and(is_settled))
                            && (!state.is_resumed()
                                || server.has(&client, name, "check_account", CallOutcome::Done))
                            && in_background()
                                .into_iter()
                                .all(|(it, outcome)| server.has(&client, name, it, outcome))
                    }
                })
            },
        )
        .await?;
        for (_, name) in all
            .iter()
            .filter(|(state, _)| *state == MailboxState::EditedInCreation)
        {
            self.edit(name).await?;
            self.history(name).is_update_certain = matches!(next, Twin::Rust);
        }
        Ok(())
    }

    /// With the second operator: everything is done, and then deleted.
    async fn finish(&mut self, takeover: usize) -> TestResult {
        let all = self.of_states(takeover);
        self.wait("all mailboxes are handled", |_, objects| {
            all.iter().all(|(state, name)| match objects.get(name) {
                None => state.is_deleted(),
                Some(object) => {
                    is_settled(object) && object.data["spec"]["quota"] == state.last_quota()
                }
            })
        })
        .await?;
        for (_, name) in all.iter().filter(|(state, _)| !state.is_deleted()) {
            self.delete(name).await?;
        }
        self.wait("no mailbox is left", |_, objects| objects.is_empty())
            .await
    }

    /// Waits for a state of the mail server and of all mailboxes.
    #[track_caller]
    fn wait(
        &mut self,
        what: &str,
        holds: impl Fn(&MailServerFolder, &BTreeMap<String, DynamicObject>) -> bool,
    ) -> impl Future<Output = TestResult> {
        let failure = TestFailure::at_caller();
        let limit = Duration::from_secs(120)
            + Duration::from_secs(2) * u32::try_from(self.total).unwrap_or(0);
        async move {
            let waiting = async {
                loop {
                    self.server.read()?;
                    let list = self.mailboxes.api().list(&ListParams::default()).await;
                    // A busy machine breaks a connection now and then.
                    let Ok(list) = list else {
                        tokio::time::sleep(POLL_INTERVAL).await;
                        continue;
                    };
                    let objects = list
                        .items
                        .into_iter()
                        .map(|it| (it.name_any(), it))
                        .collect();
                    if holds(&self.server, &objects) {
                        return Ok(());
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            if let Ok(outcome) = tokio::time::timeout(limit, waiting).await {
                return outcome;
            }
            let list = self.mailboxes.api().list(&ListParams::default()).await?;
            let open = list.items.iter().filter(|it| !is_settled(it));
            let open: Vec<String> = open
                .map(|it| format!("{}: {:?}", it.name_any(), it.annotations()))
                .collect();
            let log = self.operator.as_ref().map(ChildProcess::log);
            let log = log.unwrap_or_default();
            let lines: Vec<&str> = log.lines().rev().take(60).collect();
            Err(failure.with_message(format!(
                "still waiting until {what}; not handled:\n{}\n--- the log, backwards:\n{}",
                open.join("\n"),
                lines.join("\n")
            )))
        }
    }
}

// === impl MailServerFolder ===

impl MailServerFolder {
    fn open() -> Result<Self, TestFailure> {
        Ok(Self {
            folder: TempDir::new()?,
            calls: Vec::new(),
            facts: BTreeSet::new(),
        })
    }

    fn maintenance(&self) -> PathBuf {
        self.folder.path().join("maintenance")
    }

    fn begin_maintenance(&self) -> TestResult {
        Ok(fs::write(self.maintenance(), "")?)
    }

    fn end_maintenance(&self) -> TestResult {
        Ok(fs::remove_file(self.maintenance())?)
    }

    /// Reads the lines that were added to the log.
    fn read(&mut self) -> TestResult {
        let log: &Path = &self.folder.path().join("log");
        let text = fs::read_to_string(log).unwrap_or_default();
        // The last line may be in the middle of being written.
        let lines = text
            .split_inclusive('\n')
            .filter(|line| line.ends_with('\n'));
        for line in lines.skip(self.calls.len()) {
            let call: ServerCall = serde_json::from_str(line)?;
            let ServerCall {
                client,
                mailbox,
                operation,
                outcome,
                ..
            } = call.clone();
            self.facts.insert((client, mailbox, operation, outcome));
            self.calls.push(call);
        }
        Ok(())
    }

    fn has(&self, client: &str, mailbox: &str, operation: &str, outcome: CallOutcome) -> bool {
        let [client, mailbox, operation] = [client, mailbox, operation].map(str::to_owned);
        self.facts.contains(&(client, mailbox, operation, outcome))
    }
}
