//! Change handlers: called once, recorded on the object, not called again.

use std::sync::Arc;

use kopf_runtime::{ChangeHandler, FieldHandler, Lifecycle, Old, On, Reason, Settings};
use kopf_tests::TestResult;
use kube::ResourceExt as _;
use serde_json::json;
use tokio::sync::watch;

use crate::bench::{Bench, LAST_HANDLED};

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";

#[tokio::test]
async fn a_creation_is_handled_once_and_not_again_after_a_restart() -> TestResult {
    let mut bench = Bench::new("create").await?;
    bench.script("create_fn", |cx| {
        cx.set_result(&json!({"message": "made"}))?;
        Ok(())
    });
    let handlers = || [ChangeHandler::new("create_fn", On::create())];

    let operator = bench.start(bench.handlers(handlers())).await?;
    bench.create("one", 1).await?;
    let call = bench.call().await;
    assert_eq!((call.reason, call.retry), (Reason::Create, 0));
    let handled = bench.handled("one", 1).await?;
    assert_eq!(
        handled.annotations()[LAST_HANDLED],
        "{\"spec\":{\"size\":1}}\n"
    );
    assert_eq!(handled.annotations().len(), 1, "no record is left");
    assert_eq!(handled.finalizers(), [] as [&str; 0]);
    assert_eq!(
        handled.data["status"],
        json!({"create_fn": {"message": "made"}})
    );
    assert_eq!(bench.writes(&operator).await?, (1, 1));
    operator.stop().await?;

    let again = bench.start(bench.handlers(handlers())).await?;
    bench.create("two", 2).await?;
    assert_eq!(bench.call().await.object, "two");
    bench.handled("two", 2).await?;
    assert_eq!(bench.calls_so_far(), []);
    let one = bench.objects.get("one").await?;
    assert_eq!(one.resource_version(), handled.resource_version());
    again.stop().await
}

