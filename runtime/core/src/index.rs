//! An index: values of objects found by their keys, with each object in as many places as it has keys.
//!
//! A shelf holds all values of one key, one slot for each object. For every object its places are
//! known, so that an update costs as much as the object has keys, however many others there are.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};

use hashbrown::HashTable;

/// The values of objects `O` by their keys.
#[derive(Clone, Debug)]
pub struct Index<O, K, V, S = RandomState> {
    shelves: Vec<Option<KeyEntry<O, K, V>>>,
    /// Shelves without a key, to be used again.
    free: Vec<ShelfNumber>,
    by_key: HashTable<ShelfNumber>,
    by_object: HashMap<O, ValueLocations, S>,
    hasher: S,
}

/// All values of one key; never empty.
#[derive(Clone, Debug)]
struct KeyEntry<O, K, V> {
    key: K,
    slots: KeyValues<O, V>,
}

/// The values of one key with their objects; many keys have one only, which needs no list.
#[derive(Clone, Debug)]
enum KeyValues<O, V> {
    One((O, V)),
    Many(Vec<(O, V)>),
}

type ShelfNumber = u32;

/// Where one value of an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ValueLocation {
    shelf: ShelfNumber,
    slot: u32,
}

/// Where all values of an object are, in the order of the shelves.
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

// === impl Index ===

impl<O, K, V> Default for Index<O, K, V> {
    fn default() -> Self {
        Self {
            shelves: Vec::new(),
            free: Vec::new(),
            by_key: HashTable::new(),
            by_object: HashMap::default(),
            hasher: RandomState::new(),
        }
    }
}

impl<O, K, V, S> Index<O, K, V, S> {
    /// How many keys there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// How many objects have any values.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.by_object.len()
    }

    /// The keys that have values, in no particular order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.shelves.iter().flatten().map(|shelf| &shelf.key)
    }

    /// The keys with their values, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, Values<'_, O, V>)> {
        let shelves = self.shelves.iter().flatten();
        shelves.map(|shelf| (&shelf.key, shelf.slots.values()))
    }
}

