//! The handlers of each scenario, as the script of the same name has them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use kopf_runtime::{
    AdmissionError, AdmissionResult, ChangeContext, ChangeHandler, Combined, DaemonHandler,
    ErrorMode, EventHandler, EventSeverity, FieldContext, FieldHandler, FilterContext,
    HandlerError, HandlerResult, Lifecycle, MutationContext, On, Operation, Reason, Resource,
    ResourceHandlers, ResourceSpec, Selector, SubHandler, TextTest, TimerHandler,
    ValidationContext, ValueTest, WatchEventType, WebhookHandler, WhenTest, predicate,
};
use serde_json::{Value, json};

use crate::journal::{self, note_action, note_change, note_event, note_field_change};

type Widgets = Resource<Value, ()>;

/// The handlers of a scenario.
///
/// # Panics
/// If there is no such scenario.
pub(crate) fn named(name: &str, widgets: ResourceSpec) -> Vec<ResourceHandlers> {
    if name == "selected_admission" {
        return selected_admission(widgets).into();
    }
    let widgets = Resource::new(widgets, &Arc::new(()));
    let handlers = match name {
        "admission" => admission(widgets),
        "arbitrary_error" => arbitrary_error(widgets),
        "background" => background(widgets),
        "background_errors" => background_errors(widgets),
        "create_with_result" => create_with_result(widgets),
        "delete_with_finalizer" => delete_with_finalizer(widgets),
        "down" => down(widgets),
        "event_results" => event_results(widgets),
        "events" => events(widgets),
        "fields" => fields(widgets),
        "filters" => filters(widgets),
        "limits" => limits(widgets),
        "long_ids" => long_ids(widgets),
        "mid_cycle" => mid_cycle(widgets),
        "never_again" => never_again(widgets),
        "flood" => flood(widgets),
        "optional_delete" => optional_delete(widgets),
        "overlapping_fields" => overlapping_fields(widgets),
        "patches" => patches(widgets),
        "permanent_error" => permanent_error(widgets),
        "posted" => posted(widgets),
        "record_options" => record_options(widgets),
        "results_in_order" => results_in_order(widgets),
        "resume" => resume(widgets),
        "resume_deleted" => resume_deleted(widgets),
        "stealth" => stealth(widgets),
        "subhandler_filters" => subhandler_filters(widgets),
        "subhandlers" => subhandlers(widgets),
        "superseded" => superseded(widgets),
        "takeover" => takeover(widgets),
        "temporary_error" => temporary_error(widgets),
        "timeout" => timeout(widgets),
        "two_handlers" => two_handlers(widgets),
        "update_with_diff" => update_with_diff(widgets),
        "value_functions" => value_functions(widgets),
        unknown => panic!("there is no scenario `{unknown}`"),
    };
    vec![handlers.build()]
}

fn selected_admission(widgets: ResourceSpec) -> [ResourceHandlers; 3] {
    let category = std::env::var("CATEGORY").expect("the parity tests set CATEGORY");
    let by_category: Widgets = Resource::selected(Selector::category(category), &Arc::new(()));
    let by_category = by_category
        .validate(
            WebhookHandler::new("by_category"),
            |(), cx: &mut ValidationContext<Value>| {
                cx.warn(format!("{} by category", cx.resource().kind));
                Box::pin(async { Ok(()) })
            },
        )
        .mutate(
            WebhookHandler::new("complete"),
            |(), cx: &mut MutationContext<Value>| {
                cx.patch().set("spec.size", 3);
                Box::pin(async { Ok(()) })
            },
        );
    let group = Selector::everything().in_group(widgets.group);
    let by_group: Widgets = Resource::selected(group, &Arc::new(()));
    let by_group = by_group.validate(
        WebhookHandler::new("by_group").operations([Operation::Create]),
        |(), cx: &mut ValidationContext<Value>| {
            cx.warn(format!("{} by group", cx.resource().kind));
            Box::pin(async { Ok(()) })
        },
    );
    let widgets: Widgets = Resource::new(widgets, &Arc::new(()));
    let widgets = widgets.event(EventHandler::new("watched"), |(), _| {
        Box::pin(async { Ok(()) })
    });
    [by_category.build(), by_group.build(), widgets.build()]
}

