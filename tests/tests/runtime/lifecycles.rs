//! Lifecycles: the order of handlers, and how many run before the next write.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kopf_runtime::{
    ChangeContext, ChangeHandler, ErrorMode, HandlerError, HandlerResult, Lifecycle, On, Reason,
    Settings, SubHandler, TextTest,
};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::{Value, json};

use crate::fixture::{HandlerCall, HandlerFixture, HandlerScripts, LAST_HANDLED};

fn settings(lifecycle: Lifecycle) -> Settings {
    let mut settings = Settings::default();
    settings.execution.lifecycle = lifecycle;
    settings
}

fn names(calls: Vec<HandlerCall>) -> Vec<String> {
    calls.into_iter().map(|call| call.handler).collect()
}

#[tokio::test]
async fn each_lifecycle_has_its_order_and_its_number_of_writes() -> TestResult {
    let backwards: Lifecycle = Lifecycle::Custom(Arc::new(|due| {
        due.iter().rev().take(2).map(|due| due.id.clone()).collect()
    }));
    let order = ["a", "b", "c"];
    for (name, lifecycle, writes, expected) in [
        ("asap", Lifecycle::Asap, 3, Some(["a", "b", "c"])),
        ("one-by-one", Lifecycle::OneByOne, 3, Some(["a", "b", "c"])),
        ("at-once", Lifecycle::AllAtOnce, 1, Some(["a", "b", "c"])),
        ("randomized", Lifecycle::Randomized, 3, None),
        ("shuffled", Lifecycle::Shuffled, 1, None),
        ("custom", backwards, 2, Some(["c", "b", "a"])),
    ] {
        let mut fixture = HandlerFixture::new(name).await?;
        let handlers = fixture.handlers(order.map(|name| ChangeHandler::new(name, On::create())));
        let operator = fixture.start_with(handlers, settings(lifecycle)).await?;
        fixture.create("one", 1).await?;
        fixture.wait_until_handled("one", 1).await?;
        let mut calls = names(fixture.calls_so_far());
        if let Some(expected) = expected {
            assert_eq!(calls, expected, "{name}");
        }
        calls.sort();
        assert_eq!(calls, order, "{name}");
        assert_eq!(fixture.writes(&operator).await?, (writes, 0), "{name}");
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_failed_handler_lets_others_run_first_unless_the_lifecycle_is_one_by_one() -> TestResult {
    for (name, lifecycle, expected) in [
        ("fair", Lifecycle::Asap, ["a", "b", "a", "a"]),
        ("strict", Lifecycle::OneByOne, ["a", "a", "a", "b"]),
    ] {
        let mut fixture = HandlerFixture::new(name).await?;
        fixture.script("a", |cx| match cx.retry() {
            0 | 1 => Err(HandlerError::temporary_after(Duration::ZERO, "again")),
            _ => Ok(()),
        });
        let handlers =
            fixture.handlers(["a", "b"].map(|name| ChangeHandler::new(name, On::create())));
        let operator = fixture.start_with(handlers, settings(lifecycle)).await?;
        fixture.create("one", 1).await?;
        fixture.wait_until_handled("one", 1).await?;
        assert_eq!(names(fixture.calls_so_far()), expected, "{name}");
        operator.stop().await?;
    }
    Ok(())
}

/// Runs three sub-handlers with the lifecycle of its parameter.
async fn run_sub_handlers(
    scripts: &HandlerScripts,
    cx: &mut ChangeContext<Value>,
) -> HandlerResult {
    scripts.report_call(cx)?;
    let lifecycle = match cx.param().and_then(Value::as_str) {
        Some("at once") => Lifecycle::AllAtOnce,
        Some("at random") => Lifecycle::Randomized,
        _ => Lifecycle::Asap,
    };
    for part in ["x", "y", "z"] {
        cx.sub(SubHandler::new(part), |cx| {
            Box::pin(async move { Ok(cx.set_result(&"done")?) })
        });
    }
    cx.run_subs_by(&lifecycle).await
}

#[tokio::test]
async fn sub_handlers_have_their_own_lifecycle() -> TestResult {
    for (name, way, of_handlers, calls) in [
        ("parts-1", "one by one", Lifecycle::AllAtOnce, 3),
        ("parts-2", "at once", Lifecycle::Asap, 1),
        ("parts-3", "at random", Lifecycle::AllAtOnce, 3),
    ] {
        let mut fixture = HandlerFixture::new(name).await?;
        let handler = ChangeHandler::new("create_fn", On::create()).param(way);
        let resource = fixture.resource().change(handler, |scripts, cx| {
            Box::pin(run_sub_handlers(scripts, cx))
        });
        let operator = fixture.start_with(resource.build(), settings(of_handlers));
        let operator = operator.await?;
        fixture.create("one", 1).await?;
        let one = fixture.wait_until_handled("one", 1).await?;
        let all = json!({"create_fn/x": "done", "create_fn/y": "done", "create_fn/z": "done"});
        assert_eq!(one.data["status"], all, "{way}");
        assert_eq!(fixture.calls_so_far().len(), calls, "{way}");
        assert_eq!(fixture.writes(&operator).await?, (calls, calls), "{way}");
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn sub_handlers_have_their_own_filters_limits_and_error_modes() -> TestResult {
    let mut fixture = HandlerFixture::new("parts-options").await?;
    let attempts = Arc::new([const { AtomicUsize::new(0) }; 5]);
    let counted = Arc::clone(&attempts);
    fixture.script("create_fn", move |cx| {
        let soon = Duration::from_millis(10);
        let failing = [
            SubHandler::new("few").retries(3).backoff(soon),
            SubHandler::new("permanent").errors(ErrorMode::Permanent),
            SubHandler::new("ignored").errors(ErrorMode::Ignored),
            SubHandler::new("unwanted").label("wanted", TextTest::Present),
        ];
        for (number, part) in failing.into_iter().enumerate() {
            let counted = Arc::clone(&counted);
            cx.sub(part, move |_| {
                counted[number].fetch_add(1, Ordering::Relaxed);
                Box::pin(async { Err("never".into()) })
            });
        }
        let counted = Arc::clone(&counted);
        let short = SubHandler::new("short").timeout(Duration::from_secs(3));
        cx.sub(short.param(json!({"of": "one"})), move |cx| {
            assert_eq!(cx.param(), Some(&json!({"of": "one"})));
            counted[4].fetch_add(1, Ordering::Relaxed);
            Box::pin(std::future::pending())
        });
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).retries(1);
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let counts = attempts.each_ref().map(|it| it.load(Ordering::Relaxed));
    assert_eq!(counts, [3, 1, 1, 0, 1]);
    operator.stop().await
}

#[tokio::test]
async fn a_failed_resume_handler_is_retried_and_not_called_again_after_its_end() -> TestResult {
    let mut fixture = HandlerFixture::new("resume-errors").await?;
    let soon = Duration::from_millis(200);
    fixture.script("shaky", move |cx| match cx.retry() {
        0 => Err(HandlerError::temporary_after(soon, "not yet")),
        _ => Ok(()),
    });
    fixture.script("hopeless", |_| Err(HandlerError::permanent("never")));
    let handlers = || {
        [
            ChangeHandler::new("shaky", On::resume()),
            ChangeHandler::new("hopeless", On::resume()),
            ChangeHandler::new("update_fn", On::update()),
        ]
    };
    let operator = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(fixture.calls_so_far(), [], "it is new, and not resumed");
    operator.stop().await?;

    for size in 2..=3 {
        let operator = fixture.start(fixture.handlers(handlers())).await?;
        let mut calls: Vec<(String, Reason, u32)> = Vec::new();
        for _ in 0..3 {
            let call = fixture.next_call().await;
            calls.push((call.handler, call.reason, call.retry));
        }
        calls.sort();
        let expected = [("hopeless", 0), ("shaky", 0), ("shaky", 1)];
        let resumed = |(name, retry): (&str, u32)| (name.to_owned(), Reason::Resume, retry);
        assert_eq!(calls, expected.map(resumed));
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        fixture.wait_until_handled("one", size).await?;
        assert_eq!(names(fixture.calls_so_far()), ["update_fn"]);
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_patch_of_a_create_handler_triggers_update_handlers() -> TestResult {
    let mut fixture = HandlerFixture::new("own-change").await?;
    fixture.script("create_fn", |cx| {
        cx.patch().set("spec.size", json!(2));
        cx.patch().label("tier", "gold");
        Ok(())
    });
    fixture.script("update_fn", |cx| {
        let mut paths: Vec<String> = cx.diff().iter().map(|it| it.path.to_string()).collect();
        paths.sort();
        Ok(cx.set_result(&paths)?)
    });
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("update_fn", On::update()),
    ]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let one = fixture.wait_until_handled("one", 2).await?;
    assert_eq!(
        one.data["status"]["update_fn"],
        json!(["metadata", "spec.size"])
    );
    assert!(one.annotations()[LAST_HANDLED].contains("gold"));
    assert_eq!(names(fixture.calls_so_far()), ["create_fn", "update_fn"]);
    operator.stop().await
}
