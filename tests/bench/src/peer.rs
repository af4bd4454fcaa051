//! The compared operators, as processes on a sandbox.

use std::env;
use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use kopf_tests::child_process::ChildProcessBuilder;
use kopf_tests::{ChildProcess, PythonKopf, Sandbox, TestFailure, User};

use crate::widgets::StatusKind;

/// The implementation of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchPeer {
    /// Python Kopf
    Kopf,
    /// kube's Controller with its defaults
    Controller,
    /// The same with a concurrency of 16
    TunedController,
    /// Our runtime
    Ours,
}

/// The handlers of an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workload {
    /// A quick handler, and one that needs a retry.
    EditStorm,
    /// One create handler, which writes one result.
    ColdStart,
    /// One timer, which does nothing.
    Timers {
        /// Its interval, in seconds.
        interval: u64,
    },
}

// === impl BenchPeer ===

impl BenchPeer {
    /// Starts an operator of this implementation, as `user`.
    pub(crate) async fn start(
        self,
        workload: Workload,
        status: StatusKind,
        sandbox: &Sandbox,
        user: &User,
    ) -> Result<ChildProcess, TestFailure> {
        let builder = self.prepare(workload, status, sandbox, user).await?;
        Ok(builder.start()?)
    }

    /// Prepares an operator of this implementation, as `user`.
    pub(crate) async fn prepare(
        self,
        workload: Workload,
        status: StatusKind,
        sandbox: &Sandbox,
        user: &User,
    ) -> Result<ChildProcessBuilder, TestFailure> {
        Ok(match self {
            Self::Kopf => {
                let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
                let script = scripts.join(format!("{}.py", workload.name()));
                let kopf = PythonKopf::obtain().await?;
                kopf.operator(sandbox, user, &script)?
                    .arg("--quiet")
                    .env("INTERVAL", workload.interval())
            }
            Self::Controller | Self::TunedController | Self::Ours => {
                let program = env::current_exe()?.with_file_name("bench-operator");
                let builder = sandbox
                    .operator(program, user)?
                    .env("GROUP", sandbox.group())
                    .env("NAMESPACE", sandbox.namespace())
                    .env("WORK", workload.name())
                    .env("INTERVAL", workload.interval())
                    .env("PEER", self.to_string())
                    .env("STATUS", status.name());
                match self {
                    Self::Ours => builder
                        .arg("--quiet")
                        .arg("--namespace")
                        .arg(sandbox.namespace()),
                    _ => builder,
                }
            }
        })
    }
}

impl fmt::Display for BenchPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kopf => "kopf",
            Self::Controller => "controller",
            Self::TunedController => "tuned-controller",
            Self::Ours => "ours",
        })
    }
}

// === impl Workload ===

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::EditStorm => "storm",
            Self::ColdStart => "cold_start",
            Self::Timers { .. } => "timers",
        }
    }

    fn interval(self) -> String {
        match self {
            Self::Timers { interval } => interval.to_string(),
            Self::EditStorm | Self::ColdStart => String::new(),
        }
    }
}
