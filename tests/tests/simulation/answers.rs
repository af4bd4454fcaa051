//! What one server has answered: its uids, versions and tokens, which differ between servers.

use std::collections::{BTreeMap, BTreeSet};

use kopf_simulation::server::{ApiRequest, SimulatedPatch, Verb, WatchOptions};
use serde_json::Value;

/// The answers of one server, by what requests can refer to.
///
/// A request names the values of earlier answers: `$version/NAME` is the last version of an
/// object, `$first-version/NAME` the first one, `$uid/NAME` its last uid, `$first-uid/NAME` its
/// first one, `$list` the version of the last list and `$token` its continue token.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    known: BTreeMap<String, String>,
    /// All uids so far: the same name may stand for objects of several kinds.
    uids: BTreeSet<String>,
    versions: BTreeSet<String>,
}

/// The messages of which only the start is compared, with the rest that replaces the other one.
const UNCOMPARED: &[(&str, &str)] = &[
    ("cannot be handled as a", " <kind>"),
    ("is invalid: patch: Invalid value", ": <patch>"),
    ("error decoding patch", ": <patch>"),
    ("unable to parse requirement", ": <requirement>"),
    ("invalid continue token", ": <token>"),
    ("too old resource version", ": <version>"),
];

/// The pairs of values that both servers gave to the same thing.
#[derive(Debug, Default)]
pub(crate) struct Relations {
    /// Simulated versions of objects by the real ones.
    versions: BTreeMap<u64, u64>,
    /// Real versions by the simulated ones.
    real_versions: BTreeMap<u64, u64>,
    uids: BTreeMap<String, String>,
}

// === impl Memory ===

impl Memory {
    /// Remembers an answer.
    pub(crate) fn observe(&mut self, answer: &Value) {
        match answer["items"].as_array() {
            Some(items) => {
                self.remember("$list", &answer["metadata"]["resourceVersion"]);
                self.remember("$token", &answer["metadata"]["continue"]);
                for item in items {
                    self.observe_object(item);
                }
            }
            None if answer["kind"] == "Status" => {
                self.remember("$token", &answer["metadata"]["continue"]);
            }
            None => self.observe_object(answer),
        }
    }

    fn observe_object(&mut self, object: &Value) {
        let metadata = &object["metadata"];
        let Some(name) = metadata["name"].as_str() else {
            return;
        };
        let texts = |field: &str| metadata[field].as_str().map(str::to_owned);
        self.uids.extend(texts("uid"));
        self.versions.extend(texts("resourceVersion"));
        for (noun, value) in [
            ("version", &metadata["resourceVersion"]),
            ("uid", &metadata["uid"]),
        ] {
            self.remember(&format!("${noun}/{name}"), value);
            if let Some(value) = value.as_str() {
                let first = self.known.entry(format!("$first-{noun}/{name}"));
                first.or_insert_with(|| value.to_owned());
            }
        }
    }

    fn remember(&mut self, key: &str, value: &Value) {
        if let Some(value) = value.as_str().filter(|it| !it.is_empty()) {
            self.known.insert(key.to_owned(), value.to_owned());
        }
    }

    /// The request with the values of this server.
    pub(crate) fn resolve(&self, request: &ApiRequest) -> ApiRequest {
        let mut request = request.clone();
        match &mut request.verb {
            Verb::Get { .. } => {}
            Verb::List(options) => self.resolve_text(options.continue_token.as_mut()),
            Verb::Create { body } | Verb::Update { body, .. } => self.resolve_value(body),
            Verb::Patch { patch, .. } => {
                let (SimulatedPatch::Merge(body) | SimulatedPatch::Json(body)) = patch;
                self.resolve_value(body);
            }
            Verb::Delete { preconditions, .. } => {
                self.resolve_text(preconditions.uid.as_mut());
                self.resolve_text(preconditions.resource_version.as_mut());
            }
        }
        request
    }

    /// The watch with the values of this server.
    pub(crate) fn resolve_watch(&self, options: &WatchOptions) -> WatchOptions {
        let mut options = options.clone();
        self.resolve_text(options.resource_version.as_mut());
        options
    }

