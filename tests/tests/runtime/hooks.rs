//! Startup and cleanup handlers of the operator.

use std::sync::Arc;
use std::time::Duration;

use kopf_runtime::{
    ChangeHandler, Error, ErrorMode, HandlerError, HookHandler, Hooks, IndexHandler, Indices,
    Namespaces, On, Operator, PeeringMode,
};
use kopf_tests::health_client::HealthClient;
use kopf_tests::{FaultProxy, PeeringObject, TestResult};
use tokio::sync::oneshot;

use crate::fixture::{HandlerFixture, HandlerScripts};
use crate::indices::{ByWidget, indexed};

fn hooks(fixture: &HandlerFixture) -> Hooks<HandlerScripts> {
    Hooks::new(&fixture.scripts)
}

fn operator(fixture: &HandlerFixture, hooks: Hooks<HandlerScripts>) -> Operator {
    Operator::new("hooks")
        .handlers(hooks.build())
        .resource(fixture.handlers([ChangeHandler::new("create_fn", On::create())]))
        .namespaces(Namespaces::Only(vec![
            fixture.sandbox.namespace().to_owned(),
        ]))
}

#[tokio::test]
async fn no_request_is_sent_before_the_startup_handlers_have_succeeded() -> TestResult {
    let mut fixture = HandlerFixture::new("startup").await?;
    fixture.create("one", 1).await?;
    let hooks = hooks(&fixture).startup(
        HookHandler::new("prepare")
            .backoff(Duration::from_millis(1))
            .param("warm"),
        |scripts, cx| {
            Box::pin(async move {
                scripts.report(format!("prepare {} {:?}", cx.retry(), cx.param()));
                if cx.retry() == 0 {
                    cx.settings().posting.enabled = false;
                    return Err(HandlerError::temporary_after(Duration::ZERO, "not yet"));
                }
                assert!(!cx.settings().posting.enabled, "changed settings are kept");
                scripts.wait_for_release().await;
                Ok(())
            })
        },
    );
    let proxy = FaultProxy::start(
        fixture.sandbox.control_plane(),
        fixture.sandbox.client_user(),
    )
    .await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let running = operator(&fixture, hooks).run(proxy.client().await?, async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(running);
    assert_eq!(
        fixture.next_report().await,
        "prepare 0 Some(String(\"warm\"))"
    );
    assert_eq!(
        fixture.next_report().await,
        "prepare 1 Some(String(\"warm\"))"
    );
    assert_eq!(proxy.requests().len(), 0);
    fixture.scripts.release();
    assert_eq!(fixture.next_call().await.object, "one");
    drop(stop);
    running.await??;
    Ok(())
}

#[tokio::test]
async fn a_permanent_startup_failure_stops_the_operator_before_any_request() -> TestResult {
    let fixture = HandlerFixture::new("no-startup").await?;
    let hooks = hooks(&fixture)
        .startup(
            HookHandler::new("prepare")
                .retries(2)
                .backoff(Duration::from_millis(1)),
            |_, _| Box::pin(async { Err("x".parse::<u8>().unwrap_err().into()) }),
        )
        .cleanup(HookHandler::new("tear_down"), |_, _| {
            Box::pin(async { panic!("there is nothing to clean up") })
        });
    let proxy = FaultProxy::start(
        fixture.sandbox.control_plane(),
        fixture.sandbox.client_user(),
    )
    .await?;
    let ended = operator(&fixture, hooks)
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
async fn cleanup_handlers_run_after_all_other_handlers_and_have_a_client() -> TestResult {
    let mut fixture = HandlerFixture::new("cleanup").await?;
    let scripts = Arc::clone(&fixture.scripts);
    fixture.script_async("create_fn", move |cx| {
        let (scripts, name) = (Arc::clone(&scripts), cx.name().to_owned());
        async move {
            scripts.wait_for_release().await;
            scripts.report(format!("created {name}"));
            Ok(())
        }
    });
    let hooks = hooks(&fixture)
        .cleanup(
            HookHandler::new("flaky").backoff(Duration::from_millis(1)),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report(format!("flaky {}", cx.retry()));
                    match cx.retry() {
                        0 => Err("x".parse::<u8>().unwrap_err().into()),
                        _ => Ok(()),
                    }
                })
            },
        )
        .cleanup(HookHandler::new("tear_down"), |scripts, cx| {
            Box::pin(async move {
                let client = cx.client().expect("it was connected");
                client.apiserver_version().await?;
                scripts.report("tear_down".to_owned());
                Ok(())
            })
        });
    let (stop, stopped) = oneshot::channel::<()>();
    let running = operator(&fixture, hooks).run(fixture.sandbox.client(), async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(running);
    fixture.create("one", 1).await?;
    fixture.next_call().await;
    drop(stop);
    tokio::task::yield_now().await;
    fixture.scripts.release();
    running.await??;
    let reports = [
        fixture.next_report().await,
        fixture.next_report().await,
        fixture.next_report().await,
        fixture.next_report().await,
    ];
    assert_eq!(reports, ["created one", "flaky 0", "tear_down", "flaky 1"]);
    Ok(())
}

