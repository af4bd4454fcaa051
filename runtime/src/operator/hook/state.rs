//! The handler that builds the state of the operator.

use std::time::Duration;

use futures::future::BoxFuture;

use super::handler::{Hook, HookFunction, HookHandler};
use super::run::{HookFailure, HookFailurePolicy, run_hooks};
use super::startup_cleanup::StartupContext;
use crate::handler::error::HandlerResult;
use crate::handler::state::SharedState;

/// A handler that builds the state, and whether it has done so.
pub(crate) struct StateHook {
    hook: Hook<StartupContext>,
    is_built: Box<dyn Fn() -> bool + Send + Sync>,
}

struct StateAdapter<S> {
    state: SharedState<S>,
    function: for<'a> fn(&'a mut StartupContext) -> BoxFuture<'a, HandlerResult<S>>,
}

// === impl StateHook ===

impl StateHook {
    pub(super) fn new<S: Send + Sync + 'static>(
        state: &SharedState<S>,
        declared: HookHandler,
        function: for<'a> fn(&'a mut StartupContext) -> BoxFuture<'a, HandlerResult<S>>,
    ) -> Self {
        let adapter = StateAdapter {
            state: state.clone(),
            function,
        };
        let state = state.clone();
        Self {
            hook: Hook {
                declared,
                function: Box::new(adapter),
            },
            is_built: Box::new(move || state.is_built()),
        }
    }

    /// Calls the handler until it has built the state, or has failed for good.
    pub(crate) async fn build(
        self,
        cx: &mut StartupContext,
        default_backoff: Duration,
    ) -> Result<(), HookFailure> {
        let hooks = [self.hook];
        let policy = HookFailurePolicy::StopAtFirst;
        let failures = run_hooks(&hooks, cx, policy, default_backoff).await;
        match failures.into_iter().next() {
            Some(failure) => Err(failure),
            None if (self.is_built)() => Ok(()),
            // Its errors are ignored.
            None => Err(HookFailure {
                handler: cx.handler_id().to_owned(),
                message: "it has not built the state, which the other handlers need".to_owned(),
            }),
        }
    }
}

impl<S: Send + Sync> HookFunction<StartupContext> for StateAdapter<S> {
    fn call<'a>(&'a self, cx: &'a mut StartupContext) -> BoxFuture<'a, HandlerResult> {
        Box::pin(async move {
            self.state.set((self.function)(cx).await?);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use kopf_core::handler::retry::ErrorMode;

    use super::super::Hooks;
    use super::*;
    use crate::admission::Webhooks;
    use crate::handler::error::HandlerError;
    use crate::index::Indices;
    use crate::settings::{PeeringSettings, Settings};

    /// A state that knows in which attempt it was built.
    #[derive(Debug)]
    struct BuiltState {
        retry: u32,
    }

    fn third_time<'a>(cx: &'a mut StartupContext) -> BoxFuture<'a, HandlerResult<BuiltState>> {
        Box::pin(async {
            match cx.retry() {
                retry @ ..2 => Err(HandlerError::temporary_after(
                    Duration::from_millis(1),
                    format!("attempt {retry}"),
                )),
                retry => Ok(BuiltState { retry }),
            }
        })
    }

    async fn build(
        declared: HookHandler,
        function: for<'a> fn(&'a mut StartupContext) -> BoxFuture<'a, HandlerResult<BuiltState>>,
    ) -> Result<u32, HookFailure> {
        let state = SharedState::to_be_built();
        let hook = Hooks::new(&state).state(declared, function).build().state;
        let (settings, peering) = (Settings::default(), PeeringSettings::default());
        let webhooks = Webhooks::default();
        let mut cx = StartupContext::new(settings, peering, webhooks, Indices::default());
        let hook = hook.expect("the handler is declared");
        hook.build(&mut cx, Duration::from_millis(1)).await?;
        Ok(state.get().retry)
    }

    #[tokio::test]
    async fn the_state_is_built_in_as_many_attempts_as_it_needs() {
        let built = build(HookHandler::new("connect"), third_time).await;
        assert_eq!(built, Ok(2));
    }

    #[tokio::test]
    async fn without_a_state_the_startup_fails() {
        let declared = HookHandler::new("connect").retries(2);
        let failed = build(declared, third_time).await.unwrap_err();
        assert_eq!(failed.handler, "connect");
        let declared = HookHandler::new("connect").errors(ErrorMode::Ignored);
        let failed = build(declared, |_| Box::pin(async { Err("oops".into()) })).await;
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("it has not built the state"), "{message}");
    }
}
