//! Child processes that end within a time limit.

use std::process::{Child, Command, ExitStatus, Stdio};
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

/// Ends a child and all that it started. They are asked first, because a test runner ends its tests itself.
///
/// They stay in the group of this process, so that an interrupt from the terminal reaches them too.
fn kill(child: &mut Child) -> Result<()> {
    let all = family(child.id());
    let send = |signal: &str| Command::new("kill").arg(signal).args(&all).stderr(Stdio::null()).status().ok();
    send("-TERM");
    let asked = Instant::now();
    while child.try_wait()?.is_none() && asked.elapsed() < GRACE {
        std::thread::sleep(Duration::from_millis(50));
    }
    send("-KILL");
    child.kill().ok();
    child.wait()?;
    Ok(())
}

/// A process and its descendants, as `/proc` lists them.
fn family(first: u32) -> Vec<String> {
    let parent_of = |pid: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name before it, in brackets, may hold anything.
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let parents: Vec<(u32, u32)> = pids.into_iter().filter_map(|pid| Some((pid, parent_of(pid)?))).collect();
    let mut family = vec![first];
    let mut next = 0;
    while let Some(parent) = family.get(next).copied() {
        family.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    family.iter().map(u32::to_string).collect()
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
        // The first shell waits for the second one, which waits for its own child.
        assert!(matches!(run(Command::new("sh").args(["-c", "sh -c 'sleep 600; true'; true"]), 1), Ended::Killed));
        assert!(began.elapsed() < Duration::from_secs(60));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn family_of_a_process_includes_the_children_of_its_children() {
        let mut child = Command::new("sh").args(["-c", "sh -c 'sleep 600; true'; true"]).spawn().unwrap();
        let began = Instant::now();
        while family(child.id()).len() < 3 {
            assert!(began.elapsed() < Duration::from_secs(60), "the shells do not start");
            std::thread::yield_now();
        }
        kill(&mut child).unwrap();
        assert_eq!(family(child.id()).len(), 1);
    }
}