fn admission(widgets: Widgets) -> Widgets {
    let gold = TextTest::Equals("gold".to_owned());
    widgets
        .event(EventHandler::new("watched"), |(), _| {
            Box::pin(async { Ok(()) })
        })
        .validate(WebhookHandler::new("check"), |(), cx| Box::pin(check(cx)))
        .validate(
            WebhookHandler::new("only_gold")
                .label("tier", gold)
                .label("old", TextTest::Absent)
                .operations([Operation::Create]),
            |(), cx: &mut ValidationContext<Value>| {
                cx.warn("gold");
                Box::pin(async { Ok(()) })
            },
        )
        .validate(
            WebhookHandler::new("check_status")
                .subresource("status")
                .side_effects()
                .ignore_failures(),
            |(), cx: &mut ValidationContext<Value>| {
                cx.warn("status");
                Box::pin(async { Ok(()) })
            },
        )
        .mutate(
            WebhookHandler::new("complete"),
            |(), cx: &mut MutationContext<Value>| {
                Box::pin(async move {
                    let spec = &cx.object()["spec"];
                    if spec["size"].is_null() {
                        cx.patch().set("spec.size", 3);
                    }
                    if !spec["remove"].is_null() {
                        cx.patch().set("spec.remove", Value::Null);
                    }
                    Ok(())
                })
            },
        )
        .validate(
            WebhookHandler::new("only_updates")
                .when(predicate::when(&Arc::new(()), is_real_update)),
            |(), cx: &mut ValidationContext<Value>| {
                cx.warn("update");
                Box::pin(async { Ok(()) })
            },
        )
}

fn is_real_update((): &(), cx: &FilterContext<'_, Value>) -> bool {
    let has_user = cx.user().is_some_and(|it| !it.username.is_empty());
    has_user && cx.operation() == Some(Operation::Update) && !cx.is_dry_run()
}

async fn check(cx: &mut ValidationContext<Value>) -> AdmissionResult {
    journal::note_review(cx);
    let spec = &cx.object()["spec"];
    if let Some(warning) = spec["warn"].as_str() {
        cx.warn(warning);
    }
    if let Some(message) = spec["deny"].as_str() {
        let code = u16::try_from(spec["code"].as_u64().unwrap_or_default())?;
        return Err(AdmissionError::denied_with(code, message));
    }
    Ok(())
}

fn background(widgets: Widgets) -> Widgets {
    let role = |role: &str| TextTest::Equals(role.to_owned());
    let tenth = Duration::from_millis(100);
    let hour = Duration::from_secs(3600);
    let shaky = DaemonHandler::new("shaky").label("role", role("shaky"));
    let idle = TimerHandler::every("idle", hour).idle(Duration::from_secs(4));
    widgets
        .daemon(
            DaemonHandler::new("steady").label("role", role("steady")),
            |(), cx| {
                Box::pin(async move {
                    note_action("steady", cx.name(), "starts");
                    cx.stop().wait().await;
                    note_action("steady", cx.name(), "stops");
                    Ok(())
                })
            },
        )
        .daemon(shaky.backoff(tenth), |(), cx| {
            Box::pin(async move {
                note_action("shaky", cx.name(), &format!("attempt {}", cx.retry()));
                cx.patch().status(json!({"attempts": cx.retry() + 1}));
                match cx.retry() {
                    0 => Err(HandlerError::temporary_after(
                        Duration::from_millis(100),
                        "not yet",
                    )),
                    1 => Err(io::Error::other("oops").into()),
                    retry => Ok(cx.set_result(&json!({"done": retry}))?),
                }
            })
        })
        .daemon(
            DaemonHandler::new("hopeless").label("role", role("hopeless")),
            |(), cx| {
                Box::pin(async move {
                    note_action("hopeless", cx.name(), "fails");
                    Err(HandlerError::permanent("never"))
                })
            },
        )
        .timer(
            TimerHandler::every("timed", hour).label("role", role("timed")),
            |(), cx| {
                Box::pin(async move {
                    note_action("timed", cx.name(), "ticks");
                    Ok(cx.set_result(&json!({"size": cx.object()["spec"]["size"]}))?)
                })
            },
        )
        .timer(idle.label("role", role("idle")), |(), cx| {
            Box::pin(async move {
                let size = &cx.object()["spec"]["size"];
                note_action("idle", cx.name(), &format!("ticks at {size}"));
                Ok(())
            })
        })
}

