//! Emitting: the one place where commands are decided, sealed and matched.

use std::panic::Location;
use std::sync::Arc;

use super::matcher::{Bound, Comparison, Matcher};
use super::slot::{SlotId, What};
use super::state::State;
use crate::command::Operation;
use crate::options::{CancelType, Retry};
use crate::{ActivationError, CallSite, Command, CommandKind, Name, Nondeterminism, OperationId, Seq, UnitId, Warning};

/// The state of a command of this turn: whether it is sealed, and the recorded command it is bound to. It is open until
/// sealed.
#[derive(Clone, Copy)]
pub(crate) struct Seal {
    pub(crate) sealed: bool,
    bound: Bound,
}

/// The data by which a future finds its operation again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticket {
    pub(crate) slot: SlotId,
    pub(crate) turn: u64,
    pub(crate) position: usize,
}

impl Ticket {
    /// The ticket of an operation that was not started.
    pub(crate) const NEVER: Self = Self { slot: SlotId::Never, turn: u64::MAX, position: usize::MAX };
}

impl State {
    /// Starts an operation: takes position, seq and id, and opens the slot for its result. Its options may be set until
    /// it is sealed.
    pub(crate) fn schedule(
        &mut self,
        operation: Operation,
        name: Name,
        site: &'static Location<'static>,
        make: impl FnOnce(Seq, OperationId) -> CommandKind,
    ) -> Ticket {
        let seq = Seq(self.next_seq);
        let kind = make(seq, OperationId::of(self.seed, seq));
        if self.ending.is_some() && !self.waits_for_handlers() {
            let unit = self.running_id();
            let warning = Warning::IgnoredAfterClose { unit, command: kind.to_string(), site: site.into() };
            self.warn(warning);
            return Ticket::NEVER;
        }
        self.next_seq += 1;
        let slot = SlotId::Operation(seq);
        if matches!(operation, Operation::Child | Operation::Nexus) {
            self.open_slot(SlotId::Start(seq), What::Start(operation, name.clone()), site);
        }
        self.open_slot(slot, What::Operation(operation, name), site);
        let position = self.push(kind, site);
        self.open.push(position as u32);
        Ticket { slot, turn: self.turn, position }
    }

    /// Emits a command that starts nothing and has no options to set.
    pub(crate) fn emit(&mut self, kind: CommandKind, site: &'static Location<'static>) {
        let position = self.push(kind, site);
        self.seal(position);
    }

    fn push(&mut self, kind: CommandKind, site: &'static Location<'static>) -> usize {
        self.flush_cancels();
        let unit = self.running_id();
        self.append(kind, unit, site)
    }

    /// Emits a command on behalf of a unit that is not running.
    pub(crate) fn emit_for(&mut self, unit: UnitId, kind: CommandKind, site: &'static Location<'static>) {
        let position = self.append(kind, unit, site);
        self.seal(position);
    }

    fn append(&mut self, kind: CommandKind, unit: UnitId, site: &'static Location<'static>) -> usize {
        let bound = self.matcher.as_mut().map_or(Bound::Live, |matcher| matcher.bind(&kind));
        let command = Command { kind, unit, site: CallSite::from(site) };
        self.commands.push(command);
        self.seals.push(Seal { sealed: false, bound });
        self.commands.len() - 1
    }

    /// Cancels the operations that the running unit dropped since its last command, in seq order: the order in which a
    /// container happens to drop its futures must not decide anything.
    pub(crate) fn flush_cancels(&mut self) {
        let Some(unit) = self.running.and_then(|key| self.units.get_mut(&key)) else { return };
        if unit.cancels.is_empty() {
            return;
        }
        let mut cancels = std::mem::take(&mut unit.cancels);
        let id = unit.id.clone();
        cancels.sort_by_key(|(cancel, _)| cancel.seq);
        for (cancel, site) in cancels {
            self.emit_for(id.clone(), CommandKind::Cancel(cancel), site);
        }
    }

    /// Returns the command of a ticket, while its options may still be set.
    pub(crate) fn open_command(&mut self, ticket: Ticket) -> Option<&mut CommandKind> {
        if ticket.turn != self.turn {
            return None;
        }
        let sealed = self.seals.get(ticket.position)?.sealed;
        (!sealed).then(|| &mut self.commands[ticket.position].kind)
    }

    /// Returns what reports call the command of a ticket. One whose result was taken in an earlier turn is forgotten.
    pub(crate) fn name_of(&self, ticket: Ticket) -> String {
        let of_this_turn = (ticket.turn == self.turn).then(|| self.commands.get(ticket.position)).flatten();
        match (of_this_turn, self.slots.get(&ticket.slot).map(|slot| &slot.what)) {
            (Some(command), _) => command.kind.to_string(),
            (None, Some(What::Operation(operation, name) | What::Start(operation, name))) => {
                format!("{operation} {name}")
            }
            (None, _) => "its command".to_owned(),
        }
    }

    pub(crate) fn seal_ticket(&mut self, ticket: Ticket) {
        if ticket.turn == self.turn && ticket.position < self.commands.len() {
            self.seal(ticket.position);
        }
    }

