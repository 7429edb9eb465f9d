//! How often this process asked the disk to keep what it has.
//!
//! The two calls of the C library that flush a file are replaced by ones that count and then make the system call. The linker
//! takes these before those of the C library, for the SQLite that is linked in as well as for Rust's own files, from any caller
//! them. So every flush is counted where it happens, and nothing has to be believed about pragmas.

use std::sync::atomic::{AtomicU64, Ordering};

static FLUSHES: AtomicU64 = AtomicU64::new(0);

/// Flushes of this process so far. On systems other than Linux nothing is counted.
pub fn count() -> u64 {
    FLUSHES.load(Ordering::Relaxed)
}

#[cfg(target_os = "linux")]
mod counted {
    use super::{FLUSHES, Ordering};

    /// Counts, and flushes a file.
    #[unsafe(no_mangle)]
    extern "C" fn fsync(fd: libc::c_int) -> libc::c_int {
        FLUSHES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the system call takes a number and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_fsync, fd) as libc::c_int }
    }

    /// Counts, and flushes the data of a file.
    #[unsafe(no_mangle)]
    extern "C" fn fdatasync(fd: libc::c_int) -> libc::c_int {
        FLUSHES.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the system call takes a number and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_fdatasync, fd) as libc::c_int }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_flush_of_a_file_is_counted() {
        let path = std::env::temp_dir().join(format!("flushes-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let before = count();
        file.sync_all().unwrap();
        file.sync_data().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(count() - before, 2);
    }
}
