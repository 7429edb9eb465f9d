//! A map that needs little memory while it holds few entries.

use std::collections::BTreeMap;

/// The number of entries beyond which a tree is used: moving entries in a list would then cost more than a tree's
/// nodes.
const FEW: usize = 16;

/// An ordered map. Most runs have one unit and one pending operation; a tree's node, which has room for eleven entries,
/// would be the largest part of such a run at rest.
pub(crate) enum SmallMap<K, V> {
    /// Entries sorted by key.
    Few(Vec<(K, V)>),
    Many(BTreeMap<K, V>),
}

impl<K: Ord + Copy, V> SmallMap<K, V> {
    pub(crate) const fn new() -> Self {
        Self::Few(Vec::new())
    }

    /// Creates a map with room for a few entries.
    pub(crate) fn with_capacity(few: usize) -> Self {
        Self::Few(Vec::with_capacity(few))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match self {
            Self::Few(entries) => place(entries, key).ok().map(|place| &entries[place].1),
            Self::Many(map) => map.get(key),
        }
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self {
            Self::Few(entries) => place(entries, key).ok().map(|place| &mut entries[place].1),
            Self::Many(map) => map.get_mut(key),
        }
    }

    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if let Self::Few(entries) = self
            && entries.len() == FEW
        {
            *self = Self::Many(std::mem::take(entries).into_iter().collect());
        }
        match self {
            Self::Few(entries) => match place(entries, &key) {
                Ok(place) => entries[place].1 = value,
                Err(place) => {
                    if entries.capacity() == 0 {
                        entries.reserve_exact(1);
                    }
                    entries.insert(place, (key, value));
                }
            },
            Self::Many(map) => drop(map.insert(key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        match self {
            Self::Few(entries) => place(entries, key).ok().map(|place| entries.remove(place).1),
            Self::Many(map) => map.remove(key),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Few(entries) => entries.is_empty(),
            Self::Many(map) => map.is_empty(),
        }
    }

    /// Returns all entries, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries.iter().map(|(key, value)| (key, value))), None),
            Self::Many(map) => (None, Some(map.iter())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        let (few, many) = match self {
            Self::Few(entries) => (Some(entries.iter_mut().map(|(_, value)| value)), None),
            Self::Many(map) => (None, Some(map.values_mut())),
        };
        few.into_iter().flatten().chain(many.into_iter().flatten())
    }

    /// Empties the map and returns all values, by key.
    pub(crate) fn take_values(&mut self) -> Vec<V> {
        match std::mem::replace(self, Self::new()) {
            Self::Few(entries) => entries.into_iter().map(|(_, value)| value).collect(),
            Self::Many(map) => map.into_values().collect(),
        }
    }
}

fn place<K: Ord, V>(entries: &[(K, V)], key: &K) -> Result<usize, usize> {
    entries.binary_search_by(|(other, _)| other.cmp(key))
}
