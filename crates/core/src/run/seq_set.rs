//! A set of seqs, one bit each: the operations whose late results are ignored.

use crate::Seq;

/// A set that grows to one bit per seq of the run, and only once an operation was cancelled or detached.
#[derive(Default)]
pub(crate) struct SeqSet(Vec<u64>);

impl SeqSet {
    pub(crate) fn insert(&mut self, seq: Seq) {
        let (word, bit) = place(seq);
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    pub(crate) fn contains(&self, seq: Seq) -> bool {
        let (word, bit) = place(seq);
        self.0.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

fn place(seq: Seq) -> (usize, u64) {
    ((seq.0 / 64) as usize, 1 << (seq.0 % 64))
}
