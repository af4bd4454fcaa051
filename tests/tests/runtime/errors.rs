//! Handlers that fail: retries, permanent failures, timeouts, and effects on other handlers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kopf_runtime::{
    ChangeContext, ChangeHandler, ErrorMode, HandlerError, HandlerResult, On, Resource, SubHandler,
};
use kopf_tests::{TestResult, try_eventually};
use kube::{ResourceExt as _, core::DynamicObject};
use serde::Deserialize;
use serde_json::json;

use crate::fixture::{HandlerFixture, HandlerScripts, records};

#[tokio::test]
async fn a_temporary_error_is_retried_after_its_delay_without_an_extra_write() -> TestResult {
    let mut fixture = HandlerFixture::new("temporary").await?;
    fixture.script("create_fn", |cx| match cx.retry() {
        0 | 1 => {
            cx.patch().status(json!({"attempts": cx.retry() + 1}));
            Err(HandlerError::temporary_after(
                Duration::from_secs(1),
                "not yet",
            ))
        }
        _ => Ok(()),
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    let waiting = fixture
        .objects
        .wait_until("one", "the failure is recorded", |it| {
            !records(it).is_empty()
        })
        .await?;
    let record = &records(&waiting)["create_fn"];
    let keys: Vec<&String> = record.as_object().expect("a record").keys().collect();
    assert_eq!(
        keys,
        [
            "started", "delayed", "purpose", "retries", "success", "failure", "message"
        ]
    );
    assert_eq!(record["purpose"], "create");
    assert_eq!(record["retries"], 1);
    assert_eq!(record["message"], "not yet");
    assert_eq!(fixture.next_call().await.retry, 1);
    assert_eq!(fixture.next_call().await.retry, 2);
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.data["status"], json!({"attempts": 2}));
    assert_eq!(
        fixture.writes(&operator).await?,
        (3, 2),
        "one write per attempt, and one per failed attempt's patch of the status"
    );
    operator.stop().await
}

#[tokio::test]
async fn a_handler_that_gives_up_does_not_stop_the_others() -> TestResult {
    let mut fixture = HandlerFixture::new("permanent").await?;
    fixture.script("fatal", |_| Err(HandlerError::permanent("never")));
    fixture.script("few", |_| {
        Err(HandlerError::temporary_after(Duration::ZERO, "no"))
    });
    fixture.script("ignored", |_| {
        "x".parse::<u8>()?;
        Ok(())
    });
    fixture.script("panics", |_| panic!("a handler may panic"));
    let handlers = fixture.handlers([
        ChangeHandler::new("fatal", On::create()),
        ChangeHandler::new("few", On::create()).retries(3),
        ChangeHandler::new("ignored", On::create()).errors(ErrorMode::Ignored),
        ChangeHandler::new("panics", On::create()).errors(ErrorMode::Permanent),
        ChangeHandler::new("fine", On::create()),
    ]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let mut calls: Vec<String> = fixture
        .calls_so_far()
        .into_iter()
        .map(|call| call.handler)
        .collect();
    calls.sort();
    assert_eq!(
        calls,
        ["fatal", "few", "few", "few", "fine", "ignored", "panics"]
    );
    operator.stop().await
}

#[tokio::test]
async fn a_permanent_error_is_posted_as_an_event_on_the_object() -> TestResult {
    let mut fixture = HandlerFixture::new("posted").await?;
    fixture.script("create_fn", |_| {
        Err(HandlerError::permanent("out of stock"))
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let one = fixture.wait_until_handled("one", 1).await?;
    let events = fixture.sandbox.objects("v1", "Event").await?;
    let message = "Handler 'create_fn' failed permanently: out of stock";
    let found = try_eventually("the event is posted", async || {
        let events = events.api().list(&Default::default()).await?;
        Ok(events
            .into_iter()
            .find(|event| event.data["message"] == message))
    })
    .await?;
    assert_eq!(found.data["type"], "Error");
    assert_eq!(found.data["reason"], "Logging");
    assert_eq!(
        found.data["involvedObject"]["uid"],
        one.uid().unwrap_or_default()
    );
    operator.stop().await
}

#[tokio::test]
async fn a_timeout_interrupts_a_running_handler() -> TestResult {
    let mut fixture = HandlerFixture::new("timeout").await?;
    fixture.script_async("endless", |cx| {
        cx.patch().status(json!({"began": true}));
        std::future::pending::<HandlerResult>()
    });
    let handler = ChangeHandler::new("endless", On::create()).timeout(Duration::from_secs(1));
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.data["status"], json!({"began": true}));
    assert_eq!(fixture.calls_so_far().len(), 1);
    operator.stop().await
}

/// A size that must be a number, which the schema of the tests does not require.
#[derive(Deserialize)]
struct StrictWidget {
    #[expect(dead_code, reason = "it only has to decode")]
    spec: StrictSpec,
}

#[derive(Deserialize)]
struct StrictSpec {
    #[expect(dead_code, reason = "it only has to decode")]
    size: u32,
}

#[tokio::test]
async fn a_decode_error_is_recorded_on_the_object_which_can_still_be_deleted() -> TestResult {
    async fn report(
        scripts: &HandlerScripts,
        cx: &mut ChangeContext<StrictWidget>,
    ) -> HandlerResult {
        scripts.report_call(cx)
    }
    let mut fixture = HandlerFixture::new("undecodable").await?;
    let resource = Resource::<StrictWidget, HandlerScripts>::new(fixture.spec(), &fixture.scripts)
        .change(
            ChangeHandler::new("create_fn", On::create()).backoff(Duration::from_secs(3600)),
            |scripts, cx| Box::pin(report(scripts, cx)),
        )
        .change(
            ChangeHandler::new("delete_fn", On::delete()),
            |scripts, cx| Box::pin(report(scripts, cx)),
        )
        .build();
    let odd = json!({"spec": {"size": "large"}});
    fixture.objects.create("listed", odd.clone()).await?;
    fixture.create("old", 1).await?;
    let operator = fixture.start(resource).await?;
    assert_eq!(
        fixture.next_call().await.object,
        "old",
        "the other listed objects are handled"
    );
    fixture.wait_until_handled("old", 1).await?;
    fixture.objects.create("watched", odd).await?;
    fixture.create("even", 2).await?;
    assert_eq!(
        fixture.next_call().await.object,
        "even",
        "later objects are handled"
    );
    fixture.wait_until_handled("even", 2).await?;
    for name in ["listed", "watched"] {
        fixture
            .objects
            .wait_until(name, "the decode error is recorded", |it| {
                records(it).get("create_fn").is_some_and(|record| {
                    let message = record["message"].as_str().unwrap_or_default();
                    message.contains("does not fit its type")
                })
            })
            .await?;
        fixture.objects.delete(name).await?;
        fixture.objects.wait_gone(name).await?;
    }
    operator.stop().await
}

#[tokio::test]
async fn a_patch_that_the_api_server_rejects_is_a_failed_attempt() -> TestResult {
    let mut fixture = HandlerFixture::new("rejected").await?;
    fixture.script("create_fn", |cx| {
        if cx.retry() == 0 {
            cx.patch().label("not a label!", "x");
        }
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).backoff(Duration::from_secs(1));
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    fixture
        .objects
        .wait_until("one", "the rejection is recorded", |it| {
            records(it).get("create_fn").is_some_and(|record| {
                let message = record["message"].as_str().unwrap_or_default();
                message.contains("rejects its patch") && message.contains("not a label!")
            })
        })
        .await?;
    let one = fixture.wait_until_handled("one", 1).await?;
    assert!(one.labels().is_empty());
    assert_eq!(fixture.calls_so_far().len(), 2);
    operator.stop().await
}

#[tokio::test]
async fn sub_handlers_are_retried_one_by_one_until_all_are_done() -> TestResult {
    let mut fixture = HandlerFixture::new("subs").await?;
    fixture.script("create_fn", |cx| {
        for item in ["a", "b"] {
            cx.sub(SubHandler::new(item), move |cx| {
                Box::pin(async move {
                    if item == "b" && cx.retry() < 2 {
                        return Err(HandlerError::temporary_after(Duration::ZERO, "again"));
                    }
                    cx.set_result(&json!({"calls": cx.retry() + 1}))?;
                    Ok(())
                })
            });
        }
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create()).retries(1);
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(
        one.data["status"],
        json!({"create_fn/a": {"calls": 1}, "create_fn/b": {"calls": 3}})
    );
    let calls = fixture.calls_so_far();
    assert!(calls.iter().all(|call| call.retry == 0), "{calls:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_handler_is_not_called_again_for_a_sub_handler_that_it_no_longer_has() -> TestResult {
    let mut fixture = HandlerFixture::new("former-subs").await?;
    fixture.script("handle", |cx| {
        let is_small = cx.object()["spec"]["size"] == 1;
        if is_small {
            cx.sub(SubHandler::new("small"), |_| Box::pin(async { Ok(()) }));
        }
        cx.sub(SubHandler::new("large"), move |_| {
            Box::pin(async move {
                let soon = Duration::from_millis(200);
                match is_small {
                    true => Err(HandlerError::temporary_after(soon, "too small")),
                    false => Ok(()),
                }
            })
        });
        Ok(())
    });
    let handler = ChangeHandler::new("handle", On::create().or(On::update()));
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    let is_small_done = |it: &DynamicObject| records(it).keys().any(|id| id.ends_with("small"));
    fixture
        .objects
        .wait_until("one", "the sub-handler is done", is_small_done)
        .await?;
    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    fixture.wait_until_handled("one", 2).await?;
    let calls = fixture.calls_so_far();
    let for_new_size = calls.iter().filter(|call| call.spec["size"] == 2);
    assert_eq!(for_new_size.count(), 1, "{calls:?}");
    operator.stop().await
}

#[tokio::test]
async fn a_sub_handler_of_a_sub_handler_handles_an_edit_that_came_after_its_end() -> TestResult {
    let mut fixture = HandlerFixture::new("nested-edits").await?;
    let ended = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&ended);
    fixture.script("handle", move |cx| {
        let seen = Arc::clone(&seen);
        cx.sub(SubHandler::new("outer"), move |cx| {
            Box::pin(async move {
                let size = cx.object()["spec"]["size"].clone();
                cx.sub(SubHandler::new("early"), move |_| {
                    Box::pin(async move {
                        seen.lock().expect("no panic").push(size);
                        Ok(())
                    })
                });
                let is_first = cx.object()["spec"]["size"] == 1;
                cx.sub(SubHandler::new("late"), move |_| {
                    Box::pin(async move {
                        let soon = Duration::from_millis(200);
                        match is_first {
                            true => Err(HandlerError::temporary_after(soon, "not yet")),
                            false => Ok(()),
                        }
                    })
                });
                Ok(())
            })
        });
        Ok(())
    });
    let handler = ChangeHandler::new("handle", On::create().or(On::update()));
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("one", 1).await?;
    let is_early_done = |it: &DynamicObject| records(it).keys().any(|id| id.ends_with("early"));
    fixture
        .objects
        .wait_until("one", "the first of both is done", is_early_done)
        .await?;
    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    fixture.wait_until_handled("one", 2).await?;
    assert_eq!(*ended.lock().expect("no panic"), [json!(1), json!(2)]);
    operator.stop().await
}

#[tokio::test]
async fn progress_that_the_api_server_rejects_is_written_later_without_calling_the_handler_again()
-> TestResult {
    let mut fixture = HandlerFixture::new("denied").await?;
    let policy = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: $NAMESPACE}
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - {apiGroups: [$GROUP], apiVersions: [v1], operations: [UPDATE], resources: [widgets]}
  validations:
    - {expression: object.metadata.name != 'denied', message: no records here}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: $NAMESPACE}
spec: {policyName: $NAMESPACE, validationActions: [Deny]}
";
    fixture.sandbox.apply(policy).await?;
    let probe = json!({"spec": {"size": 0}});
    fixture.objects.create("denied", probe).await?;
    try_eventually("the policy is in force", async || {
        let edit = json!({"metadata": {"labels": {"try": "it"}}});
        Ok(fixture.objects.merge("denied", edit).await.err())
    })
    .await?;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("fine", 1).await?;
    fixture.wait_until_handled("fine", 1).await?;
    let events = fixture.sandbox.objects("v1", "Event").await?;
    try_eventually("the rejection is posted", async || {
        let events = events.api().list(&Default::default()).await?;
        let is_rejection = |message: &str| message.contains("no records here");
        Ok(events
            .into_iter()
            .find(|event| event.data["message"].as_str().is_some_and(is_rejection)))
    })
    .await?;
    let bindings = fixture
        .sandbox
        .objects(
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
        )
        .await?;
    bindings.delete(fixture.sandbox.namespace()).await?;
    fixture.wait_until_handled("denied", 0).await?;
    let mut calls: Vec<String> = fixture
        .calls_so_far()
        .into_iter()
        .map(|call| call.object)
        .collect();
    calls.sort();
    assert_eq!(calls, ["denied", "fine"]);
    operator.stop().await
}

#[tokio::test]
async fn sub_handlers_can_be_awaited_and_nested() -> TestResult {
    let mut fixture = HandlerFixture::new("nested").await?;
    let resource = fixture
        .resource()
        .change(
            ChangeHandler::new("create_fn", On::create()),
            |scripts, cx| {
                Box::pin(async move {
                    scripts.report_call(cx)?;
                    cx.sub(SubHandler::new("outer"), |cx| {
                        Box::pin(async move {
                            for item in ["x", "y"] {
                                cx.sub(SubHandler::new(item).param(item), |cx| {
                                    Box::pin(async move {
                                        let param = cx.param().cloned();
                                        cx.set_result(&param)?;
                                        Ok(())
                                    })
                                });
                            }
                            Ok(())
                        })
                    });
                    cx.run_subs().await?;
                    cx.set_result(&"all done")?;
                    Ok(())
                })
            },
        )
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(
        one.data["status"],
        json!({
            "create_fn/outer/x": "x",
            "create_fn/outer/y": "y",
            "create_fn": "all done",
        })
    );
    operator.stop().await
}

#[tokio::test]
async fn a_very_long_error_message_does_not_keep_the_handler_from_its_retry() -> TestResult {
    let mut fixture = HandlerFixture::new("long-message").await?;
    fixture.script("create_fn", |cx| match cx.retry() {
        // More than the annotations of an object may have.
        0 => Err(HandlerError::temporary_after(
            Duration::ZERO,
            "é".repeat(200_000),
        )),
        _ => Ok(()),
    });
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    assert_eq!(fixture.next_call().await.retry, 1);
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await
}

#[tokio::test]
async fn an_edit_that_panics_fails_the_attempt_of_its_handler() -> TestResult {
    let mut fixture = HandlerFixture::new("panicking-edit").await?;
    fixture.script("create_fn", |cx| {
        cx.patch().edit(|_| panic!("as requested"));
        Ok(())
    });
    let handler = ChangeHandler::new("create_fn", On::create());
    let handler = handler.retries(2).backoff(Duration::from_millis(100));
    let handlers = fixture.handlers([handler]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.retry, 0);
    assert_eq!(fixture.next_call().await.retry, 1);
    fixture.wait_until_handled("one", 1).await?;
    assert!(fixture.calls_so_far().is_empty());
    operator.stop().await
}
