//! The operators that are compared, as processes on a sandbox.

use std::env;
use std::fmt;
use std::path::Path;

use clap::ValueEnum;
use kopf_tests::{TestFailure, User, ChildProcess, PythonKopf, Sandbox};

use crate::widgets::Status;

/// Whose operator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Peer {
    /// Python Kopf
    Kopf,
    /// kube's Controller as people write it
    Controller,
    /// The same with a concurrency of 16
    TunedController,
    /// Our runtime
    Ours,
}

/// What an operator is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// A quick handler, and one that needs a retry.
    EditStorm,
    /// One handler of creations, which writes one result.
    ColdStart,
    /// One timer, which does nothing.
    Timers {
        /// Its interval, in seconds.
        interval: u64,
    },
}

// === impl Peer ===

impl Peer {
    /// Starts an operator of this peer, as `identity`.
    pub(crate) async fn start(
        self,
        work: Work,
        status: Status,
        sandbox: &Sandbox,
        identity: &User,
    ) -> Result<ChildProcess, TestFailure> {
        let builder = match self {
            Self::Kopf => {
                let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
                let script = scripts.join(format!("{}.py", work.name()));
                let kopf = PythonKopf::obtain().await?;
                kopf.operator(sandbox, identity, &script)?
                    .arg("--quiet")
                    .env("INTERVAL", work.interval())
            }
            Self::Controller | Self::TunedController | Self::Ours => {
                let program = env::current_exe()?.with_file_name("bench-operator");
                let builder = sandbox
                    .operator(program, identity)?
                    .env("GROUP", sandbox.group())
                    .env("NAMESPACE", sandbox.namespace())
                    .env("WORK", work.name())
                    .env("INTERVAL", work.interval())
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
        };
        Ok(builder.start()?)
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Kopf => "kopf",
            Self::Controller => "controller",
            Self::TunedController => "tuned-controller",
            Self::Ours => "ours",
        })
    }
}

// === impl Work ===

impl Work {
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