fn background_errors(widgets: Widgets) -> Widgets {
    let role = |role: &str| TextTest::Equals(role.to_owned());
    let refused = TimerHandler::every("refused", Duration::from_millis(200));
    let release = ChangeHandler::new("release", On::delete());
    widgets
        .timer(refused.label("role", role("refused")), |(), cx| {
            Box::pin(async move {
                note_action("refused", cx.name(), "fails");
                Err(HandlerError::permanent("never"))
            })
        })
        .daemon(
            DaemonHandler::new("slow").label("role", role("slow")),
            |(), cx| {
                Box::pin(async move {
                    note_action("slow", cx.name(), "starts");
                    cx.stop().wait().await;
                    tokio::time::sleep(Duration::from_secs(3)).await;
                    Ok(())
                })
            },
        )
        .change(release.label("role", role("slow")), |(), cx| {
            Box::pin(async move {
                note_action("release", cx.name(), "is called");
                Ok(())
            })
        })
}

/// A handler that only logs its call.
fn noted(widgets: Widgets, handler: ChangeHandler) -> Widgets {
    widgets.change(handler, |(), cx| Box::pin(async move { note_only(cx) }))
}

fn noted_field(widgets: Widgets, handler: FieldHandler) -> Widgets {
    widgets.field(handler, |(), cx| {
        Box::pin(async move {
            note_field_change(cx);
            Ok(())
        })
    })
}

fn note_only(cx: &ChangeContext<Value>) -> HandlerResult {
    note_change(cx);
    Ok(())
}

fn note_and_return(cx: &mut ChangeContext<Value>, result: &Value) -> HandlerResult {
    note_change(cx);
    Ok(cx.set_result(result)?)
}

/// Fails the attempts before `success`.
fn note_and_wait(
    cx: &ChangeContext<Value>,
    success: u32,
    message: &str,
    seconds: f64,
) -> HandlerResult {
    note_change(cx);
    if cx.retry() < success {
        return Err(later(message, seconds));
    }
    Ok(())
}

fn later(message: &str, seconds: f64) -> HandlerError {
    HandlerError::temporary_after(Duration::from_secs_f64(seconds), message)
}

fn create_with_result(widgets: Widgets) -> Widgets {
    let widgets = widgets
        .change(ChangeHandler::new("create_map", On::create()), |(), cx| {
            Box::pin(async move {
                let size = cx.object()["spec"]["size"].clone();
                note_and_return(cx, &json!({"size": size, "nested": {"ready": true}}))
            })
        })
        .change(ChangeHandler::new("create_text", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!("größe ✓")) })
        });
    noted(widgets, ChangeHandler::new("create_nothing", On::create()))
}

fn update_with_diff(widgets: Widgets) -> Widgets {
    let widgets = widgets.change(ChangeHandler::new("update_fn", On::update()), |(), cx| {
        Box::pin(async move { note_and_return(cx, &json!({"updated": true})) })
    });
    let widgets = noted_field(widgets, FieldHandler::new("resize", "spec.size"));
    noted(
        widgets,
        ChangeHandler::new("repaint", On::update()).field("spec.colour"),
    )
}

fn delete_with_finalizer(widgets: Widgets) -> Widgets {
    widgets.change(ChangeHandler::new("delete_fn", On::delete()), |(), cx| {
        Box::pin(async move {
            note_and_wait(cx, 1, "still in use", 2.0)?;
            Ok(cx.set_result(&json!({"deleted": true}))?)
        })
    })
}

fn optional_delete(widgets: Widgets) -> Widgets {
    let held = ChangeHandler::new("delete_held", On::delete()).label("hold", TextTest::Present);
    [
        ChangeHandler::new("create_fn", On::create()),
        ChangeHandler::new("delete_optional", On::optional_delete()),
        held,
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn resume(widgets: Widgets) -> Widgets {
    let up = ChangeHandler::new("up", On::create().or(On::resume()));
    let widgets = widgets.change(up, |(), cx| {
        Box::pin(async move { note_and_return(cx, &json!({"up": true})) })
    });
    [
        ChangeHandler::new("resume_fn", On::resume()),
        ChangeHandler::new("update_fn", On::update()),
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn temporary_error(widgets: Widgets) -> Widgets {
    widgets.change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
        Box::pin(async move {
            note_and_wait(cx, 2, &format!("not yet: {}", cx.retry()), 2.0)?;
            Ok(cx.set_result(&json!({"attempts": cx.retry() + 1}))?)
        })
    })
}

fn permanent_error(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(async move {
                note_change(cx);
                Err(HandlerError::permanent("never"))
            })
        })
        .change(
            ChangeHandler::new("create_other", On::create()),
            |(), cx| Box::pin(async move { note_and_return(cx, &json!({"other": true})) }),
        )
}

