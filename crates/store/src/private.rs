//! Files that only their owner may read: what is stored is the users' own.

use std::fs::OpenOptions;

/// Options to open a file that is created, if it is, with mode 0600 on Unix. A file that is there keeps its mode.
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