    /// Seals the commands that are still open, at the end of a step.
    pub(crate) fn seal_all(&mut self) {
        for place in 0..self.open.len() {
            self.seal(self.open[place] as usize);
        }
        self.open.clear();
    }

    /// Closes a command to further options, resolves its defaults into it, and matches it against the record.
    pub(crate) fn seal(&mut self, position: usize) {
        if self.seals[position].sealed {
            return;
        }
        self.resolve_defaults(position);
        self.seals[position].sealed = true;
        let command = &mut self.commands[position];
        let bound = self.seals[position].bound;
        let compare = |matcher: &Matcher| matcher.compare_command(bound, self.turn, position, command);
        match self.matcher.as_deref().map_or(Comparison::Same, compare) {
            Comparison::Same => {}
            Comparison::Tuned(recorded, fields) => {
                let (shown, site) = (recorded.to_string(), command.site.clone());
                command.kind = recorded;
                if !fields.is_empty() {
                    self.warn(Warning::Tuning { position, command: shown, fields, site });
                }
            }
            Comparison::Different(report) => {
                let report = self.earlier_difference(position).unwrap_or(report);
                self.fail_replay(report);
            }
        }
        self.bind_cancel_type(position);
    }

    /// Returns the first difference before this position. Commands are sealed when their futures are polled, which need
    /// not be in their order, and the report is to name the first difference.
    fn earlier_difference(&mut self, position: usize) -> Option<Box<Nondeterminism>> {
        (0..position).find_map(|earlier| {
            let Seal { sealed: false, bound } = self.seals[earlier] else { return None };
            self.resolve_defaults(earlier);
            match self.matcher.as_ref()?.compare_command(bound, self.turn, earlier, &self.commands[earlier]) {
                Comparison::Different(report) => Some(report),
                Comparison::Same | Comparison::Tuned(..) => None,
            }
        })
    }

    /// Fails the activation because replayed code disagrees with the record.
    pub(crate) fn fail_replay(&mut self, mut report: Box<Nondeterminism>) {
        report.recorded_nth = report.recorded().and_then(|recorded| {
            let before = self.matcher.as_ref()?.recorded_before(recorded.kind.seq());
            self.nth(&recorded.kind, before)
        });
        let earlier = self.commands.iter().take(report.position).map(|command| &command.kind);
        report.new_nth = report.decided().and_then(|new| self.nth(&new.kind, earlier));
        self.fail(ActivationError::Nondeterminism(report));
    }

    /// Returns an operation's number among those of its kind in the run.
    fn nth<'a>(&self, kind: &CommandKind, earlier: impl Iterator<Item = &'a CommandKind>) -> Option<u64> {
        kind.seq()?;
        let in_this_turn = earlier.filter(|other| other.word() == kind.word()).count() as u64;
        let before = self.counts.iter().find(|(word, _)| *word == kind.word()).map_or(0, |(_, count)| *count);
        Some(before + in_this_turn)
    }

    /// Counts the operations of a replayed turn that is over, by their kind.
    pub(crate) fn count(&mut self, commands: &[Command]) {
        for kind in commands.iter().map(|command| &command.kind).filter(|kind| kind.seq().is_some()) {
            match self.counts.iter_mut().find(|(word, _)| *word == kind.word()) {
                Some((_, count)) => *count += 1,
                None => self.counts.push((kind.word(), 1)),
            }
        }
    }

    fn resolve_defaults(&mut self, position: usize) {
        let queue = &self.start.queue;
        let own_queue = |asked: &mut Option<Name>| {
            asked.get_or_insert_with(|| queue.clone());
        };
        match &mut self.commands[position].kind {
            CommandKind::Activity(c) => {
                let c = Arc::make_mut(c);
                own_queue(&mut c.queue);
                c.retry.get_or_insert_with(Retry::exponential);
            }
            CommandKind::LocalActivity(c) => {
                c.retry.get_or_insert_with(Retry::exponential);
            }
            CommandKind::SideEffect(c) => {
                c.retry.get_or_insert_with(Retry::exponential);
            }
            CommandKind::Child(c) => own_queue(&mut c.queue),
            CommandKind::ContinueAsNew(c) => {
                own_queue(&mut c.queue);
                if c.workflow.is_empty() {
                    c.workflow = self.start.workflow.clone();
                }
            }
            _ => {}
        }
    }

    /// Gives the operation the cancel type of its sealed command.
    fn bind_cancel_type(&mut self, position: usize) {
        let kind = &self.commands[position].kind;
        let cancel = match kind {
            CommandKind::Activity(c) => c.cancel,
            CommandKind::LocalActivity(c) => c.cancel,
            CommandKind::Child(c) => c.cancel,
            CommandKind::Nexus(c) => c.cancel,
            _ => CancelType::TryCancel,
        };
        if let Some(slot) = kind.seq().and_then(|seq| self.slots.get_mut(&SlotId::Operation(seq))) {
            slot.cancel = cancel;
        }
    }
}
