//! Maintaining the store as a whole: that is the database's own work.

use std::path::Path;
use std::sync::Arc;

use dacapo_store::{Doing, NoteSlot, RunningFile, RunningNotes, StoreError, Upkeep};

use crate::PostgresStore;
use crate::row::get;
use crate::state_dir::StateDir;
use crate::trip::values;

impl Upkeep for PostgresStore {
    fn back_up(&self, _: &Path) -> Result<(), StoreError> {
        Err(StoreError::Unsupported(
            "a store in PostgreSQL is backed up with PostgreSQL's own tools, such as pg_dump or an archive of its log"
                .to_owned(),
        ))
    }

    fn has_backup(&self) -> bool {
        false
    }

    fn problems(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// A database on another machine cannot keep what must cost next to nothing: notes are in a local folder, if there is one.
impl RunningNotes for PostgresStore {
    fn keep_in(&self, folder: &Path) -> Result<(), StoreError> {
        let rows = self.rows("SELECT store::text FROM meta", values![])?;
        let store: String = rows.first().map_or_else(|| Ok(String::new()), |row| get(row, 0))?;
        // A second folder would be one too many; the caller names one.
        let _ = self.state_dir.set(StateDir::open(folder, &store)?);
        Ok(())
    }

    fn keeps_notes(&self) -> bool {
        self.notes().is_some()
    }

    fn began(&self, doing: Doing) -> Option<NoteSlot> {
        self.notes()?.began(doing)
    }

    fn ended(&self, slot: NoteSlot) {
        if let Some(notes) = self.notes() {
            notes.ended(slot);
        }
    }

    fn left(&self) -> Vec<Doing> {
        self.notes().map(|notes| notes.left()).unwrap_or_default()
    }

    fn forget_left(&self) {
        if let Some(notes) = self.notes() {
            notes.forget_left();
        }
    }
}

impl PostgresStore {
    fn notes(&self) -> Option<&Arc<RunningFile>> {
        self.state_dir.get().map(|state_dir| &state_dir.notes)
    }
}
