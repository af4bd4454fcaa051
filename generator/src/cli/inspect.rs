//! `kopf-gen inspect` and `kopf-gen unstick`: the objects of any operator, also of Python Kopf.

use std::process::ExitCode;

use clap::Args;
use kopf_runtime::inspect::{InspectArgs, InspectedOperator, UnstickArgs};
use kopf_runtime::{DiffBaseStore, PersistenceSettings};

/// Show how far objects of a cluster are handled, also those of Python Kopf operators
///
/// The command reads the objects of the cluster of $KUBECONFIG or ~/.kube/config. No operator need
/// run. Without a kind it shows all custom resources that an operator has handled.
#[derive(Debug, Args)]
pub(super) struct InspectCommandArgs {
    #[command(flatten)]
    inspect: InspectArgs,
    #[command(flatten)]
    storages: StorageArgs,
}

/// Remove the finalizer and the records of an operator that is gone from its objects
///
/// The command shows what it would remove, and asks before it does. Handlers for deletion are not
/// called. An operator that runs puts both back.
#[derive(Debug, Args)]
pub(super) struct UnstickCommandArgs {
    #[command(flatten)]
    unstick: UnstickArgs,
    #[command(flatten)]
    storages: StorageArgs,
}

/// Where the operator keeps its records; the defaults are those of Kopf.
#[derive(Debug, Args)]
#[command(next_help_heading = "Settings of the operator")]
struct StorageArgs {
    /// The prefix of its annotations; by default kopf.zalando.org
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,
    /// Its finalizer; by default kopf.zalando.org/KopfFinalizerMarker
    #[arg(long, value_name = "NAME")]
    finalizer: Option<String>,
    /// The field of the status that it uses; by default kopf
    #[arg(long, value_name = "FIELD")]
    status_field: Option<String>,
}

pub(super) fn inspect(args: &InspectCommandArgs) -> ExitCode {
    args.storages.operator().inspect_main(&args.inspect)
}

pub(super) fn unstick(args: &UnstickCommandArgs) -> ExitCode {
    args.storages.operator().unstick_main(&args.unstick)
}

impl StorageArgs {
    fn operator(&self) -> InspectedOperator {
        let defaults = PersistenceSettings::default();
        let or = |given: &Option<String>, default: String| given.clone().unwrap_or(default);
        InspectedOperator::unknown(PersistenceSettings {
            prefix: or(&self.prefix, defaults.prefix),
            finalizer: or(&self.finalizer, defaults.finalizer),
            status_field: or(&self.status_field, defaults.status_field),
            // The objects of an unknown operator may have either.
            diffbase: DiffBaseStore::Several(vec![
                DiffBaseStore::Annotations,
                DiffBaseStore::Status,
            ]),
            ..PersistenceSettings::default()
        })
    }
}
