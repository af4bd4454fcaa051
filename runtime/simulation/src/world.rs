//! One history: processes, the API server and others, on one queue and one clock.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;

use crate::choices::Choices;
use crate::faults::{FaultPlan, RequestFault};
use crate::server::{
    ApiRequest, ApiServer, KindId, OpenWatch, ServerEventType, WatchOptions, WatchPoll,
};
use crate::time::VirtualTime;

mod actor;
mod history;
mod queue;
mod scenario;

use history::{describe_answer, describe_object, describe_request, describe_target};
use queue::{EventQueue, Planned, RunId, SentRequest, WatchId};

pub use actor::{Actor, ActorClock, ActorEffect, ActorInput, CallOutcome};
pub use history::History;
pub use scenario::{Disturbance, HistoryLimits, HistoryPhase, Occurrence, Scenario, Violation};

/// The time between two bookmarks of a watch.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// The timers of tokio panic beyond this, which is more than two years.
const LONGEST_TIMER: Duration = Duration::from_millis(1 << 36);

/// The time between two looks whether the operators are at rest.
const REST_INTERVAL: Duration = Duration::from_secs(10);

/// The time of a burst of disturbances, in milliseconds.
const BURST: u32 = 3_000;

/// What a history was about.
#[derive(Debug, Clone, Copy, Default)]
pub struct HistoryFigures {
    /// The steps.
    pub steps: u64,
    /// The requests that the API server executed for operators.
    pub requests: u64,
}

/// A history that is being played.
pub struct World<'a, S: Scenario> {
    scenario: &'a mut S,
    choices: &'a mut Choices,
    history: &'a mut History,
    server: ApiServer,
    limits: HistoryLimits,
    quiet: FaultPlan,
    queue: EventQueue,
    processes: Vec<Process<S::Actor>>,
    watches: BTreeMap<WatchId, WatchState>,
    now: VirtualTime,
    phase: HistoryPhase,
    phase_began: VirtualTime,
    phase_ends: VirtualTime,
    /// Whether nothing was left to do at the last look.
    was_settled: bool,
    openings: u64,
    figures: HistoryFigures,
}

struct Process<A> {
    actor: Option<A>,
    run: u32,
    frozen_until: VirtualTime,
    /// The end of the longest time for which it stood still: until then, events reach it late.
    delayed_until: VirtualTime,
    clock_offset: i64,
    /// The time from the end of a stop to the next start.
    down_for: Duration,
    /// The numbers of the last settings of timers: an earlier setting does not fire.
    timers: BTreeMap<u64, u64>,
    settings: u64,
}

struct WatchState {
    open: OpenWatch,
    is_planned: bool,
}

// === impl World ===

