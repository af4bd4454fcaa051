//! An index table: values of objects by key; an object may have values under several keys.
//!
//! An entry holds all values of one key, in one slot per object. The table knows the locations of
//! each object's values, so that the cost of an update depends on the keys of that object only.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

use crate::table;

/// The values of objects `O` by their keys.
#[derive(Clone, Debug)]
pub struct IndexTable<O, K, V, S = RandomState> {
    key_entries: Vec<Option<KeyEntry<O, K, V>>>,
    /// The numbers of unused entries.
    free: Vec<EntryNumber>,
    by_key: HashTable<EntryNumber>,
    by_object: HashMap<O, ValueLocations, S>,
    hasher: S,
}

/// All values of one key; never empty.
#[derive(Clone, Debug)]
struct KeyEntry<O, K, V> {
    key: K,
    slots: KeyValues<O, V>,
}

/// The values of one key with their objects. Many keys have just one, which needs no list.
#[derive(Clone, Debug)]
enum KeyValues<O, V> {
    One((O, V)),
    Many(Vec<(O, V)>),
}

type EntryNumber = u32;

/// The location of one value of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueLocation {
    entry: EntryNumber,
    slot: u32,
}

/// The locations of all values of an object, in the order of the entries.
#[derive(Clone, Debug)]
enum ValueLocations {
    One(ValueLocation),
    Many(Box<[ValueLocation]>),
}

/// The values of one key, one of each object.
#[derive(Clone, Debug)]
pub struct Values<'a, O, V> {
    slots: std::slice::Iter<'a, (O, V)>,
}

// === impl IndexTable ===

impl<O, K, V> Default for IndexTable<O, K, V> {
    fn default() -> Self {
        Self {
            key_entries: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            by_object: HashMap::default(),
            hasher: RandomState::new(),
        }
    }
}

impl<O, K, V, S> IndexTable<O, K, V, S> {
    /// The number of keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The number of objects that have values.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.by_object.len()
    }

    /// The keys that have values, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.key_entries.iter().flatten().map(|entry| &entry.key)
    }

    /// The keys with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Values<'_, O, V>)> {
        let key_entries = self.key_entries.iter().flatten();
        key_entries.map(|entry| (&entry.key, entry.slots.values()))
    }
}

impl<O, K, V, S> IndexTable<O, K, V, S>
where
    O: Eq + Hash + Clone,
    K: Eq + Hash,
    S: BuildHasher,
{
    /// The values of a key, in no particular order.
    pub fn get<Q>(&self, key: &Q) -> Values<'_, O, V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let slots = match self.find(key) {
            Some(number) => self.entry(number).slots.as_slice(),
            None => &[],
        };
        Values {
            slots: slots.iter(),
        }
    }

    /// Whether the key has values.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.find(key).is_some()
    }

    /// Replaces all keys and values of an object. Of several values for one key the last one counts.
    pub fn replace(&mut self, object: &O, entries: impl IntoIterator<Item = (K, V)>) {
        let before = self.by_object.remove(object);
        let before = before.as_ref().map_or(&[][..], ValueLocations::as_slice);
        let mut now: Vec<ValueLocation> = Vec::new();
        for (key, value) in entries {
            let Some(number) = self.find(&key) else {
                let slots = KeyValues::One((object.clone(), value));
                let entry = self.add(KeyEntry { key, slots });
                now.push(ValueLocation { entry, slot: 0 });
                continue;
            };
            let known = at(before, number).map(|at| before[at]);
            let slots = &mut self.entry_mut(number).slots;
            // A value that this call added for the same key is at the end of the entry.
            let again = slots.last().is_some_and(|(owner, _)| owner == object);
            match known {
                Some(location) => {
                    slots.set(location, value);
                    now.push(location);
                }
                None if again => slots.set_last(value),
                None => {
                    let slot = slots.push((object.clone(), value));
                    let entry = number;
                    now.push(ValueLocation { entry, slot });
                }
            }
        }
        now.sort_unstable_by_key(|location| location.entry);
        now.dedup();
        for location in before {
            if at(&now, location.entry).is_none() {
                self.clear(*location);
            }
        }
        if let Some(locations) = ValueLocations::new(now) {
            self.by_object.insert(object.clone(), locations);
        }
    }

    /// Removes all values of an object.
    pub fn discard(&mut self, object: &O) {
        if let Some(locations) = table::remove(&mut self.by_object, object) {
            for location in locations.as_slice() {
                self.clear(*location);
            }
        }
    }

    fn find<Q>(&self, key: &Q) -> Option<EntryNumber>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let is_it = |number: &EntryNumber| self.entry(*number).key.borrow() == key;
        self.by_key.find(self.hasher.hash_one(key), is_it).copied()
    }

    fn add(&mut self, entry: KeyEntry<O, K, V>) -> EntryNumber {
        let hash = self.hasher.hash_one(&entry.key);
        let number = match self.free.pop() {
            Some(number) => {
                self.key_entries[number as usize] = Some(entry);
                number
            }
            None => {
                self.key_entries.push(Some(entry));
                number(self.key_entries.len() - 1)
            }
        };
        let (key_entries, hasher) = (&self.key_entries, &self.hasher);
        self.by_key.insert_unique(hash, number, |number| {
            hasher.hash_one(&entry_at(key_entries, *number).key)
        });
        number
    }

    /// Removes the value in one slot; the last value of the entry moves there.
    fn clear(&mut self, location: ValueLocation) {
        match self.entry_mut(location.entry).slots.remove(location) {
            Removed::Last => {
                let hash = self.hasher.hash_one(&self.entry(location.entry).key);
                if let Ok(entry) = self.by_key.find_entry(hash, |it| *it == location.entry) {
                    entry.remove();
                }
                self.key_entries[location.entry as usize] = None;
                self.free.push(location.entry);
            }
            Removed::OneOfMany { moved: Some(moved) } => {
                // The moved object is never the one that is being replaced: that has one slot here.
                if let Some(locations) = self.by_object.get_mut(&moved) {
                    locations.moved(location);
                }
            }
            Removed::OneOfMany { moved: None } => {}
        }
    }

    fn entry(&self, number: EntryNumber) -> &KeyEntry<O, K, V> {
        entry_at(&self.key_entries, number)
    }

    fn entry_mut(&mut self, number: EntryNumber) -> &mut KeyEntry<O, K, V> {
        let entry = self.key_entries[number as usize].as_mut();
        entry.expect(NUMBERED)
    }
}