impl<O, K, V, S> Index<O, K, V, S>
where
    O: Eq + Hash + Clone,
    K: Eq + Hash,
    S: BuildHasher,
{
    /// The values of a key, in no particular order; none if nothing has that key.
    pub fn get<Q>(&self, key: &Q) -> Values<'_, O, V>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let slots = match self.find(key) {
            Some(number) => self.shelf(number).slots.as_slice(),
            None => &[],
        };
        Values {
            slots: slots.iter(),
        }
    }

    /// Whether anything has this key.
    pub fn contains_key<Q>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        self.find(key).is_some()
    }

    /// Makes these the entries of an object, and no others. Of several values for one key the last
    /// one counts.
    pub fn replace(&mut self, object: &O, entries: impl IntoIterator<Item = (K, V)>) {
        let before = self.by_object.remove(object);
        let before = before.as_ref().map_or(&[][..], ValueLocations::as_slice);
        let mut now: Vec<ValueLocation> = Vec::new();
        for (key, value) in entries {
            let Some(number) = self.find(&key) else {
                let slots = KeyValues::One((object.clone(), value));
                let shelf = self.add(KeyEntry { key, slots });
                now.push(ValueLocation { shelf, slot: 0 });
                continue;
            };
            let known = at(before, number).map(|at| before[at]);
            let slots = &mut self.shelf_mut(number).slots;
            // What was added a moment ago for the same key is at the end of its shelf.
            let again = slots.last().is_some_and(|(owner, _)| owner == object);
            match known {
                Some(place) => {
                    slots.set(place, value);
                    now.push(place);
                }
                None if again => slots.set_last(value),
                None => {
                    let slot = slots.push((object.clone(), value));
                    let shelf = number;
                    now.push(ValueLocation { shelf, slot });
                }
            }
        }
        now.sort_unstable_by_key(|place| place.shelf);
        now.dedup();
        for place in before {
            if at(&now, place.shelf).is_none() {
                self.clear(*place);
            }
        }
        if let Some(places) = ValueLocations::new(now) {
            self.by_object.insert(object.clone(), places);
        }
    }

    /// Takes an object out, with all its entries.
    pub fn discard(&mut self, object: &O) {
        if let Some(places) = self.by_object.remove(object) {
            for place in places.as_slice() {
                self.clear(*place);
            }
        }
    }

    fn find<Q>(&self, key: &Q) -> Option<ShelfNumber>
    where
        K: Borrow<Q>,
        Q: Eq + Hash + ?Sized,
    {
        let is_it = |number: &ShelfNumber| self.shelf(*number).key.borrow() == key;
        self.by_key.find(self.hasher.hash_one(key), is_it).copied()
    }

    fn add(&mut self, shelf: KeyEntry<O, K, V>) -> ShelfNumber {
        let hash = self.hasher.hash_one(&shelf.key);
        let number = match self.free.pop() {
            Some(number) => {
                self.shelves[number as usize] = Some(shelf);
                number
            }
            None => {
                self.shelves.push(Some(shelf));
                number(self.shelves.len() - 1)
            }
        };
        let (shelves, hasher) = (&self.shelves, &self.hasher);
        self.by_key.insert_unique(hash, number, |number| {
            hasher.hash_one(&shelf_at(shelves, *number).key)
        });
        number
    }

    /// Empties one slot; the last one of the shelf takes its place.
    fn clear(&mut self, place: ValueLocation) {
        match self.shelf_mut(place.shelf).slots.remove(place) {
            Removed::Last => {
                let hash = self.hasher.hash_one(&self.shelf(place.shelf).key);
                if let Ok(entry) = self.by_key.find_entry(hash, |it| *it == place.shelf) {
                    entry.remove();
                }
                self.shelves[place.shelf as usize] = None;
                self.free.push(place.shelf);
            }
            Removed::OneOfMany { moved: Some(moved) } => {
                // An object whose entries are being replaced is not moved: it has one slot here.
                if let Some(places) = self.by_object.get_mut(&moved) {
                    places.moved(place);
                }
            }
            Removed::OneOfMany { moved: None } => {}
        }
    }

    fn shelf(&self, number: ShelfNumber) -> &KeyEntry<O, K, V> {
        shelf_at(&self.shelves, number)
    }

    fn shelf_mut(&mut self, number: ShelfNumber) -> &mut KeyEntry<O, K, V> {
        let shelf = self.shelves[number as usize].as_mut();
        shelf.expect(NUMBERED)
    }
}

const NUMBERED: &str = "only shelves with a key are referred to";

fn shelf_at<O, K, V>(
    shelves: &[Option<KeyEntry<O, K, V>>],
    number: ShelfNumber,
) -> &KeyEntry<O, K, V> {
    shelves[number as usize].as_ref().expect(NUMBERED)
}

fn number(length: usize) -> u32 {
    u32::try_from(length).expect("an index has less than four billion entries")
}

/// Where the place on a shelf is in a sorted list of places.
fn at(places: &[ValueLocation], shelf: ShelfNumber) -> Option<usize> {
    let found = places.binary_search_by_key(&shelf, |place| place.shelf);
    found.ok()
}

// === impl KeyValues ===

/// What became of a shelf when a slot was emptied.
enum Removed<O> {
    /// There is nothing left on it, and it must go.
    Last,
    /// Others are left, and one of them may be in the freed slot now.
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

    fn set(&mut self, place: ValueLocation, value: V) {
        self.as_mut_slice()[place.slot as usize].1 = value;
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
    fn remove(&mut self, place: ValueLocation) -> Removed<O> {
        let slots = match self {
            Self::One(_) => return Removed::Last,
            Self::Many(slots) if slots.len() == 1 => return Removed::Last,
            Self::Many(slots) => slots,
        };
        slots.swap_remove(place.slot as usize);
        let moved = slots.get(place.slot as usize);
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
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(places) => places,
        }
    }

    /// The value on that shelf is in another slot now.
    fn moved(&mut self, to: ValueLocation) {
        let places = match self {
            Self::One(place) => std::slice::from_mut(place),
            Self::Many(places) => places,
        };
        if let Some(at) = at(places, to.shelf) {
            places[at] = to;
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
