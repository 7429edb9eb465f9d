//! What a stretch of work took from the machine.

use std::ops::{Add, Sub};

use crate::flushes;

/// What this process took from the machine: since it began, or over a stretch of work. Zero where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time of all threads, in seconds.
    pub cpu_seconds: f64,
    /// Flushes of files.
    pub fsyncs: u64,
    /// Bytes that were handed to the disk.
    pub write_bytes: u64,
}

impl Usage {
    /// Since the process began.
    pub fn now() -> Self {
        Self { cpu_seconds: cpu_seconds(), fsyncs: flushes::count(), write_bytes: write_bytes().unwrap_or(0) }
    }

    /// Since an earlier look.
    #[must_use]
    pub fn since(self) -> Self {
        Self::now() - self
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            fsyncs: self.fsyncs + other.fsyncs,
            write_bytes: self.write_bytes + other.write_bytes,
        }
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - other.cpu_seconds,
            fsyncs: self.fsyncs.saturating_sub(other.fsyncs),
            write_bytes: self.write_bytes.saturating_sub(other.write_bytes),
        }
    }
}

/// Bytes of this process that are in memory.
pub(crate) fn rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "VmRSS:").map_or(0, |kib| kib * 1024)
}

fn write_bytes() -> Option<u64> {
    field(&std::fs::read_to_string("/proc/self/io").ok()?, "write_bytes:")
}

fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

#[cfg(unix)]
fn cpu_seconds() -> f64 {
    // SAFETY: zeroes are a valid `rusage`, and the call writes nothing but the one it is given.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(not(unix))]
fn cpu_seconds() -> f64 {
    0.0
}
