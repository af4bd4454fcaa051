//! Calls for one object, step by step.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::{
    cause::detect::{EventKind, ObjectHistory},
    handler::Trigger,
    machine::{
        answer::RequestFailure,
        memory::{NewestEvent, NewestSource},
        now::Now,
        request::{AnswerNeed, PatchContent},
    },
    object::{finalizer::KOPF_FINALIZER, patch::apply_merge, resource_version::ResourceVersion},
    outcome::HandlerFailure,
};

/// An operator with these handlers, and the memory of one object.
struct OneObject {
    registry: Arc<Registry>,
    persistence: Arc<Persistence>,
    memory: ObjectMemory<Arc<Value>>,
    now: Now,
    /// Whether the operator pauses, and runs again, during each call of a handler and each read.
    pauses: bool,
}

impl OneObject {
    fn new(triggers: &[Trigger]) -> Self {
        let specs = triggers.iter().enumerate();
        let specs = specs.map(|(at, trigger)| HandlerSpec::new(format!("{at}").as_str(), *trigger));
        Self {
            registry: Arc::new(Registry::new(specs).expect("valid declarations")),
            persistence: Arc::default(),
            memory: ObjectMemory::default(),
            now: Now {
                wall: Timestamp::UNIX_EPOCH,
                steady: Duration::ZERO,
                seed: 0,
                stopping: false,
                running: true,
                epoch: 0,
            },
            pauses: false,
        }
    }

    /// Plays a call up to its end; `perform` returns the inputs that effects lead to.
    fn call(
        &mut self,
        batch: BatchSummary,
        mut perform: impl FnMut(&ObjectEffect<'_, Arc<Value>>) -> ObjectInput,
    ) -> Rest {
        let error_delays = [Duration::from_secs(1)];
        let background = self.registry.background_handlers().next().is_some();
        let mut machine = ObjectMachine::new(ObjectRules {
            uid: "u",
            registry: &self.registry,
            persistence: &self.persistence,
            status_endpoint: false,
            selective: false,
            needs_each_event: self
                .registry
                .handlers()
                .iter()
                .any(|it| it.trigger == Trigger::Event),
            has_background: background,
            reconcile: None,
            lifecycle: &Lifecycle::AllAtOnce,
            default_backoff: Duration::from_secs(1),
            error_delays: &error_delays,
        });
        let mut input = ObjectInput::Batch(batch);
        for _ in 0..50 {
            machine.step(&mut self.memory, input, &self.now);
            input = match machine.effect() {
                ObjectEffect::Rest(rest) => {
                    if let KeptState::State(state) = &rest.keep {
                        self.memory.plan(Arc::clone(state));
                    }
                    return rest.clone();
                }
                ObjectEffect::ParseKept(kept) => ObjectInput::Parsed(Ok(Some(Arc::clone(kept)))),
                effect => {
                    let takes_long = matches!(
                        effect,
                        ObjectEffect::Call { .. } | ObjectEffect::Send(ObjectRequest::Read(_))
                    );
                    self.now.epoch += u64::from(takes_long && self.pauses);
                    perform(&effect)
                }
            };
        }
        panic!("the call does not end");
    }
}

fn batch(kind: EventKind, version: u64) -> BatchSummary {
    BatchSummary {
        first: Some(kind),
        newest: Some(NewestEvent {
            kind,
            version: Some(ResourceVersion::new(&version.to_string())),
            has_text: true,
        }),
        ..BatchSummary::default()
    }
}

fn object(version: u64) -> Value {
    json!({
        "metadata": {"name": "one", "uid": "u", "resourceVersion": version.to_string()},
        "spec": {},
    })
}

fn status(code: u16) -> ObjectInput {
    ObjectInput::Answer(Answer::Failed(RequestFailure::Status {
        code,
        message: "no".to_owned(),
        retry_after: None,
    }))
}

#[test]
fn an_event_from_before_the_deletion_does_not_call_a_handler() {
    for kind in [EventKind::Changed, EventKind::Listed] {
        let mut one = OneObject::new(&[Trigger::Create]);
        one.memory.written = Some(ResourceVersion::new("5"));
        one.memory.news = NewestSource::Gone;
        let mut reads = 0;
        let rest = one.call(batch(kind, 6), |effect| match effect {
            ObjectEffect::Send(ObjectRequest::Read(_)) => {
                reads += 1;
                status(404)
            }
            effect => panic!("{effect:?}"),
        });
        assert_eq!((reads, rest.next), (1, NextCall::AwaitChange));
    }
}

#[test]
fn a_finalizer_for_which_others_are_faster_is_added_with_growing_pauses() {
    let mut one = OneObject::new(&[Trigger::Delete { optional: false }]);
    let (mut version, mut waits) = (5, Vec::new());
    one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(object(version))))),
        ObjectEffect::Send(ObjectRequest::Read(_)) => {
            version += 1;
            ObjectInput::Answer(Answer::Object(Arc::new(object(version))))
        }
        // Others write the object each time after it is read, up to here.
        ObjectEffect::Send(_) if version < 10 => status(422),
        ObjectEffect::Send(_) => {
            let mut held = object(11);
            held["metadata"]["finalizers"] = json!([KOPF_FINALIZER]);
            ObjectInput::Answer(Answer::Object(Arc::new(held)))
        }
        ObjectEffect::Wait(pause) => {
            waits.push(pause.pause.as_millis());
            ObjectInput::Continue
        }
        _ => ObjectInput::Continue,
    });
    assert_eq!(
        waits,
        [100, 200, 400, 800],
        "no pause after the first conflict"
    );
}

