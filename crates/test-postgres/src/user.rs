//! The user that a server runs as.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};

/// The user without rights that every system has.
const NOBODY: &str = "nobody";

/// A user and its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct User {
    uid: u32,
    gid: u32,
}

impl User {
    /// Returns the user that a server runs as instead of this process's own: `nobody` for root, none for others.
    pub(crate) fn for_server() -> Result<Option<Self>> {
        if !is_root()? {
            return Ok(None);
        }
        let users = fs::read_to_string("/etc/passwd").context("cannot read /etc/passwd")?;
        let nobody = users.lines().find_map(nobody).context(
            "PostgreSQL refuses to run as root, and this system has no user `nobody` to run it as: add one, or run this as another user",
        )?;
        Ok(Some(nobody))
    }

    /// Makes a command run as this user. The standard library leaves root's groups too.
    pub(crate) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    /// Gives a file or folder to this user.
    pub(crate) fn own(self, path: &Path) -> Result<()> {
        let owned = std::os::unix::fs::chown(path, Some(self.uid), Some(self.gid));
        owned.with_context(|| format!("cannot give {} to the user `{NOBODY}`", path.display()))
    }
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> Result<bool> {
    Ok(fs::metadata("/proc/self").context("cannot read /proc/self")?.uid() == 0)
}

/// Returns whether any user can reach what a folder holds by its path.
pub(crate) fn is_open_to_all(folder: &Path) -> bool {
    folder.ancestors().all(|folder| fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o001 != 0))
}

/// Reads the user `nobody` from a line of /etc/passwd: name, password, user, group, and more.
fn nobody(line: &str) -> Option<User> {
    match line.split(':').collect::<Vec<_>>()[..] {
        [NOBODY, _, uid, gid, ..] => Some(User { uid: uid.parse().ok()?, gid: gid.parse().ok()? }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_nobody_is_read_from_its_line_alone() {
        let read = nobody("nobody:x:65534:65533:nobody:/nonexistent:/usr/sbin/nologin");
        assert_eq!(read, Some(User { uid: 65534, gid: 65533 }));
        assert_eq!(nobody("nobody2:x:1:1::/:/bin/sh"), None);
        assert_eq!(nobody("nobody:x"), None);
    }
}