fn arbitrary_error(widgets: Widgets) -> Widgets {
    let retried = ChangeHandler::new("retried", On::create()).backoff(Duration::from_secs(2));
    let given_up = ChangeHandler::new("given_up", On::create()).errors(ErrorMode::Permanent);
    let ignored = ChangeHandler::new("ignored", On::create()).errors(ErrorMode::Ignored);
    let widgets = widgets.change(retried, |(), cx| {
        Box::pin(async move {
            note_change(cx);
            if cx.retry() == 0 {
                return Err(io::Error::other("oops").into());
            }
            Ok(())
        })
    });
    [given_up, ignored]
        .into_iter()
        .fold(widgets, |widgets, it| {
            widgets.change(it, |(), cx| {
                Box::pin(async move {
                    note_change(cx);
                    Err(io::Error::other("oops").into())
                })
            })
        })
}

fn limits(widgets: Widgets) -> Widgets {
    let twice = ChangeHandler::new("twice", On::create()).retries(2);
    let short = ChangeHandler::new("short", On::create()).timeout(Duration::from_secs(1));
    widgets
        .change(twice, |(), cx| {
            Box::pin(async move { note_and_wait(cx, u32::MAX, "no", 0.1) })
        })
        .change(short, |(), cx| {
            Box::pin(async move { note_and_wait(cx, u32::MAX, "no", 5.0) })
        })
}

fn two_handlers(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("first", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"done": 1})) })
        })
        .change(ChangeHandler::new("second", On::create()), |(), cx| {
            Box::pin(async move {
                note_and_wait(cx, 1, "wait for it", 2.0)?;
                Ok(cx.set_result(&json!({"done": 2}))?)
            })
        })
        .change(ChangeHandler::new("third", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"done": 3})) })
        })
}

