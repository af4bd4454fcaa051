//! What happens to a Pod.

use kopf_runtime::prelude::*;
use tokio::sync::Mutex;
use tokio::task::AbortHandle;

use super::Operator;
use crate::generated::pod::{Pod, PodHandlers};

/// How often a task says that it is there.
const PAUSE: Duration = Duration::from_secs(1);

/// What is remembered of a Pod while the operator runs: the task beside it.
#[derive(Debug, Default)]
pub struct PodTask {
    task: Mutex<Option<AbortHandle>>,
}

impl Memo<Pod> for PodTask {}

impl PodHandlers for Operator {
    type Memo = PodTask;

    /// Called for everything that is seen of a Pod.
    async fn pod_task(&self, cx: &mut EventContext<Pod>) -> HandlerResult {
        let mut task = cx.memo::<PodTask>().task.lock().await;
        if cx.event_type() == WatchEventType::Deleted {
            if let Some(task) = task.take() {
                info!("=> The task of {} ends with it", cx.name());
                task.abort();
            }
        } else if task.is_none() {
            let name = cx.name().to_owned();
            let mut ending = self.ending.subscribe();
            let work = async move {
                while !*ending.borrow_and_update() {
                    info!("=> The task of {name} is there");
                    tokio::time::sleep(PAUSE).await;
                }
                info!("=> The task of {name} says goodbye");
            };
            *task = Some(self.tasks.lock().await.spawn(work));
        }
        Ok(())
    }
}
