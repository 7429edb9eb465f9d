//! The running notes: a file beside the database.

use std::sync::Arc;

use dacapo_store::{Doing, NoteSlot, RunningFile, RunningNotes};

use crate::SqliteStore;

/// Opens the notes beside a database. None if that is not possible.
pub(crate) fn open(database: &str) -> Option<Arc<RunningFile>> {
    let mut path = std::fs::canonicalize(database).ok()?.into_os_string();
    path.push("-running");
    RunningFile::open(path.into()).ok()
}

impl RunningNotes for SqliteStore {
    fn keeps_notes(&self) -> bool {
        true
    }

    fn began(&self, doing: Doing) -> Option<NoteSlot> {
        self.running.as_ref()?.began(doing)
    }

    fn ended(&self, slot: NoteSlot) {
        if let Some(running) = &self.running {
            running.ended(slot);
        }
    }

    fn left(&self) -> Vec<Doing> {
        self.running.as_ref().map(|running| running.left()).unwrap_or_default()
    }

    fn forget_left(&self) {
        if let Some(running) = &self.running {
            running.forget_left();
        }
    }
}
