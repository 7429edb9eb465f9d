//! Processes by their ids: who belongs to a server, signals, and waiting for an end.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const LOOK: Duration = Duration::from_millis(10);

/// Returns a process and its children. A server's processes have no children of their own.
pub(crate) fn with_children(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let children = pids.filter(|pid| Stat::read(*pid).is_some_and(|stat| stat.parent == parent));
    [parent].into_iter().chain(children).collect()
}

/// Sends a signal such as `-KILL` to processes, as far as they exist.
pub(crate) fn signal(name: &str, pids: &[u32]) {
    if pids.is_empty() {
        return;
    }
    let _ = Command::new("kill").arg(name).args(pids.iter().map(u32::to_string)).stderr(Stdio::null()).status();
}

/// Waits until all these processes have ended, for a limited time. Returns whether they have.
pub(crate) fn wait_until_ended(pids: &[u32], limit: Duration) -> bool {
    let deadline = Instant::now() + limit;
    // A process that its parent has not looked after yet has ended too.
    while pids.iter().any(|pid| Stat::read(*pid).is_some_and(|stat| stat.state != 'Z')) {
        if Instant::now() > deadline {
            return false;
        }
        sleep(LOOK);
    }
    true
}

/// The state of a process, as the system tells it.
struct Stat {
    state: char,
    parent: u32,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name before the state, in brackets, may hold anything.
    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.rsplit_once(')')?.1.split_whitespace();
        Some(Self { state: fields.next()?.chars().next()?, parent: fields.next()?.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_and_parent_are_read_behind_any_name() {
        let stat = Stat::parse("42 (a) b) S 7 42 42 0").unwrap();
        assert_eq!((stat.state, stat.parent), ('S', 7));
    }

    #[test]
    fn child_that_is_killed_has_ended_before_its_parent_looks_after_it() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        assert!(with_children(std::process::id()).contains(&child.id()));
        assert!(!wait_until_ended(&[child.id()], Duration::ZERO));
        signal("-KILL", &[child.id()]);
        assert!(wait_until_ended(&[child.id()], Duration::from_secs(60)));
        child.wait().unwrap();
    }
}