#[test]
fn an_object_that_was_not_gone_after_all_is_handled() {
    let mut one = OneObject::new(&[Trigger::Create]);
    one.memory.news = NewestSource::Gone;
    let mut calls = 0;
    one.call(batch(EventKind::Changed, 6), |effect| match effect {
        ObjectEffect::Send(ObjectRequest::Read(_)) => {
            ObjectInput::Answer(Answer::Object(Arc::new(object(6))))
        }
        ObjectEffect::Call { .. } => {
            calls += 1;
            ObjectInput::LeaseEnded
        }
        _ => ObjectInput::Continue,
    });
    assert_eq!((calls, one.memory.news), (1, NewestSource::Watch));
}

#[test]
fn a_list_from_before_the_release_does_not_handle_the_deletion_again() {
    let mut one = OneObject::new(&[Trigger::Delete { optional: false }]);
    let mut deleted = object(5);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let mut released = deleted.clone();
    deleted["metadata"]["finalizers"] = json!([one.persistence.finalizer]);
    released["metadata"]["finalizers"] = json!([]);
    let mut calls = 0;
    let mut perform = |effect: &ObjectEffect<'_, Arc<Value>>| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(deleted.clone())))),
        ObjectEffect::Call { .. } => {
            calls += 1;
            ObjectInput::Called(HandlerCall {
                outcome: Outcome::Success(Value::Null),
                writes: ObjectPatch::new(),
                subs: Vec::new(),
            })
        }
        // The API server answers with the version of before.
        ObjectEffect::Send(ObjectRequest::Patch { .. }) => {
            ObjectInput::Answer(Answer::Object(Arc::new(released.clone())))
        }
        ObjectEffect::Send(_) => status(404),
        _ => ObjectInput::Continue,
    };
    one.call(batch(EventKind::Changed, 5), &mut perform);
    one.call(batch(EventKind::Listed, 5), &mut perform);
    assert_eq!(calls, 1);
}