impl<'a, S: Scenario> World<'a, S> {
    /// Plays a history to its end, or to the first claim that does not hold.
    pub fn play(
        scenario: &'a mut S,
        choices: &'a mut Choices,
        history: &'a mut History,
    ) -> (HistoryFigures, Result<(), Violation>) {
        let mut server = ApiServer::new();
        scenario.prepare(&mut server, choices);
        let limits = scenario.limits();
        let mut world = Self {
            scenario,
            choices,
            history,
            server,
            quiet: FaultPlan::quiet(),
            queue: EventQueue::default(),
            processes: Vec::new(),
            watches: BTreeMap::new(),
            now: VirtualTime::default(),
            phase: HistoryPhase::Disturbed,
            phase_began: VirtualTime::default(),
            phase_ends: VirtualTime::default(),
            was_settled: false,
            openings: 0,
            figures: HistoryFigures::default(),
            limits,
        };
        // Nothing uses the world after a panic.
        let run = panic::catch_unwind(AssertUnwindSafe(|| world.run()));
        let result = run.unwrap_or_else(|payload| {
            let message = payload.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| payload.downcast_ref().copied());
            Err(Violation::new(
                "nothing panics",
                message.unwrap_or_default(),
            ))
        });
        if let Err(violation) = &result {
            let line = || format!("VIOLATION  {violation}");
            world.history.note(world.now, line);
        }
        (world.figures, result)
    }

    fn run(&mut self) -> Result<(), Violation> {
        for process in 0..self.limits.processes {
            self.processes.push(Process::new());
            self.queue.plan(self.now, Planned::Starts(process));
        }
        self.plan_disturbances();
        self.end_phase_after(self.limits.disturbed_for);
        while let Some((at, planned)) = self.queue.next() {
            self.now = self.now.max(at);
            self.server.set_now(self.now);
            self.figures.steps += 1;
            if self.figures.steps > self.limits.steps {
                let details = format!("{} steps were not enough", self.limits.steps);
                return Err(Violation::new("operators come to rest", details));
            }
            if self.phase == HistoryPhase::Calm && self.phase_ends <= self.now {
                break;
            }
            self.step(planned)?;
            if self.scenario.tend(&mut self.server, self.phase) {
                self.plan_events();
            }
        }
        let running: Vec<&S::Actor> = running(&self.processes).collect();
        self.scenario.at_rest(&self.server, &running)
    }

    /// Each disturbance has a stream of its own, whose first decision is whether it happens.
    fn plan_disturbances(&mut self) {
        for number in 0..self.limits.disturbances {
            let stream = self.disturbance_stream(number);
            self.choices.set_stream(stream);
            if self.choices.one_of(2) == 1 {
                let at = self.disturbance_time();
                self.queue.plan(at, Planned::Disturbance(number));
            }
        }
    }

    /// The time of a disturbance. Those of a burst find what the former ones have left half done.
    fn disturbance_time(&mut self) -> VirtualTime {
        let window = u32::try_from(self.limits.disturbed_for.as_millis()).unwrap_or(u32::MAX);
        let millis = match self.limits.bursts {
            0 => self.choices.one_of(window),
            bursts => self.choices.one_of(bursts) * (window / bursts) + self.choices.one_of(BURST),
        };
        VirtualTime::from_millis(u64::from(millis))
    }

    /// The first stream is that of the preparation, then come those of the processes.
    fn process_stream(&self, process: usize) -> usize {
        1 + process
    }

    fn disturbance_stream(&self, number: usize) -> usize {
        1 + self.limits.processes + number
    }

    fn step(&mut self, planned: Planned) -> Result<(), Violation> {
        if let Some(run) = planned.receiver() {
            let process = &self.processes[run.process];
            if process.run != run.run || process.actor.is_none() {
                return Ok(());
            }
            if process.frozen_until > self.now {
                self.queue.plan(process.frozen_until, planned);
                return Ok(());
            }
        }
        match planned {
            Planned::Arrives { run, sent, fault } => self.arrive(run, &sent, fault),
            Planned::ArrivesLate { run, sent } => self.execute(run, &sent).map(|_| ()),
            Planned::Ends { run, call, outcome } => {
                self.deliver(run, ActorInput::Answered { call, outcome })
            }
            Planned::Sends(watch) => self.send_event(watch),
            Planned::Bookmarks(watch) => self.send_bookmark(watch),
            Planned::WatchFails {
                run,
                watch,
                failure,
            } => {
                let failure = failure.map(|it| *it);
                self.deliver(run, ActorInput::WatchEnded { watch, failure })
            }
            Planned::Fires { run, timer, set } => {
                if self.processes[run.process].timers.get(&timer) != Some(&set) {
                    return Ok(());
                }
                self.processes[run.process].timers.remove(&timer);
                self.deliver(run, ActorInput::TimerFired { timer })
            }
            Planned::Stops(run) => self.stop(run),
            Planned::Disturbance(number) => self.disturb(number),
            Planned::Starts(process) => self.start(process),
            Planned::LooksForRest => {
                self.look_for_rest();
                Ok(())
            }
            Planned::NextPhase => {
                if self.phase_ends <= self.now {
                    self.next_phase();
                }
                Ok(())
            }
        }
    }

    fn faults(&self) -> &FaultPlan {
        match self.phase {
            HistoryPhase::Disturbed => &self.limits.faults,
            HistoryPhase::Settling | HistoryPhase::Calm => &self.quiet,
        }
    }

    fn delay(&mut self, process: usize) -> Duration {
        let stream = self.process_stream(process);
        self.choices.set_stream(stream);
        let faults = match self.phase {
            HistoryPhase::Disturbed => &self.limits.faults,
            HistoryPhase::Settling | HistoryPhase::Calm => &self.quiet,
        };
        faults.delay(self.choices)
    }

    fn start(&mut self, process: usize) -> Result<(), Violation> {
        let state = &mut self.processes[process];
        state.run += 1;
        let mut actor = self.scenario.actor(process, state.run);
        let run = RunId {
            process,
            run: state.run,
        };
        let clock = state.clock(self.now);
        let effects = actor.start(clock);
        state.actor = Some(actor);
        self.history
            .note(self.now, || format!("operator {process} starts"));
        self.perform(run, effects)
    }

    /// Gives an input to a process that runs.
    fn deliver(&mut self, run: RunId, input: ActorInput) -> Result<(), Violation> {
        let process = &mut self.processes[run.process];
        let clock = process.clock(self.now);
        let Some(actor) = &mut process.actor else {
            return Ok(());
        };
        self.history
            .note(self.now, || describe_input(run.process, &input));
        let effects = actor.handle(clock, input);
        self.perform(run, effects)
    }

    fn perform(
        &mut self,
        run: RunId,
        effects: Vec<ActorEffect<<S::Actor as Actor>::Fact>>,
    ) -> Result<(), Violation> {
        for effect in effects {
            match effect {
                ActorEffect::Call { call, request } => self.call(run, call, request),
                ActorEffect::OpenWatch {
                    watch,
                    user,
                    kind,
                    namespace,
                    options,
                } => self.open_watch(run, watch, &user, kind, namespace.as_ref(), &options),
                ActorEffect::CloseWatch { watch } => {
                    self.watches
                        .retain(|id, _| id.run != run || id.watch != watch);
                }
                ActorEffect::SetTimer { timer, at } => {
                    let delay = at.since(self.now);
                    if delay >= LONGEST_TIMER {
                        let details = format!("a timer of {} s", delay.as_secs());
                        return Err(Violation::new("no timer panics", details));
                    }
                    let process = &mut self.processes[run.process];
                    process.settings += 1;
                    process.timers.insert(timer, process.settings);
                    let set = process.settings;
                    self.queue.plan(at, Planned::Fires { run, timer, set });
                }
                ActorEffect::Report(fact) => {
                    let process = run.process;
                    self.history
                        .note(self.now, || format!("operator {process} reports: {fact}"));
                    let occurrence = Occurrence::Reported {
                        process,
                        run: run.run,
                        fact: &fact,
                        phase: self.phase,
                    };
                    self.scenario.observe(&occurrence, &self.server)?;
                }
                ActorEffect::Exit => {
                    let down_for = self.processes[run.process].down_for;
                    return self.end(run.process, down_for, "exits");
                }
            }
        }
        Ok(())
    }

    fn stop(&mut self, run: RunId) -> Result<(), Violation> {
        let process = &mut self.processes[run.process];
        let clock = process.clock(self.now);
        let Some(actor) = &mut process.actor else {
            return Ok(());
        };
        let effects = actor.stop(clock);
        self.perform(run, effects)
    }

    fn call(&mut self, run: RunId, call: u64, request: ApiRequest) {
        let stream = self.process_stream(run.process);
        self.choices.set_stream(stream);
        let faults = self.faults().clone();
        let fault = faults.request(self.choices, request.verb.is_write());
        self.history.note(self.now, || {
            let request = describe_request(&self.server, &request);
            format!("operator {} sends {call}: {request}", run.process)
        });
        let sent = Box::new(SentRequest {
            call,
            at: self.now,
            request,
        });
        if let RequestFault::Timeout(late) = fault {
            let outcome = CallOutcome::TimedOut;
            let gives_up = self.now.after(faults.client_timeout());
            self.queue
                .plan(gives_up, Planned::Ends { run, call, outcome });
            if let Some(late) = late {
                let at = self.now.after(late);
                self.queue.plan(at, Planned::ArrivesLate { run, sent });
            }
            return;
        }
        let at = self.now.after(faults.delay(self.choices));
        self.queue.plan(at, Planned::Arrives { run, sent, fault });
    }

    /// Executes a request unless its fault prevents that, and sends the answer or the fault.
    fn arrive(
        &mut self,
        run: RunId,
        sent: &SentRequest,
        fault: RequestFault,
    ) -> Result<(), Violation> {
        let call = sent.call;
        let executed = match fault.lands() {
            true => Some(self.execute(run, sent)?),
            false => None,
        };
        let outcome = match (fault.answer(), fault, executed) {
            (Some(answer), _, _) => CallOutcome::Answered(answer),
            (None, RequestFault::None, Some(answer)) => CallOutcome::Answered(answer),
            _ => CallOutcome::ConnectionLost,
        };
        let at = self.now.after(self.delay(run.process));
        self.queue.plan(at, Planned::Ends { run, call, outcome });
        Ok(())
    }

    fn execute(
        &mut self,
        run: RunId,
        sent: &SentRequest,
    ) -> Result<crate::server::ApiAnswer, Violation> {
        let request = &sent.request;
        self.figures.requests += 1;
        let before = self.server.revision();
        let answer = self.server.handle(request);
        self.history.note(self.now, || {
            let target = describe_target(&self.server, request);
            let line = describe_answer(&answer);
            format!("server, for operator {}: {target} → {line}", run.process)
        });
        let occurrence = Occurrence::Executed {
            process: run.process,
            run: run.run,
            call: sent.call,
            sent: sent.at,
            request,
            answer: &answer,
            changed: self.server.revision() > before,
            phase: self.phase,
        };
        self.scenario.observe(&occurrence, &self.server)?;
        if self.server.revision() > before {
            self.plan_events();
        }
        Ok(answer)
    }

    fn open_watch(
        &mut self,
        run: RunId,
        watch: u64,
        user: &str,
        kind: KindId,
        namespace: Option<&Arc<str>>,
        options: &WatchOptions,
    ) {
        self.watches
            .retain(|id, _| id.run != run || id.watch != watch);
        let stream = self.process_stream(run.process);
        self.choices.set_stream(stream);
        let faults = self.faults().clone();
        let fault = faults.request(self.choices, false);
        self.history.note(self.now, || {
            let version = options.resource_version.as_deref().unwrap_or("now");
            format!("operator {} watches from {version}", run.process)
        });
        let failure = match (fault, fault.answer()) {
            (RequestFault::None | RequestFault::LostAfter, None) => self
                .server
                .watch(user, kind, namespace, options)
                .map_err(Some),
            (_, answer) => Err(answer),
        };
        let at = self.now.after(self.delay(run.process));
        match failure {
            Ok(open) => {
                self.openings += 1;
                let id = WatchId {
                    run,
                    watch,
                    opening: self.openings,
                };
                if let Some(ends) = open.ends() {
                    self.queue.plan(ends, Planned::Sends(id));
                }
                let bookmark = self.now.after(BOOKMARK_INTERVAL);
                self.queue.plan(bookmark, Planned::Bookmarks(id));
                let is_planned = false;
                self.watches.insert(id, WatchState { open, is_planned });
                self.plan_events();
            }
            Err(answer) => {
                let failure = answer.map(Box::new);
                self.queue.plan(
                    at,
                    Planned::WatchFails {
                        run,
                        watch,
                        failure,
                    },
                );
            }
        }
    }

    /// Plans the next event of each watch that has one.
    fn plan_events(&mut self) {
        let faults = match self.phase {
            HistoryPhase::Disturbed => &self.limits.faults,
            HistoryPhase::Settling | HistoryPhase::Calm => &self.quiet,
        };
        for (id, state) in &mut self.watches {
            if !state.is_planned && self.server.has_event(&mut state.open) {
                state.is_planned = true;
                self.choices.set_stream(1 + id.run.process);
                let at = self.now.after(faults.watch_event_delay(self.choices));
                self.queue.plan(at, Planned::Sends(*id));
            }
        }
    }

    fn send_event(&mut self, id: WatchId) -> Result<(), Violation> {
        let stream = self.process_stream(id.run.process);
        self.choices.set_stream(stream);
        let cut = self.faults().watch_cut;
        let cut = self.choices.happens(cut);
        let Some(state) = self.watches.get_mut(&id) else {
            return Ok(());
        };
        state.is_planned = false;
        let poll = if cut {
            WatchPoll::Closed
        } else {
            self.server.poll(&mut state.open)
        };
        let input = match poll {
            WatchPoll::Idle => return Ok(()),
            WatchPoll::Closed => {
                self.watches.remove(&id);
                ActorInput::WatchEnded {
                    watch: id.watch,
                    failure: None,
                }
            }
            WatchPoll::Event(event) => {
                if event.event_type == ServerEventType::Error {
                    self.watches.remove(&id);
                }
                ActorInput::Watched {
                    watch: id.watch,
                    event,
                }
            }
        };
        self.deliver(id.run, input)?;
        self.plan_events();
        Ok(())
    }

    fn send_bookmark(&mut self, id: WatchId) -> Result<(), Violation> {
        let Some(state) = self.watches.get_mut(&id) else {
            return Ok(());
        };
        let at = self.now.after(BOOKMARK_INTERVAL);
        self.queue.plan(at, Planned::Bookmarks(id));
        match self.server.bookmark(&mut state.open) {
            Some(event) => {
                let watch = id.watch;
                self.deliver(id.run, ActorInput::Watched { watch, event })
            }
            None => Ok(()),
        }
    }

    fn disturb(&mut self, number: usize) -> Result<(), Violation> {
        let stream = self.disturbance_stream(number);
        self.choices.set_stream(stream);
        let disturbance = self.scenario.disturbance(&self.server, self.choices);
        match disturbance {
            Disturbance::Request(request) => {
                let answer = self.server.handle(&request);
                self.history.note(self.now, || {
                    let line = describe_request(&self.server, &request);
                    format!("another client: {line} → {}", describe_answer(&answer))
                });
                let occurrence = Occurrence::Disturbed {
                    request: &request,
                    answer: &answer,
                };
                self.scenario.observe(&occurrence, &self.server)?;
                self.plan_events();
                return Ok(());
            }
            Disturbance::Crash { process, down_for } => {
                return self.end(process, down_for, "is killed");
            }
            Disturbance::Stop { process, down_for } => {
                let state = &mut self.processes[process];
                state.down_for = down_for;
                let run = state.run;
                let stops = Planned::Stops(RunId { process, run });
                self.queue.plan(self.now, stops);
            }
            Disturbance::CutWatches => self.cut_watches(),
            Disturbance::Compact { keep } => self.server.compact(keep),
            Disturbance::Freeze { process, time } => {
                let process = &mut self.processes[process];
                process.frozen_until = self.now.after(time);
                process.delayed_until = process.delayed_until.max(process.frozen_until);
            }
            Disturbance::ClockJump { process, millis } => {
                self.processes[process].clock_offset += millis;
            }
            Disturbance::Webhooks(ref rules) => self.server.set_webhooks(rules.clone()),
            Disturbance::Access(ref rules) => self.server.set_access_rules(rules.clone()),
        }
        self.history
            .note(self.now, || format!("disturbance: {disturbance:?}"));
        Ok(())
    }

    fn end(&mut self, process: usize, down_for: Duration, how: &str) -> Result<(), Violation> {
        let state = &mut self.processes[process];
        if state.actor.take().is_none() {
            return Ok(());
        }
        state.timers.clear();
        state.frozen_until = VirtualTime::default();
        state.delayed_until = VirtualTime::default();
        self.watches.retain(|id, _| id.run.process != process);
        self.history
            .note(self.now, || format!("operator {process} {how}"));
        let at = self.now.after(down_for);
        self.queue.plan(at, Planned::Starts(process));
        let occurrence = Occurrence::Ended { process };
        self.scenario.observe(&occurrence, &self.server)
    }

    fn cut_watches(&mut self) {
        for (id, _) in std::mem::take(&mut self.watches) {
            let fails = Planned::WatchFails {
                run: id.run,
                watch: id.watch,
                failure: None,
            };
            self.queue.plan(self.now, fails);
        }
    }

    fn next_phase(&mut self) {
        let (phase, time) = match self.phase {
            HistoryPhase::Disturbed => {
                if !self.limits.rules_last {
                    self.server.set_webhooks(Vec::new());
                    self.server.set_access_rules(Vec::new());
                }
                (HistoryPhase::Settling, self.limits.settles_within)
            }
            HistoryPhase::Settling | HistoryPhase::Calm => {
                (HistoryPhase::Calm, self.limits.stays_calm_for)
            }
        };
        self.phase = phase;
        self.history.note(self.now, || format!("phase: {phase:?}"));
        self.end_phase_after(time);
        if phase == HistoryPhase::Settling {
            let look = self.now.after(REST_INTERVAL);
            self.queue.plan(look, Planned::LooksForRest);
        }
    }

    fn end_phase_after(&mut self, time: Duration) {
        self.phase_began = self.now;
        self.phase_ends = self.now.after(time);
        self.queue.plan(self.phase_ends, Planned::NextPhase);
    }

    /// Ends the time to come to rest when nothing has been left to do twice in a row: what operators
    /// repeat for ever shows nothing new.
    fn look_for_rest(&mut self) {
        if self.phase != HistoryPhase::Settling {
            return;
        }
        let is_settled = self.is_settled();
        if is_settled && self.was_settled {
            return self.next_phase();
        }
        self.was_settled = is_settled;
        let look = self.now.after(REST_INTERVAL);
        self.queue.plan(look, Planned::LooksForRest);
    }

    fn is_settled(&self) -> bool {
        // Peers compare the times of their clocks, so that one may still join late.
        let runs = |it: &Process<_>| {
            it.actor.is_some() && it.delayed_until <= self.now && it.clock_offset == 0
        };
        let running: Vec<&S::Actor> = running(&self.processes).collect();
        self.processes.iter().all(runs)
            && !self.queue.has_unique_events()
            && self.watches.values().all(|it| !it.is_planned)
            && self.scenario.is_settled(&running, self.phase_began)
    }
}

