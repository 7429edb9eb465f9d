//! Maintaining the store as a whole: that is the database's own work.

use std::path::Path;

use dacapo_store::{Doing, NoteSlot, RunningNotes, StoreError, Upkeep};

use crate::PostgresStore;

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

/// A database on another machine cannot keep what must cost next to nothing, so nothing is noted.
impl RunningNotes for PostgresStore {
    fn keeps_notes(&self) -> bool {
        false
    }

    fn began(&self, _: Doing) -> Option<NoteSlot> {
        None
    }

    fn ended(&self, _: NoteSlot) {}

    fn left(&self) -> Vec<Doing> {
        Vec::new()
    }

    fn forget_left(&self) {}
}
