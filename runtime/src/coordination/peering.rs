//! Takes part in a peering: tells others that this operator is alive, and pauses for them.
//!
//! One task per served namespace, or one for the whole cluster. It never writes to an object that
//! is handled; it moves nothing but its own [`PauseHandle`].

mod object;

use std::time::Duration;

use fastrand::Rng;
use kopf_core::peering::{OwnPeer, Peer, PeeringAction, keepalive};
use kube::Client;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::object::{Presence, Table};
use crate::coordination::clock::WallClock;
use crate::coordination::pause::{PauseGate, PauseHandle, PauseReason};
use crate::health::metrics::{GaugeShare, Metrics};
use crate::settings::{PeeringMode, PeeringSettings};
use crate::task::Tasks;
use crate::task::heartbeat::Heartbeat;
use crate::watch::stream::{StreamOutput, StreamSettings};
use crate::watch::{KindIndex, QueueItem, WatchEventType};

pub(crate) use self::object::Seat;

/// How soon a request that failed is made again.
const RETRY: Duration = Duration::from_secs(1);

/// How often it is looked whether the definition of peerings has come.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// How long the removal of the own record may take at the end.
const FAREWELL: Duration = Duration::from_secs(3);

/// News on their way from the streams of the peering objects.
const NEWS_IN_FLIGHT: usize = 16;

/// An operator in a peering.
pub(crate) struct Member {
    pub(crate) client: Client,
    pub(crate) identity: String,
    pub(crate) settings: PeeringSettings,
    pub(crate) clock: WallClock,
    pub(crate) streams: StreamSettings,
    pub(crate) metrics: Metrics,
    /// Where the peering object is; none stands for the whole cluster.
    pub(crate) namespace: Option<String>,
    pub(crate) heartbeat: Heartbeat,
}

/// A member at work.
struct Session<'a> {
    member: &'a Member,
    own: OwnPeer,
    tables: Vec<Table>,
    begun: Instant,
    touch_at: Instant,
    look_at: Instant,
    recheck_at: Option<Instant>,
    warned: Vec<String>,
    /// How many others there are.
    others: GaugeShare,
}

/// Takes part as long as this operator leads, until `stop`; then removes the own record.
pub(crate) async fn run(
    member: Member,
    source: &PauseHandle,
    pause_gate: PauseGate,
    stop: CancellationToken,
) {
    loop {
        member.heartbeat.rest();
        tokio::select! {
            () = stop.cancelled() => return,
            () = pause_gate.leading() => {}
        }
        let mut session = Session::new(&member);
        tokio::select! {
            () = session.take_part(source) => {}
            () = stop.cancelled() => return session.leave().await,
            // The next leader goes on with the record.
            () = pause_gate.lapsed() => source.pause(PauseReason::Starting),
        }
    }
}

// === impl Member ===

impl Member {
    fn seat(&self) -> Seat {
        Seat {
            client: self.client.clone(),
            name: self.settings.name.clone(),
            namespace: self.namespace.clone(),
        }
    }

    /// Where the peering is, for people.
    fn place(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("in {namespace:?}"),
            None => "cluster-wide".to_owned(),
        }
    }
}

// === impl Session ===

impl<'a> Session<'a> {
    fn new(member: &'a Member) -> Self {
        let now = Instant::now();
        Self {
            member,
            own: OwnPeer {
                identity: member.identity.clone(),
                priority: member.settings.priority,
                ties: member.settings.ties,
            },
            tables: Table::all(&member.seat()),
            begun: now,
            touch_at: now,
            look_at: now,
            recheck_at: None,
            warned: Vec::new(),
            others: member.metrics.peers(),
        }
    }

    async fn take_part(&mut self, source: &PauseHandle) {
        let (sink, mut news) = mpsc::channel(NEWS_IN_FLIGHT);
        let mut streams = Tasks::default();
        loop {
            if self.look_at <= Instant::now() {
                self.look().await;
            }
            if self.touch_at <= Instant::now() {
                self.touch().await;
            }
            for (index, table) in (0..).map(KindIndex).zip(&mut self.tables) {
                if let Some(stream) = table.stream(index, &self.member.streams) {
                    let stream = crate::watch::stream::run(
                        stream,
                        StreamOutput::Queue(sink.clone()),
                        PauseGate::always(),
                    );
                    streams.spawn("watch of the peering", stream);
                }
            }
            self.decide(source).await;
            let next = [Some(self.touch_at), Some(self.look_at), self.recheck_at];
            let next = next.into_iter().flatten().min().unwrap_or(self.touch_at);
            let pause = next.saturating_duration_since(Instant::now());
            self.member.heartbeat.within(pause);
            tokio::select! {
                () = sleep_until(next) => {}
                ended = streams.ended(), if !streams.is_empty() => {
                    warn!("the peering is not watched any more: {ended}");
                }
                Some((key, QueueItem::Event(watch_event))) = news.recv() => {
                    let now = self.now();
                    let table = &mut self.tables[usize::from(key.kind.0)];
                    let appeared = match watch_event.event_type {
                        WatchEventType::Deleted => table.lost(),
                        _ => table.saw(&watch_event.text, now),
                    };
                    if appeared {
                        self.touch_at = Instant::now();
                    }
                }
            }
        }
    }

