//! The index table compared with a simple model: the entries of every object, one by one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

type ObjectEntries = Vec<(u8, u32)>;

#[derive(Clone, Debug)]
enum IndexStep {
    Replace(u8, ObjectEntries),
    Discard(u8),
}

fn any_steps() -> impl Strategy<Value = Vec<IndexStep>> {
    let entries = prop::collection::vec((0..6u8, any::<u32>()), 0..5);
    let step = prop_oneof![
        4 => (0..8u8, entries).prop_map(|(object, entries)| IndexStep::Replace(object, entries)),
        1 => (0..8u8).prop_map(IndexStep::Discard),
    ];
    prop::collection::vec(step, 0..60)
}

/// The entries of every object.
type IndexModel = BTreeMap<u8, BTreeMap<u8, u32>>;

fn take(model: &mut IndexModel, step: &IndexStep) {
    match step {
        IndexStep::Replace(object, entries) => {
            model.insert(*object, entries.iter().copied().collect());
        }
        IndexStep::Discard(object) => {
            model.remove(object);
        }
    }
}

fn values(model: &IndexModel, key: u8) -> Vec<u32> {
    let values = model.values().filter_map(|entries| entries.get(&key));
    sorted(values.copied())
}

fn sorted(values: impl IntoIterator<Item = u32>) -> Vec<u32> {
    let mut values: Vec<u32> = values.into_iter().collect();
    values.sort_unstable();
    values
}

fn check(index: &IndexTable<u8, u8, u32>, model: &IndexModel) {
    for key in 0..6 {
        let expected = values(model, key);
        assert_eq!(index.get(&key).len(), expected.len());
        assert_eq!(sorted(index.get(&key).copied()), expected);
        assert_eq!(index.contains_key(&key), !expected.is_empty());
    }
    let keys: BTreeSet<u8> = model.values().flat_map(BTreeMap::keys).copied().collect();
    assert_eq!(index.keys().copied().collect::<BTreeSet<u8>>(), keys);
    assert_eq!(index.len(), keys.len());
    assert_eq!(index.is_empty(), keys.is_empty());
    for (key, held) in index.iter() {
        assert_eq!(sorted(held.copied()), values(model, *key));
    }
    let holders = model.values().filter(|entries| !entries.is_empty());
    assert_eq!(index.objects(), holders.count());
}

proptest! {
    #[test]
    fn it_equals_the_entries_of_all_objects(steps in any_steps()) {
        let mut index = IndexTable::default();
        let mut model = IndexModel::new();
        for step in &steps {
            match step {
                IndexStep::Replace(object, entries) => index.replace(object, entries.iter().copied()),
                IndexStep::Discard(object) => index.discard(object),
            }
            take(&mut model, step);
            check(&index, &model);
        }
    }

    #[test]
    fn removed_objects_leave_no_values(steps in any_steps()) {
        let mut index: IndexTable<u8, u8, u32> = IndexTable::default();
        for step in &steps {
            if let IndexStep::Replace(object, entries) = step {
                index.replace(object, entries.iter().copied());
            }
        }
        let key_entries = index.key_entries.len();
        for object in 0..8 {
            index.discard(&object);
        }
        prop_assert!(index.is_empty());
        prop_assert_eq!(index.free.len(), key_entries);
    }
}

#[test]
fn keys_are_found_by_what_they_borrow_as() {
    let mut index = IndexTable::default();
    index.replace(&1, [("claim".to_owned(), "pod")]);
    assert_eq!(index.get("claim").collect::<Vec<_>>(), [&"pod"]);
    assert_eq!(index.get("other").len(), 0);
}

#[test]
fn entries_are_reused() {
    let mut index = IndexTable::default();
    for round in 0..1000 {
        index.replace(&"object", [(round, ())]);
    }
    assert_eq!(index.len(), 1);
    assert!(
        index.key_entries.len() <= 2,
        "{} key_entries",
        index.key_entries.len()
    );
}

#[test]
fn a_value_of_one_key_needs_no_list() {
    assert_eq!(size_of::<ValueLocations>(), 16);
}
