//! The limits of a store's log.

/// The limits of a store's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The log is moved into the file when it has this many pages.
    pub checkpoint_pages: u32,
    /// The size in bytes to which a log that became longer, because of a long read, is cut when it begins anew.
    pub log_bytes: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { checkpoint_pages: 4_000, log_bytes: 64 << 20 }
    }
}
