//! Tables of objects that return their memory when most of the objects are gone.
//!
//! A hash table keeps its memory when its entries are removed: without this, an operator that has
//! known many objects for a moment would keep the tables of all of them for ever.

use std::{
    borrow::Borrow,
    collections::HashMap,
    hash::{BuildHasher, Hash},
};

/// The capacity up to which a table keeps its memory.
const KEPT: usize = 256;

/// Removes an entry, and shrinks a table that is almost empty. A table that shrinks gets room for
/// twice its entries, so that the next one is far away.
pub fn remove<K, V, S, Q>(table: &mut HashMap<K, V, S>, key: &Q) -> Option<V>
where
    K: Borrow<Q> + Eq + Hash,
    Q: Eq + Hash + ?Sized,
    S: BuildHasher,
{
    let removed = table.remove(key);
    if table.capacity() > KEPT && table.len() < table.capacity() / 8 {
        table.shrink_to(2 * table.len());
    }
    removed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_returns_its_memory_when_its_objects_are_gone() {
        let mut table: HashMap<u32, u32> = (0..10_000).map(|it| (it, it)).collect();
        let full = table.capacity();
        for key in 0..9_990 {
            assert_eq!(remove(&mut table, &key), Some(key));
        }
        assert!(table.capacity() <= KEPT, "{} of {full}", table.capacity());
        let mut left: Vec<u32> = table.into_keys().collect();
        left.sort_unstable();
        assert_eq!(left, (9_990..10_000).collect::<Vec<u32>>());
    }
}
