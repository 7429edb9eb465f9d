//! The program under test: a file, a log of attempts, and one process after the other.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

pub(crate) struct Mill {
    folder: TempDir,
    pieces: usize,
}

/// How a process ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Killed,
    Done,
}

/// A line of the log: an attempt that touched the world.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Line {
    pub(crate) life: u32,
    /// Workflow id, run id and activity id.
    pub(crate) key: String,
    pub(crate) attempt: u32,
}

impl Mill {
    pub(crate) fn new(pieces: usize) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), pieces }
    }

    pub(crate) fn file(&self) -> String {
        self.path("mill.db").to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a process.
    pub(crate) fn start(&self, life: u32) -> Child {
        Command::new(env!("CARGO_BIN_EXE_mill"))
            .args([self.file(), self.path("log").to_str().unwrap().to_owned(), life.to_string()])
            .arg(self.pieces.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Lets a process live for so long at most, or until its work is done.
    pub(crate) fn live(&self, life: u32, patience: Option<Duration>) -> Ended {
        let mut process = self.start(life);
        let mut output = process.stdout.take().unwrap();
        let (ended, end) = mpsc::channel();
        // Its output ends when the process does: that is waited for, and not polled.
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = output.read_to_string(&mut text);
            let _ = ended.send(());
            text
        });
        let ended_by_itself = end.recv_timeout(patience.unwrap_or(Duration::from_secs(60))).is_ok();
        if !ended_by_itself {
            process.kill().unwrap();
            assert!(patience.is_some(), "the work takes more than a minute");
        }
        let output = process.wait_with_output().unwrap();
        let text = reader.join().unwrap();
        // Killed it has no exit code.
        match output.status.code() {
            Some(0) => {
                assert!(text.ends_with("done\n"), "{text}");
                Ended::Done
            }
            None => Ended::Killed,
            Some(code) => panic!("life {life} ended with {code}: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }

    /// All attempts so far.
    pub(crate) fn log(&self) -> Vec<Line> {
        let text = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        assert!(text.is_empty() || text.ends_with('\n'), "a line is one write");
        text.lines().map(Line::read).collect()
    }
}

impl Line {
    fn read(line: &str) -> Self {
        let parts: Vec<&str> = line.split(' ').collect();
        let [life, key, attempt] = parts[..] else { panic!("{line:?} is no line of the log") };
        Self { life: life.parse().unwrap(), key: key.to_owned(), attempt: attempt.parse().unwrap() }
    }
}

/// Waits until a process says this.
pub(crate) fn wait_for(output: &mut ChildStdout, words: &str) {
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line.trim_end(), words);
}
