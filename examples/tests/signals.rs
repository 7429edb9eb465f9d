//! Real processes that are asked to end.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use dacapo_engine::{Reader, RunId};
use dacapo_sqlite::SqliteStore;
use dacapo_store::Status;
use tempfile::TempDir;

struct Shift {
    process: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Shift {
    /// A process that is at work.
    fn begin(file: &Path, work: &str, times: [&str; 3]) -> Self {
        Self::begin_with(file, work, times, &[])
    }

    /// The same with these settings in its environment.
    fn begin_with(file: &Path, work: &str, times: [&str; 3], settings: &[(&str, &str)]) -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_shift"))
            .arg(file)
            .arg(work)
            .args(times)
            .envs(settings.iter().copied())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, "working\n");
        let err = BufReader::new(process.stderr.take().unwrap());
        Self { process, out, err }
    }

    fn signal(&self, signal: &str) {
        let sent = Command::new("kill").arg(signal).arg(self.process.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// Returns the rest of its output, and its exit code.
    fn end(mut self) -> (String, Option<i32>) {
        let mut said = String::new();
        self.out.read_to_string(&mut said).unwrap();
        (said, self.process.wait().unwrap().code())
    }
}

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shift.db");
    (folder, file)
}

fn status(file: &Path) -> Status {
    let store = SqliteStore::open_read_only(file.to_str().unwrap()).unwrap();
    Reader::new(std::sync::Arc::new(store)).describe(&RunId::of("shift")).unwrap().status
}

/// S3-46
#[test]
fn work_that_ends_after_a_signal_is_recorded_before_the_process_ends() {
    for signal in ["-TERM", "-INT"] {
        let (_folder, file) = folder();
        let shift = Shift::begin(&file, "brief", ["60000", "60000", "120000"]);
        shift.signal(signal);
        std::fs::write(format!("{}-go", file.display()), "").unwrap();
        assert_eq!(shift.end(), ("asked to stop: 0, cut off: 0\n".to_owned(), Some(0)));
        assert_eq!(status(&file), Status::Completed);
    }
}

/// S3-16
#[test]
fn work_that_takes_longer_is_asked_to_stop_and_goes_on_with_the_next_process() {
    let (_folder, file) = folder();
    let shift = Shift::begin(&file, "polite", ["50", "60000", "120000"]);
    shift.signal("-TERM");
    assert_eq!(shift.end(), ("asked to stop: 1, cut off: 0\n".to_owned(), Some(0)));
    assert_eq!(status(&file), Status::Open);
    let next = Shift::begin(&file, "polite", ["50", "60000", "120000"]);
    next.signal("-TERM");
    assert_eq!(next.end().1, Some(0));
}

/// S3-36, S3-48
#[test]
fn work_that_never_stops_ends_the_process_with_code_one() {
    let (_folder, file) = folder();
    let shift = Shift::begin(&file, "deaf", ["50", "50", "500"]);
    shift.signal("-TERM");
    let (said, code) = shift.end();
    assert_eq!((said.as_str(), code), ("asked to stop: 1, cut off: 1\n", Some(1)));
    assert_eq!(status(&file), Status::Open, "nothing of it is lost");
}

/// The runtime's only thread, which drives its timers and signals, is blocked: the process did not hear that it is to end.
#[test]
fn work_that_blocks_the_runtime_does_not_keep_the_process_from_ending() {
    let (_folder, file) = folder();
    let one_thread = [("TOKIO_WORKER_THREADS", "1")];
    let shift = Shift::begin_with(&file, "hog", ["50", "50", "500"], &one_thread);
    shift.signal("-TERM");
    assert_eq!(shift.end().1, Some(1));
    let shift = Shift::begin_with(&file, "hog", ["60000", "60000", "120000"], &one_thread);
    shift.signal("-TERM");
    shift.signal("-INT");
    assert_eq!(shift.end().1, Some(1), "the second signal ends it at once");
    assert_eq!(status(&file), Status::Open, "nothing of it is lost");
}

/// After the first signal the process says what it waits for; the second one ends it.
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let (_folder, file) = folder();
    let mut shift = Shift::begin(&file, "deaf", ["60000", "60000", "120000"]);
    shift.signal("-INT");
    let mut line = String::new();
    shift.err.read_line(&mut line).unwrap();
    let waits = "dacapo: it was asked to end and waits for 1 attempts (deaf): for up to 1m, and for 1m more once they are asked \
                 to stop. Asked again, it ends at once\n";
    assert_eq!(line, waits);
    shift.signal("-INT");
    line.clear();
    shift.err.read_line(&mut line).unwrap();
    assert_eq!(line, "dacapo: the process ends now, with exit code 1: it was asked to end again\n");
    assert_eq!(shift.end(), (String::new(), Some(1)));
    assert_eq!(status(&file), Status::Open, "nothing of it is lost");
}

/// S3-34, S3-36, S3-40: the process gets no signal; one zombie is more than its queue allows, and the zombie's thread never returns.
#[test]
fn too_many_zombies_end_the_process_with_code_one() {
    let (_folder, file) = folder();
    let settings = [
        ("DACAPO_MAX_ZOMBIE_COUNT", "1"),
        ("DACAPO_QUEUE_DEFAULT_ZOMBIE_GRACE_PERIOD", "50ms"),
        ("DACAPO_ZOMBIE_SHUTDOWN_TIMEOUT", "50ms"),
    ];
    let shift = Shift::begin_with(&file, "zombie", ["50", "50", "500"], &settings);
    assert_eq!(shift.end(), (String::new(), Some(1)));
    assert_eq!(status(&file), Status::Open, "the next process tries it again");
}