#[test]
fn a_requeue_after_a_read_that_follows_a_pause_is_handled() {
    let mut one = OneObject::new(&[Trigger::Daemon]);
    one.memory.history = Some(ObjectHistory::begin(EventKind::Listed));
    one.memory.written = Some(ResourceVersion::new("5"));
    one.memory.drop_plan();
    let mut held = object(5);
    held["metadata"]["finalizers"] = json!([one.persistence.finalizer]);
    let mut reconciled = 0;
    let mut perform = |effect: &ObjectEffect<'_, Arc<Value>>| match effect {
        // The list is older than our last write, which the API server has.
        ObjectEffect::Send(ObjectRequest::Read(_)) => {
            ObjectInput::Answer(Answer::Object(Arc::new(held.clone())))
        }
        ObjectEffect::ParseLatest => ObjectInput::Parsed(Ok(Some(Arc::new(held.clone())))),
        ObjectEffect::Reconcile(_) => {
            reconciled += 1;
            ObjectInput::Reconciled { holds: true }
        }
        ObjectEffect::Send(_) => ObjectInput::Answer(Answer::LeaseEnded),
        _ => ObjectInput::Continue,
    };
    one.call(batch(EventKind::Listed, 4), &mut perform);
    let requeued = BatchSummary {
        requeued: true,
        ..BatchSummary::default()
    };
    one.call(requeued, &mut perform);
    assert_eq!(reconciled, 2);
}

#[test]
fn a_rejected_removal_of_the_finalizer_is_not_sent_again_when_a_daemon_has_started() {
    let mut one = OneObject::new(&[Trigger::Daemon]);
    let mut held = object(5);
    held["metadata"]["finalizers"] = json!([one.persistence.finalizer]);
    let mut patches = 0;
    for holds in [false, true] {
        let batch = match holds {
            false => batch(EventKind::Changed, 5),
            true => BatchSummary::default(),
        };
        one.call(batch, |effect| match effect {
            ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(held.clone())))),
            ObjectEffect::Reconcile(_) => ObjectInput::Reconciled { holds },
            ObjectEffect::Send(ObjectRequest::Patch { content, .. }) => {
                patches += usize::from(format!("{content:?}").contains("finalizers"));
                status(422)
            }
            ObjectEffect::Send(_) => ObjectInput::Answer(Answer::Object(Arc::new(held.clone()))),
            _ => ObjectInput::Continue,
        });
        one.now.steady += Duration::from_secs(60);
    }
    assert_eq!(patches, 1);
}

/// An object whose update to `{"x": 1}` has failed once, and was reverted.
fn reverted_update(one: &mut OneObject) -> Value {
    let mut updated = object(5);
    updated["spec"]["x"] = 1.into();
    updated["metadata"]["annotations"] =
        json!({"kopf.zalando.org/last-handled-configuration": r#"{"spec":{"x":0}}"#});
    let mut recorded = updated.clone();
    one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(updated.clone())))),
        ObjectEffect::Call { .. } => ObjectInput::Called(HandlerCall {
            outcome: Outcome::Error(HandlerFailure::temporary("oops")),
            writes: ObjectPatch::new(),
            subs: Vec::new(),
        }),
        ObjectEffect::Send(ObjectRequest::Patch {
            content: PatchContent::Merge(patch),
            ..
        }) => {
            apply_merge(&mut recorded, patch);
            recorded["metadata"]["resourceVersion"] = "6".into();
            ObjectInput::Answer(Answer::Object(Arc::new(recorded.clone())))
        }
        _ => ObjectInput::Continue,
    });
    recorded["spec"]["x"] = 0.into();
    recorded["metadata"]["resourceVersion"] = "7".into();
    recorded
}

#[test]
fn a_reverted_change_is_not_closed_on_top_of_the_records_of_another_operator() {
    let mut one = OneObject::new(&[Trigger::Update]);
    let reverted = reverted_update(&mut one);
    let mut newer = reverted.clone();
    newer["metadata"]["resourceVersion"] = "8".into();
    newer["spec"]["x"] = 1.into();
    let mut sent = Vec::new();
    let mut calls = 0;
    one.call(batch(EventKind::Changed, 7), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(reverted.clone())))),
        ObjectEffect::Call { .. } => {
            calls += 1;
            ObjectInput::LeaseEnded
        }
        ObjectEffect::Send(ObjectRequest::Patch { content, .. }) => {
            sent.push(format!("{content:?}"));
            status(409)
        }
        ObjectEffect::Send(_) => ObjectInput::Answer(Answer::Object(Arc::new(newer.clone()))),
        _ => ObjectInput::Continue,
    });
    assert_eq!(sent.len(), 1, "{sent:#?}");
    assert_eq!(calls, 0, "the handler waits for its next attempt");
}

