//! Matching: the commands of replayed code against the recorded ones, by position in one order.

use crate::identity::{Difference, compare};
use crate::nondeterminism::{Mismatch, Nondeterminism};
use crate::{Command, CommandKind, Name, PatchMarker, RecordedTurn, Seq};

/// The recorded commands of the turn being played. A turn played for the first time has no matcher.
pub(crate) struct Matcher {
    recorded: Vec<Command>,
    /// The next recorded command that nothing is bound to yet.
    cursor: usize,
    build: Name,
}

/// The recorded command that a new command is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// None: the command is new work.
    Live,
    /// The recorded command at this index.
    Recorded(u32),
    /// None: the record has no command here.
    Extra,
}

/// The result of comparing a sealed command with its record.
pub(crate) enum Comparison {
    Same,
    /// The recorded command holds; these tuning fields differ.
    Tuned(CommandKind, Vec<&'static str>),
    Different(Box<Nondeterminism>),
}

impl Matcher {
    pub(crate) fn new(recorded: Vec<Command>, build: Name) -> Self {
        Self { recorded, cursor: 0, build }
    }

    /// Returns the turn with this number, and the build that recorded it.
    pub(crate) fn recorded_turn(&self, turn: u64) -> RecordedTurn {
        RecordedTurn { turn, build: self.build.clone() }
    }

    /// Binds a command at the moment it is decided, before its options are known. A recorded deprecated patch marker
    /// that the code no longer emits is passed over, so that removing it from the code shifts nothing.
    pub(crate) fn bind(&mut self, new: &CommandKind) -> Bound {
        let recorded = &self.recorded;
        while let Some(marker) = recorded.get(self.cursor).and_then(deprecated_marker) {
            if matches!(new, CommandKind::Patch(patch) if patch.id == marker.id) {
                break;
            }
            self.cursor += 1;
        }
        if self.cursor == recorded.len() {
            return Bound::Extra;
        }
        self.cursor += 1;
        Bound::Recorded(self.cursor as u32 - 1)
    }

    /// Compares a sealed command with what it is bound to.
    pub(crate) fn compare_command(&self, bound: Bound, turn: u64, position: usize, new: &Command) -> Comparison {
        let recorded = match bound {
            Bound::Live => return Comparison::Same,
            Bound::Extra => {
                return Comparison::Different(self.report(turn, position, Mismatch::Extra { new: new.clone() }));
            }
            Bound::Recorded(index) => &self.recorded[index as usize],
        };
        if recorded.kind == new.kind {
            return Comparison::Same;
        }
        let differences = compare(&recorded.kind, &new.kind);
        if differences.iter().any(|difference| difference.decides_meaning) {
            let mismatch = Mismatch::Changed { recorded: recorded.clone(), new: new.clone(), differences };
            return Comparison::Different(self.report(turn, position, mismatch));
        }
        let fields = differences.iter().filter(|difference| difference.warns).map(Difference::field).collect();
        Comparison::Tuned(recorded.kind.clone(), fields)
    }

    /// Returns the first recorded command that the code did not decide again, if there is one, after the last that it
    /// did.
    pub(crate) fn missing(&mut self, turn: u64, position: usize) -> Option<Box<Nondeterminism>> {
        let recorded = &self.recorded;
        while recorded.get(self.cursor).and_then(deprecated_marker).is_some() {
            self.cursor += 1;
        }
        let recorded = recorded.get(self.cursor)?.clone();
        Some(self.report(turn, position, Mismatch::Missing { recorded }))
    }

    /// Returns whether the rest of this turn's record holds the patch's marker.
    pub(crate) fn holds_patch(&self, id: &Name) -> bool {
        let rest = self.recorded.get(self.cursor..).unwrap_or_default();
        rest.iter().any(|command| matches!(&command.kind, CommandKind::Patch(patch) if patch.id == *id))
    }

    fn report(&self, turn: u64, position: usize, mismatch: Mismatch) -> Box<Nondeterminism> {
        let build = self.build.clone();
        Box::new(Nondeterminism { turn, position, mismatch, build, recorded_nth: None, new_nth: None })
    }

    /// Returns the commands recorded in this turn before the operation with this seq.
    pub(crate) fn recorded_before(&self, seq: Option<Seq>) -> impl Iterator<Item = &CommandKind> {
        let recorded = self.recorded.iter().map(|command| &command.kind);
        recorded.take_while(move |kind| kind.seq() != seq)
    }
}

fn deprecated_marker(command: &Command) -> Option<&PatchMarker> {
    match &command.kind {
        CommandKind::Patch(patch) if patch.deprecated => Some(patch),
        _ => None,
    }
}
