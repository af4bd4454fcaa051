//! The operators that a run can have: ours, and those on other frameworks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use kopf_cluster::Program;
use kopf_cluster::child_process::{ChildProcessBuilder, ProcessLog};
use kopf_tests::python_kopf::PythonKopf;
use kopf_tests::{ChildProcess, TestFailure};

use crate::peer_program;
use crate::trouble::Trouble;
use crate::workload::{CHANGED, RECONCILED};

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
    /// One function for each object on kube's Controller, with children and a finalizer
    Controller,
    /// The same on controller-runtime, in Go
    ControllerRuntime,
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
    /// A program that takes all from its environment.
    Peer(PathBuf),
}

// === impl TestedOperator ===

impl TestedOperator {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::KopfGen => "kopf-gen",
            Self::Kopf => "kopf",
            Self::Controller => "controller",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    /// Whether the operator has webhooks.
    pub(crate) fn has_gates(self) -> bool {
        self == Self::KopfGen
    }

    /// Whether the operator has children.
    pub(crate) fn has_children(self) -> bool {
        self != Self::Kopf
    }

    /// Whether the operator has handlers of several sorts, and keeps on the objects how far they
    /// are. The others have one function, which is called for the state of an object as it is.
    pub(crate) fn has_records(self) -> bool {
        matches!(self, Self::KopfGen | Self::Kopf)
    }

    /// The handler that is called for each edit.
    pub(crate) fn handler_of_edits(self) -> &'static str {
        if self.has_records() {
            CHANGED
        } else {
            RECONCILED
        }
    }

    /// Whether a run of this operator can make the trouble.
    pub(crate) fn accepts(self, trouble: Trouble) -> bool {
        match trouble {
            Trouble::Rival | Trouble::RotateToken => self == Self::KopfGen,
            // There are no annotations of the others, and libfaketime has no effect on Go.
            Trouble::GarbageAnnotations | Trouble::JumpClock => self.has_records(),
            _ => true,
        }
    }

    /// The command that starts it; its files are in `folder`.
    pub(crate) async fn command(self, folder: &Path) -> Result<OperatorCommand, TestFailure> {
        match self {
            Self::KopfGen => return Ok(OperatorCommand::Own),
            Self::Kopf => {}
            Self::Controller => return Ok(OperatorCommand::Peer(peer_program::controller()?)),
            Self::ControllerRuntime => {
                return Ok(OperatorCommand::Peer(peer_program::controller_runtime()?));
            }
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
            Self::Peer(program) => {
                return Ok(ChildProcess::builder(program, log).under(Program::at(&own)));
            }
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

    /// Whether it takes no options.
    pub(crate) fn is_peer(&self) -> bool {
        matches!(self, Self::Peer(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operator_gets_the_trouble_that_it_can_have() {
        for operator in TestedOperator::value_variants() {
            let accepts = |trouble| operator.accepts(trouble);
            let own = *operator == TestedOperator::KopfGen;
            assert_eq!(accepts(Trouble::Rival), own, "{operator:?}");
            assert_eq!(accepts(Trouble::RotateToken), own, "{operator:?}");
            let has_records = operator.has_records();
            assert_eq!(accepts(Trouble::GarbageAnnotations), has_records);
            assert!(accepts(Trouble::LostAnswers) && accepts(Trouble::RestartApiServer));
        }
    }

    #[test]
    fn the_names_are_those_of_the_command_line() {
        for operator in TestedOperator::value_variants() {
            let value = operator.to_possible_value();
            let name = value.as_ref().map(|value| value.get_name());
            assert_eq!(name, Some(operator.name()));
        }
    }
}
