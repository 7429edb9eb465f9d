//! The local folder of a process, `state_dir`: it holds the notes of what the process runs, for the next one if this one dies.
//!
//! ```text
//!   dacapo-lock              locked by the process that uses the folder
//!   dacapo-running-STORE     the notes, with the id of the store; a process that closes the store removes it
//! ```

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

use dacapo_store::{RunningFile, StoreError, private_file};

const LOCK: &str = "dacapo-lock";
const NOTES: &str = "dacapo-running-";

/// A folder that this process uses.
pub(crate) struct StateDir {
    pub(crate) notes: Arc<RunningFile>,
    lock: File,
}

impl StateDir {
    /// Opens the folder for the store with this id, and creates it if there is none.
    pub(crate) fn open(folder: &Path, store: &str) -> Result<Self, StoreError> {
        let unusable = |error: io::Error| {
            refused(folder, &format!("cannot be used: {error}. Name a local folder in which this process may write"))
        };
        std::fs::create_dir_all(folder).map_err(unusable)?;
        let lock = private_file().create(true).truncate(false).write(true).open(folder.join(LOCK)).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refused(
                    folder,
                    "is used by another process: give each its own, such as by DACAPO_STATE_DIR",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let own = format!("{NOTES}{store}");
        for entry in std::fs::read_dir(folder).map_err(unusable)? {
            let name = entry.map_err(unusable)?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(NOTES) && *name != *own {
                return Err(refused(
                    folder,
                    &format!(
                        "has notes of a process that served another store ({name}): give this store another folder, or remove that \
                         file if the other store is gone"
                    ),
                ));
            }
        }
        let notes = RunningFile::open(folder.join(own)).map_err(unusable)?;
        Ok(Self { notes, lock })
    }

    /// Closes the notes, and lets another process use the folder.
    pub(crate) fn close(&self) {
        self.notes.close();
        let _ = self.lock.unlock();
    }
}

impl Drop for StateDir {
    fn drop(&mut self) {
        // A child process that this one is about to start shares the descriptor until its program begins. Closing ours alone would
        // leave the lock with that child for as long.
        let _ = self.lock.unlock();
    }
}

fn refused(folder: &Path, why: &str) -> StoreError {
    StoreError::StateDir(format!("{:?} {why}", folder.display().to_string()))
}

#[cfg(test)]
mod tests {
    use dacapo_store::{Doing, RunNo};

    use super::*;

    const STORE: &str = "6d0c2a4e";
    const OTHER: &str = "77b1f09c";

    fn refusal(folder: &Path, store: &str) -> String {
        match StateDir::open(folder, store) {
            Err(error @ StoreError::StateDir(_)) => error.to_string(),
            Err(error) => panic!("{error:?}"),
            Ok(_) => panic!("the folder is opened"),
        }
    }

    #[test]
    fn folder_is_created_and_keeps_the_notes_of_a_process_that_died() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("var/state");
        let state = StateDir::open(&folder, STORE).unwrap();
        assert_eq!(state.notes.left(), []);
        state.notes.began(Doing::Run(RunNo(7))).unwrap();
        drop(state);
        let state = StateDir::open(&folder, STORE).unwrap();
        assert_eq!(state.notes.left(), [Doing::Run(RunNo(7))]);
        state.close();
        assert_eq!(StateDir::open(&folder, STORE).unwrap().notes.left(), [], "it was shut down");
    }

    #[test]
    fn two_processes_cannot_use_one_folder() {
        let folder = tempfile::tempdir().unwrap();
        let state = StateDir::open(folder.path(), STORE).unwrap();
        let of_a_child = state.lock.try_clone().unwrap();
        for store in [STORE, OTHER] {
            let error = refusal(folder.path(), store);
            let shown = folder.path().display();
            assert_eq!(
                error,
                format!(
                    "state_dir \"{shown}\" is used by another process: give each its own, such as by DACAPO_STATE_DIR"
                )
            );
        }
        drop(state);
        StateDir::open(folder.path(), STORE).map(drop).unwrap();
        drop(of_a_child);
    }

    #[test]
    fn folder_with_notes_of_another_store_is_refused_until_they_are_gone() {
        let folder = tempfile::tempdir().unwrap();
        // Its process died.
        drop(StateDir::open(folder.path(), OTHER).unwrap());
        let error = refusal(folder.path(), STORE);
        assert!(error.contains("served another store (dacapo-running-77b1f09c): give this store another"), "{error}");
        let other = StateDir::open(folder.path(), OTHER).unwrap();
        other.close();
        StateDir::open(folder.path(), STORE).map(drop).unwrap();
    }

    #[test]
    fn folder_that_cannot_be_written_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.clone(), file.join("state")] {
            let error = refusal(&path, STORE);
            assert!(error.contains("cannot be used: ") && error.contains("Name a local folder"), "{error}");
        }
        // Also for root, who may write anywhere.
        std::fs::create_dir(folder.path().join(LOCK)).unwrap();
        assert!(refusal(folder.path(), STORE).contains("cannot be used: "));
    }
}
