//! A session: one operator process at a time, and what happens to it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use kopf_cluster::Program;
use kopf_cluster::child_process::{ChildProcess, Ending, ProcessLog, Signal};
use kopf_core::inspection::HandlingState;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::{Instant, sleep, timeout};

use super::DevArgs;
use super::build::Builder;
use super::display::Display;
use super::error::Error;
use super::inputs::{InputChange, Inputs};
use super::keys::{KEYS, KeyCommand, Keys};
use super::page::SessionPage;
use super::samples::{self, AppliedSample};
use super::target_cluster::TargetCluster;
use crate::cli::draft::CrateDraft;
use crate::model::operator::Operator;

/// The time in which an operator has to stop.
const STOP_WITHIN: Duration = Duration::from_secs(40);

/// The time in which samples have to be handled with `--once`.
const HANDLED_WITHIN: Duration = Duration::from_secs(120);

/// The time for an object whose handlers leave no record.
const SETTLED_AFTER: Duration = Duration::from_secs(3);

/// The interval between looks at a sample.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionEnd {
    Done,
    /// With `--once`: a sample was not handled in time.
    NotHandled,
}

/// A session.
pub(super) struct DevSession {
    builder: Builder,
    cluster: TargetCluster,
    arguments: Vec<String>,
    /// The live page; none with `--once`, and if the user gives an address.
    page: Option<SessionPage>,
    display: Display,
    /// The program that was built last.
    program: Option<PathBuf>,
    operator: Option<ChildProcess>,
    /// Holds a kubeconfig of this session.
    folder: Option<tempfile::TempDir>,
}

/// What happened while the operator ran.
enum Happening {
    Changed(InputChange),
    Key(KeyCommand),
    Interrupted,
    OperatorEnded(Ending),
}

impl DevSession {
    pub(super) fn new(
        root: PathBuf,
        kopf_gen: PathBuf,
        cluster: TargetCluster,
        args: &DevArgs,
        display: Display,
    ) -> Self {
        let has_page = args.arguments.iter().any(|it| it.starts_with("--page"));
        let page = (!args.once && !has_page).then(SessionPage::on_free_port);
        Self {
            page: page.flatten(),
            builder: Builder {
                root,
                kopf_gen,
                release: args.release,
            },
            cluster,
            arguments: args.arguments.clone(),
            display,
            program: None,
            operator: None,
            folder: None,
        }
    }

    /// Runs the operator, and builds it again after each change, until the user quits.
    pub(super) async fn run(mut self) -> Result<SessionEnd, Error> {
        let mut inputs = Inputs::new(&self.builder.root);
        let mut keys = if self.display.is_interactive() {
            Keys::read()
        } else {
            Keys::none()
        };
        self.display.report(&format!("uses {}", self.cluster.title));
        let mut pending = Some(InputChange::Declarations);
        loop {
            if let Some(change) = pending.take() {
                pending = self.renew(change, &mut inputs).await?;
                if pending.is_some() {
                    continue;
                }
            }
            match self.next_happening(&mut inputs, &mut keys).await {
                Happening::Changed(change) => pending = Some(change),
                Happening::Key(KeyCommand::Quit) | Happening::Interrupted => break,
                Happening::Key(KeyCommand::Restart) => self.restart().await?,
                Happening::Key(KeyCommand::ApplySamples) => self.apply_samples().await,
                Happening::Key(KeyCommand::OpenPage) => self.open_page(),
                Happening::Key(KeyCommand::Inspect) => self.inspect(&["inspect"]).await,
                Happening::OperatorEnded(ending) => {
                    self.operator = None;
                    self.display
                        .report(&format!("the operator has ended: {}", describe(ending)));
                    self.display
                        .status(format!("the operator has ended   {KEYS}"));
                }
            }
        }
        self.stop().await;
        Ok(SessionEnd::Done)
    }

