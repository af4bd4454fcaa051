//! Writes whose answer is lost: the runtime finds out whether the API server executed them.

use std::sync::Arc;

use http::{Method, StatusCode};
use kopf_runtime::{ChangeHandler, DaemonHandler, On, ResourceHandlers};
use kopf_tests::{Fault, FaultProxy, RequestMatch, TestFailure, TestResult};
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{HandlerFixture, StartedOperator};

const COUNT: &str = "lost.example.com/count";

/// The endpoints that an edit of this suite is sent to, with the status first.
const STATUS: &str = "/widgets/one/status";
const OBJECT: &str = "/widgets/one";

fn patches(path: &str) -> RequestMatch {
    RequestMatch::any().method(Method::PATCH).path(path)
}

/// Appends to a list in the status, and counts in an annotation: neither may happen twice.
fn count(body: &mut Value) {
    let annotation = &body["metadata"]["annotations"][COUNT];
    let count: u32 = annotation.as_str().map_or(0, |it| it.parse().unwrap());
    if body["metadata"]["annotations"].is_null() {
        body["metadata"]["annotations"] = json!({});
    }
    body["metadata"]["annotations"][COUNT] = json!((count + 1).to_string());
    match body["status"]["calls"].as_array_mut() {
        Some(calls) => calls.push(json!("again")),
        None => body["status"] = json!({"calls": ["once"]}),
    }
}

fn calls(object: &DynamicObject) -> Vec<&str> {
    let calls = object.data["status"]["calls"].as_array();
    calls
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

async fn counting(
    name: &str,
) -> Result<(HandlerFixture, FaultProxy, StartedOperator), TestFailure> {
    let mut fixture = HandlerFixture::new(name).await?;
    fixture.script("count", |cx| {
        cx.patch().edit(count);
        Ok(())
    });
    let handlers = fixture.handlers([ChangeHandler::new("count", On::create())]);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    Ok((fixture, proxy, operator))
}

async fn assert_counted_once(fixture: &HandlerFixture) -> TestResult {
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.annotations()[COUNT], "1");
    assert_eq!(calls(&one), ["once"]);
    Ok(())
}

#[tokio::test]
async fn an_edit_whose_answer_is_lost_is_made_once() -> TestResult {
    for path in [STATUS, OBJECT] {
        let (fixture, proxy, operator) = counting("lost").await?;
        if path == OBJECT {
            // The paths of both endpoints contain it.
            proxy.once(patches(STATUS), Fault::Delay(std::time::Duration::ZERO));
        }
        proxy.once(patches(path), Fault::CutAfter);
        fixture.create("one", 1).await?;
        assert_counted_once(&fixture).await?;
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_edit_whose_answer_is_lost_is_recognised_below_a_later_edit() -> TestResult {
    let (fixture, proxy, operator) = counting("lost-below").await?;
    proxy.once(patches(STATUS), Fault::CutAfter);
    proxy.always(
        patches(STATUS),
        Fault::Answer(StatusCode::SERVICE_UNAVAILABLE),
    );
    fixture.create("one", 1).await?;
    fixture
        .objects
        .wait_until("one", "the edit is written", |it| calls(it) == ["once"])
        .await?;
    // Now the newest state does not show the edit any more, but the state before it does.
    let other = json!({"calls": ["other"]});
    fixture.objects.merge_status("one", other).await?;
    proxy.clear_faults();
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(calls(&one), ["other"], "the edit is not made once more");
    assert_eq!(one.annotations()[COUNT], "1");
    operator.stop().await
}

#[tokio::test]
async fn an_edit_that_was_not_executed_is_made_on_the_newest_state() -> TestResult {
    let (fixture, proxy, operator) = counting("not-executed").await?;
    proxy.once(patches(STATUS), Fault::CutBefore);
    proxy.always(
        patches(STATUS),
        Fault::Answer(StatusCode::SERVICE_UNAVAILABLE),
    );
    fixture.create("one", 1).await?;
    kopf_tests::eventually("the edit is cut", async || {
        let requests = proxy.requests();
        let mut cut = requests.iter().filter(|it| it.status.is_none());
        cut.any(|it| it.uri.contains(STATUS)).then_some(())
    })
    .await?;
    let other = json!({"calls": ["other"]});
    fixture.objects.merge_status("one", other).await?;
    proxy.clear_faults();
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(calls(&one), ["other", "again"]);
    assert_eq!(one.annotations()[COUNT], "1");
    operator.stop().await
}

/// A daemon that ends when it is asked to, and a handler of deletions.
fn with_daemon(fixture: &HandlerFixture) -> ResourceHandlers {
    fixture
        .resource()
        .daemon(DaemonHandler::new("steady"), |scripts, cx| {
            Box::pin(async move {
                scripts.report("starts".to_owned());
                cx.stop().wait().await;
                scripts.report("ends".to_owned());
                Ok(())
            })
        })
        .change(
            ChangeHandler::new("release", On::delete()),
            |scripts, cx| Box::pin(scripts.run(cx)),
        )
        .build()
}

#[tokio::test]
async fn delete_handlers_run_once_when_the_answer_to_the_release_is_lost() -> TestResult {
    let mut fixture = HandlerFixture::new("lost-release").await?;
    let done = Arc::new(Notify::new());
    let waiting = Arc::clone(&done);
    fixture.script_async("release", move |_| {
        let waiting = Arc::clone(&waiting);
        async move {
            waiting.notified().await;
            Ok(())
        }
    });
    let handlers = with_daemon(&fixture);
    let (proxy, operator) = fixture.start_through_proxy(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "starts");
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_call().await.handler, "release");
    // The end of the daemon brings the object into the queue once more.
    assert_eq!(fixture.next_report().await, "ends");
    // No watch event and no list says that the object is gone, as long as this lasts.
    let unavailable = || Fault::Answer(StatusCode::SERVICE_UNAVAILABLE);
    proxy.always(RequestMatch::any().watches(), unavailable());
    proxy.always(RequestMatch::any().parameter("limit"), unavailable());
    proxy.cut_all();
    // The record of the handler, then the release.
    proxy.once(patches(OBJECT), Fault::Delay(std::time::Duration::ZERO));
    proxy.once(patches(OBJECT), Fault::CutAfter);
    done.notify_one();
    fixture.objects.wait_gone("one").await?;
    kopf_tests::eventually("the release is sent again", async || {
        let requests = proxy.requests();
        let mut patches = requests.iter().filter(|it| it.method == Method::PATCH);
        patches
            .any(|it| it.status == Some(StatusCode::NOT_FOUND))
            .then_some(())
    })
    .await?;
    // A second call would not have to wait.
    done.notify_one();
    proxy.clear_faults();
    fixture.create("two", 1).await?;
    assert_eq!(fixture.next_report().await, "starts");
    assert_eq!(fixture.calls_so_far(), []);
    operator.stop().await
}