#[tokio::test]
async fn a_single_handler_without_a_result_costs_one_write() -> TestResult {
    let mut bench = Bench::new("one-write").await?;
    let handlers = bench.handlers([ChangeHandler::new("create_fn", On::create())]);
    let operator = bench.start(handlers).await?;
    for name in ["a", "b", "c"] {
        bench.create(name, 1).await?;
    }
    for name in ["a", "b", "c"] {
        bench.handled(name, 1).await?;
    }
    assert_eq!(bench.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn handlers_run_in_order_with_one_write_each_by_default() -> TestResult {
    let mut bench = Bench::new("order").await?;
    let names = ["first", "second", "third"];
    let handlers = bench.handlers(names.map(|name| ChangeHandler::new(name, On::create())));
    let operator = bench.start(handlers).await?;
    bench.create("one", 1).await?;
    for name in names {
        assert_eq!(bench.call().await.handler, name);
    }
    bench.handled("one", 1).await?;
    assert_eq!(bench.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn all_handlers_at_once_cost_one_write() -> TestResult {
    let mut bench = Bench::new("at-once").await?;
    let names = ["first", "second", "third"];
    let handlers = bench.handlers(names.map(|name| ChangeHandler::new(name, On::create())));
    let mut settings = Settings::default();
    settings.execution.lifecycle = Lifecycle::AllAtOnce;
    let operator = bench.start_with(handlers, settings).await?;
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    assert_eq!(bench.writes(&operator).await?, (1, 0));
    operator.stop().await
}

#[tokio::test]
async fn an_update_tells_what_changed() -> TestResult {
    let mut bench = Bench::new("update").await?;
    bench.script("update_fn", |cx| {
        let Old::Known(old) = cx.old() else {
            panic!("the old state is known");
        };
        assert_eq!(old["spec"]["size"], 1);
        assert_eq!(cx.new_state()["spec"]["size"], 2);
        let paths: Vec<String> = cx.diff().iter().map(|item| item.path.to_string()).collect();
        assert_eq!(paths, ["spec.size"]);
        Ok(())
    });
    let handlers = bench.handlers([ChangeHandler::new("update_fn", On::update())]);
    let operator = bench.start(handlers).await?;
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    let edit = json!({"spec": {"size": 2}});
    bench.objects.merge("one", edit).await?;
    assert_eq!(bench.call().await.reason, Reason::Update);
    bench.handled("one", 2).await?;
    assert_eq!(bench.calls_so_far(), []);
    operator.stop().await
}

/// The result is written before the record of success: the edit shows in either answer.
#[tokio::test]
async fn an_edit_that_comes_while_a_handler_runs_is_an_update_afterwards() -> TestResult {
    for result in [None, Some("made")] {
        let mut bench = Bench::new("meanwhile").await?;
        let stage = Arc::clone(&bench.stage);
        bench.script_async("create_fn", move |cx| {
            let delivered = cx.set_result(&result);
            let stage = Arc::clone(&stage);
            async move {
                stage.released().await;
                Ok(delivered?)
            }
        });
        let handlers = bench.handlers([
            ChangeHandler::new("create_fn", On::create()),
            ChangeHandler::new("update_fn", On::update()),
        ]);
        let operator = bench.start(handlers).await?;
        bench.create("one", 1).await?;
        assert_eq!(bench.call().await.handler, "create_fn");
        let edit = json!({"spec": {"size": 2}});
        bench.objects.merge("one", edit).await?;
        bench.stage.release();
        let update = bench.call().await;
        assert_eq!(update.handler, "update_fn");
        bench.handled("one", 2).await?;
        assert_eq!(bench.calls_so_far(), []);
        operator.stop().await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_field_handler_sees_typed_values_on_creation_and_change() -> TestResult {
    let mut bench = Bench::new("field").await?;
    let resource = bench
        .resource()
        .field::<u32>(FieldHandler::new("resize", "spec.size"), |stage, cx| {
            Box::pin(async move {
                cx.set_result(&json!({"from": cx.old_value().known(), "to": cx.new_value()}))?;
                stage.act(cx).await
            })
        })
        .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    let call = bench.call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("resize/spec.size", Reason::Create)
    );
    bench.handled("one", 1).await?;
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2, "other": true}}))
        .await?;
    let one = bench.handled("one", 2).await?;
    assert_eq!(
        one.data["status"],
        json!({"resize/spec.size": {"from": 1, "to": 2}})
    );
    bench
        .objects
        .merge("one", json!({"spec": {"other": false}}))
        .await?;
    bench
        .objects
        .wait_until("one", "the other field is recorded", |it| {
            it.annotations()[LAST_HANDLED].contains("false")
        })
        .await?;
    assert_eq!(bench.calls_so_far().len(), 1, "only the change of the size");
    operator.stop().await
}

#[tokio::test]
async fn an_object_waits_for_its_delete_handler() -> TestResult {
    let mut bench = Bench::new("delete").await?;
    let handlers = bench.handlers([
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("delete_fn", On::delete()),
    ]);
    let operator = bench.start(handlers).await?;
    bench.create("one", 1).await?;
    assert_eq!(bench.call().await.handler, "create_fn");
    let one = bench.handled("one", 1).await?;
    assert_eq!(one.finalizers(), [FINALIZER]);
    bench.objects.delete("one").await?;
    assert_eq!(bench.call().await.reason, Reason::Delete);
    bench.objects.wait_gone("one").await?;
    assert_eq!(
        bench.writes(&operator).await?,
        (3, 0),
        "the finalizer, the creation, and the deletion with the finalizer"
    );
    operator.stop().await
}

#[tokio::test]
async fn deletion_during_downtime_is_handled_at_the_next_start() -> TestResult {
    let mut bench = Bench::new("delete-later").await?;
    let handlers = || [ChangeHandler::new("delete_fn", On::delete())];
    let operator = bench.start(bench.handlers(handlers())).await?;
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    operator.stop().await?;
    bench.objects.delete("one").await?;
    let operator = bench.start(bench.handlers(handlers())).await?;
    assert_eq!(bench.call().await.reason, Reason::Delete);
    bench.objects.wait_gone("one").await?;
    operator.stop().await
}

#[tokio::test]
async fn resume_handlers_run_once_per_process_and_object() -> TestResult {
    let mut bench = Bench::new("resume").await?;
    let handlers = || {
        [
            ChangeHandler::new("both", On::create().or(On::resume())),
            ChangeHandler::new("update_fn", On::update()),
        ]
    };
    let operator = bench.start(bench.handlers(handlers())).await?;
    bench.create("one", 1).await?;
    assert_eq!(bench.call().await.reason, Reason::Create);
    bench.handled("one", 1).await?;
    operator.stop().await?;

    let operator = bench.start(bench.handlers(handlers())).await?;
    let call = bench.call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("both", Reason::Resume)
    );
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    assert_eq!(bench.call().await.handler, "update_fn");
    bench.handled("one", 2).await?;
    assert_eq!(bench.calls_so_far(), []);
    operator.stop().await
}