    /// Finds out which definitions of peerings the server has.
    async fn look(&mut self) {
        let mut pause = LOOK_EVERY;
        for table in &mut self.tables {
            self.member.heartbeat.within(object::PATIENCE);
            match table.look().await {
                Ok(true) => self.touch_at = Instant::now(),
                Ok(false) => {}
                Err(error) => {
                    warn!("looking for peerings failed: {error}");
                    pause = RETRY;
                }
            }
        }
        self.look_at = Instant::now() + pause;
    }

    /// Renews the own record, and reads those of the others in the answer.
    async fn touch(&mut self) {
        let settings = &self.member.settings;
        let (name, place) = (&settings.name, self.member.place());
        let own = self.own_record();
        let leeway = Duration::from_secs(Rng::new().u64(5..=10));
        let mut pause = keepalive(settings.lifetime, leeway);
        let now = self.now();
        for table in self.tables.iter_mut().filter(|table| table.is_served()) {
            self.member.heartbeat.within(object::PATIENCE);
            match table.announce(&own, now).await {
                Ok(answer) => {
                    if !settings.stealth {
                        debug!("Keep-alive in {name:?} {place}: {answer}.");
                    }
                }
                Err(error) => {
                    warn!("Keep-alive in {name:?} {place} failed: {error}");
                    pause = pause.min(RETRY);
                }
            }
        }
        self.touch_at = Instant::now() + pause;
    }

    fn own_record(&self) -> Peer {
        Peer {
            identity: self.own.identity.clone(),
            priority: self.own.priority,
            lifetime: self.member.settings.lifetime,
            lastseen: kopf_core::time::to_micros(self.member.clock.now()),
        }
    }

    fn now(&self) -> kopf_core::peering::ClockReading {
        kopf_core::peering::ClockReading {
            wall: self.member.clock.now(),
            uptime: self.begun.elapsed(),
        }
    }

    async fn decide(&mut self, source: &PauseHandle) {
        let now = self.now();
        let (mut ahead, mut level) = (Vec::new(), Vec::new());
        let (mut dead, mut recheck) = (Vec::new(), None);
        let mut others = 0;
        for (index, table) in self.tables.iter().enumerate() {
            let Some(verdict) = table.verdict(&self.own, now) else {
                continue;
            };
            match verdict.action {
                PeeringAction::Run => {}
                PeeringAction::PauseForHigher(peers) => ahead.extend(peers),
                PeeringAction::PauseForEqual(peers) => level.extend(peers),
            }
            others += verdict.alive;
            recheck = recheck.into_iter().chain(verdict.recheck).min();
            dead.push((index, verdict.dead));
        }
        self.others.set(others);
        self.recheck_at = recheck.map(|wait| Instant::now() + wait);
        self.warn_about(&level);
        if !ahead.is_empty() {
            source.pause(PauseReason::Peers(names(&ahead)));
        } else if !level.is_empty() {
            source.pause(PauseReason::Tie(names(&level)));
        } else if let Some(complaint) = self.missing() {
            source.pause(PauseReason::NoPeering(complaint));
        } else if self.tables.iter().all(Table::is_settled) {
            source.resume();
        }
        for (index, dead) in dead {
            self.member.heartbeat.within(object::PATIENCE);
            if let Err(error) = self.tables[index].bury(dead).await {
                debug!("records of operators that are gone were not removed: {error}");
            }
        }
    }

    /// Why the peering cannot be used, if it has to be.
    fn missing(&self) -> Option<String> {
        let mandatory = self.member.settings.mode == PeeringMode::Mandatory;
        let settled = self.tables.iter().all(Table::is_settled);
        let found = self.tables.iter().any(Table::is_found);
        if !mandatory || !settled || found {
            return None;
        }
        let served = self.tables.iter().any(Table::is_served);
        let (name, place) = (&self.member.settings.name, self.member.place());
        let refused = self.tables.iter().find_map(|table| match table.presence() {
            Presence::Refused(story) => Some(story),
            _ => None,
        });
        Some(match refused {
            Some(story) => format!("the peering {name:?} {place} cannot be used: {story}"),
            None if served => format!("the peering {name:?} does not exist {place}"),
            None => "the server does not know peerings: their definition is missing".to_owned(),
        })
    }

    fn warn_about(&mut self, level: &[Peer]) {
        let equals: Vec<String> = level.iter().map(|peer| peer.identity.clone()).collect();
        if !equals.is_empty() && equals != self.warned {
            warn!(
                "Possibly conflicting operators with the same priority: {}. All of them pause: \
                 give them different priorities, or let their names decide.",
                names(level)
            );
        }
        self.warned = equals;
    }

    async fn leave(&self) {
        let own = self.own.identity.as_str();
        for table in self.tables.iter().filter(|table| table.is_found()) {
            let removal = tokio::time::timeout(FAREWELL, table.remove([own]));
            match removal.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!("the own record stays in the peering: {error}"),
                Err(_) => warn!("the own record stays in the peering: no answer"),
            }
        }
    }
}

fn names(peers: &[Peer]) -> String {
    let names: Vec<String> = peers.iter().map(Peer::to_string).collect();
    names.join(", ")
}
