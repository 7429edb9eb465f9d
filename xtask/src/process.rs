//! Child processes that end within a time limit.

use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(20);

/// How a child process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    ByItself(ExitStatus),
    /// It took too long and was killed, with all processes that it had started.
    Killed,
}

impl Ended {
    pub(crate) fn is_success(self) -> bool {
        matches!(self, Self::ByItself(status) if status.success())
    }
}

/// Runs a command to its end, or kills it after `limit`. Calls `progress` every half minute with the time that it has taken.
pub(crate) fn run(command: &mut Command, limit: Duration, progress: impl Fn(Duration)) -> Result<Ended> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let (began, mut shown) = (Instant::now(), 0);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::ByItself(status));
        }
        let taken = began.elapsed();
        if taken >= limit {
            kill(&mut child)?;
            return Ok(Ended::Killed);
        }
        if taken.as_secs() / 30 > shown {
            shown = taken.as_secs() / 30;
            progress(taken);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Ends a child and all that it started. It is asked first: a test runner gives each test a process group of its own and ends those itself.
fn kill(child: &mut Child) -> Result<()> {
    // The group is the child's own, so nothing else is killed.
    let group = format!("-{}", child.id());
    let send = |signal: &str| Command::new("kill").args([signal, "--", &group]).status().ok();
    send("-TERM");
    let asked = Instant::now();
    while child.try_wait()?.is_none() {
        if asked.elapsed() > GRACE {
            send("-KILL");
            child.kill().ok();
            child.wait()?;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_that_takes_too_long_is_killed() {
        let run = |command: &mut Command, seconds| super::run(command, Duration::from_secs(seconds), |_| {}).unwrap();
        assert!(run(&mut Command::new("true"), 60).is_success());
        assert!(!run(&mut Command::new("false"), 60).is_success());
        let began = Instant::now();
        assert!(matches!(run(Command::new("sh").args(["-c", "sleep 600"]), 0), Ended::Killed));
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