// === impl Process ===

impl<A> Process<A> {
    fn new() -> Self {
        Self {
            actor: None,
            run: 0,
            frozen_until: VirtualTime::default(),
            delayed_until: VirtualTime::default(),
            clock_offset: 0,
            down_for: Duration::ZERO,
            timers: BTreeMap::new(),
            settings: 0,
        }
    }

    fn clock(&self, now: VirtualTime) -> ActorClock {
        let wall = now.timestamp();
        let jump = SignedDuration::from_millis(self.clock_offset);
        ActorClock {
            now,
            wall: wall.checked_add(jump).unwrap_or(wall),
        }
    }
}

/// The programs of the processes that run.
fn running<A>(processes: &[Process<A>]) -> impl Iterator<Item = &A> {
    processes.iter().filter_map(|it| it.actor.as_ref())
}

fn describe_input(process: usize, input: &ActorInput) -> String {
    match input {
        ActorInput::Answered { call, outcome } => {
            let outcome = match outcome {
                CallOutcome::Answered(answer) => describe_answer(answer),
                CallOutcome::ConnectionLost => "connection lost".to_owned(),
                CallOutcome::TimedOut => "timed out".to_owned(),
            };
            format!("operator {process} gets the answer to {call}: {outcome}")
        }
        ActorInput::Watched { event, .. } => {
            let object = describe_object(&event.object);
            format!(
                "operator {process} sees {} {object}",
                event.event_type.name()
            )
        }
        ActorInput::WatchEnded { failure, .. } => {
            let failure = failure.as_ref().map(describe_answer);
            let failure = failure.unwrap_or_else(|| "closed".to_owned());
            format!("operator {process} loses its watch: {failure}")
        }
        ActorInput::TimerFired { timer } => format!("operator {process} gets timer {timer}"),
    }
}