#[test]
fn a_rejected_end_of_a_reverted_change_waits_and_is_decided_again() {
    let mut one = OneObject::new(&[Trigger::Update]);
    let reverted = reverted_update(&mut one);
    let mut patches = 0;
    for wait in [0, 0, 60] {
        one.now.steady += Duration::from_secs(wait);
        one.call(
            batch(EventKind::Changed, 7 + patches),
            |effect| match effect {
                ObjectEffect::ParseEvent => {
                    ObjectInput::Parsed(Ok(Some(Arc::new(reverted.clone()))))
                }
                ObjectEffect::Send(ObjectRequest::Patch { .. }) => {
                    patches += 1;
                    status(422)
                }
                ObjectEffect::Send(_) => {
                    ObjectInput::Answer(Answer::Object(Arc::new(reverted.clone())))
                }
                _ => ObjectInput::Continue,
            },
        );
    }
    assert_eq!(patches, 2, "the second event comes before the write is due");
}

#[test]
fn a_patch_that_is_undone_and_has_no_records_is_no_reason_for_another_call() {
    let mut one = OneObject::new(&[Trigger::Resume { deleted: false }]);
    let mut handled = object(5);
    let base = "{\"spec\":{}}\n";
    handled["metadata"]["annotations"] =
        json!({"kopf.zalando.org/last-handled-configuration": base});
    let mut calls = 0;
    let rest = one.call(batch(EventKind::Listed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(handled.clone())))),
        ObjectEffect::Call { .. } => {
            calls += 1;
            let mut writes = ObjectPatch::new();
            writes.merge(json!({"status": {"seen": true}}));
            ObjectInput::Called(HandlerCall {
                outcome: Outcome::Success(Value::Null),
                writes,
                subs: Vec::new(),
            })
        }
        // A webhook restores the status.
        ObjectEffect::Send(_) => ObjectInput::Answer(Answer::Object(Arc::new(handled.clone()))),
        ObjectEffect::Report(report) => panic!("{report:?}"),
        _ => ObjectInput::Continue,
    });
    assert_eq!((calls, rest.next), (1, NextCall::AwaitChange));
}

#[test]
fn without_error_delays_the_pause_does_not_grow() {
    let delays = [1, 1, 2, 3].map(Duration::from_secs);
    let pauses = [0, 1, 2, 3, 1000].map(|it| error_delay(&delays, it).as_secs());
    assert_eq!(pauses, [1, 1, 2, 3, 3]);
    for failures in [0, 1000] {
        assert_eq!(error_delay(&[], failures), UNTHROTTLED_PAUSE);
    }
}

#[test]
fn no_handler_is_called_for_an_object_that_is_gone_when_event_handlers_patch_it() {
    let mut one = OneObject::new(&[Trigger::Event, Trigger::Create]);
    let rest = one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(object(5))))),
        ObjectEffect::CallEventHandlers => {
            let mut patch = ObjectPatch::new();
            patch.merge(json!({"status": {"seen": true}}));
            let known = Arc::new(object(5));
            ObjectInput::EventHandlersCalled(Ok(Some(EventPatch { known, patch })))
        }
        ObjectEffect::Send(_) => status(404),
        effect => panic!("{effect:?}"),
    });
    assert_eq!(rest.next, NextCall::AwaitChange);
    assert_eq!(one.memory.news, NewestSource::Gone);
}

