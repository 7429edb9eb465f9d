//! How the log of a file is kept short.

/// How the log of a file is kept short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The log is moved into the file when it has this many pages.
    pub checkpoint_pages: u32,
    /// A log that became longer than so many bytes, because somebody read for long, is cut when it begins anew.
    pub log_bytes: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self { checkpoint_pages: 4_000, log_bytes: 64 << 20 }
    }
}
