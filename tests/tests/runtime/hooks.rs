//! What happens to the operator as a whole: startup before everything, cleanup after it.

use std::sync::Arc;
use std::time::Duration;

use kopf_runtime::{
    ChangeHandler, Error, ErrorMode, HandlerError, HookHandler, Hooks, Namespaces, On, Operator,
};
use kopf_tests::{FaultProxy, TestResult};
use tokio::sync::oneshot;

use crate::bench::{Bench, Stage};

fn hooks(bench: &Bench) -> Hooks<Stage> {
    Hooks::new(&bench.stage)
}

fn operator(bench: &Bench, hooks: Hooks<Stage>) -> Operator {
    Operator::new("hooks")
        .handlers(hooks.build())
        .resource(bench.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![bench.sandbox.namespace().to_owned()]))
}

#[tokio::test]
async fn nothing_is_asked_of_the_cluster_before_the_startup_has_succeeded() -> TestResult {
    let mut bench = Bench::new("startup").await?;
    bench.create("one", 1).await?;
    let hooks = hooks(&bench).startup(
        HookHandler::new("prepare")
            .backoff(Duration::from_millis(1))
            .param("warm"),
        |stage, cx| {
            Box::pin(async move {
                stage.tell(format!("prepare {} {:?}", cx.retry(), cx.param()));
                if cx.retry() == 0 {
                    cx.settings().posting.enabled = false;
                    return Err(HandlerError::temporary("not yet").after(Duration::ZERO));
                }
                assert!(!cx.settings().posting.enabled, "what was changed stays");
                stage.released().await;
                Ok(())
            })
        },
    );
    let proxy =
        FaultProxy::start(bench.sandbox.control_plane(), bench.sandbox.client_user()).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = operator(&bench, hooks).run(proxy.client().await?, async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(running);
    assert_eq!(bench.seen().await, "prepare 0 Some(String(\"warm\"))");
    assert_eq!(bench.seen().await, "prepare 1 Some(String(\"warm\"))");
    assert_eq!(proxy.requests().len(), 0);
    bench.stage.release();
    assert_eq!(bench.call().await.object, "one");
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn a_startup_that_fails_for_good_stops_the_operator_before_it_did_anything() -> TestResult {
    let bench = Bench::new("no-startup").await?;
    let hooks = hooks(&bench)
        .startup(
            HookHandler::new("prepare")
                .retries(2)
                .backoff(Duration::from_millis(1)),
            |_, _| Box::pin(async { Err("x".parse::<u8>().unwrap_err().into()) }),
        )
        .cleanup(HookHandler::new("tear_down"), |_, _| {
            Box::pin(async { panic!("there is nothing to clean up") })
        });
    let proxy =
        FaultProxy::start(bench.sandbox.control_plane(), bench.sandbox.client_user()).await?;
    let ended = operator(&bench, hooks)
        .run(proxy.client().await?, std::future::pending())
        .await;
    let Err(Error::Startup(failed)) = ended else {
        panic!("the operator ended with {ended:?}");
    };
    assert_eq!(
        failed.to_string(),
        "`prepare` has failed: invalid digit found in string"
    );
    assert_eq!(proxy.requests().len(), 0);
    Ok(())
}

#[tokio::test]
async fn the_cleanup_comes_after_all_handlers_and_has_a_client() -> TestResult {
    let mut bench = Bench::new("cleanup").await?;
    let stage = Arc::clone(&bench.stage);
    bench.script_async("create_fn", move |cx| {
        let (stage, name) = (Arc::clone(&stage), cx.name().to_owned());
        async move {
            stage.released().await;
            stage.tell(format!("created {name}"));
            Ok(())
        }
    });
    let hooks = hooks(&bench)
        .cleanup(
            HookHandler::new("flaky").backoff(Duration::from_millis(1)),
            |stage, cx| {
                Box::pin(async move {
                    stage.tell(format!("flaky {}", cx.retry()));
                    match cx.retry() {
                        0 => Err("x".parse::<u8>().unwrap_err().into()),
                        _ => Ok(()),
                    }
                })
            },
        )
        .cleanup(HookHandler::new("tear_down"), |stage, cx| {
            Box::pin(async move {
                let client = cx.client().expect("it was connected");
                client.apiserver_version().await?;
                stage.tell("tear_down".to_owned());
                Ok(())
            })
        });
    let (stop, stopped) = oneshot::channel::<()>();
    let running = operator(&bench, hooks).run(bench.sandbox.client(), async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(running);
    bench.create("one", 1).await?;
    bench.call().await;
    drop(stop);
    tokio::task::yield_now().await;
    bench.stage.release();
    running.await??;
    let told = [
        bench.seen().await,
        bench.seen().await,
        bench.seen().await,
        bench.seen().await,
    ];
    assert_eq!(told, ["created one", "flaky 0", "tear_down", "flaky 1"]);
    Ok(())
}

#[tokio::test]
async fn the_cleanup_comes_also_after_an_error_and_ends_in_time() -> TestResult {
    let mut bench = Bench::new("late-cleanup").await?;
    let hooks = hooks(&bench)
        .startup(HookHandler::new("hurry"), |_, cx| {
            Box::pin(async {
                cx.settings().shutdown.deadline = Duration::ZERO;
                Ok(())
            })
        })
        .cleanup(
            HookHandler::new("tear_down").errors(ErrorMode::Permanent),
            |stage, _| {
                Box::pin(async {
                    stage.tell("tear_down".to_owned());
                    std::future::pending().await
                })
            },
        );
    let twice = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = operator(&bench, hooks).resource(twice);
    let ended = operator
        .run(bench.sandbox.client(), std::future::pending())
        .await;
    assert!(
        matches!(ended, Err(Error::DeclaredTwice { .. })),
        "{ended:?}"
    );
    assert_eq!(bench.seen().await, "tear_down");
    Ok(())
}