#[test]
fn what_event_handlers_patch_is_not_written_if_it_is_there() {
    let mut one = OneObject::new(&[Trigger::Event]);
    for (seen, expected) in [(json!(false), 1), (json!(true), 0), (Value::Null, 1)] {
        let mut patched = object(5);
        patched["status"] = json!({"seen": seen});
        let mut writes = 0;
        let rest = one.call(batch(EventKind::Changed, 5), |effect| match effect {
            ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(patched.clone())))),
            ObjectEffect::CallEventHandlers => {
                let mut patch = ObjectPatch::new();
                patch.merge(json!({"status": {"seen": true, "gone": null}}));
                let known = Arc::new(patched.clone());
                ObjectInput::EventHandlersCalled(Ok(Some(EventPatch { known, patch })))
            }
            ObjectEffect::Send(_) => {
                writes += 1;
                ObjectInput::Answer(Answer::Object(Arc::new(patched.clone())))
            }
            ObjectEffect::Report(report) => panic!("{report:?}"),
            _ => ObjectInput::Continue,
        });
        assert_eq!(
            (writes, rest.next),
            (expected, NextCall::AwaitChange),
            "{seen}"
        );
    }
}

#[test]
fn an_object_is_gone_after_a_write_from_which_a_webhook_removes_the_finalizer() {
    let mut one = OneObject::new(&[Trigger::Delete { optional: false }, Trigger::Daemon]);
    let mut deleted = object(5);
    deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    deleted["metadata"]["finalizers"] = json!([one.persistence.finalizer]);
    one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(deleted.clone())))),
        ObjectEffect::Reconcile(_) => ObjectInput::Reconciled { holds: true },
        ObjectEffect::Call { .. } => ObjectInput::Called(HandlerCall {
            outcome: Outcome::Success(Value::Null),
            writes: ObjectPatch::new(),
            subs: Vec::new(),
        }),
        // The API server answers with the version of before.
        ObjectEffect::Send(ObjectRequest::Patch {
            content: PatchContent::Merge(patch),
            ..
        }) => {
            let mut released = deleted.clone();
            apply_merge(&mut released, patch);
            released["metadata"]["finalizers"] = json!([]);
            ObjectInput::Answer(Answer::Object(Arc::new(released)))
        }
        _ => ObjectInput::Continue,
    });
    assert_eq!(one.memory.news, NewestSource::Gone);
}

#[test]
fn after_a_pause_during_a_call_the_other_handlers_wait_for_the_newest_state() {
    for (pauses, expected) in [(false, 2), (true, 1)] {
        let mut one = OneObject::new(&[Trigger::Create, Trigger::Create]);
        one.pauses = pauses;
        let mut calls = 0;
        one.call(batch(EventKind::Changed, 5), |effect| match effect {
            ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(object(5))))),
            ObjectEffect::Call { .. } => {
                calls += 1;
                ObjectInput::Called(HandlerCall {
                    outcome: Outcome::Success(Value::Null),
                    writes: ObjectPatch::new(),
                    subs: Vec::new(),
                })
            }
            ObjectEffect::Send(_) => ObjectInput::Answer(Answer::LeaseEnded),
            _ => ObjectInput::Continue,
        });
        assert_eq!(calls, expected);
    }
}

#[test]
fn a_state_that_was_read_before_a_pause_is_not_handled_after_it() {
    for (pauses, expected) in [(false, 1), (true, 0)] {
        let mut one = OneObject::new(&[Trigger::Create]);
        one.pauses = pauses;
        let mut calls = 0;
        let mut unread = batch(EventKind::Listed, 5);
        unread.newest.iter_mut().for_each(|it| it.has_text = false);
        let rest = one.call(unread, |effect| match effect {
            ObjectEffect::Send(ObjectRequest::Read(_)) => {
                ObjectInput::Answer(Answer::Object(Arc::new(object(5))))
            }
            ObjectEffect::Call { .. } => {
                calls += 1;
                ObjectInput::LeaseEnded
            }
            _ => ObjectInput::Continue,
        });
        assert_eq!((calls, rest.next), (expected, NextCall::AwaitChange));
    }
}

