//! Notifications of the database: texts of at most 8,000 bytes, each with several entries.

use std::collections::BTreeSet;

use dacapo_core::Seq;
use dacapo_store::{NodeNo, Notice, RunNo};

/// The most bytes of a notification: the server takes 8,000.
const PAYLOAD: usize = 7_900;

/// An entry of a notification: a notice, or that something else is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    Notice(Notice),
    /// The nodes or their shards have changed.
    Members,
    /// A call waits.
    Call,
    /// An answer waits.
    Answer,
}

/// The receiver of notifications and calls.
pub(crate) trait Listener: Send + Sync {
    fn notified(&self, notice: Notice);
    fn called(&self, id: i64, request: Vec<u8>);
    /// The nodes or their shards have changed.
    fn members_changed(&self);
    /// Notifications may have been lost.
    fn reconnected(&self);
}

/// Returns entries as texts that a notification can carry.
pub(crate) fn payloads_of(entries: &BTreeSet<Entry>) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for entry in entries.iter().filter_map(write) {
        match payloads.last_mut().filter(|payload| payload.len() + entry.len() < PAYLOAD) {
            Some(payload) => {
                payload.push(' ');
                payload.push_str(&entry);
            }
            None => payloads.push(entry),
        }
    }
    payloads
}

fn write(entry: &Entry) -> Option<String> {
    Some(match entry {
        Entry::Notice(Notice::Stored(run)) => format!("s{}", run.0),
        Entry::Notice(Notice::Watched(run, node)) => format!("w{}:{}", run.0, node.0),
        Entry::Notice(Notice::Changed(run)) => format!("c{}", run.0),
        Entry::Notice(Notice::Cancelled(run, seq)) => format!("x{}:{}", run.0, seq.0),
        Entry::Notice(Notice::Tasks) => "t".to_owned(),
        Entry::Notice(_) => return None,
        Entry::Members => "m".to_owned(),
        Entry::Call => "k".to_owned(),
        Entry::Answer => "a".to_owned(),
    })
}

/// Reads an entry. None: a later build has sent it.
pub(crate) fn read(entry: &str) -> Option<Entry> {
    let (kind, rest) = (entry.chars().next()?, entry.get(1..)?);
    let run = || Some(RunNo(rest.parse().ok()?));
    let pair = || {
        let (run, other) = rest.split_once(':')?;
        Some((RunNo(run.parse().ok()?), other))
    };
    Some(match kind {
        's' => Entry::Notice(Notice::Stored(run()?)),
        'c' => Entry::Notice(Notice::Changed(run()?)),
        'w' => {
            let (run, node) = pair()?;
            Entry::Notice(Notice::Watched(run, NodeNo(node.parse().ok()?)))
        }
        'x' => {
            let (run, seq) = pair()?;
            Entry::Notice(Notice::Cancelled(run, Seq(seq.parse().ok()?)))
        }
        't' => Entry::Notice(Notice::Tasks),
        'm' => Entry::Members,
        'k' => Entry::Call,
        'a' => Entry::Answer,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let entries = [
            Entry::Notice(Notice::Stored(RunNo(-7))),
            Entry::Notice(Notice::Watched(RunNo(1 << 40), NodeNo(3))),
            Entry::Notice(Notice::Changed(RunNo(9))),
            Entry::Notice(Notice::Cancelled(RunNo(5), Seq(2))),
            Entry::Notice(Notice::Tasks),
            Entry::Members,
            Entry::Call,
            Entry::Answer,
        ];
        for entry in entries {
            assert_eq!(read(&write(&entry).unwrap()), Some(entry));
        }
        assert_eq!((read("s"), read("z1"), read(""), read("wé:1")), (None, None, None, None));
    }

    #[test]
    fn many_entries_go_in_several_notifications_and_none_is_too_long() {
        let entries: BTreeSet<Entry> =
            (0..5_000).map(|run| Entry::Notice(Notice::Stored(RunNo(i64::MAX - run)))).collect();
        let payloads = payloads_of(&entries);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8_000));
        let read: BTreeSet<Entry> = payloads.iter().flat_map(|payload| payload.split(' ').filter_map(read)).collect();
        assert_eq!(read, entries);
    }
}