fn filters(widgets: Widgets) -> Widgets {
    let on_create = |id| ChangeHandler::new(id, On::create());
    let equals = |text: &str| TextTest::Equals(text.to_owned());
    [
        on_create("label_equals").label("tier", equals("gold")),
        on_create("label_present").label("tier", TextTest::Present),
        on_create("label_absent").label("tier", TextTest::Absent),
        on_create("annotation_equals").annotation("note", equals("yes")),
        on_create("both_present")
            .annotation("note", TextTest::Present)
            .label("tier", TextTest::Present),
        on_create("value_equals").value("spec.size", ValueTest::Equals(json!(3))),
        on_create("when_big").when(|subject| {
            let size = &subject.body.body()["spec"]["size"];
            size.as_i64().is_some_and(|size| size > 2)
        }),
        on_create("any_and_not")
            .label(
                "tier",
                Combined::Any(vec![equals("gold").into(), equals("tin").into()]),
            )
            .when_combined(!Combined::One(larger_than(4))),
        on_create("none_and_any")
            .label(
                "tier",
                Combined::NoneOf(vec![equals("gold").into(), equals("tin").into()]),
            )
            .when_combined(Combined::Any(vec![
                larger_than(4).into(),
                !Combined::One(larger_than(2)),
            ])),
        on_create("all_of_both").when_combined(Combined::All(vec![
            larger_than(2).into(),
            larger_than(4).into(),
        ])),
        ChangeHandler::new("transition", On::update()).transition(
            "spec.size",
            Some(ValueTest::Equals(json!(3)).into()),
            Some(ValueTest::Equals(json!(4)).into()),
        ),
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn larger_than(limit: i64) -> WhenTest {
    WhenTest::new(move |subject| {
        let size = &subject.body.body()["spec"]["size"];
        size.as_i64().is_some_and(|size| size > limit)
    })
}

/// Functions for values that look at the whole object, too.
fn value_functions(widgets: Widgets) -> Widgets {
    fn spec<'a>(cx: &'a FilterContext<'_, Value>, field: &str) -> &'a Value {
        &cx.object()["spec"][field]
    }
    fn is_own_tier((): &(), tier: Option<&str>, cx: &FilterContext<'_, Value>) -> bool {
        tier == spec(cx, "tier").as_str()
    }
    fn is_limit((): &(), size: Option<&i64>, cx: &FilterContext<'_, Value>) -> bool {
        size.copied() == spec(cx, "limit").as_i64()
    }
    fn is_below((): &(), size: Option<&i64>, cx: &FilterContext<'_, Value>) -> bool {
        size.is_some_and(|size| *size < spec(cx, "limit").as_i64().unwrap_or_default())
    }
    fn is_above((): &(), size: Option<&i64>, cx: &FilterContext<'_, Value>) -> bool {
        size.is_some_and(|size| *size >= spec(cx, "limit").as_i64().unwrap_or_default())
    }
    let state = Arc::new(());
    let old = predicate::value(&state, is_below);
    let new = predicate::value(&state, is_above);
    [
        ChangeHandler::new("own_tier", On::create())
            .label("tier", predicate::text(&state, is_own_tier)),
        ChangeHandler::new("at_limit", On::create())
            .value("spec.size", predicate::value(&state, is_limit)),
        ChangeHandler::new("crossing", On::update()).transition(
            "spec.size",
            Some(old.into()),
            Some(new.into()),
        ),
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn never_again(widgets: Widgets) -> Widgets {
    let update = ChangeHandler::new("update_fn", On::update());
    let monitor = DaemonHandler::new("monitor").label("monitored", TextTest::Present);
    let widgets = widgets
        .change(
            update.annotation("update-fn-never-again", TextTest::Absent),
            |(), cx| {
                Box::pin(async move {
                    note_only(cx)?;
                    cx.patch().annotate("update-fn-never-again", "yes");
                    Err(HandlerError::permanent("never call it again"))
                })
            },
        )
        .daemon(
            monitor.annotation("monitor-never-again", TextTest::Absent),
            |(), cx| {
                Box::pin(async move {
                    note_action("monitor", cx.name(), "runs");
                    // The mark is a change only after the creation was handled.
                    let handled = "kopf.zalando.org/last-handled-configuration";
                    while cx.raw()["metadata"]["annotations"][handled].is_null() {
                        tokio::time::sleep(Duration::from_millis(100)).await;
                    }
                    cx.patch().annotate("monitor-never-again", "yes");
                    Ok(())
                })
            },
        );
    noted(
        widgets,
        ChangeHandler::new("resize", On::update()).field("spec.size"),
    )
}

fn record_options(widgets: Widgets) -> Widgets {
    let id = "create_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one";
    widgets.change(ChangeHandler::new(id, On::create()), |(), cx| {
        Box::pin(async move { note_and_wait(cx, 1, "once more", 3600.0) })
    })
}

fn fields(widgets: Widgets) -> Widgets {
    [
        FieldHandler::new("size", "spec.size"),
        FieldHandler::new("labels", "metadata.labels"),
        FieldHandler::new("phase", "status.phase"),
        FieldHandler::new("name", r#"metadata.labels["app.kubernetes.io/name"]"#),
    ]
    .into_iter()
    .fold(widgets, noted_field)
}

fn overlapping_fields(widgets: Widgets) -> Widgets {
    [
        FieldHandler::new("changed", "spec.size"),
        FieldHandler::new("changed", "spec"),
    ]
    .into_iter()
    .fold(widgets, noted_field)
}

fn results_in_order(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("first", On::create()), |(), cx| {
            Box::pin(async move {
                let made = cx.object()["status"]["second"]["made"].clone();
                if made.is_null() {
                    note_change(cx);
                    return Err(HandlerError::temporary_after(
                        Duration::from_secs(1),
                        "no result yet",
                    ));
                }
                note_and_return(cx, &json!({"after": made}))
            })
        })
        .change(ChangeHandler::new("second", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"made": "it"})) })
        })
}

