//! Change handlers: each is called once per change, and its progress is kept on the object.

use std::sync::Arc;

use kopf_runtime::{
    ChangeHandler, FieldHandler, Lifecycle, Old, On, PersistenceSettings, ProgressStore, Reason,
    Settings,
};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::sync::watch;

use crate::fixture::{HandlerFixture, LAST_HANDLED};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

#[tokio::test]
async fn a_creation_is_handled_once_and_not_again_after_a_restart() -> TestResult {
    let mut fixture = HandlerFixture::new("create").await?;
    fixture.script("create_fn", |cx| {
        cx.set_result(&json!({"message": "made"}))?;
        Ok(())
    });
    let handlers = || [ChangeHandler::new("create_fn", On::create())];

    let operator = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("one", 1).await?;
    let call = fixture.next_call().await;
    assert_eq!((call.reason, call.retry), (Reason::Create, 0));
    let handled = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(
        handled.annotations()[LAST_HANDLED],
        "{\"spec\":{\"size\":1}}\n"
    );
    assert_eq!(handled.annotations().len(), 1, "no progress is left");
    assert_eq!(handled.finalizers(), [] as [&str; 0]);
    assert_eq!(
        handled.data["status"],
        json!({"create_fn": {"message": "made"}})
    );
    assert_eq!(fixture.writes(&operator).await?, (1, 1));
    operator.stop().await?;

    let again = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("two", 2).await?;
    assert_eq!(fixture.next_call().await.object, "two");
    fixture.wait_until_handled("two", 2).await?;
    assert_eq!(fixture.calls_so_far(), []);
    let one = fixture.objects.get("one").await?;
    assert_eq!(one.resource_version(), handled.resource_version());
    again.stop().await
}