#[tokio::test]
async fn cleanup_handlers_also_run_after_an_error_and_end_at_the_deadline() -> TestResult {
    let mut fixture = HandlerFixture::new("late-cleanup").await?;
    let hooks = hooks(&fixture)
        .startup(HookHandler::new("hurry"), |_, cx| {
            Box::pin(async {
                cx.settings().shutdown.deadline = Duration::ZERO;
                Ok(())
            })
        })
        .cleanup(
            HookHandler::new("tear_down").errors(ErrorMode::Permanent),
            |scripts, _| {
                Box::pin(async {
                    scripts.report("tear_down".to_owned());
                    std::future::pending().await
                })
            },
        );
    let twice = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = operator(&fixture, hooks).resource(twice);
    let ended = operator
        .run(fixture.sandbox.client(), std::future::pending())
        .await;
    assert!(
        matches!(ended, Err(Error::DeclaredTwice { .. })),
        "{ended:?}"
    );
    assert_eq!(fixture.next_report().await, "tear_down");
    Ok(())
}

#[tokio::test]
async fn cleanup_and_probe_handlers_can_read_the_settings() -> TestResult {
    let mut fixture = HandlerFixture::new("readable-settings").await?;
    let hooks = hooks(&fixture)
        .startup(HookHandler::new("tune"), |_, cx| {
            Box::pin(async {
                cx.settings().queueing.worker_limit = Some(7);
                Ok(())
            })
        })
        .probe(HookHandler::new("limit"), |_, cx| {
            Box::pin(async {
                let limit = cx.settings().queueing.worker_limit;
                cx.set_result(&limit)?;
                Ok(())
            })
        })
        .cleanup(HookHandler::new("tear_down"), |scripts, cx| {
            Box::pin(async {
                let limit = cx.settings().queueing.worker_limit;
                scripts.report(format!("{limit:?}"));
                Ok(())
            })
        });
    let health = HealthClient::on_free_port().await?;
    let address = format!("http://{}/healthz", health.address()).parse()?;
    let operator = operator(&fixture, hooks).liveness(address);
    let running = operator.spawn(fixture.sandbox.client());
    running.ready().await?;
    assert_eq!(health.get("/healthz").await?.json()["limit"], 7);
    running.stop().await?;
    assert_eq!(fixture.next_report().await, "Some(7)");
    Ok(())
}

