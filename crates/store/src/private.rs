//! Files that only their owner may read, because they hold users' data.

use std::fs::OpenOptions;

/// Returns options to open a file, which is created with mode 0600 on Unix. An existing file keeps its mode.
pub fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has modes"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
