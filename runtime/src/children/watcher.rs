//! Takes the events of one stream of children into the store.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Children, RelatedRole};
use crate::index::list_gate::PendingList;
use crate::watch::{KindIndex, StreamMessage};

/// The watch of one kind in one namespace or in all.
pub(crate) struct ChildWatcher {
    pub(crate) children: Arc<Children>,
    pub(crate) kind: KindIndex,
    /// None is the whole cluster.
    pub(crate) namespace: Option<String>,
    /// The same list at the gates of the indices and of the whole operator.
    pub(crate) lists: [PendingList; 2],
}

impl ChildWatcher {
    /// Runs until the stream ends.
    pub(crate) async fn run(self, mut messages: mpsc::Receiver<StreamMessage>) {
        while let Some(message) = messages.recv().await {
            match message {
                StreamMessage::Event(key, watch_event) => {
                    let kind = self.children.kind(self.kind);
                    let requeues = match kind.role {
                        RelatedRole::Child(_) => self.children.store().observe_child(
                            kind,
                            &key,
                            &watch_event,
                            &self.children.manager,
                        ),
                        RelatedRole::Used => {
                            let mut store = self.children.store();
                            store.observe_used(kind, &key, &watch_event)
                        }
                    };
                    self.children.requeue(requeues);
                }
                StreamMessage::Listed(period) | StreamMessage::Unserved(period) => {
                    let kind = self.children.kind(self.kind);
                    let namespace = self.namespace.as_deref();
                    let requeues = self.children.store().drop_unlisted(kind, namespace);
                    self.children.requeue(requeues);
                    for list in &self.lists {
                        list.listed(period.epoch);
                    }
                }
                StreamMessage::ListFailed(error) => {
                    for list in &self.lists {
                        list.failed(error.clone());
                    }
                }
            }
        }
    }
}
