//! The requests of simulated histories, sent to both servers in their order.
//!
//! So everything that simulated operators and other clients send is compared, whatever it is.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::env;
use std::rc::Rc;

use kopf_simulation::choices::Choices;
use kopf_simulation::claims::OperatorScenario;
use kopf_simulation::explore::play;
use kopf_simulation::server::{
    ApiRequest, ApiServer, KindId, SimulatedPatch, StatusSubresource, Verb,
};
use kopf_simulation::time::VirtualTime;
use kopf_simulation::world::{
    Actor, Disturbance, History, HistoryLimits, HistoryPhase, Occurrence, Scenario, Violation,
};
use kopf_tests::{TestFailure, TestResult};
use serde_json::{Value, json};

use super::pair::Pair;
use super::requests::{delete, list, merge};

/// The histories of the test command.
const CASES: u64 = 8;

/// The kind of a request, as both servers serve it.
#[derive(Clone, Copy)]
enum HistoryKind {
    /// Handled objects, or peerings.
    Open,
    OpenWithStatus,
    Lease,
}

/// A request that names uids, versions and tokens as [`super::answers::Memory`] does.
struct HistoryRequest {
    kind: HistoryKind,
    verb: Verb,
}

/// The present version and uid of an object.
type Identity = (String, String);

/// A history whose requests are recorded.
struct RecordedScenario {
    scenario: OperatorScenario,
    seed: u64,
    requests: Rc<RefCell<Vec<HistoryRequest>>>,
    /// The objects before the next request, by kind.
    objects: BTreeMap<KindId, BTreeMap<String, Identity>>,
}

#[tokio::test]
async fn requests_of_histories_are_answered_alike() -> TestResult {
    let number = |variable: &str| env::var(variable).ok()?.parse::<u64>().ok();
    let cases = number("KOPF_SIMULATION_CASES").unwrap_or(CASES);
    let first = number("KOPF_SIMULATION_SEED").unwrap_or(1);
    let mut pair = Pair::open("sim-histories").await?;
    for seed in first..first + cases {
        for (number, HistoryRequest { kind, verb }) in recorded(seed).into_iter().enumerate() {
            let kind = kind.of(&pair);
            let request = pair.request(kind, typed(&pair, kind, verb));
            let context = format!("history {seed}, request {number}");
            pair.send(&context, &request).await?;
            if pair.differs_often() {
                return pair.finish();
            }
        }
        clear(&mut pair, seed).await?;
    }
    pair.finish()
}

/// All requests of a history, in the order in which the API server executes them.
fn recorded(seed: u64) -> Vec<HistoryRequest> {
    let requests = Rc::default();
    let scenario = || RecordedScenario {
        scenario: OperatorScenario::new(),
        seed,
        requests: Rc::clone(&requests),
        objects: BTreeMap::new(),
    };
    let (_, result) = play(
        scenario,
        &mut Choices::seeded(seed),
        &mut History::unrecorded(),
    );
    result.expect("the claims hold in this history");
    requests.take()
}

/// The request with the type of the kind in its body, and without the namespace of histories.
fn typed(pair: &Pair, kind: KindId, mut verb: Verb) -> Verb {
    if let Verb::Create { body } | Verb::Update { body, .. } = &mut verb {
        let metadata = body["metadata"].as_object_mut();
        metadata.into_iter().for_each(|it| {
            it.remove("namespace");
        });
        body["apiVersion"] = json!(pair.api_version(kind));
        body["kind"] = json!(pair.kind_name(kind));
    }
    verb
}

/// Deletes everything, so that histories do not depend on each other.
async fn clear(pair: &mut Pair, seed: u64) -> Result<(), TestFailure> {
    for kind in [
        HistoryKind::Open,
        HistoryKind::OpenWithStatus,
        HistoryKind::Lease,
    ] {
        let kind = kind.of(pair);
        let context = format!("clear {seed}");
        let listed = pair.send(&context, &pair.request(kind, list())).await?;
        for item in listed["items"].as_array().into_iter().flatten() {
            let name = item["metadata"]["name"].as_str().unwrap_or_default();
            for verb in [
                merge(name, json!({"metadata": {"finalizers": null}})),
                delete(name),
            ] {
                pair.send(&context, &pair.request(kind, verb)).await?;
            }
        }
    }
    Ok(())
}

// === impl HistoryKind ===

impl HistoryKind {
    fn read(server: &ApiServer, kind: KindId) -> Self {
        let definition = server.definition(kind);
        match (definition.plural.as_str(), definition.status) {
            ("leases", _) => Self::Lease,
            (_, StatusSubresource::Present) => Self::OpenWithStatus,
            (_, StatusSubresource::Absent) => Self::Open,
        }
    }

    fn of(self, pair: &Pair) -> KindId {
        match self {
            Self::Open => pair.kinds.open,
            Self::OpenWithStatus => pair.kinds.open_with_status,
            Self::Lease => pair.kinds.leases,
        }
    }
}

// === impl RecordedScenario ===

impl RecordedScenario {
    fn record(&mut self, request: &ApiRequest, server: &ApiServer) {
        let kind = HistoryKind::read(server, request.kind);
        if !self.objects.contains_key(&request.kind) {
            self.record_first_objects(request, server);
        }
        let known = self.objects.entry(request.kind).or_default();
        let verb = generalised(&request.verb, known, self.seed);
        self.requests
            .borrow_mut()
            .push(HistoryRequest { kind, verb });
        let text = |object: &Value, field: &str| {
            let text = object["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let present = server.peek_all(request.kind).map(|it| {
            let identity = (text(it, "resourceVersion"), text(it, "uid"));
            (text(it, "name"), identity)
        });
        *known = present.collect();
    }

