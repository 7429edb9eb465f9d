//! What an honest observer knows of a run, kept apart from the core: every operation, unit and update, and the rules
//! that hold after every turn.

use std::collections::{BTreeMap, BTreeSet};

use dacapo_core::{
    CommandKind, Inspection, Job, Name, Operation, Outcome, Resolution, Seq, StartOutcome, TurnDone, UnitId,
};

use crate::world::Problem;

#[derive(Clone, Copy, Debug)]
struct Known {
    operation: Operation,
    started: bool,
    resolved: bool,
    cancelled: bool,
}

/// What happened so far.
#[derive(Default)]
pub(crate) struct Ledger {
    operations: BTreeMap<Seq, Known>,
    /// Operations whose result a unit will take, as the run itself says.
    awaited: BTreeSet<Seq>,
    alive: BTreeMap<UnitId, u64>,
    gone: BTreeSet<UnitId>,
    accepted: BTreeSet<Name>,
    answered: BTreeSet<Name>,
    turns: u64,
    pub(crate) closed: bool,
}

macro_rules! demand {
    ($holds:expr, $($words:tt)*) => {
        if !$holds {
            return Err(format!($($words)*));
        }
    };
}

impl Ledger {
    /// Operations that can be resolved and that the run still wants.
    pub(crate) fn open(&self) -> Vec<(Seq, Operation)> {
        let open = self.operations.iter().filter(|(seq, known)| !known.resolved && self.awaited.contains(seq));
        open.map(|(seq, known)| (*seq, known.operation)).collect()
    }

    /// Operations that are not resolved and whose result no unit will take.
    pub(crate) fn given_up(&self) -> Vec<(Seq, Operation)> {
        let open = self.operations.iter().filter(|(seq, known)| !known.resolved && !self.awaited.contains(seq));
        open.map(|(seq, known)| (*seq, known.operation)).collect()
    }

    pub(crate) fn is_given_up(&self, seq: Seq) -> bool {
        !self.awaited.contains(&seq)
    }

    pub(crate) fn has_started(&self, seq: Seq) -> bool {
        self.operations.get(&seq).is_some_and(|known| known.started)
    }

    /// These jobs are about to be applied.
    pub(crate) fn expect(&mut self, jobs: &[Job]) {
        for job in jobs {
            let Job::Resolve { seq, resolution, .. } = job else { continue };
            let Some(known) = self.operations.get_mut(seq) else { continue };
            match resolution {
                Resolution::ChildStarted(StartOutcome::As(_)) | Resolution::NexusStarted(StartOutcome::As(_)) => {
                    known.started = true;
                }
                _ => known.resolved = true,
            }
        }
    }

    /// The rules. `jobs` were applied, `done` is the answer, `inspection` shows the run at rest.
    pub(crate) fn check(&mut self, jobs: &[Job], done: &TurnDone, inspection: &Inspection) -> Result<(), Problem> {
        demand!(!self.closed, "a closed run played a turn");
        self.check_number(jobs, done)?;
        for (position, command) in done.commands.iter().enumerate() {
            let last = position + 1 == done.commands.len();
            self.check_command(&command.kind, last)?;
            // The end of a run whose handlers outlived the root is still the root's.
            let alive = command.kind.is_terminal() || !self.gone.contains(&command.unit);
            demand!(alive, "unit {} was gone and emits", command.unit);
        }
        let terminal = done.commands.last().is_some_and(|command| command.kind.is_terminal());
        demand!(terminal == done.closed, "closed is {} and the last command says {terminal}", done.closed);
        self.closed = done.closed;
        self.check_rest(inspection)?;
        self.check_units(inspection)?;
        if self.closed {
            // What the next run handles is that run's to answer.
            let handed_on = |id: &&Name| done.left_updates.iter().any(|update| update.id == **id);
            let left: Vec<_> = self.accepted.difference(&self.answered).filter(|id| !handed_on(id)).collect();
            demand!(left.is_empty(), "the run closed and owes answers to {left:?}");
            demand!(inspection.units.is_empty(), "the run closed with units: {inspection}");
        }
        Ok(())
    }

    fn check_number(&mut self, jobs: &[Job], done: &TurnDone) -> Result<(), Problem> {
        match done.number {
            Some(number) => {
                demand!(number == self.turns, "turn {} has number {number}", self.turns);
                self.turns += 1;
            }
            None => {
                demand!(done.rejected.len() == jobs.len(), "a turn left no trace and not all of it was refused");
                demand!(done.commands.is_empty(), "a turn left no trace and has commands");
            }
        }
        for rejected in &done.rejected {
            demand!(!self.accepted.contains(&rejected.update), "{} was accepted and rejected", rejected.update);
        }
        Ok(())
    }