#[tokio::test]
async fn a_single_handler_without_a_result_costs_one_write() -> TestResult {
    let mut fixture = HandlerFixture::new("one-write").await?;
    let handlers = fixture.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = fixture.start(handlers).await?;
    for name in ["a", "b", "c"] {
        fixture.create(name, 1).await?;
    }
    for name in ["a", "b", "c"] {
        fixture.wait_until_handled(name, 1).await?;
    }
    assert_eq!(fixture.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn handlers_run_in_order_with_one_write_each_by_default() -> TestResult {
    let mut fixture = HandlerFixture::new("order").await?;
    let names = ["first", "second", "third"];
    let handlers = fixture.handlers(names.map(|name| ChangeHandler::new(name, On::create())));
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    for name in names {
        assert_eq!(fixture.next_call().await.handler, name);
    }
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(fixture.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn all_handlers_at_once_cost_one_write() -> TestResult {
    let mut fixture = HandlerFixture::new("at-once").await?;
    let names = ["first", "second", "third"];
    let handlers = fixture.handlers(names.map(|name| ChangeHandler::new(name, On::create())));
    let mut settings = Settings::default();
    settings.execution.lifecycle = Lifecycle::AllAtOnce;
    let operator = fixture.start_with(handlers, settings).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    assert_eq!(fixture.writes(&operator).await?, (1, 0));
    operator.stop().await
}

#[tokio::test]
async fn an_update_handler_gets_old_state_new_state_and_diff() -> TestResult {
    let mut fixture = HandlerFixture::new("update").await?;
    fixture.script("update_fn", |cx| {
        let Old::Known(old) = cx.old_raw() else {
            panic!("the old state is known");
        };
        assert_eq!(old["spec"]["size"], 1);
        assert_eq!(cx.new_state()["spec"]["size"], 2);
        let paths: Vec<String> = cx.diff().iter().map(|item| item.path.to_string()).collect();
        assert_eq!(paths, ["spec.size"]);
        Ok(())
    });
    let handlers = fixture.handlers([ChangeHandler::new("update_fn", On::update())]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    let edit = json!({"spec": {"size": 2}});
    fixture.objects.merge("one", edit).await?;
    assert_eq!(fixture.next_call().await.reason, Reason::Update);
    fixture.wait_until_handled("one", 2).await?;
    assert_eq!(fixture.calls_so_far(), []);
    operator.stop().await
}

/// The result is written before the success: the edit is in either response.
#[tokio::test]
async fn an_edit_during_a_handler_is_handled_as_an_update_afterwards() -> TestResult {
    for result in [None, Some("made")] {
        let mut fixture = HandlerFixture::new("meanwhile").await?;
        let scripts = Arc::clone(&fixture.scripts);
        fixture.script_async("create_fn", move |cx| {
            let delivered = cx.set_result(&result);
            let scripts = Arc::clone(&scripts);
            async move {
                scripts.wait_for_release().await;
                Ok(delivered?)
            }
        });
        let handlers = fixture.handlers([
            ChangeHandler::new("create_fn", On::create()),
            ChangeHandler::new("update_fn", On::update()),
        ]);
        let operator = fixture.start(handlers).await?;
        fixture.create("one", 1).await?;
        assert_eq!(fixture.next_call().await.handler, "create_fn");
        let edit = json!({"spec": {"size": 2}});
        fixture.objects.merge("one", edit).await?;
        fixture.scripts.release();
        let update = fixture.next_call().await;
        assert_eq!(update.handler, "update_fn");
        fixture.wait_until_handled("one", 2).await?;
        assert_eq!(fixture.calls_so_far(), []);
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_field_handler_gets_typed_values_on_creation_and_change() -> TestResult {
    let mut fixture = HandlerFixture::new("field").await?;
    let resource = fixture
        .resource()
        .field::<u32>(FieldHandler::new("resize", "spec.size"), |scripts, cx| {
            Box::pin(async move {
                cx.set_result(&json!({"from": cx.old_value().known(), "to": cx.new_value()}))?;
                scripts.run(cx).await
            })
        })
        .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    let call = fixture.next_call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("resize/spec.size", Reason::Create)
    );
    fixture.wait_until_handled("one", 1).await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2, "other": true}}))
        .await?;
    let one = fixture.wait_until_handled("one", 2).await?;
    assert_eq!(
        one.data["status"],
        json!({"resize/spec.size": {"from": 1, "to": 2}})
    );
    fixture
        .objects
        .merge("one", json!({"spec": {"other": false}}))
        .await?;
    fixture
        .objects
        .wait_until("one", "the other field is recorded", |it| {
            it.annotations()[LAST_HANDLED].contains("false")
        })
        .await?;
    assert_eq!(
        fixture.calls_so_far().len(),
        1,
        "only the change of the size"
    );
    operator.stop().await
}

#[tokio::test]
async fn a_deletion_waits_for_the_delete_handler() -> TestResult {
    let mut fixture = HandlerFixture::new("delete").await?;
    let handlers = fixture.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("delete_fn", On::delete()),
    ]);
    let operator = fixture.start(handlers).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.handler, "create_fn");
    let one = fixture.wait_until_handled("one", 1).await?;
    assert_eq!(one.finalizers(), [FINALIZER]);
    fixture.objects.delete("one").await?;
    assert_eq!(fixture.next_call().await.reason, Reason::Delete);
    fixture.objects.wait_gone("one").await?;
    assert_eq!(
        fixture.writes(&operator).await?,
        (3, 0),
        "the finalizer, the creation, and the deletion with the finalizer"
    );
    operator.stop().await
}

#[tokio::test]
async fn deletion_during_downtime_is_handled_at_the_next_start() -> TestResult {
    let mut fixture = HandlerFixture::new("delete-later").await?;
    let handlers = || [ChangeHandler::new("delete_fn", On::delete())];
    let operator = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await?;
    fixture.objects.delete("one").await?;
    let operator = fixture.start(fixture.handlers(handlers())).await?;
    assert_eq!(fixture.next_call().await.reason, Reason::Delete);
    fixture.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn resume_handlers_run_once_per_process_and_object() -> TestResult {
    let mut fixture = HandlerFixture::new("resume").await?;
    let handlers = || {
        [
            ChangeHandler::new("both", On::create().or(On::resume())),
            ChangeHandler::new("update_fn", On::update()),
        ]
    };
    let operator = fixture.start(fixture.handlers(handlers())).await?;
    fixture.create("one", 1).await?;
    assert_eq!(fixture.next_call().await.reason, Reason::Create);
    fixture.wait_until_handled("one", 1).await?;
    operator.stop().await?;

    let operator = fixture.start(fixture.handlers(handlers())).await?;
    let call = fixture.next_call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("both", Reason::Resume)
    );
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(fixture.next_call().await.handler, "update_fn");
    fixture.wait_until_handled("one", 2).await?;
    assert_eq!(fixture.calls_so_far(), []);
    operator.stop().await
}