#[tokio::test]
async fn objects_that_match_nothing_are_not_touched() -> TestResult {
    let mut bench = Bench::new("stealth").await?;
    let handler = ChangeHandler::new("create_fn", On::create().or(On::delete()))
        .label("wanted", kopf_runtime::TextTest::Present);
    let operator = bench.start(bench.handlers([handler])).await?;
    bench.create("plain", 1).await?;
    let body = json!({"metadata": {"labels": {"wanted": ""}}, "spec": {"size": 1}});
    bench.objects.create("labelled", body).await?;
    assert_eq!(bench.call().await.object, "labelled");
    bench.handled("labelled", 1).await?;
    let plain = bench.objects.get("plain").await?;
    assert!(plain.annotations().is_empty() && plain.finalizers().is_empty());

    let label = json!({"metadata": {"labels": {"wanted": "yes"}}});
    bench.objects.merge("plain", label).await?;
    let call = bench.call().await;
    assert_eq!(
        (call.object.as_str(), call.reason),
        ("plain", Reason::Create)
    );
    bench.handled("plain", 1).await?;

    let unlabel = json!({"metadata": {"labels": {"wanted": null}}});
    bench.objects.merge("plain", unlabel).await?;
    bench
        .objects
        .wait_until("plain", "it is released", |it| it.finalizers().is_empty())
        .await?;
    operator.stop().await
}

#[tokio::test]
async fn an_object_that_is_always_tracked_has_a_past_when_it_begins_to_match() -> TestResult {
    let mut bench = Bench::new("tracked").await?;
    bench.script("update_fn", |cx| {
        let Old::Known(old) = cx.old() else {
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
    .fold(bench.resource(), |resource, handler| {
        resource.change(handler, |stage, cx| Box::pin(stage.act(cx)))
    })
    .track_always()
    .build();
    let operator = bench.start(resource).await?;
    bench.create("one", 1).await?;
    bench.handled("one", 1).await?;
    bench
        .objects
        .merge("one", json!({"spec": {"size": 2}}))
        .await?;
    bench.handled("one", 2).await?;
    let edit = json!({"metadata": {"labels": {"wanted": "yes"}}, "spec": {"size": 3}});
    bench.objects.merge("one", edit).await?;
    let call = bench.call().await;
    assert_eq!(
        (call.handler.as_str(), call.reason),
        ("update_fn", Reason::Update)
    );
    bench.handled("one", 3).await?;
    assert_eq!(bench.calls_so_far(), [], "it is not new");
    assert_eq!(bench.writes(&operator).await?, (3, 0));
    operator.stop().await
}

#[tokio::test]
async fn what_was_done_for_an_object_is_not_recorded_on_its_namesake() -> TestResult {
    let mut bench = Bench::new("namesake").await?;
    let (release, released) = watch::channel(false);
    bench.script_async("first", move |cx| {
        let mut released = released.clone();
        let is_old = cx.object()["spec"]["size"] == 1;
        async move {
            if is_old {
                released.wait_for(|released| *released).await?;
            }
            Ok(())
        }
    });
    let handlers = ["first", "second"].map(|name| ChangeHandler::new(name, On::create()));
    let operator = bench.start(bench.handlers(handlers)).await?;
    bench.create("one", 1).await?;
    assert_eq!(bench.call().await.handler, "first");
    bench.objects.delete("one").await?;
    bench.create("one", 2).await?;
    for handler in ["first", "second"] {
        let call = bench.call().await;
        assert_eq!(
            (call.handler.as_str(), &call.spec["size"]),
            (handler, &json!(2))
        );
    }
    let namesake = bench.handled("one", 2).await?;
    release.send_replace(true);
    operator.stop().await?;
    assert_eq!(
        bench.calls_so_far(),
        [],
        "nothing more is done for what is gone"
    );
    let after = bench.objects.get("one").await?;
    assert_eq!(after.annotations(), namesake.annotations());
    assert_eq!(after.resource_version(), namesake.resource_version());
    Ok(())
}
