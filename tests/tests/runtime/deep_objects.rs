//! Objects that are nested deeper than the runtime reads: the API server accepts about 10 000 levels.

use http::{Method, Request};
use kopf_runtime::{ChangeHandler, On};
use kopf_tests::{TestFailure, TestResult, eventually, try_eventually};
use serde_json::json;

use crate::fixture::HandlerFixture;

/// A merge patch of the spec with this many levels.
fn nested(levels: usize) -> String {
    let (open, close) = (r#"{"a":"#.repeat(levels), "}".repeat(levels));
    format!(r#"{{"spec":{{"deep":{open}1{close}}}}}"#)
}

/// Sends a request for an object, and does not parse the answer.
async fn send(
    fixture: &HandlerFixture,
    method: Method,
    name: &str,
    body: &str,
) -> Result<String, kube::Error> {
    let (group, namespace) = (fixture.sandbox.group(), fixture.sandbox.namespace());
    let request = Request::builder()
        .method(method)
        .uri(format!(
            "/apis/{group}/v1/namespaces/{namespace}/widgets/{name}"
        ))
        .header("content-type", "application/merge-patch+json")
        .body(body.as_bytes().to_vec())
        .map_err(kube::Error::HttpError)?;
    fixture.sandbox.client().request_text(request).await
}

#[tokio::test]
async fn an_object_that_cannot_be_read_can_be_deleted() -> TestResult {
    let mut fixture = HandlerFixture::new("deep").await?;
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("delete_fn", On::delete()),
    ]);
    let operator = fixture.start(handlers).await?;
    fixture.create("deep", 1).await?;
    fixture.wait_until_handled("deep", 1).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    send(&fixture, Method::PATCH, "deep", &nested(1_000)).await?;
    send(&fixture, Method::DELETE, "deep", "").await?;
    try_eventually("the object is gone", async || {
        match send(&fixture, Method::GET, "deep", "").await {
            Ok(_) => Ok(None),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Some(())),
            Err(error) => Err(TestFailure::from(error)),
        }
    })
    .await?;
    // The object of the same name that follows is handled as any other.
    fixture.create("deep", 2).await?;
    fixture.wait_until_handled("deep", 2).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    operator.stop().await
}

#[tokio::test]
async fn a_patch_whose_answer_cannot_be_read_is_not_sent_for_ever() -> TestResult {
    let mut fixture = HandlerFixture::new("deep-patch").await?;
    fixture.script("create_fn", |cx| {
        let mut deep = json!(1);
        for _ in 0..200 {
            deep = json!({"a": deep});
        }
        cx.patch().status(json!({"deep": deep}));
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).retries(1);
    let handlers = fixture.handlers([handler]);
    let operator = fixture.start(handlers).await?;
    fixture.create("deep", 1).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    eventually("the reason is posted", async || {
        let events = fixture.sandbox.objects("v1", "Event").await.ok()?;
        let events = events.api().list(&Default::default()).await.ok()?;
        let mut messages = events.iter().filter_map(|it| it.data["message"].as_str());
        messages
            .any(|it| it.contains("recursion limit"))
            .then_some(())
    })
    .await?;
    let (_, status) = fixture.writes(&operator).await?;
    assert_eq!(status, 1, "the patch was executed");
    operator.stop().await
}
