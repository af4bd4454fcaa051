//! Supervised tasks and threads: only this module spawns, so that every end and panic is noticed.

pub(crate) mod heartbeat;

use std::any::Any;
use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};

/// Named tasks that are started and stopped together.
#[derive(Default)]
pub(crate) struct Tasks {
    set: JoinSet<()>,
    names: HashMap<Id, String>,
}

/// Many short tasks without names; the panic of one is logged, and does not affect the others.
#[derive(Default)]
pub(crate) struct UnnamedTasks {
    set: JoinSet<()>,
}

/// A thread for work that must continue while handlers block all threads of the runtime.
pub(crate) struct SupervisedThread {
    name: &'static str,
    ended: oneshot::Receiver<std::io::Result<()>>,
}

/// A task with a result; it continues when this is dropped.
pub(crate) struct SpawnedTask<T> {
    /// None after the result was taken.
    handle: Option<JoinHandle<T>>,
}

/// The end of a task that was meant to run until it is stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskEnd {
    #[error("task `{0}` ended by itself")]
    Finished(String),
    #[error("task `{name}` failed: {message}")]
    Failed { name: String, message: String },
    #[error("task `{name}` panicked: {message}")]
    Panicked { name: String, message: String },
}

impl Tasks {
    pub(crate) fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) {
        let handle = self.set.spawn(task);
        self.names.insert(handle.id(), name.into());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Waits until a task ends; never returns for an empty group, or when the process ends.
    pub(crate) async fn ended(&mut self) -> TaskEnd {
        match self.set.join_next_with_id().await {
            Some(Ok((id, ()))) => TaskEnd::Finished(self.forget(id)),
            Some(Err(error)) if error.is_panic() => TaskEnd::Panicked {
                name: self.forget(error.id()),
                message: panic_message_of(error),
            },
            // Only the end of the tokio runtime cancels a task of a group that is still there, and
            // the caller with it: a log of a panic would mislead users.
            Some(Err(_)) | None => std::future::pending().await,
        }
    }

    /// Waits for all tasks, and cancels those that still run after `grace`.
    pub(crate) async fn drain(mut self, grace: Duration) {
        let all = async { while self.set.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, all).await.is_err() {
            self.set.shutdown().await;
        }
    }

    /// Cancels all tasks and waits until they are gone.
    pub(crate) async fn cancel(mut self) {
        self.set.shutdown().await;
    }

    fn forget(&mut self, id: Id) -> String {
        self.names.remove(&id).unwrap_or_default()
    }
}

impl<T: Send + 'static> SpawnedTask<T> {
    pub(crate) fn spawn(task: impl Future<Output = T> + Send + 'static) -> Self {
        Self {
            handle: Some(tokio::spawn(task)),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.handle.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the result; none if the task panicked, or the result was taken before.
    pub(crate) async fn result(&mut self) -> Option<T> {
        let result = self.handle.as_mut()?.await.ok();
        self.handle = None;
        result
    }
}

impl UnnamedTasks {
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.set.spawn(task);
    }

    /// Forgets the tasks that have ended.
    pub(crate) fn forget_ended(&mut self) {
        while let Some(ended) = self.set.try_join_next() {
            report_panic(ended);
        }
    }

    /// Waits until a task has ended; never returns if there is none.
    pub(crate) async fn next_ended(&mut self) {
        match self.set.join_next().await {
            Some(ended) => report_panic(ended),
            None => std::future::pending().await,
        }
    }

    /// Cancels all tasks and waits until they are gone.
    pub(crate) async fn cancel(mut self) {
        self.set.shutdown().await;
    }
}

impl SupervisedThread {
    pub(crate) fn start(
        name: &'static str,
        work: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (ending, ended) = oneshot::channel();
        std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                // The receiver may have been dropped.
                let _ = ending.send(work());
            })?;
        Ok(Self { name, ended })
    }

    /// Waits until the thread ends.
    pub(crate) async fn ended(&mut self) -> TaskEnd {
        let name = self.name.to_owned();
        match (&mut self.ended).await {
            Ok(Ok(())) => TaskEnd::Finished(name),
            Ok(Err(error)) => TaskEnd::Failed {
                name,
                message: error.to_string(),
            },
            Err(_) => TaskEnd::Panicked {
                name,
                message: "its thread is gone".to_owned(),
            },
        }
    }
}

/// The message of a panic.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked with a value that is not text".to_owned())
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!("a task panicked: {}", panic_message_of(error));
    }
}

fn panic_message_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(payload) => panic_message(&*payload),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;

    #[tokio::test]
    async fn a_panic_is_reported_with_the_name_of_its_task() {
        let mut tasks = Tasks::default();
        tasks.spawn("watch pods", async { panic!("no more pods") });
        assert_eq!(
            tasks.ended().await.to_string(),
            "task `watch pods` panicked: no more pods"
        );
    }

    #[test]
    fn the_end_of_the_tokio_runtime_is_no_panic_of_a_task() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        let mut tasks = Tasks::default();
        runtime.block_on(async { tasks.spawn("watch pods", std::future::pending()) });
        drop(runtime);
        let mut ended = std::pin::pin!(tasks.ended());
        let mut context = Context::from_waker(Waker::noop());
        assert!(ended.as_mut().poll(&mut context).is_pending());
    }

    #[tokio::test]
    async fn the_end_of_a_task_is_reported_with_its_name() {
        let mut tasks = Tasks::default();
        tasks.spawn("watch pods", async {});
        assert_eq!(
            tasks.ended().await.to_string(),
            "task `watch pods` ended by itself"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn draining_cancels_tasks_that_outlive_the_grace() {
        let mut tasks = Tasks::default();
        tasks.spawn("stubborn", std::future::pending());
        tasks.drain(Duration::from_secs(3)).await;
    }
}
