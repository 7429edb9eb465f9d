//! The report of a nondeterminism: what was recorded, what the code decides now, and what to do.

use std::fmt;

use crate::identity::Difference;
use crate::{Command, CommandKind, Name};

/// The report of replayed code that disagreed with the transcript.
#[derive(Clone, Debug, PartialEq)]
pub struct Nondeterminism {
    /// The turn's number.
    pub turn: u64,
    /// The command's position in the turn.
    pub position: usize,
    /// How code and transcript disagree.
    pub mismatch: Mismatch,
    /// The build that recorded the turn.
    pub build: Name,
    /// The recorded operation's number among those of its kind in the run, from 0.
    pub recorded_nth: Option<u64>,
    /// The new operation's number among those of its kind in the run, from 0.
    pub new_nth: Option<u64>,
}

/// The ways in which code and transcript can disagree.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a report is rare, and boxed as a whole")]
pub enum Mismatch {
    /// The code no longer decides a recorded command.
    Missing {
        /// The recorded command.
        recorded: Command,
    },
    /// The code decides a command in a turn that was recorded without it.
    Extra {
        /// The command that the code decided.
        new: Command,
    },
    /// The code decides another command than was recorded.
    Changed {
        /// The recorded command.
        recorded: Command,
        /// The command that the code decided.
        new: Command,
        /// The fields in which they differ.
        differences: Vec<Difference>,
    },
}

impl Nondeterminism {
    /// Returns the recorded command, if there is one.
    pub fn recorded(&self) -> Option<&Command> {
        match &self.mismatch {
            Mismatch::Missing { recorded } | Mismatch::Changed { recorded, .. } => Some(recorded),
            Mismatch::Extra { .. } => None,
        }
    }

    /// Returns the command that the code decided, if there is one.
    pub fn decided(&self) -> Option<&Command> {
        match &self.mismatch {
            Mismatch::Extra { new } | Mismatch::Changed { new, .. } => Some(new),
            Mismatch::Missing { .. } => None,
        }
    }
}

impl Nondeterminism {
    /// Returns whether the only difference is the input of one and the same call.
    fn is_another_encoding(&self) -> bool {
        match &self.mismatch {
            Mismatch::Changed { differences, .. } => {
                let mut meaning = differences.iter().filter(|difference| difference.decides_meaning);
                meaning.next().is_some_and(|difference| difference.field() == "input") && meaning.next().is_none()
            }
            Mismatch::Missing { .. } | Mismatch::Extra { .. } => false,
        }
    }
}

impl Nondeterminism {
    /// Returns the change of the code that lets the run go on.
    fn change_of_code(&self) -> String {
        let patch = |command: Option<&Command>| match command.map(|command| &command.kind) {
            Some(CommandKind::Patch(patch)) => Some(patch.id.clone()),
            _ => None,
        };
        // A patch around a patch would not help: what is wrong is that its call was removed, or deprecated, too early.
        match (patch(self.recorded()), patch(self.decided())) {
            (Some(id), _) => format!("keep the call of patch `{id}`, which is on record"),
            (None, Some(id)) => format!("keep `ctx.patched(\"{id}\")`, because this run took the old path"),
            (None, None) => "guard the new path with `ctx.patched`".to_owned(),
        }
    }
}

impl fmt::Display for Nondeterminism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headline = match &self.mismatch {
            Mismatch::Missing { .. } => "a recorded command is missing",
            Mismatch::Extra { .. } => "a command was not recorded",
            Mismatch::Changed { .. } => "a command differs from what was recorded",
        };
        writeln!(f, "nondeterminism: {headline}")?;
        writeln!(f, "  --> turn {}, command {}", self.turn, self.position)?;
        writeln!(f, "   |")?;
        let build = match self.build.as_str() {
            "" => String::new(),
            build => format!(", by build {build}"),
        };
        match self.recorded() {
            Some(command) => writeln!(f, "   | recorded: {}{build}", Shown(command, self.recorded_nth))?,
            None => writeln!(f, "   | recorded: nothing{build}")?,
        }
        match self.decided() {
            Some(command) => writeln!(f, "   | new:      {}", Shown(command, self.new_nth))?,
            None => writeln!(f, "   | new:      nothing")?,
        }
        if let Mismatch::Changed { differences, .. } = &self.mismatch {
            writeln!(f, "   |")?;
            for difference in differences.iter().filter(|difference| difference.decides_meaning) {
                let (field, recorded, new) = (difference.field(), &difference.recorded, &difference.new);
                writeln!(f, "   | {field}: recorded {recorded}, new {new}")?;
            }
        }
        writeln!(f, "   |")?;
        if self.is_another_encoding() {
            writeln!(
                f,
                "   = help: the same call with another input. If a type got a new field, give it `#[serde(default, skip_serializing_if = …)]`, so that old values are written as they were; if it lost one, keep it until the runs that recorded it are closed"
            )?;
        }
        let change = self.change_of_code();
        write!(f, "   = help: the run stays open. Bring back the code that recorded it, ")?;
        match self.turn {
            // A reset keeps at least the first turn.
            0 => {
                write!(
                    f,
                    "or {change}; no reset can help, because its first turn differs. If a bad build recorded it, terminate it and start it again"
                )
            }
            turn => write!(
                f,
                "{change}, or begin it again with `reset({turn}, …)`: that undoes updates which turns from this one on took, although their senders were answered, and runs their activities again"
            ),
        }
    }
}

/// A command, with its number among those of its kind.
struct Shown<'a>(&'a Command, Option<u64>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let command = self.0;
        write!(f, "{}", command.kind)?;
        if let Some(seq) = command.kind.seq() {
            write!(f, " {seq}")?;
        }
        if let Some(nth) = self.1 {
            write!(f, ", {}({nth})", command.kind.word())?;
        }
        write!(f, ", {}, at {}", command.unit.named(), command.site)
    }
}
