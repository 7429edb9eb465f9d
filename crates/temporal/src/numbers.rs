//! The numbers of operations. Ours count all operations of a run together, Temporal's count each kind by itself. A number that is
//! unique among all is unique among those of its kind, so both are the same number, and nothing has to be remembered.

use dacapo_core::Seq;

/// Returns Temporal's number of an operation.
///
/// # Panics
/// After four thousand million operations: the server ends a run long before.
pub(crate) fn to_temporal(seq: Seq) -> u32 {
    u32::try_from(seq.0).expect("a run of Temporal has at most 51,200 events")
}

/// Returns our number of an operation.
pub(crate) fn from_temporal(number: u32) -> Seq {
    Seq(number.into())
}
