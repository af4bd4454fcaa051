//! Drafts and conditions: what typed changes of handlers become on the API server.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kopf_runtime::{
    ChangeContext, ChangeHandler, DaemonHandler, EventHandler, HandlerError, HandlerResult,
    HasConditions, HasSpec, HasStatus, Old, On, Resource, SubHandler, TimerHandler,
};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::{HandlerFixture, HandlerScripts};

const TENTH: Duration = Duration::from_millis(100);

/// A kind that does not know all fields of its objects.
#[derive(Deserialize, Serialize)]
struct Widget {
    metadata: ObjectMeta,
    spec: WidgetSpec,
    status: Option<WidgetStatus>,
}

#[derive(Deserialize, Serialize)]
struct WidgetSpec {
    size: u32,
    #[serde(default = "standard")]
    class: String,
    #[serde(default)]
    parts: Vec<WidgetPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Deserialize, Serialize)]
struct WidgetPart {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u32>,
}

#[derive(Default, Deserialize, Serialize)]
struct WidgetStatus {
    #[serde(default)]
    phase: String,
    #[serde(flatten)]
    others: BTreeMap<String, Value>,
}

fn standard() -> String {
    "standard".to_owned()
}

impl HasSpec for Widget {
    type Spec = WidgetSpec;

    fn spec(&self) -> &WidgetSpec {
        &self.spec
    }

    fn spec_mut(&mut self) -> &mut WidgetSpec {
        &mut self.spec
    }
}

impl HasStatus for Widget {
    type Status = WidgetStatus;

    fn status(&self) -> Option<&WidgetStatus> {
        self.status.as_ref()
    }

    fn status_mut(&mut self) -> &mut Option<WidgetStatus> {
        &mut self.status
    }
}

impl HasConditions for Widget {
    const OBSERVED_GENERATION: bool = true;
}

fn widgets(fixture: &HandlerFixture) -> Resource<Widget, HandlerScripts> {
    Resource::new(fixture.spec(), &fixture.scripts)
}