    /// Builds, applies the samples, waits until they are handled, and says what happened.
    pub(super) async fn run_once(mut self) -> Result<SessionEnd, Error> {
        self.display.report(&format!("uses {}", self.cluster.title));
        if !self.builder.generate().await? {
            return Err(Error::FirstBuild);
        }
        self.program = self.builder.build().await?;
        if self.program.is_none() {
            return Err(Error::FirstBuild);
        }
        self.restart().await?;
        let applied = self.apply().await?;
        let handled = self.wait_until_handled(&applied).await?;
        for sample in &applied {
            self.inspect(&sample.inspect_arguments()).await;
        }
        self.stop().await;
        Ok(if handled {
            SessionEnd::Done
        } else {
            SessionEnd::NotHandled
        })
    }

    async fn next_happening(&self, inputs: &mut Inputs, keys: &mut Keys) -> Happening {
        let ended = async {
            match &self.operator {
                Some(operator) => operator.ended().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            change = inputs.changed() => Happening::Changed(change),
            key = keys.next() => Happening::Key(key),
            () = interrupted() => Happening::Interrupted,
            ending = ended => Happening::OperatorEnded(ending),
        }
    }

    /// Generates if that is needed, builds, and replaces the operator. A further change interrupts
    /// the build, and is returned.
    async fn renew(
        &mut self,
        change: InputChange,
        inputs: &mut Inputs,
    ) -> Result<Option<InputChange>, Error> {
        self.display.lend();
        if change == InputChange::Declarations {
            if !self.builder.generate().await? {
                self.show_running("kopf.yaml or a CRD has errors");
                return Ok(None);
            }
            inputs.accept();
        }
        let started = Instant::now();
        let built = tokio::select! {
            built = self.builder.build() => built?,
            change = inputs.changed() => return Ok(Some(change)),
            () = interrupted() => {
                self.show_running("the build was interrupted");
                return Ok(None);
            }
        };
        let Some(program) = built else {
            self.show_running("the build failed");
            return Ok(None);
        };
        self.program = Some(program);
        let seconds = started.elapsed().as_secs_f32();
        self.display.report(&format!("built in {seconds:.1} s"));
        self.restart().await?;
        Ok(None)
    }

    /// Says why nothing was replaced.
    fn show_running(&self, reason: &str) {
        let running = if self.operator.is_some() {
            "the former operator still runs"
        } else {
            "no operator runs"
        };
        self.display.report(&format!("{reason}; {running}"));
        self.display.status(format!("{reason}   {KEYS}"));
    }

    /// Stops the operator, applies the definitions, and starts the program that was built last.
    async fn restart(&mut self) -> Result<(), Error> {
        let Some(program) = self.program.clone() else {
            return Ok(());
        };
        self.stop().await;
        let kubeconfig = self.kubeconfig()?;
        let applied = self
            .operator_command(&["crd", "--apply", "--force"])
            .await?;
        for line in String::from_utf8_lossy(&applied.stderr).lines() {
            self.display.line(line);
        }
        if !applied.status.success() {
            self.show_running("the definitions were not applied");
            return Ok(());
        }
        let display = self.display.clone();
        let page = self.page.clone();
        let log = ProcessLog::printed(move |line| {
            if let Some(page) = &page {
                page.notice(line);
            }
            display.line(line);
        });
        let mut builder = ChildProcess::builder(&program, Arc::new(log))
            .under(Program::at(&self.builder.kopf_gen))
            .current_dir(&self.builder.root)
            .args(["run", "--dev"])
            .args(self.page.iter().flat_map(SessionPage::arguments))
            .args(&self.arguments);
        if let Some(kubeconfig) = &kubeconfig {
            builder = builder.env("KUBECONFIG", kubeconfig);
        }
        self.operator = Some(builder.start().map_err(Error::Operator)?);
        self.display.status(format!("running   {KEYS}"));
        Ok(())
    }

    fn open_page(&self) {
        match self.page.as_ref().map(SessionPage::open) {
            Some(Ok(())) => {}
            Some(Err(address)) => self.display.report(&format!("open {address} in a browser")),
            None => self
                .display
                .report("the operator serves no page of this session"),
        }
    }

    /// Stops the operator, if one runs.
    async fn stop(&mut self) {
        if let Some(operator) = self.operator.take() {
            self.display.status("stopping the operator");
            // It may have ended by itself.
            let _ = operator.signal(Signal::TERM);
            if timeout(STOP_WITHIN, operator.ended()).await.is_err() {
                self.display
                    .report("the operator does not stop and is killed");
            }
        }
    }

    fn kubeconfig(&mut self) -> Result<Option<PathBuf>, Error> {
        if self.folder.is_none() {
            let folder = tempfile::tempdir().map_err(|source| Error::Program {
                action: "make a temporary folder",
                source,
            })?;
            self.folder = Some(folder);
        }
        match &self.folder {
            Some(folder) => self.cluster.operator_kubeconfig(folder.path()),
            None => Ok(None),
        }
    }

    /// Applies the samples on request: an error is shown, and the session goes on.
    async fn apply_samples(&mut self) {
        if let Err(error) = self.apply().await {
            self.display.report(&error.to_string());
        }
    }

    async fn apply(&mut self) -> Result<Vec<AppliedSample>, Error> {
        let operator = self.model();
        let samples = match &operator {
            Some(operator) => samples::find(&self.builder.root, operator)?,
            None => Vec::new(),
        };
        if samples.is_empty() {
            self.display
                .report("there is no sample: put objects into samples/*.yaml or obj.yaml");
        }
        let client = self.cluster.client().await?;
        let mut applied = Vec::new();
        for sample in samples {
            let sample = sample.apply(&client).await?;
            self.display
                .report(&format!("applied {} {}", sample.kind, sample.name));
            applied.push(sample);
        }
        Ok(applied)
    }

    /// The operator as kopf.yaml describes it; none while it has errors.
    fn model(&self) -> Option<Operator> {
        let draft = CrateDraft::open(&self.builder.root).ok()?;
        draft.read_operator().2
    }

    /// Shows how far objects are handled.
    async fn inspect(&mut self, arguments: &[impl AsRef<OsStr>]) {
        match self.operator_command(arguments).await {
            Ok(output) => {
                let text = [output.stdout, output.stderr].concat();
                for line in String::from_utf8_lossy(&text).lines() {
                    self.display.line(line);
                }
            }
            Err(error) => self.display.report(&error.to_string()),
        }
    }

    /// Whether all samples are handled in time.
    async fn wait_until_handled(&mut self, samples: &[AppliedSample]) -> Result<bool, Error> {
        let deadline = Instant::now() + HANDLED_WITHIN;
        for sample in samples {
            if !sample.has_records {
                // Handlers of events, daemons and timers leave no record.
                sleep(SETTLED_AFTER).await;
                continue;
            }
            loop {
                if self.is_handled(sample).await? {
                    break;
                }
                if self
                    .operator
                    .as_ref()
                    .and_then(ChildProcess::ending)
                    .is_some()
                {
                    return Err(Error::Ended);
                }
                if Instant::now() > deadline {
                    let seconds = HANDLED_WITHIN.as_secs();
                    self.display.report(&format!(
                        "{} {} is not handled after {seconds} s",
                        sample.kind, sample.name
                    ));
                    return Ok(false);
                }
                sleep(LOOK_EVERY).await;
            }
            self.display
                .report(&format!("{} {} is handled", sample.kind, sample.name));
        }
        Ok(true)
    }

    /// Whether a sample is handled, as the operator's own command sees it: it knows its storages.
    async fn is_handled(&mut self, sample: &AppliedSample) -> Result<bool, Error> {
        let mut arguments = sample.inspect_arguments();
        arguments.extend(["-o", "json"].map(str::to_owned));
        let output = self.operator_command(&arguments).await?;
        let shown: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        Ok(shown["objects"][0]["state"] == HandlingState::Handled.as_str())
    }

    /// Runs a command of the operator that ends by itself.
    async fn operator_command(&mut self, arguments: &[impl AsRef<OsStr>]) -> Result<Output, Error> {
        let program = self.program.clone().ok_or(Error::NoProgram)?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(kubeconfig) = self.kubeconfig()? {
            command.env("KUBECONFIG", kubeconfig);
        }
        let output = command.output().await;
        output.map_err(|source| Error::Program {
            action: "run a command of the operator",
            source,
        })
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut signals) => {
                signals.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}

fn describe(ending: Ending) -> String {
    match ending {
        Ending::Exit(code) => format!("exit code {code}"),
        Ending::Signal(signal) => format!("signal {signal}"),
        Ending::Unknown => "for an unknown reason".to_owned(),
    }
}
