//! Which file it is, whatever its name.

use std::fs::{File, Metadata};
use std::path::Path;

/// Identifies a file on this machine for as long as it is open or has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Inode {
    /// The file of this name. None if there is none, or if it cannot be looked at.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|metadata| Self::from(&metadata))
    }

    /// An open file.
    pub(crate) fn of(file: &File) -> std::io::Result<Self> {
        file.metadata().map(|metadata| Self::from(&metadata))
    }

    /// As Linux writes it in `/proc/locks`: the two parts of the device in hexadecimal, then the number.
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

/// Elsewhere a file that is open cannot be removed, so that its name is enough.
#[cfg(not(unix))]
impl From<&Metadata> for Inode {
    fn from(_: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}

/// How many names (hard links) a file has.
#[cfg(unix)]
pub(crate) fn names(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::nlink(metadata)
}

#[cfg(not(unix))]
pub(crate) fn names(_: &Metadata) -> u64 {
    1
}
