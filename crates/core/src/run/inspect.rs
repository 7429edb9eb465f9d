//! Inspection: every unit of a run, what it waits for, since when and where.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Run;
use super::slot::{Slot, SlotId, What};
use super::unit::{Go, UnitKey};
use crate::{CallSite, Name, Operation, Seq, UnitId};

/// A run at rest, as data: what a stack trace would show of a thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspection {
    /// The number of the turn that comes next.
    pub turn: u64,
    /// The number of rounds that were played in all.
    pub round: u64,
    /// The unit that is running.
    pub running: Option<UnitId>,
    /// Units that are runnable.
    pub runnable: Vec<UnitId>,
    /// Every unit.
    pub units: Vec<UnitView>,
    /// Every operation that is not resolved, by seq.
    pub pending: Vec<PendingOperation>,
    /// The seq of the next operation.
    pub next_seq: Seq,
}

/// One unit, and what it waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnitView {
    /// The unit's id.
    pub id: UnitId,
    /// The turn it was started in.
    pub since: u64,
    /// The unit's waits; it goes on when one of them ends.
    pub waits: Vec<Wait>,
}

/// One thing a unit waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wait {
    /// The description: `activity charge #0`.
    pub what: String,
    /// The turn in which the wait began.
    pub since: u64,
    /// The call site.
    pub site: CallSite,
}

/// One operation that is not resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PendingOperation {
    /// The operation's sequence number.
    pub seq: Seq,
    /// The operation's kind.
    pub operation: Operation,
    /// The operation's type or name.
    pub name: Name,
    /// The unit that awaits it, if one does.
    pub unit: Option<UnitId>,
    /// The turn it was started in.
    pub since: u64,
    /// The call site.
    pub site: CallSite,
}

impl Run {
    /// Returns the state of all units and of all operations that are not resolved.
    pub fn inspect(&self) -> Inspection {
        let state = self.shared.lock();
        let id_of = |key| state.units.get(&key).map(|unit| unit.id.clone());
        let mut waits: BTreeMap<UnitKey, Vec<Wait>> = BTreeMap::new();
        for (id, slot) in state.slots.iter() {
            if let Some(owner) = slot.owner {
                waits.entry(owner).or_default().push(wait(*id, slot));
            }
        }
        let mut units = Vec::new();
        for (key, unit) in state.units.iter() {
            let waits = waits.remove(key).unwrap_or_default();
            units.push(UnitView { id: unit.id.clone(), since: unit.since, waits });
        }
        units.sort_by(|a, b| a.id.cmp(&b.id));
        let pending = state.slots.iter().filter_map(|(id, slot)| match (id, &slot.what) {
            (SlotId::Operation(seq), What::Operation(operation, name)) if slot.arrived.is_none() => {
                Some(PendingOperation {
                    seq: *seq,
                    operation: *operation,
                    name: name.clone(),
                    unit: slot.owner.and_then(id_of),
                    since: slot.since,
                    site: slot.site.into(),
                })
            }
            _ => None,
        });
        let mut runnable: Vec<UnitId> =
            state.units.values().filter(|unit| unit.go == Go::Queued).map(|unit| unit.id.clone()).collect();
        runnable.sort();
        Inspection {
            turn: state.turn,
            round: state.round,
            running: state.running.and_then(id_of),
            runnable,
            pending: pending.collect(),
            next_seq: Seq(state.next_seq),
            units,
        }
    }
}

fn wait(id: SlotId, slot: &Slot) -> Wait {
    let what = match (id, &slot.what) {
        (SlotId::Operation(seq), What::Operation(operation, name)) => format!("{operation} {name} {seq}"),
        (SlotId::Start(seq), What::Start(operation, name)) => format!("the start of {operation} {name} {seq}"),
        (_, What::Signal(name)) => format!("signal {name}"),
        (_, What::Condition) => "a condition".to_owned(),
        (_, What::Units) => "other units".to_owned(),
        (_, What::Operation(operation, name) | What::Start(operation, name)) => format!("{operation} {name}"),
    };
    Wait { what, since: slot.since, site: slot.site.into() }
}

/// One line for each unit, and one for each thing it waits for.
impl fmt::Display for Inspection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for unit in &self.units {
            writeln!(f, "{} since turn {}", unit.id.named(), unit.since)?;
            if unit.waits.is_empty() {
                writeln!(
                    f,
                    "  waits for nothing that the run knows of: a channel or lock of another unit, or a future of another runtime, which never comes"
                )?;
            }
            for wait in &unit.waits {
                writeln!(f, "  waits for {} since turn {}, at {}", wait.what, wait.since, wait.site)?;
            }
        }
        Ok(())
    }
}
