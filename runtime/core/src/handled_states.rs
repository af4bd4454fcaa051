//! Notes of the state that each handler of an open cycle finished on.
//!
//! A success counts for the state that the handler was called with. At the end of a cycle the
//! notes show which handlers had finished before a later edit and missed it. They are stored
//! beside the progress records, where Kopf ignores them. A note is used only if it agrees with
//! the record and the last handled state that it was written with.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    diffbase::packed,
    handler::HandlerId,
    json,
    object::{
        diff::Baseline,
        essence::Essence,
        hashed::{self, HashedState},
        patch::{apply_merge, merge_between},
    },
    progress::record::Record,
    time,
};

/// The notes of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandledStates {
    states: Vec<Baseline>,
    entries: BTreeMap<HandlerId, HandledEntry>,
}

/// Identifies the record that a note was written with: Kopf changes one of the two values
/// whenever it calls the handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordStamp {
    /// The time at which the handler finished.
    pub at: Timestamp,
    /// The number of calls.
    pub retries: u32,
}

/// The meaning of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteKind {
    /// The handler finished on the state.
    Finished,
    /// The handler has to be called in any case: it did not run when the object was created with
    /// the state, or a call for another state has failed since.
    CallRequired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HandledEntry {
    stamp: RecordStamp,
    kind: NoteKind,
    state: usize,
}

// === impl RecordStamp ===

impl RecordStamp {
    /// The stamp of a record; none if its handler has never finished, or was called since then.
    #[must_use]
    pub fn of(record: &Record) -> Option<Self> {
        let at = match record.stopped {
            None if record.is_finished() => record.started,
            stopped => stopped?,
        };
        Some(Self {
            at,
            retries: record.retries,
        })
    }
}

// === impl HandledStates ===

impl HandledStates {
    /// Whether there are no notes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All states in the notes, the oldest first.
    #[must_use]
    pub fn states(&self) -> &[Baseline] {
        &self.states
    }

    /// The handlers in the notes.
    pub fn ids(&self) -> impl Iterator<Item = &HandlerId> {
        self.entries.keys()
    }

    /// The state in the note of a handler, if the note has this stamp.
    #[must_use]
    pub fn state(&self, id: &HandlerId, stamp: RecordStamp) -> Option<&Baseline> {
        let entry = self.entries.get(id).filter(|entry| entry.stamp == stamp)?;
        self.states.get(entry.state)
    }

    /// The meaning of the note of a handler, if the note has this stamp.
    #[must_use]
    pub fn kind(&self, id: &HandlerId, stamp: RecordStamp) -> Option<NoteKind> {
        let entry = self.entries.get(id).filter(|entry| entry.stamp == stamp)?;
        Some(entry.kind)
    }

    /// Notes that a handler finished on a state; callers pass the oldest states first.
    pub fn note(&mut self, id: HandlerId, stamp: RecordStamp, state: &Baseline) {
        self.insert(id, stamp, NoteKind::Finished, state);
    }

    /// Notes that a handler has to be called in any case.
    pub fn note_call_required(&mut self, id: HandlerId, stamp: RecordStamp, state: &Baseline) {
        self.insert(id, stamp, NoteKind::CallRequired, state);
    }

    fn insert(&mut self, id: HandlerId, stamp: RecordStamp, kind: NoteKind, state: &Baseline) {
        let known = self.states.iter().position(|known| known == state);
        let state = known.unwrap_or_else(|| {
            self.states.push(state.clone());
            self.states.len() - 1
        });
        let entry = HandledEntry { stamp, kind, state };
        self.entries.insert(id, entry);
    }

    /// Gives the note of a handler a new stamp; returns false if there is no note.
    #[must_use]
    pub fn restamp(&mut self, id: &HandlerId, stamp: RecordStamp) -> bool {
        match self.entries.get_mut(id) {
            Some(entry) => {
                entry.stamp = stamp;
                true
            }
            None => false,
        }
    }

