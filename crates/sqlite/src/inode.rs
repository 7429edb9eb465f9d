//! The identity of a file, whatever its name.

use std::fs::{File, Metadata};
use std::path::Path;

/// The identity of a file on this machine, for as long as the file is open or has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    /// Returns the file of this name. None if there is none, or if it cannot be read.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        look(path).map(|(inode, _)| inode)
    }

    /// Returns the identity of an open file.
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// Formats the identity as Linux writes it in `/proc/locks`: the two parts of the device in hexadecimal, then the
    /// number.
    #[cfg(target_os = "linux")]
    pub(crate) fn in_proc_locks(self) -> String {
        let (device, number) = (self.device, self.number);
        let major = (device >> 8) & 0xfff | (device >> 32) & !0xfff;
        let minor = device & 0xff | (device >> 12) & !0xff;
        format!("{major:02x}:{minor:02x}:{number}")
    }
}

#[cfg(unix)]
impl From<&Metadata> for Inode {
    fn from(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), number: metadata.ino() }
    }
}

/// On other systems an open file cannot be removed, so its name is enough.
#[cfg(not(unix))]
impl From<&Metadata> for Inode {
    fn from(_: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}

/// Returns the file of this name, and how many names (hard links) it has. None if there is none, or if it cannot be
/// read.
#[cfg(target_os = "linux")]
pub(crate) fn look(path: &Path) -> Option<(Inode, u64)> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    // Does not ask for the file's times, as `metadata` would: after that the next change gives the file exact times,
    // and its next flush then writes the inode as well as the data.
    match statx(CWD, path, AtFlags::empty(), StatxFlags::INO | StatxFlags::NLINK) {
        Ok(found) => {
            let inode = Inode { device: makedev(found.stx_dev_major, found.stx_dev_minor), number: found.stx_ino };
            Some((inode, found.stx_nlink.into()))
        }
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => None,
        // An old kernel does not know the call, and some sandboxes refuse it.
        Err(_) => look_at_all(path),
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn look(path: &Path) -> Option<(Inode, u64)> {
    look_at_all(path)
}

fn look_at_all(path: &Path) -> Option<(Inode, u64)> {
    std::fs::metadata(path).ok().map(|metadata| (Inode::from(&metadata), names(&metadata)))
}

#[cfg(unix)]
fn names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
fn names(_: &Metadata) -> u64 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_looks_the_same_by_name_by_link_and_by_all_that_is_known_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("file"), folder.path().join("link"));
        let file = File::create(&path).unwrap();
        assert_eq!((look(&path), look(&link)), (Some((Inode::of(&file).unwrap(), 1)), None));
        std::fs::hard_link(&path, &link).unwrap();
        assert_eq!(look(&link), Some((Inode::of(&file).unwrap(), 2)));
        assert_eq!(look(&link), look_at_all(&path));
    }
}