#[tokio::test]
async fn only_what_the_handler_changed_in_its_draft_is_written() -> TestResult {
    async fn grow(scripts: &HandlerScripts, cx: &mut ChangeContext<Widget>) -> HandlerResult {
        let spec = cx.spec_mut();
        spec.size = 2;
        spec.parts[1].count = Some(5);
        cx.status_mut().phase = format!("Grown from {}", cx.object().spec.size);
        cx.draft()
            .metadata
            .labels
            .get_or_insert_default()
            .insert("grown".into(), "yes".into());
        scripts.report("changed".to_owned());
        scripts.wait_for_release().await;
        Ok(())
    }
    let mut fixture = HandlerFixture::new("draft").await?;
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("grow", On::create()), |scripts, cx| {
            Box::pin(grow(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    let spec = json!({
        "size": 1,
        "nothing": null,
        "unknown": {"list": [1, null], "map": {"a": 1}},
        "parts": [{"name": "a", "unknown": 1}, {"name": "b", "unknown": 2}],
    });
    fixture
        .objects
        .create("one", json!({ "spec": spec }))
        .await?;
    assert_eq!(fixture.next_report().await, "changed");
    let meanwhile =
        json!({"spec": {"note": "of another client"}, "metadata": {"labels": {"a": "b"}}});
    fixture.objects.merge("one", meanwhile).await?;
    fixture.scripts.release();

    let handled = fixture.wait_until_handled("one", 2).await?;
    assert_eq!(
        handled.data["spec"],
        json!({
            "size": 2,
            "nothing": null,
            "note": "of another client",
            "unknown": {"list": [1, null], "map": {"a": 1}},
            "parts": [{"name": "a", "unknown": 1}, {"name": "b", "unknown": 2, "count": 5}],
        }),
        "no default is written"
    );
    let labels = handled
        .labels()
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    assert_eq!(labels.collect::<Vec<_>>(), [("a", "b"), ("grown", "yes")]);
    assert_eq!(handled.data["status"], json!({"phase": "Grown from 1"}));
    operator.stop().await
}

#[tokio::test]
async fn a_draft_that_is_as_before_sends_no_request() -> TestResult {
    let mut fixture = HandlerFixture::new("draft-unused").await?;
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("look", On::create()), |scripts, cx| {
            Box::pin(async move {
                let class = cx.spec_mut().class.clone();
                let phase = std::mem::take(&mut cx.status_mut().phase);
                scripts.report(format!("{class}, {phase:?}"));
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "standard, \"\"");
    let handled = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(handled.data.get("status"), None);
    assert_eq!(
        fixture.writes(&operator).await?,
        (1, 0),
        "only the handled state"
    );
    operator.stop().await
}

#[tokio::test]
async fn what_failed_attempts_drafted_is_written() -> TestResult {
    async fn fail(cx: &mut ChangeContext<Widget>) -> HandlerResult {
        let attempt = format!("{},", cx.retry());
        cx.status_mut().phase.push_str(&attempt);
        match cx.retry() {
            0 => Err(HandlerError::temporary_after(TENTH, "not yet")),
            1 => panic!("not yet either"),
            2 => std::future::pending().await,
            _ => unreachable!("the time is over"),
        }
    }
    let mut fixture = HandlerFixture::new("draft-failed").await?;
    let handler = ChangeHandler::new("fail", On::create());
    let handler = handler.backoff(TENTH).timeout(Duration::from_secs(3));
    let handlers = widgets(&fixture)
        .change(handler, |_, cx| Box::pin(fail(cx)))
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let handled = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(handled.data["status"]["phase"], "0,1,2,");
    operator.stop().await
}

#[tokio::test]
async fn of_draft_and_patch_the_later_change_counts() -> TestResult {
    async fn both(scripts: &HandlerScripts, cx: &mut ChangeContext<Widget>) -> HandlerResult {
        cx.status_mut().phase = "drafted".to_owned();
        cx.spec_mut().note = Some("drafted".to_owned());
        cx.patch().set("status.phase", "patched");
        let phase = &cx.status_mut().phase;
        scripts.report(format!("the draft shows {phase}"));
        cx.spec_mut().class = "drafted".to_owned();
        cx.patch().set("spec.class", "patched");
        cx.spec_mut().class = standard();
        Ok(())
    }
    let mut fixture = HandlerFixture::new("draft-order").await?;
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("both", On::create()), |scripts, cx| {
            Box::pin(both(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "the draft shows patched");
    let handled = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(handled.data["status"]["phase"], "patched");
    let spec = json!({"size": 1, "note": "drafted", "class": "standard"});
    assert_eq!(handled.data["spec"], spec);
    operator.stop().await
}

#[tokio::test]
async fn sub_handlers_change_the_object_after_their_handler() -> TestResult {
    async fn parent(cx: &mut ChangeContext<Widget>) -> HandlerResult {
        let status = cx.status_mut();
        status.phase = "parent".to_owned();
        status.others.insert("parent".to_owned(), json!(true));
        cx.sub(SubHandler::new("sub"), |cx| {
            Box::pin(async move {
                let status = cx.status_mut();
                status.phase = "sub".to_owned();
                status.others.insert("sub".to_owned(), json!(true));
                Ok(())
            })
        });
        Ok(())
    }
    let mut fixture = HandlerFixture::new("draft-sub").await?;
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("parent", On::create()), |_, cx| {
            Box::pin(parent(cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    let handled = fixture.wait_until_handled("one", 1).await?;
    let status = json!({"phase": "sub", "parent": true, "sub": true});
    assert_eq!(handled.data["status"], status);
    operator.stop().await
}

#[tokio::test]
async fn daemons_timers_and_event_handlers_have_drafts_too() -> TestResult {
    let mut fixture = HandlerFixture::new("draft-background").await?;
    let handlers = widgets(&fixture)
        .daemon(DaemonHandler::new("daemon"), |scripts, cx| {
            Box::pin(async move {
                cx.status_mut().phase = "first".to_owned();
                cx.write().await?;
                let phase = cx.status_mut().phase.clone();
                scripts.report(format!("the draft begins with {phase}"));
                cx.status_mut().others.insert("daemon".to_owned(), json!(1));
                Ok(())
            })
        })
        .timer(TimerHandler::every("timer", TENTH), |_, cx| {
            Box::pin(async move {
                let others = &mut cx.status_mut().others;
                others.insert("timer".to_owned(), json!("ticked"));
                Ok(())
            })
        })
        .event(EventHandler::new("event"), |_, cx| {
            Box::pin(async move {
                cx.spec_mut().note = Some("seen".to_owned());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "the draft begins with first");
    let wanted = json!({"phase": "first", "daemon": 1, "timer": "ticked"});
    fixture
        .objects
        .wait_until("one", "all have written", |it| {
            it.data["status"] == wanted && it.data["spec"]["note"] == "seen"
        })
        .await?;
    fixture.objects.delete("one").await?;
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn the_former_state_has_the_type_of_the_object() -> TestResult {
    async fn compare(scripts: &HandlerScripts, cx: &mut ChangeContext<Widget>) -> HandlerResult {
        let place = cx.blocking(|| "on a thread").await?;
        let old = match cx.old() {
            Old::Absent => "absent".to_owned(),
            Old::Known(old) => format!("{} of {:?}", old.spec.size, old.metadata.name),
            Old::Unknown => "unknown".to_owned(),
        };
        scripts.report(format!("{old}, {place}"));
        Ok(())
    }
    let mut fixture = HandlerFixture::new("typed-old").await?;
    let on = On::create().or(On::update());
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("compare", on), |scripts, cx| {
            Box::pin(compare(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "absent, on a thread");
    fixture.wait_until_handled("one", 1).await?;
    for size in [2, 3] {
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        let report = format!("{} of Some(\"one\"), on a thread", size - 1);
        assert_eq!(fixture.next_report().await, report);
        fixture.wait_until_handled("one", size).await?;
    }
    operator.stop().await
}

#[tokio::test]
async fn an_edit_runs_on_the_newest_state() -> TestResult {
    async fn extend(scripts: &HandlerScripts, cx: &mut ChangeContext<Widget>) -> HandlerResult {
        cx.edit(|widget| {
            let name = "ours".to_owned();
            widget.spec.parts.push(WidgetPart { name, count: None });
        });
        scripts.report("edited".to_owned());
        scripts.wait_for_release().await;
        Ok(())
    }
    let mut fixture = HandlerFixture::new("draft-edit").await?;
    let handlers = widgets(&fixture)
        .change(ChangeHandler::new("extend", On::create()), |scripts, cx| {
            Box::pin(extend(scripts, cx))
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_report().await, "edited");
    let theirs = json!([{"name": "theirs", "unknown": 1}]);
    fixture
        .objects
        .merge("one", json!({"spec": {"parts": theirs}}))
        .await?;
    fixture.scripts.release();
    let handled = fixture.wait_until_handled("one", 1).await?;
    let parts = json!([{"name": "theirs", "unknown": 1}, {"name": "ours"}]);
    assert_eq!(handled.data["spec"]["parts"], parts);
    operator.stop().await
}

#[tokio::test]
async fn conditions_change_their_time_only_with_their_status() -> TestResult {
    let mut fixture = HandlerFixture::new("conditions").await?;
    let handlers = widgets(&fixture)
        .change(
            ChangeHandler::new("check", On::create().or(On::update())),
            |scripts, cx| {
                Box::pin(async move {
                    let size = cx.object().spec.size;
                    let reason = if size < 3 { "Fits" } else { "TooBig" };
                    cx.set_condition("Ready", size < 3, reason, format!("the size is {size}"));
                    scripts.report(format!("checked {size}"));
                    Ok(())
                })
            },
        )
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let theirs = json!({"type": "Synced", "status": "True", "severity": "Info"});
    let handled = fixture.objects.get("one").await?;
    let ours = handled.data["status"]["conditions"][0].clone();
    assert_eq!(ours["status"], "True");
    assert_eq!(ours["observedGeneration"], 1);
    let conditions = json!({"conditions": [theirs, ours]});
    fixture.objects.merge_status("one", conditions).await?;

    for (size, status, reason) in [(2, "True", "Fits"), (3, "False", "TooBig")] {
        let edit = json!({"spec": {"size": size}});
        fixture.objects.merge("one", edit).await?;
        let handled = fixture.wait_until_handled("one", size).await?;
        let conditions = &handled.data["status"]["conditions"];
        assert_eq!(conditions[0], theirs);
        let now = &conditions[1];
        assert_eq!(
            (&now["status"], &now["reason"]),
            (&json!(status), &json!(reason))
        );
        assert_eq!(now["message"], format!("the size is {size}"));
        assert_eq!(now["observedGeneration"], size);
        if status == "True" {
            assert_eq!(now["lastTransitionTime"], ours["lastTransitionTime"]);
        }
    }
    operator.stop().await
}

#[tokio::test]
async fn a_condition_that_the_object_has_sends_no_request() -> TestResult {
    let mut fixture = HandlerFixture::new("condition-kept").await?;
    let handlers = widgets(&fixture)
        .timer(TimerHandler::every("check", TENTH), |scripts, cx| {
            Box::pin(async move {
                cx.set_condition("Ready", true, "Fits", "it fits");
                scripts.report("checked".to_owned());
                Ok(())
            })
        })
        .build();
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    for _ in 0..5 {
        assert_eq!(fixture.next_report().await, "checked");
    }
    let (_, status) = fixture.writes(&operator).await?;
    assert_eq!(status, 1, "the first call has set the condition");
    operator.stop().await
}
