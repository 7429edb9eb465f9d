//! Committing a group of plain turns in one round trip.
//!
//! Each statement ends by itself at the server, so those after one that fails are run too. Within the transaction they change nothing, and its
//! commit rolls it back. If it does not even begin, they are transactions of their own, which can only read.

use dacapo_store::{Write, apply};

use super::{Attempt, BEGIN, GroupCommit, WriteResult, not_joined, refuse};
use crate::changes::Changes;
use crate::failure::Failure;
use crate::flush::flush;
use crate::membership;
use crate::needs::Needs;
use crate::overlay::Overlay;
use crate::prediction::Prediction;
use crate::trip::{Trip, values};

impl GroupCommit {
    /// Tries to commit writes over predicted facts. Where they are others the transaction fails, and nothing is known but that.
    /// `prepared` gets the number of the group and the answers, as in two round trips.
    pub(super) fn attempt_in_one_trip(
        &mut self,
        writes: &[Write],
        prediction: &Prediction,
        prepared: &mut Option<(i64, Vec<WriteResult>)>,
    ) -> Result<(Attempt, Needs), Failure> {
        let Some((answers, changes)) = self.apply_predicted(writes, prediction) else {
            return Ok((Attempt::Incomplete, Needs::default()));
        };
        let Some(membership) = &mut self.membership else { return Err(not_joined().into()) };
        let link = self.link.as_mut().ok_or_else(|| Failure::Disconnected("there is no connection".to_owned()))?;
        link.only_read_outside_of_transactions()?;
        let mut trip = Trip::default();
        trip.step(BEGIN, values![]);
        trip.step(membership::STRICT_FENCE, membership.fence());
        prediction.check(&mut trip);
        flush(&changes, &mut trip);
        trip.step("COMMIT", values![]);
        let (_, answers) = prepared.insert((membership.group, answers));
        link.run(&trip)?;
        Ok((Attempt::Committed(std::mem::take(answers)), Needs::default()))
    }

    /// Applies writes over predicted facts. None if they need others.
    fn apply_predicted(&mut self, writes: &[Write], prediction: &Prediction) -> Option<(Vec<WriteResult>, Changes)> {
        if self.is_begun {
            return None;
        }
        let (node, facts) = (self.node.clone(), &prediction.facts);
        let owned = node.owned.get();
        let mut overlay = Overlay::new(facts, &node, owned, &mut self.tasks);
        let mut answers = Vec::with_capacity(writes.len());
        for write in writes {
            if refuse(&node, &owned, facts, write).is_some() {
                return None;
            }
            answers.push(Ok(apply(&mut overlay, write).ok()?));
        }
        let suffices = overlay.is_complete() && Prediction::suffices_for(&overlay.changes);
        suffices.then_some((answers, overlay.changes))
    }
}
