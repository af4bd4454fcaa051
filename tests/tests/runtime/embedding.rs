//! Operators embedded in a program: readiness, stopping, and reported problems.

use std::time::Duration;

use futures::FutureExt as _;
use kopf_runtime::{
    ChangeHandler, Error, HookHandler, Hooks, IndexHandler, Namespaces, On, Operator, TextTest,
};
use kopf_tests::{TestResult, eventually};
use serde_json::json;

use crate::fixture::HandlerFixture;
use crate::indices::{ByWidget, indexed};

fn in_sandbox(fixture: &HandlerFixture, operator: Operator) -> Operator {
    operator.namespaces(Namespaces::Only(vec![
        fixture.sandbox.namespace().to_owned(),
    ]))
}

#[tokio::test]
async fn several_operators_in_one_program_stop_one_by_one() -> TestResult {
    let mut fixture = HandlerFixture::new("embedded").await?;
    let spawn = |tier: &'static str| {
        let handler =
            ChangeHandler::new(tier, On::create()).label("tier", TextTest::Equals(tier.to_owned()));
        let operator = Operator::new(tier).resource(fixture.handlers([handler]));
        in_sandbox(&fixture, operator).spawn(fixture.sandbox.client())
    };
    let (gold, lead) = (spawn("gold"), spawn("lead"));
    gold.ready().await?;
    lead.ready().await?;
    assert_eq!(gold.problems(), Vec::<String>::new());
    let create = async |name: &str, tier: &str| {
        let labels = json!({"metadata": {"labels": {"tier": tier}}, "spec": {"size": 1}});
        fixture.objects.create(name, labels).await
    };
    create("one", "gold").await?;
    fixture.wait_until_handled("one", 1).await?;
    gold.stop().await?;
    create("two", "gold").await?;
    create("three", "lead").await?;
    fixture.wait_until_handled("three", 1).await?;
    lead.stop().await?;
    let calls = fixture.calls_so_far().into_iter().map(|call| call.object);
    assert_eq!(calls.collect::<Vec<_>>(), ["one", "three"]);
    Ok(())
}

#[tokio::test]
async fn an_operator_is_ready_when_its_indices_are_complete() -> TestResult {
    let fixture = HandlerFixture::new("embedded-index").await?;
    let maps = fixture.sandbox.objects("v1", "ConfigMap").await?;
    let widget = json!({"data": {"widget": "one"}});
    maps.create("map", widget).await?;
    let slow = indexed(IndexHandler::new(), Duration::from_secs(2));
    let operator = in_sandbox(&fixture, Operator::new("indexing").resource(slow));
    let running = operator.spawn(fixture.sandbox.client());
    assert!(!running.problems().is_empty());
    running.ready().await?;
    assert_eq!(running.indices().get(ByWidget).get("one"), ["map"]);
    running.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_with_invalid_declarations_is_never_ready_and_returns_the_error() -> TestResult
{
    let fixture = HandlerFixture::new("embedded-twice").await?;
    let twice = || fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("twice").resource(twice()).resource(twice());
    let mut running = operator.spawn(fixture.sandbox.client());
    assert!(running.ready().await.is_err());
    let error = running
        .ended()
        .await
        .expect_err("the kind is declared twice");
    assert!(matches!(error, Error::DeclaredTwice { .. }), "{error}");
    Ok(())
}

#[tokio::test]
async fn an_operator_whose_kind_is_missing_reports_a_problem() -> TestResult {
    let fixture = HandlerFixture::new("embedded-missing").await?;
    let mut spec = fixture.spec();
    (spec.kind, spec.plural) = ("Gizmo", "gizmos");
    let resource = kopf_runtime::Resource::<serde_json::Value, _>::new(spec, &fixture.scripts)
        .change(
            ChangeHandler::new("create_fn", On::create()),
            |scripts, cx| Box::pin(scripts.run(cx)),
        )
        .build();
    let operator = in_sandbox(&fixture, Operator::new("missing").resource(resource));
    let running = operator.spawn(fixture.sandbox.client());
    let problem = eventually("the missing kind is reported", async || {
        let problems = running.problems();
        problems
            .into_iter()
            .find(|problem| problem.contains("gizmos"))
    })
    .await?;
    assert!(running.ready().now_or_never().is_none(), "{problem}");
    fixture.sandbox.define("Gizmo").await?;
    running.ready().await?;
    running.stop().await?;
    Ok(())
}

#[tokio::test]
async fn an_operator_stops_when_its_handle_is_dropped() -> TestResult {
    let mut fixture = HandlerFixture::new("embedded-drop").await?;
    let hooks = Hooks::new(&fixture.scripts)
        .cleanup(HookHandler::new("bye"), |scripts, _| {
            Box::pin(async move {
                scripts.report("cleaned up".to_owned());
                Ok(())
            })
        })
        .build();
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = Operator::new("dropped").resource(handlers).handlers(hooks);
    let running = in_sandbox(&fixture, operator).spawn(fixture.sandbox.client());
    running.ready().await?;
    drop(running);
    assert_eq!(fixture.next_report().await, "cleaned up");
    Ok(())
}