#[test]
fn sub_handlers_keep_their_records_when_the_patch_of_another_handler_is_rejected() {
    let mut one = OneObject::new(&[Trigger::Create, Trigger::Create]);
    let mut records = Vec::new();
    one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(object(5))))),
        ObjectEffect::Call { turn, spec, .. } if spec.id.as_str() == "0" => {
            let (id, now) = (spec.id.sub("one"), Timestamp::UNIX_EPOCH);
            let declared = HandlerSpec::new(id.clone(), Trigger::Sub { changing: false });
            let mut sub = turn.sub(&spec.id, [declared], now);
            sub.finish(&id, Outcome::Success(Value::Null), Duration::ZERO, now);
            ObjectInput::Called(HandlerCall {
                outcome: sub.outcome(Value::Null, now),
                writes: ObjectPatch::new(),
                subs: vec![sub],
            })
        }
        ObjectEffect::Call { .. } => {
            let mut writes = ObjectPatch::new();
            writes.merge(json!({"spec": {"size": 2}}));
            ObjectInput::Called(HandlerCall {
                outcome: Outcome::Success(Value::Null),
                writes,
                subs: Vec::new(),
            })
        }
        ObjectEffect::Send(ObjectRequest::Patch {
            content: PatchContent::Merge(patch),
            ..
        }) if patch["spec"].is_null() => {
            records.push((*patch).clone());
            ObjectInput::Answer(Answer::LeaseEnded)
        }
        ObjectEffect::Send(ObjectRequest::Patch { .. }) => status(422),
        ObjectEffect::Send(_) => ObjectInput::Answer(Answer::Object(Arc::new(object(5)))),
        _ => ObjectInput::Continue,
    });
    let [record] = &records[..] else {
        panic!("{records:?}");
    };
    let annotations = &record["metadata"]["annotations"];
    let parent = annotations["kopf.zalando.org/0"].as_str();
    assert!(parent.is_some_and(|it| it.contains("subrefs")), "{record}");
    assert!(
        annotations["kopf.zalando.org/0.one"].is_string(),
        "{record}"
    );
}

#[test]
fn what_a_create_handler_changes_is_handled_as_an_update() {
    let mut one = OneObject::new(&[Trigger::Create, Trigger::Update]);
    let mut stored = object(5);
    let mut reasons = Vec::new();
    one.call(batch(EventKind::Changed, 5), |effect| match effect {
        ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(stored.clone())))),
        ObjectEffect::Call { turn, .. } => {
            let mut writes = ObjectPatch::new();
            if reasons.is_empty() {
                writes.merge(json!({"spec": {"size": 2}}));
            }
            reasons.push(turn.reason());
            ObjectInput::Called(HandlerCall {
                outcome: Outcome::Success(Value::Null),
                writes,
                subs: Vec::new(),
            })
        }
        ObjectEffect::Send(ObjectRequest::Patch {
            content: PatchContent::Merge(patch),
            need,
            ..
        }) => {
            apply_merge(&mut stored, patch);
            stored["metadata"]["resourceVersion"] = json!("6");
            ObjectInput::Answer(match need {
                AnswerNeed::Object => Answer::Object(Arc::new(stored.clone())),
                _ => Answer::AsExpected(ResourceVersion::new("6")),
            })
        }
        _ => ObjectInput::Continue,
    });
    assert_eq!(reasons, [Reason::Create, Reason::Update]);
}

/// An object whose only handler fails, with a pause of a minute, for itself or by a sub-handler.
struct FailingHandler {
    one: OneObject,
    stored: Value,
    by_sub_handler: bool,
}

