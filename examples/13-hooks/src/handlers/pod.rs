//! Handlers for Pod objects.

use kopf_runtime::prelude::*;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::Operator;
use crate::generated::pod::{Pod, PodHandlers};

/// The in-memory state of a Pod while the operator runs: its background task.
#[derive(Debug, Default)]
pub struct PodTask {
    task: Mutex<Option<AbortHandle>>,
}

impl Memo<Pod> for PodTask {}

impl PodHandlers for Operator {
    type Memo = PodTask;

    /// Called for every watch event of a Pod.
    async fn pod_task(&self, cx: &mut EventContext<Pod>) -> HandlerResult {
        let mut task = self.memo(cx).task.lock().await;
        if cx.event_type() == WatchEventType::Deleted {
            if let Some(task) = task.take() {
                info!("=> The task of {} ends with the Pod", cx.name());
                task.abort();
            }
        } else if task.is_none() {
            let name = cx.name().to_owned();
            let mut ending = self.ending.subscribe();
            let work = async move {
                while !*ending.borrow_and_update() {
                    info!("=> The task of {name} is running");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
                info!("=> The task of {name} has ended");
            };
            *task = Some(self.tasks.lock().await.spawn(work));
        }
        Ok(())
    }
}
