//! The operators that a run can have: ours, and that of Python Kopf.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use kopf_cluster::Program;
use kopf_cluster::child_process::{ChildProcessBuilder, ProcessLog};
use kopf_tests::python_kopf::PythonKopf;
use kopf_tests::{ChildProcess, TestFailure};

use crate::trouble::Trouble;

/// The handlers of the operator that runs on Python Kopf.
const PYTHON_WORKLOAD: &str = include_str!("../python/workload.py");

/// The operator of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum TestedOperator {
    /// The operator on our runtime
    #[default]
    KopfGen,
    /// The same handlers on Python Kopf, without webhooks and children
    Kopf,
}

/// How a process of the operator is started.
#[derive(Clone, Debug)]
pub(crate) enum OperatorCommand {
    /// This executable.
    Own,
    /// Python with the modules at these paths, and the script with the handlers.
    Kopf {
        python: PathBuf,
        modules: OsString,
        script: PathBuf,
    },
}

// === impl TestedOperator ===

impl TestedOperator {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KopfGen => "kopf-gen",
            Self::Kopf => "kopf",
        }
    }

    /// Whether the operator has webhooks and children.
    pub(crate) fn has_gates_and_children(self) -> bool {
        self == Self::KopfGen
    }

    /// Whether a run of this operator can make the trouble.
    pub(crate) fn accepts(self, trouble: Trouble) -> bool {
        let ours = matches!(trouble, Trouble::Rival | Trouble::RotateToken);
        self == Self::KopfGen || !ours
    }

    /// The command that starts it; its files are in `folder`.
    pub(crate) async fn command(self, folder: &Path) -> Result<OperatorCommand, TestFailure> {
        if self == Self::KopfGen {
            return Ok(OperatorCommand::Own);
        }
        let script = folder.join("workload.py");
        std::fs::write(&script, PYTHON_WORKLOAD)?;
        let (python, modules) = PythonKopf::obtain().await?.interpreter(&script)?;
        Ok(OperatorCommand::Kopf {
            python,
            modules,
            script,
        })
    }
}

// === impl OperatorCommand ===

impl OperatorCommand {
    /// A process with the options that all operators have.
    pub(crate) fn builder(
        &self,
        log: Arc<ProcessLog>,
        namespaces: &str,
    ) -> Result<ChildProcessBuilder, TestFailure> {
        let own = std::env::current_exe()?;
        let builder = match self {
            Self::Own => ChildProcess::builder(&own, log),
            Self::Kopf {
                python,
                modules,
                script,
            } => ChildProcess::builder(python, log)
                .env("PYTHONPATH", modules)
                .env("PYTHONUNBUFFERED", "1")
                .env("PYTHONDONTWRITEBYTECODE", "1")
                .args(["-m", "kopf", "run", "--standalone"])
                .arg(script),
        };
        let builder = builder.under(Program::at(&own));
        Ok(builder.args(["--namespace", namespaces]))
    }

    /// Whether it takes the options of our operators.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self, Self::Own)
    }
}
