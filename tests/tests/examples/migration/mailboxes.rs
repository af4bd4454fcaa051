//! The states in which mailboxes change hands.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::check::CallOutcome;

/// The annotation with the last handled state.
const LAST_HANDLED: &str = "kopf.zalando.org/last-handled-configuration";

/// The folders of each mailbox.
pub(super) const FOLDERS: [&str; 3] = ["inbox", "sent", "trash"];

/// The quota at the creation, after an edit, and after another one.
pub(super) const QUOTAS: [i64; 3] = [100, 200, 300];

/// The state of a mailbox when its operator is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MailboxState {
    /// Created while no operator runs.
    New,
    /// Its creation is retried.
    Retrying,
    /// One of its sub-handlers is retried, the others are done.
    BetweenFolders,
    /// Handled.
    Done,
    /// Handled, and changed while no operator runs.
    Edited,
    /// Its update is retried.
    Updating,
    /// Its update is retried, and it is changed once more while no operator runs.
    EditedInUpdate,
    /// Its creation is retried, and it is changed before the next operator has ended that.
    EditedInCreation,
    /// Its deletion is retried.
    Deleting,
    /// Deleted while no operator runs.
    Deleted,
}

// === impl MailboxState ===

impl MailboxState {
    pub(super) const ALL: [Self; 10] = [
        Self::New,
        Self::Retrying,
        Self::BetweenFolders,
        Self::Done,
        Self::Edited,
        Self::Updating,
        Self::EditedInUpdate,
        Self::EditedInCreation,
        Self::Deleting,
        Self::Deleted,
    ];

    /// The name of such a mailbox.
    pub(super) fn name(self, takeover: usize, number: usize) -> String {
        let state = format!("{self:?}").to_lowercase();
        format!("takeover-{takeover}-{state}-{number}")
    }

    /// The operation that the mail server postpones.
    pub(super) fn postponed(self) -> Option<&'static str> {
        match self {
            Self::Retrying | Self::EditedInCreation => Some("create_account"),
            Self::BetweenFolders => Some("create_folders/sent"),
            Self::Updating | Self::EditedInUpdate => Some("change_quota"),
            Self::Deleting => Some("delete_account"),
            Self::New | Self::Done | Self::Edited | Self::Deleted => None,
        }
    }

    /// The operations that are done before the operator is replaced.
    pub(super) fn done_before(self) -> Vec<String> {
        let folders = FOLDERS.map(|folder| format!("create_folders/{folder}"));
        let mut operations = vec!["create_account".to_owned()];
        operations.extend(folders);
        operations.retain(|it| Some(it.as_str()) != self.postponed());
        operations
    }

    /// The quota in the end.
    pub(super) fn last_quota(self) -> i64 {
        match self {
            Self::Edited | Self::Updating | Self::EditedInCreation => QUOTAS[1],
            Self::EditedInUpdate => QUOTAS[2],
            _ => QUOTAS[0],
        }
    }

    /// Whether its next operator calls the resume handlers: it was handled once, and is not deleted.
    pub(super) fn is_resumed(self) -> bool {
        !self.is_in_creation() && !self.is_deleted() && self != Self::New
    }

    /// Whether its creation goes on when its operator is replaced.
    pub(super) fn is_in_creation(self) -> bool {
        matches!(
            self,
            Self::Retrying | Self::BetweenFolders | Self::EditedInCreation
        )
    }

    /// Whether the mailbox is deleted by the time that its next operator starts.
    pub(super) fn is_deleted(self) -> bool {
        matches!(self, Self::Deleting | Self::Deleted)
    }

    /// The body of such a mailbox.
    pub(super) fn body(self, patience: usize) -> Value {
        json!({"spec": {
            "quota": QUOTAS[0],
            "folders": FOLDERS,
            "postponed": self.postponed().into_iter().collect::<Vec<_>>(),
            "patience": patience,
        }})
    }
}

/// Whether a mailbox is handled, and no progress is left on it.
pub(super) fn is_settled(mailbox: &DynamicObject) -> bool {
    let annotations = mailbox.metadata.annotations.iter().flatten();
    // Kopf does not know the notes of its twin, and leaves them.
    let kept = annotations.filter(|(key, _)| {
        key.starts_with("kopf.zalando.org/") && key.as_str() != "kopf.zalando.org/last-seen-states"
    });
    let kept: Vec<_> = kept.map(|(key, state)| (key.as_str(), state)).collect();
    let [(LAST_HANDLED, state)] = kept[..] else {
        return false;
    };
    let state: Value = serde_json::from_str(state).unwrap_or_default();
    state["spec"] == mailbox.data["spec"]
        && mailbox.data["status"]["create_account"]["account"].is_string()
}

/// What an operator logs for a mailbox, by operation and outcome.
pub(super) fn in_background() -> [(&'static str, CallOutcome); 2] {
    [
        ("deliver", CallOutcome::Starts),
        ("backup", CallOutcome::Done),
    ]
}