    fn resolve_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => self.resolve_text(Some(text)),
            Value::Array(items) => items.iter_mut().for_each(|it| self.resolve_value(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.resolve_value(it)),
            _ => {}
        }
    }

    fn resolve_text(&self, text: Option<&mut String>) {
        if let Some(text) = text
            && let Some(known) = self.known.get(text.as_str())
        {
            text.clone_from(known);
        }
    }

    /// The message with the names of the values in it, and without the words of Go's decoders.
    fn generalise(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for (start, rest) in UNCOMPARED {
            if let Some(position) = message.find(start) {
                message.truncate(position + start.len());
                message.push_str(rest);
            }
        }
        for uid in &self.uids {
            message = message.replace(uid, "<uid>");
        }
        // A version is a word of its own: its digits may also be a part of a name.
        let mut general = String::new();
        for word in message.split_inclusive(|it: char| !it.is_alphanumeric()) {
            let bare = word.trim_end_matches(|it: char| !it.is_alphanumeric());
            match self.versions.contains(bare) {
                true => general.push_str(&word.replace(bare, "<version>")),
                false => general.push_str(word),
            }
        }
        general
    }

    /// The answer without what differs between servers.
    pub(crate) fn comparable(&self, answer: &Value) -> Value {
        let mut answer = answer.clone();
        self.strip(&mut answer);
        answer
    }

    fn strip(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                fields.remove("managedFields");
                for (name, field) in fields.iter_mut() {
                    match (name.as_str(), &*field) {
                        (
                            "resourceVersion" | "uid" | "creationTimestamp" | "deletionTimestamp"
                            | "continue",
                            Value::String(text),
                        ) if !text.is_empty() => *field = Value::from(format!("<{name}>")),
                        ("message", Value::String(text)) => {
                            *field = Value::from(self.generalise(text));
                        }
                        _ => self.strip(field),
                    }
                }
                if fields.get("field").is_some_and(|it| it == "patch") {
                    fields.insert("message".to_owned(), Value::from("<patch>"));
                }
                // The real server writes an empty token where there is none.
                fields.retain(|name, field| name != "continue" || *field != "");
                if let Some(Value::Array(causes)) = fields.get_mut("causes") {
                    // The real server repeats some, and the order of fields is that of a hash map.
                    causes.sort_by_key(Value::to_string);
                    causes.dedup();
                }
                fields.sort_keys();
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.strip(it)),
            _ => {}
        }
    }
}

// === impl Relations ===

impl Relations {
    /// Compares the versions and uids of the same answer; the error is a difference.
    pub(crate) fn observe(&mut self, real: &Value, simulated: &Value) -> Result<(), String> {
        match (real["items"].as_array(), simulated["items"].as_array()) {
            (Some(real), Some(simulated)) => real
                .iter()
                .zip(simulated)
                .try_for_each(|(real, simulated)| self.observe_object(real, simulated)),
            _ => self.observe_object(real, simulated),
        }
    }

    fn observe_object(&mut self, real: &Value, simulated: &Value) -> Result<(), String> {
        let text =
            |value: &Value, field: &str| value["metadata"][field].as_str().map(str::to_owned);
        if let (Some(real), Some(simulated)) = (text(real, "uid"), text(simulated, "uid")) {
            let known = self.uids.entry(real).or_insert_with(|| simulated.clone());
            if *known != simulated {
                return Err(format!("the uid {known} became {simulated}"));
            }
        }
        let number = |value: &Value| text(value, "resourceVersion")?.parse::<u64>().ok();
        let (Some(real), Some(simulated)) = (number(real), number(simulated)) else {
            return Ok(());
        };
        let known = *self.versions.entry(real).or_insert(simulated);
        let known_real = *self.real_versions.entry(simulated).or_insert(real);
        if known != simulated || known_real != real {
            return Err(format!(
                "real version {real} is simulated {known} and {simulated}, simulated version \
                 {simulated} is real {known_real} and {real}"
            ));
        }
        let earlier = self.versions.range(..real).next_back();
        let later = self.versions.range(real + 1..).next();
        if earlier.is_some_and(|(_, it)| *it > simulated)
            || later.is_some_and(|(_, it)| *it < simulated)
        {
            return Err(format!(
                "the order of version {real} (simulated {simulated}) differs: {earlier:?}, {later:?}"
            ));
        }
        Ok(())
    }
}