    /// The objects that a history begins with.
    fn record_first_objects(&mut self, request: &ApiRequest, server: &ApiServer) {
        let created = match &request.verb {
            Verb::Create { body } => &body["metadata"]["name"],
            _ => &Value::Null,
        };
        for object in server.peek_all(request.kind) {
            let metadata = &object["metadata"];
            if metadata["name"] == *created {
                continue;
            }
            let mut body = json!({"metadata": {"name": metadata["name"]}});
            for field in ["labels", "finalizers"] {
                body["metadata"][field] = metadata[field].clone();
            }
            body["spec"] = object["spec"].clone();
            let verb = generalised(&Verb::Create { body }, &BTreeMap::new(), self.seed);
            let kind = HistoryKind::read(server, request.kind);
            self.requests
                .borrow_mut()
                .push(HistoryRequest { kind, verb });
        }
    }
}

impl Scenario for RecordedScenario {
    type Actor = <OperatorScenario as Scenario>::Actor;

    fn prepare(&mut self, server: &mut ApiServer, choices: &mut Choices) {
        self.scenario.prepare(server, choices);
    }

    fn limits(&self) -> HistoryLimits {
        self.scenario.limits()
    }

    fn actor(&self, process: usize, run: u32) -> Self::Actor {
        self.scenario.actor(process, run)
    }

    fn disturbance(&mut self, server: &ApiServer, choices: &mut Choices) -> Disturbance {
        self.scenario.disturbance(server, choices)
    }

    fn tend(&mut self, server: &mut ApiServer, phase: HistoryPhase) -> bool {
        self.scenario.tend(server, phase)
    }

    fn observe(
        &mut self,
        occurrence: &Occurrence<'_, <Self::Actor as Actor>::Fact>,
        server: &ApiServer,
    ) -> Result<(), Violation> {
        if let Occurrence::Executed { request, .. } | Occurrence::Disturbed { request, .. } =
            occurrence
            // Children name the uids of their owners, which the real server does not know.
            && server.definition(request.kind).plural != "parts"
        {
            self.record(request, server);
        }
        self.scenario.observe(occurrence, server)
    }

    fn is_settled(&self, actors: &[&Self::Actor], since: VirtualTime) -> bool {
        self.scenario.is_settled(actors, since)
    }

    fn at_rest(&mut self, server: &ApiServer, actors: &[&Self::Actor]) -> Result<(), Violation> {
        self.scenario.at_rest(server, actors)
    }
}

/// The request with names for uids, versions and tokens, and with names of objects that no other
/// history has.
fn generalised(verb: &Verb, known: &BTreeMap<String, Identity>, seed: u64) -> Verb {
    let mut verb = verb.clone();
    let name = match &verb {
        Verb::Create { body } => body["metadata"]["name"].as_str(),
        verb => verb.object_name(),
    };
    let name = name.unwrap_or_default().to_owned();
    let renamed = format!("{name}-{}", letters(seed));
    let identity = known.get(&name).cloned().unwrap_or_default();
    let version = |given: &str| named("version", given, &identity.0, &renamed);
    let uid = |given: &str| named("uid", given, &identity.1, &renamed);
    match &mut verb {
        Verb::Get { name } => *name = renamed.as_str().into(),
        Verb::List(options) => {
            let token = options.continue_token.as_mut();
            token.into_iter().for_each(|it| *it = "$token".to_owned());
        }
        Verb::Create { body } => body["metadata"]["name"] = json!(renamed),
        Verb::Update { name, body, .. } => {
            *name = renamed.as_str().into();
            body["metadata"]["name"] = json!(renamed);
            rename(&mut body["metadata"], "resourceVersion", version);
            rename(&mut body["metadata"], "uid", uid);
        }
        Verb::Patch { name, patch, .. } => {
            *name = renamed.as_str().into();
            match patch {
                SimulatedPatch::Merge(body) if body.get("metadata").is_some() => {
                    rename(&mut body["metadata"], "resourceVersion", version);
                    rename(&mut body["metadata"], "uid", uid);
                }
                SimulatedPatch::Merge(_) => {}
                SimulatedPatch::Json(operations) => {
                    for operation in operations.as_array_mut().into_iter().flatten() {
                        match operation["path"].as_str() {
                            Some("/metadata/resourceVersion") => {
                                rename(operation, "value", version);
                            }
                            Some("/metadata/uid") => rename(operation, "value", uid),
                            _ => {}
                        }
                    }
                }
            }
        }
        Verb::Delete {
            name,
            preconditions,
        } => {
            *name = renamed.as_str().into();
            preconditions.uid = preconditions.uid.as_deref().map(uid);
            let given = preconditions.resource_version.as_deref();
            preconditions.resource_version = given.map(version);
        }
    }
    verb
}

/// A number in letters, which no message confuses with a version.
fn letters(number: u64) -> String {
    let digits = number.to_string();
    digits
        .bytes()
        .map(|it| char::from(it + b'a' - b'0'))
        .collect()
}

/// The name of a value: the last one of the object, or one from before.
fn named(noun: &str, given: &str, present: &str, name: &str) -> String {
    match given == present {
        true => format!("${noun}/{name}"),
        false => format!("$first-{noun}/{name}"),
    }
}

fn rename(fields: &mut Value, field: &str, named: impl Fn(&str) -> String) {
    if let Some(given) = fields.get(field).and_then(Value::as_str) {
        fields[field] = json!(named(given));
    }
}