#[tokio::test]
async fn startup_probe_and_cleanup_handlers_read_the_indices() -> TestResult {
    let mut fixture = HandlerFixture::new("indices-in-hooks").await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let body = serde_json::json!({"data": {"widget": "one"}});
    maps.create("map", body).await?;
    let hooks = hooks(&fixture)
        .startup(HookHandler::new("prepare"), |scripts, cx| {
            Box::pin(async {
                let found = cx.indices().get(ByWidget).get("one");
                scripts.report(format!("startup {found:?}"));
                Ok(())
            })
        })
        .probe(HookHandler::new("found"), |_, cx| {
            Box::pin(async {
                let found = cx.index(ByWidget).get("one");
                cx.set_result(&found)?;
                Ok(())
            })
        })
        .cleanup(HookHandler::new("tear_down"), |scripts, cx| {
            Box::pin(async {
                let found = cx.index(ByWidget).get("one");
                scripts.report(format!("cleanup {found:?}"));
                Ok(())
            })
        });
    let health = HealthClient::on_free_port().await?;
    let address = format!("http://{}/healthz", health.address()).parse()?;
    let operator = operator(&fixture, hooks)
        .resource(indexed(IndexHandler::new(), Duration::ZERO))
        .indices(Indices::default())
        .liveness(address);
    let running = operator.spawn(fixture.sandbox.client());
    assert_eq!(fixture.next_report().await, "startup []");
    running.ready().await?;
    let probed = health.get("/healthz").await?.json();
    assert_eq!(probed["found"], serde_json::json!(["map"]));
    running.stop().await?;
    assert_eq!(fixture.next_report().await, "cleanup [\"map\"]");
    Ok(())
}

#[tokio::test]
async fn a_startup_handler_decides_about_the_peering() -> TestResult {
    let mut fixture = HandlerFixture::new("startup-peering").await?;
    let peering = PeeringObject::create(&fixture.sandbox, "chosen").await?;
    let hooks = hooks(&fixture).startup(HookHandler::new("join"), |_, cx| {
        Box::pin(async {
            let peering = cx.peering();
            peering.name = "chosen".to_owned();
            peering.mode = PeeringMode::Mandatory;
            peering.priority = 7;
            Ok(())
        })
    });
    let operator = operator(&fixture, hooks).identity("me");
    let running = operator.spawn(fixture.sandbox.client());
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    assert_eq!(peering.records().await?["me"]["priority"], 7);
    running.stop().await?;
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn an_operator_of_one_namespace_can_join_the_peering_of_the_cluster() -> TestResult {
    let mut fixture = HandlerFixture::new("clusterwide-peering").await?;
    let peering = PeeringObject::create_cluster_wide(&fixture.sandbox).await?;
    let hooks = hooks(&fixture).startup(HookHandler::new("join").param(peering.name()), |_, cx| {
        Box::pin(async {
            let name = cx.param().and_then(|it| it.as_str()).unwrap_or_default();
            let name = name.to_owned();
            let peering = cx.peering();
            peering.name = name;
            peering.mode = PeeringMode::Mandatory;
            peering.clusterwide = true;
            Ok(())
        })
    });
    let operator = operator(&fixture, hooks).identity("me");
    let running = operator.spawn(fixture.sandbox.client());
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    peering.wait_for(&["me"]).await?;
    running.stop().await?;
    peering.wait_for(&[]).await
}

#[tokio::test]
async fn an_operator_joins_a_peering_that_is_not_mandatory_when_it_exists() -> TestResult {
    let mut fixture = HandlerFixture::new("late-peering").await?;
    let hooks = hooks(&fixture).startup(HookHandler::new("join"), |_, cx| {
        Box::pin(async {
            let peering = cx.peering();
            peering.name = "later".to_owned();
            assert_eq!(peering.mode, PeeringMode::Auto);
            Ok(())
        })
    });
    let running = operator(&fixture, hooks)
        .identity("me")
        .spawn(fixture.sandbox.client());
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.object, "one");
    let peering = PeeringObject::create(&fixture.sandbox, "later").await?;
    peering.wait_for(&["me"]).await?;
    running.stop().await?;
    peering.wait_for(&[]).await
}