#[tokio::test]
async fn objects_that_match_no_handler_are_not_written() -> TestResult {
    let mut fixture = HandlerFixture::new("stealth").await?;
    let handler = ChangeHandler::new("create_fn", On::create().or(On::delete()))
        .label("wanted", kopf_runtime::TextTest::Present);
    let operator = fixture.start(fixture.handlers([handler])).await?;
    fixture.create("plain", 1).await?;
    let body = json!({"metadata": {"labels": {"wanted": ""}}, "spec": {"size": 1}});
    fixture.objects.create("labelled", body).await?;
    assert_eq!(fixture.next_call().await.object, "labelled");
    fixture.wait_until_handled("labelled", 1).await?;
    let plain = fixture.objects.get("plain").await?;
    assert!(plain.annotations().is_empty() && plain.finalizers().is_empty());

    let label = json!({"metadata": {"labels": {"wanted": "yes"}}});
    fixture.objects.merge("plain", label).await?;
    let call = fixture.next_call().await;
    assert_eq!(
        (call.object.as_str(), call.reason),
        ("plain", Reason::Create)
    );
    fixture.wait_until_handled("plain", 1).await?;

    let unlabel = json!({"metadata": {"labels": {"wanted": null}}});
    fixture.objects.merge("plain", unlabel).await?;
    fixture
        .objects
        .wait_until("plain", "the finalizer is removed", |it| {
            it.finalizers().is_empty()
        })
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn an_object_that_is_always_tracked_has_an_old_state_when_it_begins_to_match() -> TestResult {
    let mut fixture = HandlerFixture::new("tracked").await?;
    fixture.script("update_fn", |cx| {
        let Old::Known(old) = cx.old_raw() else {
            panic!("the old state is known");
        };
        assert_eq!(old["spec"]["size"], 2);
        assert_eq!(cx.new_state()["spec"]["size"], 3);
        Ok(())
    });
    let wanted = |id: &'static str, on| {
        ChangeHandler::new(id, on).label("wanted", kopf_runtime::TextTest::Present)
    };
    let resource = [
        wanted("create_fn", On::create()),
        wanted("update_fn", On::update()),
    ]
    .into_iter()
    .fold(fixture.resource(), |resource, handler| {
        resource.change(handler, |scripts, cx| Box::pin(scripts.run(cx)))
    })
    .track_always()
    .build();
    let operator = fixture.start(resource).await?;
    fixture.create("one", 1).await?;
    fixture.wait_until_handled("one", 1).await?;
    fixture
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    fixture.wait_until_handled("one", 2).await?;
    let edit = json!({"metadata": {"labels": {"wanted": "yes"}}, "spec": {"size": 3}});
    fixture.objects.merge("one", edit).await?;
    let call = fixture.next_call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("update_fn", Reason::Update)
    );
    fixture.wait_until_handled("one", 3).await?;
    assert_eq!(
        fixture.calls_so_far(),
        [],
        "it is not handled as a creation"
    );
    assert_eq!(fixture.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn nothing_of_a_deleted_object_is_written_to_a_new_one_of_the_same_name() -> TestResult {
    for progress in [ProgressStore::Annotations, ProgressStore::Status] {
        let settings = Settings {
            persistence: PersistenceSettings {
                progress,
                ..PersistenceSettings::default()
            }
            .into(),
            ..Settings::default()
        };
        let mut fixture = HandlerFixture::new("successor").await?;
        let (release, released) = watch::channel(false);
        fixture.script_async("first", move |cx| {
            let mut released = released.clone();
            let size = cx.object()["spec"]["size"].clone();
            let result = cx.set_result(&json!({"size": size}));
            async move {
                result?;
                if size == 1 {
                    released.wait_for(|released| *released).await?;
                }
                Ok(())
            }
        });
        let handlers = ["first", "second"].map(|name| ChangeHandler::new(name, On::create()));
        let operator = fixture
            .start_with(fixture.handlers(handlers), settings)
            .await?;
        fixture.create("one", 1).await?;
        assert_eq!(fixture.next_call().await.handler, "first");
        fixture.objects.delete("one").await?;
        fixture.create("one", 2).await?;
        for handler in ["first", "second"] {
            let call = fixture.next_call().await;
            assert_eq!(
                (call.handler.as_str(), &call.spec["size"]),
                (handler, &json!(2))
            );
        }
        let successor = fixture.wait_until_handled("one", 2).await?;
        release.send_replace(true);
        operator.stop().await?;
        assert_eq!(
            fixture.calls_so_far(),
            [],
            "no handler is called for the deleted object"
        );
        let after = fixture.objects.get("one").await?;
        assert_eq!(after.annotations(), successor.annotations());
        assert_eq!(after.data["status"], successor.data["status"]);
        assert_eq!(after.resource_version(), successor.resource_version());
    }
    Ok(())
}
