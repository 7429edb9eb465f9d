//! Looking after the file: copies of it, and whether it is sound. Both have a connection of their own, so that nobody waits.

use std::fs::File;
use std::path::{Path, PathBuf};

use dacapo_store::{StoreError, Upkeep};

use crate::trouble::trouble;
use crate::{SqliteStore, schema};

/// What SQLite says of a file in which nothing is wrong.
const SOUND: &str = "ok";

impl Upkeep for SqliteStore {
    fn back_up(&self, to: &Path) -> Result<(), StoreError> {
        let failed = |error: std::io::Error| StoreError::Unavailable(format!("{}: {error}", to.display()));
        if to.exists() {
            let there = format!("{} is there already, and a backup replaces nothing", to.display());
            return Err(StoreError::Unsupported(there));
        }
        // Under another name until it is whole and on the disk, so that nobody takes half a copy for one.
        let mut part = to.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let _ = std::fs::remove_file(&part);
        let name = part.to_str().ok_or_else(|| StoreError::Unsupported("the path is no text".to_owned()))?;
        let copied = schema::connect_to_read(&self.path)
            .and_then(|reader| reader.execute("VACUUM INTO ?", [name]).map(drop).map_err(trouble))
            .and_then(|()| File::open(&part).and_then(|file| file.sync_all()).map_err(failed))
            .and_then(|()| std::fs::rename(&part, to).map_err(failed));
        if copied.is_err() {
            let _ = std::fs::remove_file(&part);
            return copied;
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    fn flaws(&self) -> Result<Vec<String>, StoreError> {
        let reader = schema::connect_to_read(&self.path)?;
        let mut statement = reader.prepare("PRAGMA integrity_check").map_err(trouble)?;
        let found = statement.query_map([], |row| row.get::<_, String>(0)).map_err(trouble)?;
        let found: Vec<String> = found.collect::<Result<_, _>>().map_err(trouble)?;
        Ok(found.into_iter().filter(|flaw| flaw != SOUND).collect())
    }
}