    /// The notes after calls in this turn: a note stays with its record, a call that did not
    /// finish the handler requires another one, and notes of other records are dropped.
    #[must_use]
    pub fn advanced<'a>(&self, record: impl Fn(&HandlerId) -> Option<&'a Record>) -> Self {
        let mut advanced = Self::default();
        for (id, entry) in self.by_age() {
            let Some((record, state)) = record(id).zip(self.states.get(entry.state)) else {
                continue;
            };
            match RecordStamp::of(record) {
                Some(stamp) if stamp == entry.stamp => {
                    advanced.insert(id.clone(), stamp, entry.kind, state);
                }
                Some(stamp) if stamp.at == entry.stamp.at && !record.is_finished() => {
                    advanced.insert(id.clone(), stamp, NoteKind::CallRequired, state);
                }
                _ => {}
            }
        }
        advanced
    }

    /// Some of the notes, with the states that these need, in their order.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&HandlerId, RecordStamp) -> bool) -> Self {
        let mut filtered = Self::default();
        for (id, entry) in self.by_age() {
            if keep(id, entry.stamp)
                && let Some(state) = self.states.get(entry.state)
            {
                filtered.insert(id.clone(), entry.stamp, entry.kind, state);
            }
        }
        filtered
    }

    /// Adds the notes of another operator whose records are still there; returns whether there
    /// are any.
    #[must_use]
    pub fn adopt(&mut self, others: &Self, record: impl Fn(&HandlerId) -> Option<Record>) -> bool {
        let mut adopted = false;
        for (id, entry) in others.by_age() {
            let is_known = self.state(id, entry.stamp).is_some();
            let stamp = record(id).as_ref().and_then(RecordStamp::of);
            if !is_known
                && stamp == Some(entry.stamp)
                && let Some(state) = others.states.get(entry.state)
            {
                self.insert(id.clone(), entry.stamp, entry.kind, state);
                adopted = true;
            }
        }
        adopted
    }

    fn by_age(&self) -> Vec<(&HandlerId, &HandledEntry)> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_by_key(|(_, entry)| entry.state);
        entries
    }

    /// The notes as text, in the most detailed form that fits into `budget` bytes: states as
    /// differences to the last handled one, the same compressed, or digests.
    #[must_use]
    pub fn encode(&self, base: &Baseline, salt: &str, budget: usize) -> String {
        let text = self.encode_with(base, salt, |state| merged(base, state));
        if text.len() <= budget {
            return text;
        }
        let deflated = json::to_ascii(&json!({"deflate": packed::deflate(&text)}));
        if deflated.len() <= budget {
            return deflated;
        }
        let hashed = |depth| {
            self.encode_with(base, salt, |state| match state {
                Baseline::Known(essence) => {
                    json!({"digests": HashedState::new(essence.as_value(), salt, depth).to_json()})
                }
                Baseline::Hashed(_) | Baseline::Absent => merged(base, state),
            })
        };
        [packed::FULL_DEPTH, 4, 3, 2, 1]
            .into_iter()
            .map(hashed)
            .find(|text| text.len() <= budget)
            .unwrap_or_else(|| hashed(0))
    }

    fn encode_with(
        &self,
        base: &Baseline,
        salt: &str,
        encode_state: impl Fn(&Baseline) -> Value,
    ) -> String {
        let states: Vec<Value> = self.states.iter().map(encode_state).collect();
        let handlers: Map<String, Value> = self
            .entries
            .iter()
            .map(|(id, entry)| {
                let at = time::format(entry.stamp.at);
                let call_required = entry.kind == NoteKind::CallRequired;
                let entry = json!([at, entry.stamp.retries, entry.state, call_required]);
                (id.to_string(), entry)
            })
            .collect();
        json::to_ascii(&json!({
            "base": fingerprint(base, salt),
            "states": states,
            "handlers": handlers,
        }))
    }

    /// Reads notes; none if they were written with another last handled state.
    #[must_use]
    pub fn decode(text: &str, base: &Baseline, salt: &str) -> Option<Self> {
        let json = parse(text)?;
        if json.get("base")?.as_str()? != fingerprint(base, salt) {
            return None;
        }
        let states = json
            .get("states")?
            .as_array()?
            .iter()
            .map(|state| decode_state(state, base, salt))
            .collect::<Option<Vec<_>>>()?;
        let entries = json
            .get("handlers")?
            .as_object()?
            .iter()
            .map(|(id, entry)| Some((HandlerId::new(id), decode_entry(entry, states.len())?)))
            .collect::<Option<_>>()?;
        Some(Self { states, entries })
    }

    /// Notes that cannot be read, as they were written with another last handled state: it is not
    /// known which states their handlers saw.
    #[must_use]
    pub fn unknown(text: &str, salt: &str) -> Self {
        let state = Baseline::Hashed(HashedState::unknown(salt));
        let mut notes = Self::default();
        for (id, stamp) in Self::stamps(text) {
            notes.note(id, stamp, &state);
        }
        notes
    }

    /// The stamps in notes, whatever last handled state they were written with.
    #[must_use]
    pub fn stamps(text: &str) -> BTreeMap<HandlerId, RecordStamp> {
        let json = parse(text).unwrap_or_default();
        let handlers = json.get("handlers").and_then(Value::as_object);
        let handlers = handlers.into_iter().flatten();
        handlers
            .filter_map(|(id, entry)| {
                let entry = decode_entry(entry, usize::MAX)?;
                Some((HandlerId::new(id), entry.stamp))
            })
            .collect()
    }
}

