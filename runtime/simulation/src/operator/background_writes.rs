//! The commands and the writes of daemons and timers.

use std::sync::Arc;
use std::time::Duration;

use kopf_core::machine::answer::Answer;
use kopf_core::machine::effect::{RequestEffect, RequestMachine as _};
use kopf_core::machine::request::{ObjectRequest, OnForbidden};
use kopf_core::machine::write::{ObjectWrite, OnConflict, ReadBack, WriteResult, WriteRules};
use kopf_core::object::patch::ObjectPatch;
use kopf_core::queue::next_sleep;
use serde_json::json;

use super::background::{BackgroundCommand, InstanceRef};
use super::coordination::uptime;
use super::{CallPurpose, OperatorFact, SimulatedOperator, TimerPurpose, requests};
use crate::server::Verb;
use crate::world::{ActorEffect, CallOutcome};

impl SimulatedOperator {
    pub(super) fn perform_background(&mut self) {
        while !self.background.commands.is_empty() {
            for command in std::mem::take(&mut self.background.commands) {
                match command {
                    BackgroundCommand::WakeAfter(it, Duration::ZERO) => self.wake_background(&it),
                    BackgroundCommand::WakeAfter(it, wait) => {
                        self.set_timer(TimerPurpose::Background(it), next_sleep(wait));
                    }
                    BackgroundCommand::Requeue(key) => self.requeue(key),
                    BackgroundCommand::Write(it) => self.begin_background_write(&it),
                    BackgroundCommand::Started((key, at)) => {
                        self.report(OperatorFact::BackgroundStarted { uid: key.uid, at });
                    }
                    BackgroundCommand::Ended((key, at)) => {
                        self.report(OperatorFact::BackgroundEnded { uid: key.uid, at });
                    }
                }
            }
        }
    }

    pub(super) fn wake_background(&mut self, it: &InstanceRef) {
        let now = uptime(self.clock);
        let may_begin = self.coordination.pauses.is_running(now);
        self.background.wake(it, may_begin, now);
    }

    pub(super) fn begin_background_write(&mut self, it: &InstanceRef) {
        let Some(known) = self.background.latest(&it.0).cloned() else {
            return;
        };
        let mut patch = ObjectPatch::new();
        patch.merge(json!({"status": {"daemon": it.1}}));
        let rules = WriteRules {
            status_endpoint: self.options.setup.status_endpoint,
            on_conflict: OnConflict::Repeat,
            on_forbidden: OnForbidden::RetryForMinute {
                ends_at_stop: false,
            },
            read_back: ReadBack::Always,
        };
        let now = self.now();
        let write = ObjectWrite::new(it.0.uid, &known, patch, rules, &now);
        if let Some(slot) = self.background.write_mut(it) {
            *slot = Some(Box::new(write));
        }
        self.go_on_with_background_write(it, None);
    }

    pub(super) fn go_on_with_background_write(
        &mut self,
        it: &InstanceRef,
        outcome: Option<CallOutcome>,
    ) {
        let now = self.now();
        let may_write = self.may_write();
        let Some(write) = self.background.write_mut(it).and_then(Option::as_mut) else {
            return;
        };
        let mut answer = outcome.map(|it| requests::answer(&write.request(), it));
        if !may_write {
            answer = Some(Answer::LeaseEnded);
        }
        loop {
            match write.step(answer.take(), &now) {
                RequestEffect::Report(_) => {}
                RequestEffect::Send if !may_write => {
                    answer = Some(Answer::LeaseEnded);
                }
                RequestEffect::Send => {
                    let request = write.request();
                    let is_patch = matches!(request, ObjectRequest::Patch { .. });
                    let verb = requests::verb(&request, &it.0.name);
                    let verb = verb.unwrap_or_else(|| Verb::Get {
                        name: Arc::clone(&it.0.name),
                    });
                    let purpose = CallPurpose::Background(it.clone());
                    let call = self.send(purpose, self.options.kind, verb);
                    if is_patch {
                        self.report_sent(it.0.uid, call, false);
                    }
                    return;
                }
                RequestEffect::Wait(pause) => {
                    return self.set_timer(TimerPurpose::Background(it.clone()), pause.pause);
                }
                RequestEffect::Done(result) => {
                    if let Ok(WriteResult::Written(newer) | WriteResult::Stripped(newer, _)) =
                        result
                    {
                        self.background.update_latest(&it.0, &newer);
                    }
                    if let Some(slot) = self.background.write_mut(it) {
                        *slot = None;
                    }
                    return self.wake_background(it);
                }
            }
        }
    }

    pub(super) fn report_sent(&mut self, uid: &'static str, call: u64, has_records: bool) {
        let fact = ActorEffect::Report(OperatorFact::Sent {
            uid,
            call,
            has_records,
        });
        // Claims know the sender of a request before it arrives.
        let at = self.effects.len() - 1;
        self.effects.insert(at, fact);
    }
}