const NUMBERED: &str = "only entries with a key are referred to";

fn entry_at<O, K, V>(
    key_entries: &[Option<KeyEntry<O, K, V>>],
    number: EntryNumber,
) -> &KeyEntry<O, K, V> {
    key_entries[number as usize].as_ref().expect(NUMBERED)
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("an index has less than four billion entries")
}

/// The position of the location in this entry within a sorted list.
fn at(locations: &[ValueLocation], entry: EntryNumber) -> Option<usize> {
    let found = locations.binary_search_by_key(&entry, |location| location.entry);
    found.ok()
}

// === impl KeyValues ===

/// The result of removing a value from an entry.
enum Removed<O> {
    /// The entry has no values left, and must be removed.
    Last,
    /// Values are left, and one of them may have moved to the freed slot.
    OneOfMany { moved: Option<O> },
}

impl<O, V> KeyValues<O, V> {
    fn as_slice(&self) -> &[(O, V)] {
        match self {
            Self::One(slot) => std::slice::from_ref(slot),
            Self::Many(slots) => slots,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [(O, V)] {
        match self {
            Self::One(slot) => std::slice::from_mut(slot),
            Self::Many(slots) => slots,
        }
    }

    fn values(&self) -> Values<'_, O, V> {
        Values {
            slots: self.as_slice().iter(),
        }
    }

    fn last(&self) -> Option<&(O, V)> {
        self.as_slice().last()
    }

    fn set_last(&mut self, value: V) {
        if let Some((_, present)) = self.as_mut_slice().last_mut() {
            *present = value;
        }
    }

    fn set(&mut self, location: ValueLocation, value: V) {
        self.as_mut_slice()[location.slot as usize].1 = value;
    }

    fn push(&mut self, slot: (O, V)) -> u32 {
        let slots = match std::mem::replace(self, Self::Many(Vec::new())) {
            Self::One(first) => vec![first, slot],
            Self::Many(mut slots) => {
                slots.push(slot);
                slots
            }
        };
        let added = number(slots.len() - 1);
        *self = Self::Many(slots);
        added
    }
}

impl<O: Clone, V> KeyValues<O, V> {
    fn remove(&mut self, location: ValueLocation) -> Removed<O> {
        let slots = match self {
            Self::One(_) => return Removed::Last,
            Self::Many(slots) if slots.len() == 1 => return Removed::Last,
            Self::Many(slots) => slots,
        };
        slots.swap_remove(location.slot as usize);
        let moved = slots.get(location.slot as usize);
        Removed::OneOfMany {
            moved: moved.map(|(object, _)| object.clone()),
        }
    }
}

// === impl ValueLocations ===

impl ValueLocations {
    /// None if there are none.
    fn new(sorted: Vec<ValueLocation>) -> Option<Self> {
        match sorted[..] {
            [] => None,
            [only] => Some(Self::One(only)),
            _ => Some(Self::Many(sorted.into())),
        }
    }

    fn as_slice(&self) -> &[ValueLocation] {
        match self {
            Self::One(location) => std::slice::from_ref(location),
            Self::Many(locations) => locations,
        }
    }

    /// Updates the location of the value that moved within an entry.
    fn moved(&mut self, to: ValueLocation) {
        let locations = match self {
            Self::One(location) => std::slice::from_mut(location),
            Self::Many(locations) => locations,
        };
        if let Some(at) = at(locations, to.entry) {
            locations[at] = to;
        }
    }
}

// === impl Values ===

impl<'a, O, V> Iterator for Values<'a, O, V> {
    type Item = &'a V;

    fn next(&mut self) -> Option<&'a V> {
        self.slots.next().map(|(_, value)| value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<O, V> ExactSizeIterator for Values<'_, O, V> {}

#[cfg(test)]
mod tests;