fn parse(text: &str) -> Option<Value> {
    let json: Value = serde_json::from_str(text).ok()?;
    match json.get("deflate").and_then(Value::as_str) {
        Some(packed) => serde_json::from_str(&packed::inflate(packed)?).ok(),
        None => Some(json),
    }
}

fn merged(base: &Baseline, state: &Baseline) -> Value {
    match (base, state) {
        (_, Baseline::Absent) => json!({}),
        (Baseline::Known(base), Baseline::Known(state)) => {
            json!({"merge": merge_between(base.as_value(), state.as_value())})
        }
        (_, Baseline::Known(state)) => {
            json!({"merge": merge_between(&Value::Null, state.as_value())})
        }
        (_, Baseline::Hashed(state)) => json!({"digests": state.to_json()}),
    }
}

fn decode_state(json: &Value, base: &Baseline, salt: &str) -> Option<Baseline> {
    if let Some(digests) = json.get("digests") {
        return HashedState::from_json(digests, salt).map(Baseline::Hashed);
    }
    let merge = json.get("merge")?;
    let mut state = match base {
        Baseline::Known(base) => base.as_value().clone(),
        Baseline::Absent | Baseline::Hashed(_) => Value::Null,
    };
    apply_merge(&mut state, merge);
    Some(Baseline::Known(Essence::from_value(state)))
}

fn decode_entry(json: &Value, states: usize) -> Option<HandledEntry> {
    let [at, retries, state, call_required] = json.as_array()?.as_slice() else {
        return None;
    };
    let state = usize::try_from(state.as_u64()?).ok()?;
    (state < states).then_some(HandledEntry {
        stamp: RecordStamp {
            at: time::parse(at.as_str()?)?,
            retries: retries.as_u64()?.try_into().ok()?,
        },
        kind: match call_required.as_bool()? {
            true => NoteKind::CallRequired,
            false => NoteKind::Finished,
        },
        state,
    })
}

/// Identifies a last handled state.
fn fingerprint(base: &Baseline, salt: &str) -> String {
    match base {
        Baseline::Absent => String::new(),
        Baseline::Known(essence) => hashed::digest(essence.as_value(), salt),
        Baseline::Hashed(state) => hashed::digest(&state.to_json(), salt),
    }
}

#[cfg(test)]
mod tests;
