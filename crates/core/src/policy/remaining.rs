//! The members left of a set from which they are taken one by one.
//!
//! A round of many units asks for "the i-th of those left" once per step. A plain vector would move half of itself each
//! time; here a bit stands for each member, and a Fenwick tree counts the bits of the words, so a step costs O(log n).

/// The members left of a set of fixed size, by their places in the whole set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Remaining {
    words: Vec<u64>,
    /// The Fenwick tree: entry `i` counts the bits of the words that end with word `i`.
    counts: Vec<u32>,
    whole: usize,
    left: usize,
}

impl Remaining {
    /// Creates a set of this size with all members left.
    pub(crate) fn whole(size: usize) -> Self {
        let mut all = Self::default();
        all.reset(size);
        all
    }

    /// Starts again with a set of this size and all members left.
    pub(crate) fn reset(&mut self, size: usize) {
        (self.whole, self.left) = (size, size);
        self.words.clear();
        self.words.resize(size.div_ceil(WORD), u64::MAX);
        if let Some(last) = self.words.last_mut().filter(|_| !size.is_multiple_of(WORD)) {
            *last = (1 << (size % WORD)) - 1;
        }
        self.counts.clear();
        self.counts.extend(self.words.iter().map(|word| word.count_ones()));
        for node in 1..=self.counts.len() {
            let parent = node + lowest_bit(node);
            if parent <= self.counts.len() {
                self.counts[parent - 1] += self.counts[node - 1];
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.left
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.left == self.whole
    }

    pub(crate) fn contains(&self, place: usize) -> bool {
        place < self.whole && self.words[place / WORD] >> (place % WORD) & 1 == 1
    }

    /// Returns the place of the `index`-th member left.
    pub(crate) fn nth(&self, index: usize) -> Option<usize> {
        if index >= self.left {
            return None;
        }
        let (mut word, mut before) = (0, index);
        let mut stride = self.counts.len().checked_ilog2().map_or(0, |log| 1 << log);
        while stride > 0 {
            if let Some(&count) = self.counts.get(word + stride - 1)
                && count as usize <= before
            {
                before -= count as usize;
                word += stride;
            }
            stride >>= 1;
        }
        let mut bits = self.words[word];
        for _ in 0..before {
            bits &= bits - 1;
        }
        Some(word * WORD + bits.trailing_zeros() as usize)
    }

    /// Returns how many members are left before this place.
    pub(crate) fn rank(&self, place: usize) -> usize {
        let (mut node, below) = (place / WORD, (1u64 << (place % WORD)) - 1);
        let mut rank = self.words.get(node).map_or(0, |word| (word & below).count_ones());
        while node > 0 {
            rank += self.counts[node - 1];
            node -= lowest_bit(node);
        }
        rank as usize
    }

    /// Removes the member at this place. Returns whether it was still there.
    pub(crate) fn remove(&mut self, place: usize) -> bool {
        if !self.contains(place) {
            return false;
        }
        self.words[place / WORD] &= !(1 << (place % WORD));
        self.left -= 1;
        let mut node = place / WORD + 1;
        while node <= self.counts.len() {
            self.counts[node - 1] -= 1;
            node += lowest_bit(node);
        }
        true
    }

    /// Returns the places of the members left, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(word, &bits)| {
            std::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)))
                .take_while(|bits| *bits != 0)
                .map(move |bits| word * WORD + bits.trailing_zeros() as usize)
        })
    }
}

const WORD: usize = u64::BITS as usize;

const fn lowest_bit(node: usize) -> usize {
    node & node.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// S1-60
    #[test]
    fn remaining_actions_agree_with_a_plain_list_at_every_step() {
        for size in [0, 1, 2, 63, 64, 65, 127, 128, 129, 1000] {
            let (mut rest, mut list) = (Remaining::whole(size), (0..size).collect::<Vec<_>>());
            let mut rng = Rng::from_seed(size as u64);
            while !list.is_empty() {
                assert_eq!(rest.iter().collect::<Vec<_>>(), list);
                assert_eq!(rest.len(), list.len());
                for (index, &place) in list.iter().enumerate() {
                    assert_eq!((rest.nth(index), rest.rank(place)), (Some(place), index));
                }
                let place = list.remove(rng.below(list.len() as u64) as usize);
                assert!(rest.contains(place) && rest.remove(place));
                assert!(!rest.contains(place) && !rest.remove(place));
            }
            assert!(rest.is_empty());
            assert_eq!((rest.nth(0), rest.iter().next()), (None, None));
        }
    }
}