impl FailingHandler {
    /// Plays a call; returns how often the handler was called, or its sub-handler.
    fn call(&mut self, batch: BatchSummary) -> (u32, NextCall) {
        let (stored, now) = (&mut self.stored, self.one.now.wall);
        let mut calls = 0;
        let mut fail = || {
            calls += 1;
            Outcome::Error(HandlerFailure::Temporary {
                message: "not yet".to_owned(),
                delay: Some(Duration::from_secs(60)),
            })
        };
        let rest = self.one.call(batch, |effect| match effect {
            ObjectEffect::ParseEvent => ObjectInput::Parsed(Ok(Some(Arc::new(stored.clone())))),
            ObjectEffect::Call { turn, spec, .. } if self.by_sub_handler => {
                let id = spec.id.sub("one");
                let declared = HandlerSpec::new(id.clone(), Trigger::Sub { changing: false });
                let mut sub = turn.sub(&spec.id, [declared], now);
                if !sub.due(&Lifecycle::AllAtOnce, 0, now).is_empty() {
                    sub.finish(&id, fail(), Duration::ZERO, now);
                }
                ObjectInput::Called(HandlerCall {
                    outcome: sub.outcome(Value::Null, now),
                    writes: ObjectPatch::new(),
                    subs: vec![sub],
                })
            }
            ObjectEffect::Call { .. } => ObjectInput::Called(HandlerCall {
                outcome: fail(),
                writes: ObjectPatch::new(),
                subs: Vec::new(),
            }),
            ObjectEffect::Send(ObjectRequest::Patch {
                content: PatchContent::Merge(patch),
                ..
            }) => {
                let version = version_of(stored).and_then(|it| it.parse::<u64>().ok());
                apply_merge(stored, patch);
                let version = version.map(|it| (it + 1).to_string());
                stored["metadata"]["resourceVersion"] = json!(version);
                ObjectInput::Answer(Answer::Object(Arc::new(stored.clone())))
            }
            _ => ObjectInput::Continue,
        });
        (calls, rest.next)
    }

    /// Lets time pass, while the clock jumps by this number of seconds.
    fn pass(&mut self, time: Duration, jump: i64) {
        let now = &mut self.one.now;
        now.steady += time;
        now.wall = now.wall + time + jiff::SignedDuration::from_secs(jump);
    }
}

#[test]
fn a_wait_ends_in_time_though_the_clock_is_set_back() {
    const HOUR: i64 = 3600;
    let after = |seconds| NextCall::After(Duration::from_secs(seconds));
    for by_sub_handler in [false, true] {
        let mut failing = FailingHandler {
            one: OneObject::new(&[Trigger::Create]),
            stored: object(5),
            by_sub_handler,
        };
        failing.pass(Duration::ZERO, HOUR);
        let begun = batch(EventKind::Changed, 5);
        assert_eq!(failing.call(begun), (1, after(60)));
        // The clock is right again, and another client edits the object.
        failing.pass(Duration::from_secs(20), -HOUR);
        failing.stored["metadata"]["resourceVersion"] = json!("100");
        let edited = batch(EventKind::Changed, 100);
        assert_eq!(failing.call(edited), (0, after(40)));
        // The record has the right time, also for the next process.
        failing.one.memory = ObjectMemory::default();
        failing.pass(Duration::from_secs(40), 0);
        let listed = batch(EventKind::Listed, 101);
        assert_eq!(failing.call(listed), (1, after(60)));
        // Nothing but the planned call follows.
        failing.pass(Duration::from_secs(60), -HOUR);
        assert_eq!(failing.call(BatchSummary::default()), (1, after(60)));
    }
}

#[test]
fn a_record_with_corrected_times_is_not_a_state_that_others_restore() {
    let mut failing = FailingHandler {
        one: OneObject::new(&[Trigger::Create]),
        stored: object(5),
        by_sub_handler: false,
    };
    failing.pass(Duration::ZERO, 3600);
    failing.call(batch(EventKind::Changed, 5));
    failing.pass(Duration::from_secs(20), -3600);
    // The object is written so often that its states are remembered.
    for _ in 0..20 {
        failing.one.memory.count_write(None, &failing.one.now);
    }
    failing.stored["metadata"]["resourceVersion"] = json!("100");
    let corrected = failing.call(batch(EventKind::Changed, 100));
    assert_eq!(corrected, (0, NextCall::After(Duration::from_secs(40))));
}

#[test]
fn a_wait_that_a_clock_in_the_future_has_begun_ends_in_time_after_a_restart() {
    let mut failing = FailingHandler {
        one: OneObject::new(&[Trigger::Create]),
        stored: object(5),
        by_sub_handler: false,
    };
    failing.pass(Duration::ZERO, 3600);
    failing.call(batch(EventKind::Changed, 5));
    failing.one.memory = ObjectMemory::default();
    failing.pass(Duration::ZERO, -3600);
    let listed = batch(EventKind::Listed, 6);
    let after = NextCall::After(Duration::from_secs(60));
    assert_eq!(failing.call(listed), (0, after));
}