fn stealth(widgets: Widgets) -> Widgets {
    let managed = || TextTest::Equals("yes".to_owned());
    [
        ChangeHandler::new("create_fn", On::create()).label("managed", managed()),
        ChangeHandler::new("delete_fn", On::delete()).label("managed", managed()),
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn subhandlers(widgets: Widgets) -> Widgets {
    widgets.change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
        Box::pin(async move {
            note_change(cx);
            let items = cx.object()["spec"]["items"].clone();
            for item in items
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
            {
                let item = item.to_owned();
                cx.sub(SubHandler::new(item.clone()), move |cx| {
                    Box::pin(async move {
                        let late = u32::from(item == "b");
                        note_and_wait(cx, late, "b is late", 2.0)?;
                        Ok(cx.set_result(&json!({"item": item}))?)
                    })
                });
            }
            Ok(cx.set_result(&json!({"parent": true}))?)
        })
    })
}

fn subhandler_filters(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(filtered_parts(cx))
        })
        .change(ChangeHandler::new("update_fn", On::update()), |(), cx| {
            Box::pin(filtered_parts(cx))
        })
        .field(
            FieldHandler::new("spec_fn", "spec"),
            |(), cx: &mut FieldContext<Value, Value>| {
                Box::pin(async move {
                    note_field_change(cx);
                    let two = Some(ValueTest::Equals(json!(2)).into());
                    note_part(
                        cx,
                        SubHandler::new("two").transition("spec.size", None, two),
                    );
                    note_part(cx, SubHandler::new("whole"));
                    cx.run_subs_by(&Lifecycle::AllAtOnce).await
                })
            },
        )
}

async fn filtered_parts(cx: &mut ChangeContext<Value>) -> HandlerResult {
    note_change(cx);
    let size = "spec.size";
    let equals = |value: i64| Combined::One(ValueTest::Equals(json!(value)));
    let (present, absent) = (ValueTest::Present.into(), ValueTest::Absent.into());
    note_part(cx, SubHandler::new("any").field(size));
    note_part(cx, SubHandler::new("two").value(size, equals(2)));
    if cx.reason() == Reason::Update {
        for part in [
            SubHandler::new("from_one").transition(size, Some(equals(1)), None),
            SubHandler::new("to_three").transition(size, None, Some(equals(3))),
            SubHandler::new("one_to_two").transition(size, Some(equals(1)), Some(equals(2))),
            SubHandler::new("appeared").transition(
                size,
                Some(Combined::clone(&absent)),
                Some(Combined::clone(&present)),
            ),
            SubHandler::new("gone").transition(size, Some(present), Some(absent)),
        ] {
            note_part(cx, part);
        }
    }
    let gold = ValueTest::Equals(json!("gold"));
    note_part(
        cx,
        SubHandler::new("gold").value("metadata.labels.tier", gold),
    );
    note_part(cx, SubHandler::new("whole"));
    cx.run_subs_by(&Lifecycle::AllAtOnce).await
}

fn note_part(cx: &mut ChangeContext<Value>, part: SubHandler) {
    cx.sub_field(part, |cx: &mut FieldContext<Value, Value>| {
        note_field_change(cx);
        Box::pin(async { Ok(()) })
    });
}

fn events(widgets: Widgets) -> Widgets {
    widgets
        .event(EventHandler::new("spy"), |(), cx| {
            Box::pin(async move {
                if cx.name() == "silent" && cx.event_type() != WatchEventType::Listed {
                    note_event("spy", cx);
                }
                Ok(())
            })
        })
        .event(EventHandler::new("failing"), |(), _| {
            Box::pin(async move { Err(io::Error::other("ignored by the operator").into()) })
        })
}

fn event_results(widgets: Widgets) -> Widgets {
    let widgets = widgets.event(EventHandler::new("spy"), |(), cx| {
        Box::pin(async move {
            let size = cx.object()["spec"]["size"].clone();
            Ok(cx.set_result(&json!({"size": size}))?)
        })
    });
    let parts = [("metadata.labels", "labels"), ("spec.size", "size")];
    parts.into_iter().fold(widgets, |widgets, (field, param)| {
        let part = EventHandler::new("part").value(field, ValueTest::Present);
        widgets.event(part.param(param), |(), cx| {
            Box::pin(async move { Ok(cx.set_result(&json!({"is": cx.param()}))?) })
        })
    })
}

fn down(widgets: Widgets) -> Widgets {
    let widgets = widgets
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"created": true})) })
        })
        .change(ChangeHandler::new("update_fn", On::update()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"updated": true})) })
        });
    noted(widgets, ChangeHandler::new("delete_fn", On::delete()))
}