    fn check_command(&mut self, kind: &CommandKind, last: bool) -> Result<(), Problem> {
        demand!(!kind.is_terminal() || last, "{kind} is terminal and not the last");
        if let Some(seq) = kind.seq() {
            let next = Seq(self.operations.len() as u64);
            demand!(seq == next, "seqs are dense: {kind} has {seq}, and {next} comes next");
            let operation = operation_of(kind);
            self.operations.insert(seq, Known { operation, started: false, resolved: false, cancelled: false });
        }
        match kind {
            CommandKind::Cancel(cancel) => {
                let Some(known) = self.operations.get_mut(&cancel.seq) else {
                    return Err(format!("{kind} names what was never started"));
                };
                demand!(!known.resolved, "{kind} names what is resolved");
                demand!(!known.cancelled, "{kind} comes twice");
                demand!(known.operation == cancel.operation, "{kind} says {}", cancel.operation);
                known.cancelled = true;
            }
            CommandKind::AcceptUpdate { update } => {
                demand!(self.accepted.insert(update.clone()), "{update} was accepted twice");
            }
            CommandKind::CompleteUpdate(answer) => {
                demand!(self.accepted.contains(&answer.update), "{} was answered, not accepted", answer.update);
                demand!(self.answered.insert(answer.update.clone()), "{} was answered twice", answer.update);
                if let Outcome::Failed(failure) = &answer.outcome {
                    demand!(!failure.message.is_empty(), "{} failed without a word", answer.update);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_rest(&mut self, inspection: &Inspection) -> Result<(), Problem> {
        demand!(inspection.running.is_none(), "a unit runs while the run rests: {inspection:?}");
        demand!(inspection.runnable.is_empty(), "units are runnable while the run rests: {:?}", inspection.runnable);
        let next = Seq(self.operations.len() as u64);
        demand!(inspection.next_seq == next, "the next seq is {next}, and the run says {}", inspection.next_seq);
        self.awaited.clear();
        for pending in &inspection.pending {
            let known = self.operations.get(&pending.seq);
            demand!(
                known.is_some_and(|known| known.operation == pending.operation && !known.resolved),
                "{} is pending, and known is {known:?}",
                pending.seq
            );
            self.awaited.insert(pending.seq);
        }
        Ok(())
    }

    /// No id is used twice, and every unit that is alive waits for something: a unit that waits for nothing never goes on.
    fn check_units(&mut self, inspection: &Inspection) -> Result<(), Problem> {
        let now: BTreeMap<UnitId, u64> = inspection.units.iter().map(|unit| (unit.id.clone(), unit.since)).collect();
        demand!(now.len() == inspection.units.len(), "two units have one id: {inspection}");
        for (unit, since) in &now {
            demand!(!self.gone.contains(unit), "unit {unit} was gone and is back");
            let before = self.alive.get(unit);
            demand!(before.is_none_or(|before| before == since), "unit {unit} was born again");
            demand!(before.is_some() || since + 1 >= self.turns, "unit {unit} appears out of nowhere");
        }
        self.gone.extend(self.alive.keys().filter(|unit| !now.contains_key(*unit)).cloned());
        self.alive = now;
        let busy = |unit: &UnitId| {
            let below =
                |other: &UnitId| other.path().len() > unit.path().len() && other.path().starts_with(unit.path());
            inspection.units.iter().any(|other| below(&other.id))
        };
        let serial_phase_waits = |unit: &UnitId| unit.is_handler() && unit.path().len() == 1 && !busy(unit);
        for unit in inspection.units.iter().filter(|unit| unit.waits.is_empty()) {
            let held =
                serial_phase_waits(&unit.id) && inspection.units.iter().filter(|u| u.id.is_handler()).count() > 1;
            demand!(held, "unit {} waits for nothing and will never go on:\n{inspection}", unit.id);
        }
        Ok(())
    }
}

fn operation_of(kind: &CommandKind) -> Operation {
    match kind {
        CommandKind::Activity(_) => Operation::Activity,
        CommandKind::LocalActivity(_) => Operation::LocalActivity,
        CommandKind::SideEffect(_) => Operation::SideEffect,
        CommandKind::Timer(_) => Operation::Timer,
        CommandKind::Child(_) => Operation::Child,
        CommandKind::SignalExternal(_) => Operation::SignalExternal,
        CommandKind::CancelExternal(_) => Operation::CancelExternal,
        CommandKind::Nexus(_) => Operation::Nexus,
        CommandKind::Promise(_) => Operation::Promise,
        other => unreachable!("{other} has no seq"),
    }
}
