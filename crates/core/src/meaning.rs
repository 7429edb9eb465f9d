//! The meaning of values that hold payloads. A codec may write other bytes each time that it encodes a value, as a cipher
//! does: then the digests of two payloads say whether they mean the same.

use std::collections::BTreeMap;

use crate::{Failure, Name, Outcome, Payload};

/// Values that hold payloads.
pub(crate) trait Meaning {
    /// Returns whether two values differ at most in payloads that mean the same.
    fn has_meaning_of(&self, other: &Self) -> bool;
}

impl Meaning for Payload {
    fn has_meaning_of(&self, other: &Self) -> bool {
        Payload::has_meaning_of(self, other)
    }
}

impl<T: Meaning> Meaning for Option<T> {
    fn has_meaning_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(other)) => one.has_meaning_of(other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl<T: Meaning> Meaning for Vec<T> {
    fn has_meaning_of(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, other)| one.has_meaning_of(other))
    }
}

impl<T: Meaning> Meaning for BTreeMap<Name, T> {
    fn has_meaning_of(&self, other: &Self) -> bool {
        let mut pairs = self.iter().zip(other);
        self.len() == other.len() && pairs.all(|(one, other)| one.0 == other.0 && one.1.has_meaning_of(other.1))
    }
}

impl Meaning for Failure {
    fn has_meaning_of(&self, other: &Self) -> bool {
        let link = |failure: &Failure| {
            let Failure { kind, message, type_name, non_retryable, origin, .. } = failure.clone();
            (kind, message, type_name, non_retryable, origin)
        };
        let is_same =
            |(one, other): (&Failure, &Failure)| link(one) == link(other) && one.details.has_meaning_of(&other.details);
        self.chain().count() == other.chain().count() && self.chain().zip(other.chain()).all(is_same)
    }
}

impl Meaning for Outcome {
    fn has_meaning_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Completed(one), Self::Completed(other)) => one.has_meaning_of(other),
            (Self::Failed(one), Self::Failed(other)) => one.has_meaning_of(other),
            _ => false,
        }
    }
}
