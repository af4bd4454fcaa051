//! The plan of one run.

use std::ops::Range;
use std::time::Duration;

use crate::sabotage::Sabotage;
use crate::tested_operator::TestedOperator;
use crate::trouble::Trouble;

/// The options of one run.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    pub(crate) seed: u64,
    /// The time in which trouble begins; users go on until all kills are made.
    pub(crate) window: Duration,
    pub(crate) kills: usize,
    /// The widgets that users edit.
    pub(crate) objects: usize,
    /// The widgets in the namespace that comes and goes.
    pub(crate) second_objects: usize,
    pub(crate) gates: usize,
    pub(crate) operator: TestedOperator,
    /// The widgets of a crowd.
    pub(crate) crowd: usize,
    /// The processes of the operator; more than one have a leader election.
    pub(crate) replicas: usize,
    pub(crate) sorts: Vec<Trouble>,
    /// The shortest and the longest pause between two troubles, in milliseconds.
    pub(crate) pauses: Range<u64>,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) verbose: bool,
}
