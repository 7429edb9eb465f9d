//! The processor time of other processes.

use anyhow::Result;

/// Returns the processor time that a process has used so far, all its threads together, in seconds.
///
/// # Errors
/// The process does not exist, or the system does not tell.
#[cfg(target_os = "linux")]
pub fn process_cpu_seconds(pid: u32) -> Result<f64> {
    let of_process = libc::pid_t::try_from(pid)?;
    let (mut clock, mut time) = (0, libc::timespec { tv_sec: 0, tv_nsec: 0 });
    // SAFETY: each call writes nothing but the one place that it is given.
    let read =
        unsafe { libc::clock_getcpuclockid(of_process, &mut clock) == 0 && libc::clock_gettime(clock, &mut time) == 0 };
    anyhow::ensure!(read, "the processor time of process {pid} cannot be read: it may have ended");
    Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// Fails: only Linux tells of other processes.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn process_cpu_seconds(pid: u32) -> Result<f64> {
    anyhow::bail!("the processor time of process {pid} cannot be read on this system: only Linux tells it")
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::Usage;

    /// Linux has at most 4,194,304 processes.
    const LARGER_THAN_ANY: u32 = 4_194_305;

    #[test]
    fn processor_time_of_this_process_is_that_of_its_own_usage() {
        let before = Usage::now().cpu_seconds;
        let seconds = process_cpu_seconds(std::process::id()).unwrap();
        let after = Usage::now().cpu_seconds;
        // Both clocks round differently.
        assert!(before - 0.02 <= seconds && seconds <= after + 0.02, "{before} {seconds} {after}");
    }

    #[test]
    fn process_that_does_not_exist_is_refused() {
        let error = process_cpu_seconds(LARGER_THAN_ANY).unwrap_err().to_string();
        assert_eq!(error, "the processor time of process 4194305 cannot be read: it may have ended");
    }
}
