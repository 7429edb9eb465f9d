//! The first difference between two transcripts.

use std::fmt;

use super::{Transcript, TurnRecord};
use crate::{Command, Job};

/// The first place where two transcripts differ, and what each of them holds there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TranscriptDifference {
    /// The turn's number.
    pub turn: usize,
    /// The part that differs: `command 3`, `job 0`, `the time`.
    pub what: String,
    /// The first transcript's side, with its call site.
    pub first: String,
    /// The second transcript's side, with its call site.
    pub second: String,
}

impl fmt::Display for TranscriptDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the transcripts differ in turn {}, {}:", self.turn, self.what)?;
        writeln!(f, "  first:  {}", self.first)?;
        write!(f, "  second: {}", self.second)
    }
}

impl Transcript {
    /// Returns the first difference, if there is one.
    pub fn diff(&self, other: &Self) -> Option<TranscriptDifference> {
        let difference = |turn, what: &str, first: String, second: String| {
            Some(TranscriptDifference { turn, what: what.to_owned(), first, second })
        };
        if self.workflow != other.workflow {
            return difference(0, "the workflow", self.workflow.to_string(), other.workflow.to_string());
        }
        if self.pins != other.pins {
            return difference(0, "the pins", format!("{:?}", self.pins), format!("{:?}", other.pins));
        }
        for turn in 0..self.turns.len().max(other.turns.len()) {
            match (self.turns.get(turn), other.turns.get(turn)) {
                (Some(a), Some(b)) if a == b => {}
                (Some(a), Some(b)) => {
                    let (what, first, second) = turn_difference(a, b);
                    return difference(turn, &what, first, second);
                }
                (a, b) => return difference(turn, "its existence", exists(a), exists(b)),
            }
        }
        None
    }
}

fn exists(turn: Option<&TurnRecord>) -> String {
    turn.map_or_else(|| "no such turn".to_owned(), |turn| format!("{} commands", turn.commands.len()))
}

fn turn_difference(a: &TurnRecord, b: &TurnRecord) -> (String, String, String) {
    if let Some((place, first, second)) = first_difference(&a.jobs, &b.jobs, show_job) {
        return (format!("job {place}"), first, second);
    }
    if let Some((place, first, second)) = first_difference(&a.commands, &b.commands, show_command) {
        return (format!("command {place}"), first, second);
    }
    if a.now != b.now {
        return ("the time".to_owned(), a.now.to_string(), b.now.to_string());
    }
    if a.choices != b.choices {
        return ("the choices".to_owned(), format!("{:?}", a.choices), format!("{:?}", b.choices));
    }
    ("its frame".to_owned(), format!("{:?} {}", a.history, a.build), format!("{:?} {}", b.history, b.build))
}

fn first_difference<T: PartialEq>(a: &[T], b: &[T], show: fn(&T) -> String) -> Option<(usize, String, String)> {
    let place = (0..a.len().max(b.len())).find(|place| a.get(*place) != b.get(*place))?;
    let show = |item: Option<&T>| item.map_or_else(|| "nothing".to_owned(), show);
    Some((place, show(a.get(place)), show(b.get(place))))
}

fn show_job(job: &Job) -> String {
    format!("{job:?}")
}

fn show_command(command: &Command) -> String {
    format!("{} {:?} (at {})", command.unit, command.kind, command.site)
}
