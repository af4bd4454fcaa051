//! Faults that are planted on purpose, to prove that simulated histories find them.
//!
//! This module exists only in packages that build these files with `cfg(kopf_planted_faults)`.

use std::cell::Cell;

// The published crate cannot be built with faults.
const _: () = assert!(
    !matches!(env!("CARGO_PKG_NAME").as_bytes(), b"kopf-core"),
    "kopf-core is never built with planted faults"
);

thread_local! {
    static PLANTED: Cell<Option<PlantedFault>> = const { Cell::new(None) };
}

macro_rules! faults {
    ($($(#[doc = $text:literal])+ $name:ident,)+) => {
        /// A fault that can be planted.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum PlantedFault {
            $($(#[doc = $text])+ $name,)+
        }

        impl PlantedFault {
            /// All faults.
            pub const ALL: &[Self] = &[$(Self::$name,)+];

            /// What is wrong.
            #[must_use]
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($text),+).trim_ascii(),)+
                }
            }
        }
    };
}

faults! {
    /// a success is recorded before the write is answered
    SuccessBeforeAnswer,
    /// the uid of a namesake is not compared
    NamesakeNotCompared,
    /// a state that was read before a pause is handled after it
    StateOutlastsPause,
    /// a DELETED event is dropped at a pause
    DeletionDroppedAtPause,
    /// a deletion is forgotten before the queue has it
    DeletionForgottenBeforeSent,
    /// a forbidden write is sent again without end
    ForbiddenForEver,
    /// a Lease without its namespace is created again at once
    ElectionHotLoop,
    /// an edit whose answer was lost is made again
    EditMadeTwice,
    /// the status tests no version
    StatusTestsNoVersion,
    /// a write that changes nothing is taken for one that was undone
    NoOpTakenForUndone,
    /// an object tests no version: a late write undoes a newer one
    BodyTestsNoVersion,
    /// events that are older than the last write are handled
    StaleEventHandled,
    /// the end of a cycle stores the newest state, whatever handlers saw
    NewestStateIsBase,
    /// the response to the write that ends a cycle is never compared
    SkippedCheckUnfounded,
    /// a deletion is concluded while a daemon of the object runs
    DeletionDoesNotWait,
    /// a daemon starts before the object has the finalizer
    DaemonBeforeFinalizer,
    /// daemons go on in a pause
    DaemonsGoOnInPause,
    /// attempts and writes go on after the end of the lease
    LeaseTermIgnored,
    /// a candidate does not wait for the end of the lease of another
    CandidateDoesNotWait,
    /// an item that arrives while its object is handled is dropped
    PendingItemDropped,
    /// after 410 the watch goes on from the same version
    ExpiredWatchNotRelisted,
    /// a list does not reveal deletions
    MissingNotNoticed,
    /// failures of the runtime are tried again at once
    FailuresNotDelayed,
    /// a record that the API server rejected is dropped
    RejectedRecordDropped,
    /// a requeue after a pause handles the state of before
    RequeueAfterPause,
    /// a finalizer that a webhook strips is taken for settled
    StrippedFinalizerSettled,
    /// our last write counts as a restored backup
    OwnWriteTakenForBackup,
    /// a state that came while a record was rejected is not handled
    StateBesideRecordLost,
    /// the state before the last write of a gone object is handled
    GoneObjectHandled,
    /// after a pause the event of our last write is not handled
    OwnWriteDroppedAtPause,
    /// an object that was read counts as one from before the pause
    ReadIsNoNews,
    /// a rejected removal of the finalizer is sent again though a daemon has started
    FinalizerDecisionKept,
    /// daemons do not see the state that is handled
    HandledStateNotShown,
    /// a write after which an object is gone is taken for one that changes nothing
    ReleaseTakenForNoOp,
    /// after a pause the handlers of a state from before it are called
    CallsOutlastPause,
    /// a deleted object stays in the index
    IndexKeepsDeleted,
    /// what a handler changes itself is not handled as an update
    OwnChangeNotHandled,
    /// a handler is done before its sub-handlers are
    ParentDoesNotWait,
    /// sub-handlers that are done are called again with their parent
    SubHandlersRepeated,
    /// turns go on after the stop
    StopIgnored,
    /// a stop gives up the lease while handlers run
    LeaseReleasedAtStop,
    /// the times of records hide that a state has returned
    RecordTimesHideReturn,
    /// an own record that comes and goes is taken for a state that another client restores
    OwnRecordTakenForReturn,
    /// a list that fails is not repeated
    FailedListNotRepeated,
    /// a list after a pause lacks what the list before it had
    ListedVersionsKept,
    /// reconcile is not called for the objects that a list brings
    NotReconciledAtStart,
    /// children are deleted after a call of reconcile that has failed
    PruneAfterFailure,
    /// what happens to children does not call reconcile
    ChildChangeIgnored,
    /// the event of a child is dropped while the child is applied
    ChildEventDropped,
    /// the lifetime of a peer is not limited
    PeerLifetimeUnlimited,
    /// an object whose handlers take long does not count towards the worker limit
    LongWorkNotCounted,
    /// a list that was interrupted begins anew
    InterruptedListRepeated,
    /// an object that has lost the field of its handlers again is ignored
    RemovedFieldIgnored,
    /// sub-handlers that their parent does not have any more call it again
    FormerSubsKept,
    /// a sub-handler is not called again for one below it that has missed a change
    NestedSubsForgotten,
    /// sub-handlers that do not match any more call their parent again
    UnmatchedSubsKept,
    /// the records of sub-handlers count though their parent is restarted
    RestartedSubsRead,
    /// a long delay is slept at once
    SleepsUncut,
    /// the states of objects that wait for a retry have no limit
    SleepingStatesUnlimited,
    /// a write that others were faster than is sent again without a pause
    ConflictsNotDelayed,
    /// the ids of handlers of fields are read from annotations when another operator was faster
    FieldIdsFromAnnotations,
}

impl PlantedFault {
    /// Faults that a run finds too seldom to rely on: their places have tests of their own.
    pub const RARE: &[Self] = &[
        Self::StateBesideRecordLost,
        Self::FinalizerDecisionKept,
        Self::CallsOutlastPause,
        Self::StateOutlastsPause,
        Self::ReleaseTakenForNoOp,
        Self::RemovedFieldIgnored,
        Self::ReadIsNoNews,
        Self::HandledStateNotShown,
        Self::UnmatchedSubsKept,
        Self::RestartedSubsRead,
        Self::FieldIdsFromAnnotations,
    ];

    /// The faults that almost every run finds.
    #[must_use]
    pub fn common() -> Vec<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|it| !Self::RARE.contains(it)).collect()
    }
}

/// Plants a fault in this thread, or none.
pub fn plant(fault: Option<PlantedFault>) {
    PLANTED.set(fault);
}

/// Whether a fault is planted in this thread.
#[must_use]
pub fn is_planted(fault: PlantedFault) -> bool {
    PLANTED.get() == Some(fault)
}