fn flood(widgets: Widgets) -> Widgets {
    widgets.change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
        Box::pin(async move {
            for _ in 0..10_000 {
                cx.event("Normal", "Said", "the same again");
            }
            Ok(())
        })
    })
}

fn takeover(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("first", On::create()), |(), cx| {
            Box::pin(async move { note_and_return(cx, &json!({"done": 1})) })
        })
        .change(ChangeHandler::new("second", On::create()), |(), cx| {
            Box::pin(async move {
                note_and_wait(cx, 1, "wait for it", 4.0)?;
                Ok(cx.set_result(&json!({"done": 2}))?)
            })
        })
        .change(
            ChangeHandler::new("update_first", On::update()),
            |(), cx| Box::pin(async move { note_only(cx) }),
        )
        .change(
            ChangeHandler::new("update_second", On::update()),
            |(), cx| Box::pin(async move { note_and_wait(cx, 1, "wait for it", 4.0) }),
        )
        .change(
            ChangeHandler::new("delete_first", On::delete()),
            |(), cx| Box::pin(async move { note_only(cx) }),
        )
        .change(
            ChangeHandler::new("delete_second", On::delete()),
            |(), cx| Box::pin(async move { note_and_wait(cx, 1, "wait for it", 4.0) }),
        )
}

fn posted(widgets: Widgets) -> Widgets {
    widgets.change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
        Box::pin(async move {
            note_change(cx);
            let long = format!("{}{}", "a".repeat(1000), "z".repeat(1000));
            cx.event(EventSeverity::Normal, "Noted", "größe ✓");
            cx.event(EventSeverity::Warning, "Warned", &long);
            cx.event(EventSeverity::Error, "Failed", "it failed");
            Ok(())
        })
    })
}

fn patches(widgets: Widgets) -> Widgets {
    let widgets = widgets.change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
        Box::pin(async move {
            let phase = format!("attempt {}", cx.retry());
            cx.patch()
                .set("spec.owner", "operator")
                .set("status.phase", phase)
                .label("seen", "yes");
            note_and_wait(cx, 1, "once more", 0.5)
        })
    });
    noted(widgets, ChangeHandler::new("update_fn", On::update()))
}

fn superseded(widgets: Widgets) -> Widgets {
    widgets
        .change(ChangeHandler::new("create_fn", On::create()), |(), cx| {
            Box::pin(async move { note_and_wait(cx, u32::MAX, "busy", 60.0) })
        })
        .change(ChangeHandler::new("delete_fn", On::delete()), |(), cx| {
            Box::pin(async move { note_and_wait(cx, 1, "still busy", 2.0) })
        })
}

fn mid_cycle(widgets: Widgets) -> Widgets {
    let widgets = noted(widgets, ChangeHandler::new("quick", On::update()));
    widgets.change(ChangeHandler::new("slow", On::update()), |(), cx| {
        Box::pin(async move { note_and_wait(cx, 1, "later", 3.0) })
    })
}

fn long_ids(widgets: Widgets) -> Widgets {
    [
        "main.<locals>.create_fn",
        "a_rather_long_handler_name_for_testing_the_cut.spec.some.field",
        "update_fn_with_a_very_long_name_that_surely_exceeds_limits/sub-handler-one",
        "x".repeat(64).leak(),
    ]
    .into_iter()
    .fold(widgets, |widgets, id| {
        widgets.change(ChangeHandler::new(id, On::create()), |(), cx| {
            Box::pin(async move {
                note_and_wait(cx, 1, "once more", 3.0)?;
                Ok(cx.set_result(&json!({"done": true}))?)
            })
        })
    })
}

fn resume_deleted(widgets: Widgets) -> Widgets {
    [
        ChangeHandler::new("resume_living", On::resume()),
        ChangeHandler::new("resume_any", On::resume_deleted()),
        ChangeHandler::new("delete_fn", On::delete()),
    ]
    .into_iter()
    .fold(widgets, noted)
}

fn timeout(widgets: Widgets) -> Widgets {
    let stuck = ChangeHandler::new("stuck", On::create()).timeout(Duration::from_secs(1));
    widgets.change(stuck, |(), cx| {
        Box::pin(async move {
            note_change(cx);
            tokio::time::sleep(Duration::from_secs(4)).await;
            Ok(cx.set_result(&json!({"late": true}))?)
        })
    })
}
